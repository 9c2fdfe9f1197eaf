"""One problem being decided: a ledger of its own, rounds that follow each other, rate limiters that live as long.

Each round: jobs arrive and leave; then pool by pool the ledger gives a snapshot, `schedule()` decides, and what it
decided becomes facts of the ledger, so that later pools and rounds see it.
"""

from collections.abc import Iterable, Iterator

import msgspec

from armada.cli.problems import facts
from armada.cli.problems.reading import FinishedSpec, JobSpecText, ReadProblem, RunSpec
from armada.control.outcome import RoundOrder
from armada.control.rounds.health import FleetHealth
from armada.model.errors import InvalidRequest
from armada.model.events import Entry, Event, JobsSubmitted
from armada.model.lifecycle import JobState, RunState
from armada.model.policy import RateLimit
from armada.scheduling.decisions import Decisions
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from armada.state.ledger import Ledger
from armada.state.pools import Circumstances
from armada.state.records import RunRecord


class TokenBucket:
    """Tokens that come back with time."""

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self.tokens: float = limit.burst
        self._at_ms = facts.NOW_MS

    def refill(self, now_ms: int) -> None:
        """Add what has come back by now."""
        gained = self.limit.per_second * (now_ms - self._at_ms) / 1000
        self.tokens = min(self.limit.burst, self.tokens + gained)
        self._at_ms = now_ms


class Trial:
    """A problem, its ledger, and the round it is in (the first is 0, before that -1)."""

    def __init__(self, read: ReadProblem) -> None:
        self.problem = read.problem
        self.policy = read.policy
        self.place = read.place
        self.number = -1
        self.now_ms = facts.NOW_MS
        self._jobs = {job.id: job for job in self.problem.jobs}
        self._health = FleetHealth(read.policy, 0)
        self._executor_of = {node.id: executor.id for executor in self.problem.executors for node in executor.nodes}
        self._templates = facts.Templates(self.policy)
        self._still_to_come = sorted(self.problem.jobs, key=lambda job: (-job.arrives, -job.submitted, job.id))
        self._class_priorities = {kind.name: kind.priority for kind in self.policy.priority_classes}
        self._bids = facts.bid_table(self.problem.bids, self.problem.resource_units)
        self._leaving: dict[int, list[JobSpecText]] = {}
        for job in self.problem.jobs:
            if job.leaves is not None:
                self._leaving.setdefault(job.leaves, []).append(job)
        self._rate = TokenBucket(self.policy.rate)
        self._rates = {queue.name: TokenBucket(self.policy.rate_per_queue) for queue in self.problem.queues}
        self._preemptions = {
            pool.name: TokenBucket(pool.preemption_limit)
            for pool in self.policy.pools
            if pool.preemption_limit is not None
        }
        self._optimised_ms: dict[str, int] = {}
        self._ended: list[tuple[JobSpecText, RunRecord, int]] = []
        self._as_of = 0
        self._start()

    def begin_round(self) -> None:
        """Move to the next round: the clock, arrivals, departures, tokens."""
        self.number += 1
        self.now_ms = facts.NOW_MS + round(self.number * self.problem.seconds_per_round * 1000)
        self._arrive()
        self._leave()
        for bucket in (self._rate, *self._rates.values(), *self._preemptions.values()):
            bucket.refill(self.now_ms)

    def pools(self) -> tuple[str, ...]:
        """Return the pools in the order in which a round takes them."""
        return tuple(pool.name for pool in self.policy.pools)

    def snapshot(self, pool: str) -> PoolSnapshot:
        """Return what a round of this pool would be decided from now."""
        preemptions = self._preemptions.get(pool)
        circumstances = Circumstances(
            executors=self._executors(pool),
            queue_tokens={name: bucket.tokens for name, bucket in self._rates.items()},
            weight_overrides={one.queue: one.priority for one in self.problem.overrides if one.pool == pool},
            penalties=self.ledger.penalties(pool, self.now_ms),
            global_tokens=self._rate.tokens,
            preemption_tokens=None if preemptions is None else preemptions.tokens,
            now_ms=self.now_ms,
            optimises=self._optimises(pool),
            bids=self._bids,
        )
        self._as_of = self.ledger.next_sequence
        return self.ledger.pool_snapshot(pool, circumstances)

    def decide(self, pool: str) -> Decisions:
        """Decide this round's pool; nothing changes until the decisions are carried out."""
        return schedule(self.snapshot(pool), self.number)

    def order(self, pool: str, decisions: Decisions) -> RoundOrder:
        """Return the order by which the last decisions came about, until they are carried out."""
        return RoundOrder(
            pool=pool,
            snapshot=decisions.snapshot,
            seed=decisions.seed,
            as_of=self._as_of,
            started_ms=self.now_ms,
        )

    def job_id(self, row: int) -> str:
        """Return the id of the job that the last decisions call by this row, until they are carried out."""
        job_id = self.ledger.job_at(row, self._as_of)
        if job_id is None:
            raise LookupError(f"row {row} is no job any more")
        return job_id

    def carry_out(self, pool: str, decisions: Decisions) -> None:
        """Make decisions facts: preempted jobs are gone at once, leased ones run, tokens are used up."""
        by_queue: dict[str, list[Event]] = {}
        freed = []
        if decisions.optimised is not None:
            self._optimised_ms[pool] = self.now_ms
        for lost in decisions.each_preemption():
            job_id = self.job_id(lost.row)
            freed.append(job_id)
            gone = by_queue.setdefault(self._jobs[job_id].queue, [])
            gone += facts.preemption(job_id, lost.kind.name.lower(), self.now_ms)
        if (budget := self._preemptions.get(pool)) is not None:
            budget.tokens -= decisions.gave_way
        for won in decisions.each_lease():
            job_id = self.job_id(won.row)
            queue = self._jobs[job_id].queue
            self._rates[queue].tokens -= 1
            self._rate.tokens -= 1
            by_queue.setdefault(queue, []).extend(
                facts.lease(
                    job_id,
                    node_id=won.node_id,
                    executor_id=self._executor_of[won.node_id],
                    pool=pool,
                    priority=won.priority,
                    at_ms=self.now_ms,
                    acknowledged=True,
                ),
            )
        for queue, events in by_queue.items():
            self._append(queue, events)
        # What ran on a node that is gone holds no room to release.
        holding = [job_id for job_id in freed if self.ledger.job(job_id) is not None]
        if holding:
            self._append("", [facts.release(holding, self.now_ms)])

    # --- between rounds

    def _start(self) -> None:
        """Begin a ledger that knows the fleet and the queues."""
        self.ledger = Ledger(self.policy)
        self._position = 0
        self._last: dict[str, tuple[int, str]] = {}
        self._append("", facts.fleet(self.problem.executors))
        self._append("", facts.queues(self.problem.queues))
        for job in self.problem.jobs:
            if job.finished is not None:
                self._live_before(job, job.finished)

    def _live_before(self, job: JobSpecText, ended: FinishedSpec) -> None:
        """Let a job that has ended just now have been there: alone, whatever gang it was a member of."""
        single = msgspec.structs.replace(job, gang=None)
        self._append(job.queue, facts.submissions([single], self._templates, facts.NOW_MS))
        self._append(job.queue, facts.history(job, ended, self._class_priority(job)))

    def _arrive(self) -> None:
        """Submit what arrives now, queue by queue in submit order.

        The order of submission is the order of the log. A job that arrives later than another but was submitted
        before it (which a problem may say) needs the log to be written anew.
        """
        arrivals = []
        while self._still_to_come and self._still_to_come[-1].arrives <= self.number:
            job = self._still_to_come.pop()
            if job.finished is None:
                arrivals.append(job)
        if any((job.submitted, job.id) < self._last.get(job.queue, (job.submitted, job.id)) for job in arrivals):
            self._write_anew(arrivals)
        else:
            self._submit(arrivals)
            leased: dict[str, list[Event]] = {}
            for job in arrivals:
                if job.run is not None:
                    leased.setdefault(job.queue, []).extend(self._leased_before(job, job.run))
            for queue, events in leased.items():
                self._append(queue, events)

    def _submit(self, jobs: list[JobSpecText]) -> None:
        by_queue: dict[str, list[JobSpecText]] = {}
        for job in sorted(jobs, key=lambda job: (job.submitted, job.id)):
            by_queue.setdefault(job.queue, []).append(job)
        for queue, line in by_queue.items():
            self._append(queue, facts.submissions(line, self._templates, self.now_ms))
            self._last[queue] = (line[-1].submitted, line[-1].id)

    def _write_anew(self, arrivals: list[JobSpecText]) -> None:
        """Begin the ledger again with all live jobs and `arrivals` in submit order, and what ended: it may count on."""
        before = self.ledger
        live = [job for job in self.problem.jobs if _is_live(before.job_state(job.id))]
        self._start()
        for job, run, ended_ms in self._ended:
            single = msgspec.structs.replace(job, gang=None)
            self._append(job.queue, facts.submissions([single], self._templates, self.now_ms))
            self._append(job.queue, _leased_again(job.id, run))
            self._end(job, ended_ms)
        self._submit([*live, *arrivals])
        for job in live:
            record = before.job(job.id)
            held = before.run(record.run_id) if record is not None and record.run_id else None
            if held is not None and record is not None and record.state.is_active:
                self._append(job.queue, _leased_again(job.id, held))

    def _leased_before(self, job: JobSpecText, run: RunSpec) -> Iterator[Event]:
        priority = run.scheduled_at_priority
        yield from facts.lease(
            job.id,
            node_id=run.node,
            executor_id=self._executor_of.get(run.node, facts.GONE),
            pool=run.pool,
            priority=self._class_priority(job) if priority is None else priority,
            at_ms=self.now_ms - round(run.leased_seconds_ago * 1000),
            acknowledged=not run.unacknowledged,
        )

    def _class_priority(self, job: JobSpecText) -> int:
        return self._class_priorities[job.priority_class or self.policy.default_priority_class]

    def _leave(self) -> None:
        """End jobs that leave before this round."""
        for job in self._leaving.get(self.number, ()):
            state = self.ledger.job_state(job.id)
            if state is JobState.QUEUED:
                self._append(job.queue, facts.withdrawal(job.id, self.now_ms))
            elif state is not None and state.is_active:
                record = self.ledger.job(job.id)
                run = self.ledger.run(record.run_id) if record is not None else None
                if run is not None:
                    self._ended.append((job, run, self.now_ms))
                self._end(job, self.now_ms)

    def _end(self, job: JobSpecText, at_ms: int) -> None:
        """Let a job succeed and be gone from its node."""
        self._append(job.queue, facts.success(job.id, at_ms))
        if self.ledger.job(job.id) is not None:
            # What ran on a node that is gone holds no room to release.
            self._append("", [facts.release([job.id], at_ms)])

    # --- in a round

    def _executors(self, pool: str) -> frozenset[str]:
        """Return the executors whose nodes take part, each heard as long ago as the problem says."""
        heard = {one.id: self.now_ms - round(one.heartbeat_seconds_ago * 1000) for one in self.problem.executors}
        self._health.look(self.ledger, heard, self.now_ms)
        return self._health.taking_part(self.ledger, pool)

    def _optimises(self, pool: str) -> bool:
        """Say whether the pool's fairness optimiser takes part: its interval has gone by since it last did."""
        own = self.policy.pool(pool)
        last_ms = self._optimised_ms.get(pool)
        if own is None or own.optimiser is None:
            return False
        return last_ms is None or self.now_ms - last_ms >= own.optimiser.interval_ms

    def _append(self, queue: str, events: Iterable[Event]) -> None:
        gathered = tuple(events)
        if not gathered:
            return
        self._position += 1
        entry = Entry(
            position=self._position,
            batch_id="",
            time_ms=self.now_ms,
            epoch=0,
            queue=queue,
            job_set=facts.SET if queue else "",
            events=gathered,
        )
        self.ledger.apply(entry)
        void = self.ledger.void_rows(self._position)
        if void:
            raise InvalidRequest(f"{self.place}: {_contradiction(entry, min(void))}")


def rounds(read: ReadProblem) -> Iterator[tuple[Trial, str, Decisions]]:
    """Decide all rounds of a problem, pool by pool.

    Gives (trial, pool, decisions) before the decisions are carried out, so that their rows can still be named.
    """
    trial = Trial(read)
    for _ in range(read.problem.rounds):
        trial.begin_round()
        for pool in trial.pools():
            decisions = trial.decide(pool)
            yield trial, pool, decisions
            trial.carry_out(pool, decisions)


def _leased_again(job_id: str, run: RunRecord) -> Iterator[Event]:
    """Repeat the facts of a run that was leased before."""
    return facts.lease(
        job_id,
        node_id=run.node_id,
        executor_id=run.executor_id,
        pool=run.pool,
        priority=run.priority,
        at_ms=run.leased_ms,
        acknowledged=run.state is not RunState.LEASED,
    )


def _is_live(state: JobState | None) -> bool:
    return state is not None and not state.is_terminal


def _contradiction(entry: Entry, void: tuple[int, int]) -> str:
    """Say which part of a problem the ledger could not take as a fact."""
    event = entry.events[max(0, void[0])]
    if isinstance(event, JobsSubmitted):
        job = event.jobs[max(0, void[1])].job_id
        return f"job {job} does not fit its gang: members must agree in class and size, and not be more than it says"
    return f"{type(event).__name__} of job {getattr(event, 'job_id', '')} does not follow from what came before"
