"""What the leader asks a ledger many times a second: answered from columns, whatever else the ledger holds."""

from collections.abc import Iterable

import msgspec
import numpy as np

from armada.model.jobs import JobShape
from armada.model.lifecycle import JobState, RunState
from armada.state.holdings.fleet import Fleet
from armada.state.holdings.jobs import JobKind, Jobs
from armada.state.holdings.runs import Runs
from armada.state.table import NONE, Rows


class QueuedKind(msgspec.Struct, frozen=True):
    """Plain jobs of a queue that are all answered alike: same shape, same pools."""

    queue: str
    shape: JobShape
    pools: tuple[str, ...] | None


class LeaderQuestions:
    """Questions to jobs, runs and fleet; the ledger answers them."""

    _jobs: Jobs
    _runs: Runs
    _fleet: Fleet

    # -- executors ----------------------------------------------------------------------------------------------------

    def executor_ids(self) -> tuple[str, ...]:
        """Return the ids of all executors that have reported, in index order."""
        return self._fleet.executor_ids()

    def lease_holders(self) -> tuple[str, ...]:
        """Return the ids of all executors that have live runs, known or deleted, in the order of their first ones."""
        return tuple(
            self._runs.executors[number]
            for number, runs in self._runs.by_executor.items()
            if runs.to_start or runs.confirmed
        )

    def is_cordoned(self, executor_id: str) -> bool:
        """Say if an operator wants an executor to get no new work."""
        record = self._fleet.executor(executor_id)
        return record is not None and record.settings.cordoned

    def unstarted_count(self, executor_id: str, pools: Iterable[str] | None = None) -> int:
        """Return how many leases an executor has not confirmed, of these pools (None: all, at once)."""
        runs = self._runs.by_executor.get(self._runs.executors.find(executor_id))
        if runs is None or pools is None:
            return 0 if runs is None else len(runs.to_start)
        wanted = dict.fromkeys(map(self._runs.pools.find, pools))
        pool_of = self._runs.pool
        return sum(pool_of[row] in wanted for row in runs.to_start)

    def confirmed_count(self, executor_id: str) -> int:
        """Return how many runs of an executor are pending or running."""
        runs = self._runs.by_executor.get(self._runs.executors.find(executor_id))
        return 0 if runs is None else len(runs.confirmed)

    def confirmed_runs(self, executor_id: str) -> tuple[str, ...]:
        """Return the ids of an executor's pending and running runs, oldest lease first."""
        runs = self._runs.by_executor.get(self._runs.executors.find(executor_id))
        if runs is None:
            return ()
        return tuple(self._runs.run_id(row) for row in self._runs.in_lease_order(list(runs.confirmed)))

    # -- queued jobs --------------------------------------------------------------------------------------------------

    def queued_count(self) -> int:
        """Return the number of queued jobs over all queues."""
        return sum(self._jobs.counts(number)[JobState.QUEUED] for number, _ in self._jobs.queues)

    def holds_shape(self, shape: JobShape) -> bool:
        """Say if a job of this shape is here."""
        return self._jobs.shapes.find(shape) != NONE

    def queued_kinds(self) -> tuple[QueuedKind, ...]:
        """Return the distinct kinds of queued jobs without a gang, in order of queues and kinds."""
        rows = self._queued_rows()
        rows = rows[self._jobs.column("gang")[rows] == NONE]
        kinds = max(1, self._jobs.kinds.high)
        codes = self._jobs.column("queue")[rows].astype(np.int64) * kinds + self._jobs.column("kind")[rows]
        found: dict[QueuedKind, None] = {}
        for queue, number in (divmod(code, kinds) for code in np.unique(codes).tolist()):
            kind: JobKind = self._jobs.kinds[number]
            found[QueuedKind(self._jobs.queues[queue], self._jobs.shapes[kind.shape], kind.pools)] = None
        return tuple(found)

    def queued_gangs(self) -> tuple[tuple[str, str], ...]:
        """Return (queue, gang id) of every gang with a queued member, in order of the gangs' numbers."""
        rows = self._queued_rows()
        gangs = self._jobs.column("gang")[rows]
        _, first = np.unique(gangs[gangs != NONE], return_index=True)
        members = rows[gangs != NONE][first].tolist()
        return tuple(
            (self._jobs.queues[self._jobs.queue[row]], self._jobs.gangs[self._jobs.gang[row]].spec.id)
            for row in members
        )

    def queued_jobs_of(self, queue: str, shape: JobShape, pools: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return the ids of a queue's queued jobs of a kind, without a gang, in submit order."""
        jobs = self._jobs
        shape_number = jobs.shapes.find(shape)
        kinds = [number for number, kind in jobs.kinds if kind.shape == shape_number and kind.pools == pools]
        rows = self._queued_rows()
        wanted = (jobs.column("queue")[rows] == jobs.queues.find(queue)) & (jobs.column("gang")[rows] == NONE)
        rows = rows[wanted & np.isin(jobs.column("kind")[rows], np.array(kinds, np.int32))]
        rows = rows[np.argsort(jobs.column("sequence")[rows], kind="stable")]
        return tuple(jobs.ids.id(row) for row in rows.tolist())

    def _queued_rows(self) -> Rows:
        used = self._jobs.used_rows()
        queued: Rows = used[self._jobs.column("state")[used] == int(JobState.QUEUED)]
        return queued

    def row_of(self, job_id: str, as_of: int) -> int | None:
        """Return the row that a job had when `next_sequence` was `as_of`; None when it came later or is not here."""
        row = self._jobs.ids.find(job_id)
        return row if row != NONE and self._jobs.sequence[row] < as_of else None

    def rows_as_of(self, rows: Rows, as_of: int) -> Rows:
        """Return those of some rows whose job is the one that stood there when `next_sequence` was `as_of`."""
        inside = rows[rows < self._jobs.high]
        sequence = self._jobs.column("sequence")[inside]
        chosen: Rows = inside[(sequence > 0) & (sequence < as_of)]
        return chosen

    def packed_ids(self, rows: Rows) -> tuple[bytes, tuple[tuple[int, str], ...]]:
        """Return the ids of rows side by side, and those of other lengths with their place among the rows."""
        return self._jobs.ids.pack(rows)

    # -- runs ---------------------------------------------------------------------------------------------------------

    def live_runs_on(self, node_ids: Iterable[str], pools: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return the ids of live runs on these nodes, of these pools (None: all), in lease order. A pass over runs."""
        rows = self._live_rows_on(node_ids, pools)
        return tuple(self._runs.run_id(row) for row in self._runs.in_lease_order(rows.tolist()))

    def _live_rows_on(self, node_ids: Iterable[str], pools: Iterable[str] | None) -> Rows:
        runs = self._runs
        wanted = np.zeros(runs.nodes.high + 1, np.bool_)
        wanted[[number for number in map(runs.nodes.find, node_ids) if number != NONE]] = True
        live = self._live_runs()
        rows: Rows = live[wanted[runs.column("node")[live]]]
        if pools is not None:
            rows = rows[np.isin(runs.column("pool")[rows], [runs.pools.find(pool) for pool in pools])]
        return rows

    def live_shapes_on(self, node_ids: Iterable[str], pool: str) -> tuple[tuple[str, JobShape], ...]:
        """Return the distinct (node, shape as submitted) of a pool's live runs on these nodes. A pass over runs."""
        jobs, runs = self._jobs, self._runs
        rows = self._live_rows_on(node_ids, (pool,))
        kinds = max(1, jobs.kinds.high)
        codes = runs.column("node")[rows].astype(np.int64) * kinds + jobs.column("kind")[runs.column("job")[rows]]
        pairs = (divmod(code, kinds) for code in np.unique(codes).tolist())
        found = ((runs.nodes[node], jobs.shapes[jobs.kinds[kind].shape]) for node, kind in pairs)
        return tuple(dict.fromkeys(found))

    def nodes_in_use(self, executor_id: str | None = None) -> tuple[str, ...]:
        """Return the ids of all nodes with a live run (of an executor), reported or not.

        For all executors that is a pass over the runs, for one a look at its own.
        """
        if executor_id is None:
            numbers = np.unique(self._runs.column("node")[self._live_runs()]).tolist()
        else:
            runs = self._runs.by_executor.get(self._runs.executors.find(executor_id))
            node_of = self._runs.node
            numbers = [node_of[row] for row in (*runs.to_start, *runs.confirmed)] if runs is not None else []
        return tuple(sorted(dict.fromkeys(self._runs.nodes[number] for number in numbers)))

    def _live_runs(self) -> Rows:
        used = self._runs.used_rows()
        live: Rows = used[self._runs.column("state")[used] < int(RunState.SUCCEEDED)]
        return live

    def active_queues(self) -> dict[str, list[str]]:
        """Return for each pool, in name order, the names of queues with a live run there."""
        runs = self._runs
        live = self._live_runs()
        queues = self._jobs.column("queue")[runs.column("job")[live]]
        pairs = np.unique(np.stack((runs.column("pool")[live], queues), axis=1), axis=0)
        found: dict[str, list[str]] = {}
        for pool, queue in pairs.tolist():
            found.setdefault(runs.pools[pool], []).append(self._jobs.queues[queue])
        return {pool: sorted(found[pool]) for pool in sorted(found)}
