"""The ledger: all that the log adds up to, in memory. `apply` folds one entry; everything else reads.

Answers are frozen copies and never depend on row numbers, so that a ledger folded from the first entry and one taken
up from a checkpoint say the same.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from armada.model.events import Entry, Position
from armada.model.fleet import Node, Queue
from armada.model.lifecycle import JobState, RunState
from armada.model.policy import RetryPolicy, SchedulingPolicy
from armada.model.resources import Vector
from armada.scheduling.snapshot import PoolSnapshot
from armada.state import checkpoint
from armada.state.figures.standing import Standing, taken
from armada.state.fold import Fold
from armada.state.holdings.gangs import GangRows
from armada.state.holdings.jobs import CANCEL_REQUESTED, PREEMPT_REQUESTED
from armada.state.holdings.runs import Extras
from armada.state.holdings.witness import Witness
from armada.state.memory import fingerprint, without
from armada.state.pools import Circumstances, PoolReader
from armada.state.questions import LeaderQuestions
from armada.state.records import ExecutorRecord, GangRecord, JobRecord, RunHead, RunRecord
from armada.state.table import NONE, ensure

_NO_EXTRAS: Final[Extras] = ((), {})


class Ledger(LeaderQuestions):
    """The fold of a log."""

    def __init__(self, policy: SchedulingPolicy, fold: Fold | None = None) -> None:
        """Begin before the first entry, or go on with a fold under the same policy."""
        self._fold = fold = fold or Fold(policy)
        self._pools = PoolReader(fold, policy)
        self._jobs, self._runs, self._fleet = fold.jobs, fold.runs, fold.fleet

    @classmethod
    def from_bytes(cls, payload: bytes, policy: SchedulingPolicy) -> "Ledger":
        """Take up a ledger from a checkpoint.

        Raises:
            CorruptEntry: the payload is damaged, or of a version that this code does not read.
        """
        return cls(policy, checkpoint.from_bytes(payload, policy))

    def to_bytes(self) -> bytes:
        """Return a checkpoint: everything, so that a ledger taken up from it goes on as this one would."""
        return self.taken().packed()

    def taken(self) -> checkpoint.Taken:
        """Return a copy of everything, of which any thread may make the checkpoint while this ledger goes on."""
        return checkpoint.taken(self._fold)

    def apply(self, entry: Entry) -> None:
        """Fold an entry. One at or below `position` is known already; what does not fit is void."""
        self._fold.apply(entry)

    def show_to(self, witness: Witness) -> None:
        """Have a witness told of every fact from now on."""
        self._fold.witness = witness

    # -- the log ------------------------------------------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """The last entry that was applied; 0 before the first."""
        return self._fold.position

    @property
    def time_ms(self) -> int:
        """The largest time of an entry that counted."""
        return self._fold.time_ms

    @property
    def epoch(self) -> int:
        """The current term of leadership; 0 before the first."""
        return self._fold.epoch

    @property
    def holder(self) -> str:
        """Who leads in this term."""
        return self._fold.holder

    def void_rows(self, position: Position) -> frozenset[tuple[int, int]]:
        """Return which (event, row) of an entry changed nothing; row -1 is the event, (-1, -1) the entry."""
        return self._fold.voids.at(position)

    def effective(self, entry: Entry) -> Entry:
        """Return the entry without its void parts: the same object when there are none."""
        return without(entry, self._fold.voids.at(entry.position))

    def forget_voids(self, below: Position) -> None:
        """Forget which facts were void in entries that the log no longer holds."""
        self._fold.voids.forget_below(below)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    @property
    def job_count(self) -> int:
        """Jobs held, ended ones included whose runs still hold room."""
        return len(self._jobs)

    @property
    def run_count(self) -> int:
        """Runs held, live and ended."""
        return len(self._runs)

    def has_job(self, job_id: str) -> bool:
        """Return True when the job is in the ledger."""
        return self._jobs.ids.find(job_id) != NONE

    def job_state(self, job_id: str) -> JobState | None:
        """Return a job's state, or None when the ledger does not hold it (it never came, or has ended and left)."""
        row = self._jobs.ids.find(job_id)
        return None if row == NONE else JobState(self._jobs.state[row])

    def job(self, job_id: str) -> JobRecord | None:
        """Return a job."""
        row = self._jobs.ids.find(job_id)
        return None if row == NONE else self._job_record(row)

    def _job_record(self, row: int) -> JobRecord:
        jobs = self._jobs
        queue, job_set = jobs.sets[jobs.job_set[row]]
        kind = jobs.kinds[jobs.kind[row]]
        origin = jobs.origins[jobs.origin[row]]
        gang, run, flags = jobs.gang[row], jobs.run[row], jobs.flags[row]
        return JobRecord(
            job_id=jobs.ids.id(row),
            queue=queue,
            job_set=job_set,
            state=JobState(jobs.state[row]),
            priority=jobs.priority[row],
            shape=jobs.shapes[kind.shape],
            gang=None if gang == NONE else jobs.gangs[gang].spec,
            fail_fast=kind.fail_fast,
            price_band=kind.price_band,
            pools=kind.pools,
            namespace=origin.namespace,
            external_job_uri=origin.external_job_uri,
            owner=origin.owner,
            groups=origin.groups,
            submitted_ms=jobs.submitted_ms[row],
            spec_position=jobs.spec_position[row],
            spec_index=jobs.spec_index[row],
            run_id="" if run == NONE else self._runs.run_id(run),
            runs_leased=jobs.runs_leased[row],
            runs_attempted=jobs.runs_attempted[row],
            runs_failed=jobs.runs_failed[row],
            avoid_nodes=jobs.avoid_nodes.get(row, ()),
            growth=jobs.growth.get(row),
            requeues_preempted=kind.requeues_preempted,
            cancel_requested=bool(flags & CANCEL_REQUESTED),
            preempt_requested=bool(flags & PREEMPT_REQUESTED),
        )

    @property
    def next_sequence(self) -> int:
        """The submit number that the next job will get."""
        return self._jobs.next_sequence

    def job_at(self, row: int, as_of: int) -> str | None:
        """Return the id of the job that stood in a row when `next_sequence` was `as_of`, unless it has left since."""
        if row >= self._jobs.high or not 0 < self._jobs.sequence[row] < as_of:
            return None
        return self._jobs.ids.id(row)

    def jobs_in_set(self, queue: str, job_set: str, *, live_only: bool = True) -> tuple[str, ...]:
        """Return the ids of a job set's jobs in submit order."""
        return self._job_ids(self._jobs.rows_in_set(queue, job_set), live_only=live_only)

    def jobs_in_queue(self, queue: str, *, live_only: bool = True) -> tuple[str, ...]:
        """Return the ids of a queue's jobs in submit order. Costs a pass over all jobs."""
        return self._job_ids(self._jobs.rows_in_queue(queue).tolist(), live_only=live_only)

    def _job_ids(self, rows: Iterable[int], *, live_only: bool) -> tuple[str, ...]:
        jobs = self._jobs
        limit = JobState.SUCCEEDED if live_only else len(JobState)
        return tuple(jobs.ids.id(row) for row in rows if jobs.state[row] < limit)

    def client_job(self, queue: str, client_id: str) -> str | None:
        """Return the id of the job that a queue's client id named in the last days, ended or not."""
        return self._fold.clients.text(fingerprint(queue, client_id))

    def gang(self, queue: str, gang_id: str) -> GangRecord | None:
        """Return a gang of which the ledger holds a member."""
        gang = self._find_gang(queue, gang_id)
        if gang is None:
            return None
        return GangRecord(
            queue=queue,
            gang=gang.spec,
            priority_class=gang.priority_class,
            submitted=gang.submitted,
            member_ids=tuple(self._jobs.ids.id(row) for row in gang.rows),
        )

    def gang_members(self, queue: str, gang_id: str) -> tuple[str, ...]:
        """Return the ids of a gang's members that the ledger holds, in submit order."""
        gang = self._find_gang(queue, gang_id)
        return () if gang is None else tuple(self._jobs.ids.id(row) for row in gang.rows)

    def _find_gang(self, queue: str, gang_id: str) -> GangRows | None:
        number = self._jobs.queues.find(queue)
        return None if number == NONE else self._jobs.gangs.find(number, gang_id)

    def counts(self) -> dict[str, tuple[int, ...]]:
        """Return for every queue that exists or has jobs the number of its jobs by state, in name order."""
        return {name: tuple(self._jobs.counts(number)) for name, number in self._queue_numbers()}

    def _queue_numbers(self) -> list[tuple[str, int]]:
        return sorted((name, number) for number, name in self._jobs.queues)

    # -- runs ---------------------------------------------------------------------------------------------------------

    def run_state(self, run_id: str) -> RunState | None:
        """Return a run's state, or None when the ledger does not hold it."""
        row = self._runs.rows.get(run_id)
        return None if row is None else RunState(self._runs.state[row])

    def run_head(self, run_id: str) -> RunHead | None:
        """Return what a report about a run is checked against."""
        row = self._runs.rows.get(run_id)
        if row is None:
            return None
        job = self._runs.job[row]
        queue, job_set = self._jobs.sets[self._jobs.job_set[job]]
        return RunHead(
            job_id=self._jobs.ids.id(job),
            queue=queue,
            job_set=job_set,
            executor_id=self._runs.executors[self._runs.executor[row]],
            state=RunState(self._runs.state[row]),
            is_current=self._jobs.run[job] == row,
        )

    def run(self, run_id: str) -> RunRecord | None:
        """Return a run."""
        row = self._runs.rows.get(run_id)
        return None if row is None else self._run_record(row)

    def _run_record(self, row: int) -> RunRecord:
        runs, jobs = self._runs, self._jobs
        job = runs.job[row]
        queue, job_set = jobs.sets[jobs.job_set[job]]
        tolerations, overlay = runs.extras.get(row, _NO_EXTRAS)
        return RunRecord(
            run_id=runs.run_id(row),
            job_id=jobs.ids.id(job),
            queue=queue,
            job_set=job_set,
            attempt=runs.attempt[row],
            state=RunState(runs.state[row]),
            executor_id=runs.executors[runs.executor[row]],
            node_id=runs.nodes[runs.node[row]],
            node_name=runs.node_names[runs.node_name[row]],
            pool=runs.pools[runs.pool[row]],
            priority=runs.priority[row],
            leased_ms=runs.leased_ms[row],
            pending_ms=runs.pending_ms[row],
            started_ms=runs.started_ms[row],
            ended_ms=runs.ended_ms[row],
            tolerations=tolerations,
            overlay=dict(overlay),
            is_current=jobs.run[job] == row,
            job_state=JobState(jobs.state[job]),
        )

    def runs_of_job(self, job_id: str) -> tuple[RunRecord, ...]:
        """Return a job's runs that the ledger holds, oldest first."""
        job = self._jobs.ids.find(job_id)
        row = NONE if job == NONE else self._jobs.run[job]
        found = []
        while row != NONE:
            found.append(self._run_record(row))
            row = self._runs.older[row]
        return tuple(reversed(found))

    def runs_of_executor(self, executor_id: str) -> tuple[RunRecord, ...]:
        """Return an executor's runs, live ones and those not released yet, in lease order. A pass over all runs."""
        rows = self._runs.rows_where("executor", self._runs.executors.find(executor_id))
        return tuple(self._run_record(row) for row in rows)

    def runs_to_start(self, executor_id: str, limit: int = 0) -> tuple[RunRecord, ...]:
        """Return an executor's leased runs that it has not confirmed, oldest lease first; `limit` 0 means all."""
        runs = self._runs.by_executor.get(self._runs.executors.find(executor_id))
        if runs is None:
            return ()
        rows = self._runs.in_lease_order(list(runs.to_start))
        return tuple(self._run_record(row) for row in (rows[:limit] if limit else rows))

    def runs_to_end(self, executor_id: str) -> tuple[str, ...]:
        """Return the ids of an executor's runs that have ended and are not released, oldest lease first."""
        runs = self._runs.by_executor.get(self._runs.executors.find(executor_id))
        if runs is None:
            return ()
        return tuple(self._runs.run_id(row) for row in self._runs.in_lease_order(list(runs.to_end)))

    def node_runs(self, node_id: str) -> tuple[str, ...]:
        """Return the ids of all runs that hold room on a node, in lease order. A pass over all runs."""
        rows = self._runs.rows_where("node", self._runs.nodes.find(node_id))
        return tuple(self._runs.run_id(row) for row in rows)

    # -- queues and fleet ---------------------------------------------------------------------------------------------

    @property
    def queues(self) -> Mapping[str, Queue]:
        """All queues by name, in order of creation."""
        return MappingProxyType(self._fleet.queues)

    @property
    def retry_policies(self) -> Mapping[str, RetryPolicy]:
        """All retry policies by name, in order of creation."""
        return MappingProxyType(self._fold.retry_policies)

    @property
    def executors(self) -> Mapping[str, ExecutorRecord]:
        """All executors by id, in index order."""
        found = ((executor_id, self._fleet.executor(executor_id)) for executor_id in self._fleet.executor_ids())
        return {executor_id: record for executor_id, record in found if record is not None}

    def executor(self, executor_id: str) -> ExecutorRecord | None:
        """Return one executor."""
        return self._fleet.executor(executor_id)

    @property
    def fleet_version(self) -> int:
        """A number that grows with any change of nodes, executors or their settings; it means nothing elsewhere."""
        return self._fleet.version

    def node(self, node_id: str) -> Node | None:
        """Return a node as its executor last reported it."""
        return self._fleet.node(node_id)

    def pools(self) -> tuple[str, ...]:
        """Return the pools of all known nodes, in index order."""
        return self._fleet.pools()

    def pool_snapshot(self, pool: str, circumstances: Circumstances) -> PoolSnapshot:
        """Return all that a round of a pool decides by, as it is now; later facts do not touch it.

        Jobs are named by row: see `job_at`.
        """
        return self._pools.snapshot(pool, circumstances)

    def penalties(self, pool: str, now_ms: int) -> dict[str, Vector]:
        """Return by queue what jobs that ended too soon in a pool still count now, in column units."""
        return self._fold.short_jobs.penalties(pool, now_ms, self._fold.time_ms)

    def standing(self) -> Standing:
        """Return copies of all columns that figures are made of, as they are now."""
        return taken(self._fold, self._pools.shapes())

    # -- checks -------------------------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Check every invariant. Costs several passes over everything: for tests, the simulator and repair.

        Raises:
            AssertionError: one is broken; the text says which.
        """
        self._jobs.validate()
        self._runs.validate()
        self._fleet.validate()
        self._fold.clients.validate()
        self._fold.batches.validate()
        self._validate_leases()

    def _validate_leases(self) -> None:
        jobs, runs = self._jobs, self._runs
        held: dict[int, int] = {}
        for row in runs.used_rows().tolist():
            held[runs.job[row]] = held.get(runs.job[row], 0) + 1
        for row in jobs.used_rows().tolist():
            job_id = jobs.ids.id(row)
            chain = []
            run = jobs.run[row]
            while run != NONE:
                ensure(runs.job[run] == row, f"job {job_id} claims another's run")
                chain.append(run)
                run = runs.older[run]
            ensure(len(chain) == jobs.runs_held[row] == held.get(row, 0), f"runs of job {job_id} are miscounted")
            ensure(
                chain == sorted(chain, key=runs.sequence.__getitem__, reverse=True), f"runs of {job_id} out of order"
            )
            live = [run for run in chain if runs.state[run] < RunState.SUCCEEDED]
            state = JobState(jobs.state[row])
            ensure(live in ([], chain[:1]), f"job {job_id} has a live run that is not its current one")
            ensure(state.is_active <= bool(chain), f"active job {job_id} has no run")
            ensure(bool(live) <= state.is_active, f"job {job_id} is {state.name} and has a live run")
            if live:
                ensure(state - JobState.LEASED == runs.state[live[0]], f"job {job_id} and its run disagree")
            ensure(state < JobState.SUCCEEDED or chain, f"ended job {job_id} holds nothing and is still here")
            ensure(jobs.runs_leased[row] >= len(chain), f"job {job_id} has more runs than leases")
            ensure(jobs.runs_failed[row] <= jobs.runs_attempted[row] <= jobs.runs_leased[row], f"counts of {job_id}")

    def digest(self) -> str:
        """Return a hash of all content.

        Equal for equal logs, whatever the row numbers, checkpoints taken up or repeats met on the way. It covers
        neither `position` nor which facts were void.
        """
        return checkpoint.digest(self._fold)
