"""Lets virtual time pass: submissions, rounds and endings become facts of a ledger, led by the production leader.

Time begins at the epoch. What happens by itself (submissions, endings) waits in a heap, ordered by time and then by the
order in which it was foreseen. At every multiple of the cycle period all that has happened by then is appended to the
ledger, and the leader is asked for what is due until it has nothing more to do. Executors confirm leases at once, and
let go of ended runs as soon as the cycle is over.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from armada.control.cycle import Leader
from armada.control.outcome import Outcome, RoundOrder
from armada.control.rounds.cadence import Cadence
from armada.control.sequences import merged_sequences
from armada.model.events import (
    Entry,
    Event,
    ExecutorReported,
    JobCancelled,
    JobPreempted,
    JobRejected,
    JobRequeued,
    JobSetEvents,
    JobsSubmitted,
    JobSucceeded,
    QueueCreated,
    RunLeased,
    RunPending,
    RunsReleased,
    RunStarted,
    RunSucceeded,
)
from armada.model.fleet import Node, Queue
from armada.model.lifecycle import JobState
from armada.model.policy import RateLimit, SchedulingPolicy
from armada.scheduling.round import schedule
from armada.simulation.whatif.results import CANCELLED, PREEMPTED, REJECTED, SUCCEEDED, JobEnd, Results
from armada.simulation.whatif.specs import CLUSTER_LABEL, ClusterSpec, FleetSpec, WorkloadSpec, stream
from armada.simulation.whatif.submitting import Batch, LiveJob, Submitter, Work
from armada.state.ledger import Ledger

STALL_CYCLES: Final = 3
"""So many cycles that change nothing, while nothing runs and nothing is to come, and the rest will wait for ever."""

_LEADER: Final = "simulation"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How time passes: rounds every `cycle_ms`; with `fast_forward` those are skipped before which nothing changed.

    The simulation stops at `end_ms`, when that is given, whatever has not ended by then.
    """

    cycle_ms: int = 10_000
    fast_forward: bool = False
    end_ms: int | None = None


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """How things stand after a cycle. `leased` and `preempted` are of this cycle, the other counts are of all time."""

    at_ms: int
    leased: int
    preempted: int
    queued: int
    running: int
    done: int
    total: int


class _Run(NamedTuple):
    """A run that will start and end, unless its job is preempted before."""

    job: LiveJob
    run_id: str


class Simulation:
    """One workload on one fleet. Walk through `ticks` to run it; then `results` has everything.

    `done` counts jobs that succeeded or were rejected, of `total`; `resubmitted` those that came again after
    preemption, `unsubmitted` those that never came. `rejections` are reasons by template.
    """

    def __init__(
        self, fleet: FleetSpec, workload: WorkloadSpec, policy: SchedulingPolicy, pace: Pace, seed: int
    ) -> None:
        """Prepare a simulation.

        Raises:
            InvalidRequest: a template of the workload does not fit the policy.
        """
        self._policy = as_simulated(policy)
        self._fleet = fleet
        self._workload = workload
        self._pace = pace
        self._submitter = Submitter(workload, self._policy, seed)
        self._pending_delays = stream(seed, "pending")
        self._workflow_delays = stream(seed, "workflow")
        self._ledger = Ledger(self._policy)
        cadence = Cadence(
            round_delay_ms=0, schedule_period_ms=pace.cycle_ms, fleet_settle_ms=0, rounds_without_jobs=True
        )
        self._leader = Leader(self._policy, cadence, _LEADER, 0)
        self._heap: list[tuple[int, int, Batch | Work | _Run]] = []
        self._starts: list[tuple[int, int, _Run]] = []
        self._foreseen = 0
        self._live: dict[str, LiveJob] = {}
        self._endings: list[JobSetEvents] = []
        self._submissions: list[JobSetEvents] = []
        self._to_release: list[str] = []
        self._of_cycle: list[Entry] = []
        self._preempted: list[LiveJob] = []
        self._running = 0
        self.total = workload.job_count
        self.done = 0
        self.resubmitted = 0
        self.unsubmitted = workload.job_count
        self.ended_ms = 0
        self.is_out_of_time = False
        self.rejections: dict[str, str] = {}
        self.results = Results()

    # -- time ---------------------------------------------------------------------------------------------------------

    def ticks(self) -> Iterator[Tick]:
        """Run until every job has ended, or those that are left will wait for ever, or the time is up."""
        self._begin()
        now_ms, idle_cycles = 0, 0
        while not self._is_late(now_ms):
            self._catch_up(now_ms)
            before = self._ledger.position
            leased, preempted = self._cycle(now_ms)
            idle_cycles = 0 if self._ledger.position != before else idle_cycles + 1
            self._note_lengths(now_ms)
            yield self._tick(now_ms, leased, preempted)
            if not self._heap and (not self._live or (not self._running and idle_cycles >= STALL_CYCLES)):
                break
            now_ms = self._next_ms(now_ms, has_changed=not idle_cycles)
        else:
            now_ms, self.is_out_of_time = self._pace.end_ms or 0, True
            self._catch_up(now_ms)
        self._stop(now_ms)
        yield self._tick(now_ms, 0, 0)

    def _is_late(self, now_ms: int) -> bool:
        return self._pace.end_ms is not None and now_ms > self._pace.end_ms

    def _next_ms(self, now_ms: int, *, has_changed: bool) -> int:
        period_ms = self._pace.cycle_ms
        if has_changed or not self._pace.fast_forward or not self._heap:
            return now_ms + period_ms
        ahead_ms = max(self._heap[0][0] - now_ms, 1)
        return now_ms + -(-ahead_ms // period_ms) * period_ms

    def _begin(self) -> None:
        for cluster in self._fleet.clusters:
            nodes = tuple(_nodes(cluster, self._policy.node_id_label))
            fact = ExecutorReported(at_ms=0, executor_id=cluster.name, pool=cluster.pool, nodes=nodes)
            self._append([JobSetEvents("", "", (fact,))], 0)
        queues = [Queue(name=queue.name, priority_factor=1.0 / queue.weight) for queue in self._workload.queues]
        created = tuple(QueueCreated(at_ms=0, queue=queue) for queue in queues)
        self._append([JobSetEvents("", "", created)], 0)
        for work in self._submitter.works.values():
            if not work.waits_for:
                self._foresee_work(work, work.spec.earliest_ms)

    # -- what happens by itself ---------------------------------------------------------------------------------------

    def _foresee(self, at_ms: int, subject: Batch | Work | _Run) -> None:
        """Foresee that a batch or a repeat of a template is submitted, or that a job ends."""
        self._foreseen += 1
        heapq.heappush(self._heap, (at_ms, self._foreseen, subject))

    def _foresee_work(self, work: Work, at_ms: int) -> None:
        for repeat in range(work.spec.repeats):
            self._foresee(at_ms + repeat * work.spec.period_ms, work)

    def _catch_up(self, now_ms: int) -> None:
        """Let everything happen that is due by now, and make it facts."""
        while self._starts and self._starts[0][0] <= now_ms:
            at_ms, _, run = heapq.heappop(self._starts)
            self._start(run, at_ms)
        while self._heap and self._heap[0][0] <= now_ms:
            at_ms, _, subject = heapq.heappop(self._heap)
            if isinstance(subject, _Run):
                self._succeed(subject, at_ms)
            else:
                self._submit(subject, at_ms)
        self._append(merged_sequences(self._endings), now_ms)
        self._endings.clear()
        self._release(now_ms)
        self._append(_joined(self._submissions), now_ms)
        self._submissions.clear()

    def _submit(self, subject: Batch | Work, at_ms: int) -> None:
        if isinstance(subject, Work):
            batch = self._submitter.instance(subject)
            self.unsubmitted -= len(batch.runtimes_ms)
        else:
            batch = subject
        facts, jobs = self._submitter.submit(batch, at_ms)
        spec = batch.work.spec
        self._submissions += [JobSetEvents(batch.work.queue, spec.job_set, (fact,)) for fact in facts]
        self._live.update((job.job_id, job) for job in jobs)

    def _start(self, run: _Run, at_ms: int) -> None:
        job = run.job
        if self._goes_on(run):
            started = RunStarted(at_ms=at_ms, job_id=job.job_id, run_id=job.run_id)
            self._endings.append(JobSetEvents(job.work.queue, job.work.spec.job_set, (started,)))

    def _goes_on(self, run: _Run) -> bool:
        """Say if a run has not been preempted meanwhile."""
        return run.job.job_id in self._live and run.job.run_id == run.run_id

    def _succeed(self, run: _Run, at_ms: int) -> None:
        job = run.job
        if not self._goes_on(run):
            return
        ended = RunSucceeded(at_ms=at_ms, job_id=job.job_id, run_id=job.run_id)
        succeeded = JobSucceeded(at_ms=at_ms, job_id=job.job_id)
        self._endings.append(JobSetEvents(job.work.queue, job.work.spec.job_set, (ended, succeeded)))
        self._to_release.append(job.run_id)
        self._end(job, SUCCEEDED, at_ms)
        self.done += 1
        work = job.work
        work.to_succeed -= 1
        if not work.to_succeed:
            for dependent in work.dependents:
                dependent.waits_for -= 1
                if not dependent.waits_for:
                    self._foresee_dependent(dependent, at_ms)

    def _foresee_dependent(self, work: Work, at_ms: int) -> None:
        earliest_ms = max(work.spec.earliest_ms, at_ms + work.spec.after_dependencies_ms)
        self._foresee_work(work, earliest_ms + self._fleet.workflow_delay.drawn(self._workflow_delays))

    def _end(self, job: LiveJob, state: str, at_ms: int) -> None:
        """Note that a job has ended, and take it out."""
        del self._live[job.job_id]
        self._note_end(job, state, at_ms)

    def _note_end(self, job: LiveJob, state: str, at_ms: int) -> None:
        self._running -= job.leased_ms is not None
        self.results.end_job(
            JobEnd(
                queue=job.work.queue,
                job_set=job.work.spec.job_set,
                job_id=job.job_id,
                run_id=job.run_id,
                priority_class=job.work.shape.priority_class,
                requests=job.work.requests,
                state=state,
                submitted_ms=job.submitted_ms,
                leased_ms=job.leased_ms,
                ended_ms=at_ms,
            )
        )

    # -- the leader's cycle -------------------------------------------------------------------------------------------

    def _cycle(self, now_ms: int) -> tuple[int, int]:
        """Carry out what the leader wants until it has nothing more to do; return leases and preemptions."""
        heartbeats = dict.fromkeys(self._ledger.executor_ids(), now_ms)
        leased = preempted = 0
        while True:
            step = self._leader.step(self._ledger, heartbeats, now_ms)
            if step.sequences:
                self._append(step.sequences, now_ms, step.epoch)
            elif step.round is not None:
                won, lost = self._round(step.round, step.epoch, now_ms)
                leased, preempted = leased + won, preempted + lost
            else:
                break
        # Only now: else what the cycle itself did would begin another one, at the same time.
        for entry in self._of_cycle:
            self._leader.notice(entry, now_ms)
        self._of_cycle.clear()
        self._append(merged_sequences(self._endings), now_ms)
        self._endings.clear()
        self._release(now_ms)
        self._resubmit(now_ms)
        return leased, preempted

    def _round(self, order: RoundOrder, epoch: int, now_ms: int) -> tuple[int, int]:
        decisions = schedule(order.snapshot, order.seed)
        outcome: Outcome | None = self._leader.finish(self._ledger, order, decisions, now_ms)
        leased = preempted = 0
        while outcome is not None:
            self.results.end_round(now_ms, decisions, outcome.leased_by_queue)
            self._append(outcome.sequences, now_ms, epoch)
            leased += sum(outcome.leased_by_queue.values())
            preempted += outcome.preempted
            outcome = self._leader.next_held(self._ledger, now_ms)
        return leased, preempted

    def _append(self, sequences: Iterable[JobSetEvents], now_ms: int, epoch: int = 0) -> None:
        """Append facts, fold them, and let the leader and the jobs know."""
        for sequence in sequences:
            entry = Entry(
                position=self._ledger.position + 1,
                batch_id="",
                time_ms=now_ms,
                epoch=epoch,
                queue=sequence.queue,
                job_set=sequence.job_set,
                events=sequence.events,
            )
            self._ledger.apply(entry)
            void = self._ledger.void_rows(entry.position)
            if void:
                raise AssertionError(f"the ledger took {entry.events[max(min(void)[0], 0)]} for no fact")
            if epoch:
                self._of_cycle.append(entry)
                for event in entry.events:
                    self._obey(event, now_ms)
            else:
                self._leader.notice(entry, now_ms)

    def _obey(self, event: Event, now_ms: int) -> None:
        """Do what follows from a decision of the leader."""
        if isinstance(event, RunLeased):
            self._lease(self._live[event.job_id], event.run_id, now_ms)
        elif isinstance(event, JobPreempted):
            job = self._live[event.job_id]
            self._to_release.append(job.run_id)
            self._end(job, PREEMPTED, now_ms)
            self._preempted.append(job)
        elif isinstance(event, JobRequeued):
            job = self._live[event.job_id]
            self._to_release.append(job.run_id)
            self._note_end(job, PREEMPTED, now_ms)
            job.run_id, job.leased_ms = "", None
        elif isinstance(event, JobRejected):
            job = self._live[event.job_id]
            self.rejections.setdefault(job.work.spec.id, event.reason)
            self._end(job, REJECTED, now_ms)
            self.done += 1

    def _lease(self, job: LiveJob, run_id: str, now_ms: int) -> None:
        job.run_id, job.leased_ms = run_id, now_ms
        self._running += 1
        delay_ms = self._fleet.pending_delay.drawn(self._pending_delays)
        run = _Run(job, run_id)
        self._foresee(now_ms + delay_ms + job.runtime_ms, run)
        confirmed: Event
        if delay_ms:
            confirmed = RunPending(at_ms=now_ms, job_id=job.job_id, run_id=run_id)
            heapq.heappush(self._starts, (now_ms + delay_ms, self._foreseen, run))
        else:
            confirmed = RunStarted(at_ms=now_ms, job_id=job.job_id, run_id=run_id)
        self._endings.append(JobSetEvents(job.work.queue, job.work.spec.job_set, (confirmed,)))

    def _release(self, now_ms: int) -> None:
        if self._to_release:
            released = RunsReleased(at_ms=now_ms, run_ids=tuple(self._to_release))
            self._append([JobSetEvents("", "", (released,))], now_ms)
            self._to_release.clear()

    def _resubmit(self, now_ms: int) -> None:
        """Let the workflow submit preempted jobs again: what is left of a gang as a gang, others one by one."""
        gangs: dict[tuple[str, str], list[LiveJob]] = {}
        for job in self._preempted:
            gangs.setdefault((job.work.queue, job.gang_id or job.job_id), []).append(job)
        for jobs in gangs.values():
            runtimes = tuple(job.runtime_ms for job in jobs)
            delay_ms = self._fleet.workflow_delay.drawn(self._workflow_delays)
            self._foresee(now_ms + delay_ms, Batch(jobs[0].work, runtimes, len(jobs)))
        self.resubmitted += len(self._preempted)
        self._preempted.clear()

    # -- the end ------------------------------------------------------------------------------------------------------

    def _stop(self, now_ms: int) -> None:
        """Cancel what has not ended."""
        self.ended_ms = now_ms
        left = list(self._live.values())
        cancelled = [
            JobSetEvents(job.work.queue, job.work.spec.job_set, (JobCancelled(at_ms=now_ms, job_id=job.job_id),))
            for job in left
        ]
        self._append(merged_sequences(cancelled), now_ms)
        for job in left:
            self._end(job, CANCELLED, now_ms)
        self._ledger.validate()

    def _note_lengths(self, now_ms: int) -> None:
        for queue, counts in self._ledger.counts().items():
            running = sum(counts[state] for state in (JobState.LEASED, JobState.PENDING, JobState.RUNNING))
            self.results.note_length(now_ms, queue, counts[JobState.QUEUED], running)

    def _tick(self, now_ms: int, leased: int, preempted: int) -> Tick:
        return Tick(
            at_ms=now_ms,
            leased=leased,
            preempted=preempted,
            queued=len(self._live) - self._running,
            running=self._running,
            done=self.done,
            total=self.total,
        )


def as_simulated(policy: SchedulingPolicy) -> SchedulingPolicy:
    """Return a policy for virtual time: rates without limit, and nothing that another system would have to tell."""
    pools = tuple(
        msgspec.structs.replace(pool, away_pools=(), short_job_penalty_ms=0, market=None, reconciliation=None)
        for pool in policy.pools
    )
    return msgspec.structs.replace(policy, disabled=False, rate=RateLimit(), rate_per_queue=RateLimit(), pools=pools)


def _nodes(cluster: ClusterSpec, node_id_label: str) -> Iterator[Node]:
    for number, template in enumerate(cluster.node_templates):
        for index in range(template.number):
            name = f"{cluster.name}-{number}-{index}"
            yield Node(
                node_id=name,
                name=name,
                executor_id=cluster.name,
                pool=cluster.pool,
                labels={**template.labels, CLUSTER_LABEL: cluster.name, node_id_label: name},
                taints=template.taints,
                total=template.total,
            )


def _joined(submissions: list[JobSetEvents]) -> Iterator[JobSetEvents]:
    """Join neighbours of one job set. Nothing changes places: the order of submission is the order in the queue."""
    gathered: list[JobsSubmitted] = []
    where = ("", "")
    for queue, job_set, events in ((one.queue, one.job_set, one.events) for one in submissions):
        if gathered and where != (queue, job_set):
            yield JobSetEvents(*where, tuple(gathered))
            gathered = []
        where = (queue, job_set)
        gathered += [event for event in events if isinstance(event, JobsSubmitted)]
    if gathered:
        yield JobSetEvents(*where, tuple(gathered))
