"""The leader: decides what is due and turns what rounds decide into facts.

`step` is called after every change and at the time that the last step named. It never does two things at once: what it
returns is carried out (facts appended and folded, or a round run) before it is asked again.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from armada.control.admitting.admission import Admission
from armada.control.admitting.eligibility import Eligibility
from armada.control.outcome import Outcome, RoundOrder, outcome_of
from armada.control.rates import TokenBucket
from armada.control.retries import CanRun, Retries
from armada.control.sequences import merged_sequences
from armada.model.events import (
    Entry,
    ExecutorDeleted,
    ExecutorReported,
    ExecutorSettingsChanged,
    JobCancelled,
    JobReprioritised,
    JobRequeued,
    JobSetEvents,
    JobsSubmitted,
    LeadershipClaimed,
    QueueCordoned,
    QueueCreated,
    QueueUpdated,
    RunLeaseExpired,
    RunPreempted,
    RunsReleased,
)
from armada.model.growth import grown
from armada.model.policy import PoolPolicy, SchedulingPolicy
from armada.scheduling.decisions import Decisions, Termination
from armada.state.ledger import Ledger
from armada.state.pools import Circumstances
from armada.state.records import JobRecord

_CHANGES_WHAT_FITS: Final = (
    JobsSubmitted,
    JobRequeued,
    JobReprioritised,
    JobCancelled,
    RunsReleased,
    QueueCreated,
    QueueUpdated,
    QueueCordoned,
    ExecutorReported,
    ExecutorSettingsChanged,
    ExecutorDeleted,
)


class Cadence(msgspec.Struct, frozen=True, kw_only=True):
    """When things are due.

    A cycle of rounds starts `round_delay_ms` after a change that could place a job, so that changes that come together
    are decided together; while jobs wait, it starts at least every `schedule_period_ms`. After each round there is a
    rest of `rest_share` of its duration, so that rounds over long queues leave time for everything else. An executor
    that has been silent for `executor_timeout_ms` loses its runs. No job is rejected within `fleet_settle_ms` of the
    first word of a new executor, nor before all known executors were heard or `fleet_patience_ms` went by since this
    leader began.
    """

    round_delay_ms: int = 5
    schedule_period_ms: int = 10_000
    executor_timeout_ms: int = 3_600_000
    fleet_settle_ms: int = 2_000
    fleet_patience_ms: int = 60_000
    rate_retry_ms: int = 250
    rest_share: float = 0.5
    rounds_without_jobs: bool = False


class Step(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What a step asks for: facts to append with `epoch`, or a round to run, or nothing before `wake_at_ms`."""

    sequences: tuple[JobSetEvents, ...] = ()
    epoch: int = 0
    round: RoundOrder | None = None
    wake_at_ms: int | None = None


class RoundReport(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The latest round of a pool, for whoever asks why: figures by queue and reasons by job."""

    order: RoundOrder
    decisions: Decisions
    finished_ms: int
    leased: int
    preempted: int


class Leader:
    """One replica's will to lead and what it decides while it does."""

    def __init__(self, policy: SchedulingPolicy, cadence: Cadence, holder: str, started_ms: int) -> None:
        self._policy = policy
        self._cadence = cadence
        self._holder = holder
        self._started_ms = started_ms
        self._gives_up = False
        self.eligibility = Eligibility(policy)
        self._admission = Admission(self.eligibility)
        self.reports: dict[str, RoundReport] = {}
        self._changed_ms: int | None = started_ms
        self._cycle_started_ms = 0
        self._rests_until_ms = 0
        self._pools_left: list[str] = []
        self._round_runs = False
        self._rounds = 0
        self._healthy: tuple[str, ...] = ()
        self._global = TokenBucket(policy.rate)
        self._unlimited_queues = TokenBucket(policy.rate_per_queue).is_unlimited
        self._by_queue: dict[str, TokenBucket] = {}
        self._preemptions: dict[str, TokenBucket] = {}

    # -- what happens -------------------------------------------------------------------------------------------------

    def notice(self, entry: Entry, now_ms: int) -> None:
        """Look at an entry that was just folded (its void parts left out)."""
        self._admission.notice(entry)
        if self._changed_ms is None and any(isinstance(event, _CHANGES_WHAT_FITS) for event in entry.events):
            self._changed_ms = now_ms

    def forgive(self, now_ms: int) -> None:
        """Go on after the clock has jumped: nobody knows how long anything took, so silence and waits count anew."""
        self._started_ms = now_ms
        self._cycle_started_ms = min(self._cycle_started_ms, now_ms)
        self._rests_until_ms = min(self._rests_until_ms, now_ms)
        if self._changed_ms is not None:
            self._changed_ms = min(self._changed_ms, now_ms)
        for bucket in (self._global, *self._by_queue.values(), *self._preemptions.values()):
            bucket.forgive(now_ms)

    def deposed(self) -> None:
        """Give up: the log says that another replica leads in a newer epoch."""
        self._gives_up = True

    def leads(self, ledger: Ledger) -> bool:
        """Say if this replica is the leader that the log knows."""
        return not self._gives_up and ledger.holder == self._holder

    def can_run(self, ledger: Ledger) -> CanRun:
        """Return a function that says if a job can run away from some nodes, by the fleet as it is when asked."""

        def answer(job: JobRecord, avoid: tuple[str, ...]) -> bool:
            queue = ledger.queues.get(job.queue)
            self.eligibility.refresh(ledger)
            shape = grown(job.shape, job.growth)
            return queue is None or self.eligibility.can_run(queue, shape, job.pools, avoid)

        return answer

    def waits_for(self, job: JobRecord) -> str:
        """Say why a queued job has not been admitted to rounds yet; empty when it has."""
        return self._admission.reason(job.queue, job.shape, job.pools, job.gang.id if job.gang is not None else "")

    # -- what is due --------------------------------------------------------------------------------------------------

    def step(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> Step:
        """Return the next thing to do."""
        if self._gives_up:
            return Step()
        if ledger.holder != self._holder:
            return self._claim(ledger, now_ms)
        expired = self._expired(ledger, heartbeats, now_ms)
        if expired:
            return Step(sequences=expired, epoch=ledger.epoch)
        rejected = self._rejected(ledger, heartbeats, now_ms)
        if rejected:
            return Step(sequences=rejected, epoch=ledger.epoch)
        order = self._next_round(ledger, heartbeats, now_ms)
        if order is not None:
            return Step(round=order, epoch=ledger.epoch)
        return Step(wake_at_ms=self._wake_at_ms(ledger, heartbeats, now_ms))

    def _claim(self, ledger: Ledger, now_ms: int) -> Step:
        epoch = ledger.epoch + 1
        claim = LeadershipClaimed(at_ms=now_ms, epoch=epoch, holder=self._holder)
        self._admission.reconsider(ledger)
        return Step(sequences=(JobSetEvents("", "", (claim,)),), epoch=epoch)

    def _expired(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> tuple[JobSetEvents, ...]:
        """End the runs of executors that have been silent for too long."""
        limit_ms = now_ms - self._cadence.executor_timeout_ms
        retries = Retries(self._policy, self.can_run(ledger))
        sequences: list[JobSetEvents] = []
        stopped: dict[str, None] = {}
        for executor_id in ledger.lease_holders():
            if max(heartbeats.get(executor_id, 0), self._started_ms) > limit_ms:
                continue
            for run in ledger.runs_of_executor(executor_id):
                if run.state.is_terminal or run.run_id in stopped:
                    continue
                fact = RunLeaseExpired(at_ms=now_ms, job_id=run.job_id, run_id=run.run_id)
                follows = retries.after(ledger, fact)
                sequences.extend((JobSetEvents(run.queue, run.job_set, (fact,)), *follows))
                for ended in (each for part in follows for each in part.events if isinstance(each, RunPreempted)):
                    stopped[ended.run_id] = None
        return merged_sequences(sequences)

    def _rejected(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> tuple[JobSetEvents, ...]:
        if not self._admission.has_work(ledger) or self._settles_at_ms(ledger, heartbeats, now_ms) > now_ms:
            return ()
        return self._admission.decide(ledger, now_ms)

    def _settles_at_ms(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> int:
        """When the fleet is known well enough to say that a job fits nowhere."""
        newest = 0
        silent = False
        for executor_id in ledger.executor_ids():
            record = ledger.executor(executor_id)
            newest = max(newest, record.first_reported_ms if record is not None else 0)
            silent = silent or heartbeats.get(executor_id, 0) < self._started_ms
        settled = min(newest, now_ms) + self._cadence.fleet_settle_ms
        return max(settled, self._started_ms + self._cadence.fleet_patience_ms) if silent else settled

    # -- rounds -------------------------------------------------------------------------------------------------------

    def _next_round(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> RoundOrder | None:
        if self._round_runs or self._policy.disabled:
            return None
        healthy = self._healthy_executors(ledger, heartbeats, now_ms)
        if healthy != self._healthy:
            self._healthy = healthy
            self._changed_ms = self._changed_ms if self._changed_ms is not None else now_ms
        if not self._pools_left:
            due_ms = self._cycle_due_ms(ledger)
            if due_ms is None or due_ms > now_ms:
                return None
            self._changed_ms = None
            self._cycle_started_ms = now_ms
            if not self._wants_rounds(ledger):
                return None
            known = ledger.pools()
            configured = [pool.name for pool in self._policy.pools]
            self._pools_left = [name for name in dict.fromkeys([*configured, *known]) if self._has_nodes(name, known)]
        return self._order(ledger, self._pools_left.pop(0), now_ms) if self._pools_left else None

    def _has_nodes(self, pool: str, known: Iterable[str]) -> bool:
        policy = self._policy.pool(pool) or PoolPolicy(name=pool)
        return any(name in known for name in (pool, *policy.away_pools))

    def _wants_rounds(self, ledger: Ledger) -> bool:
        return self._cadence.rounds_without_jobs or ledger.queued_count() > 0

    def _cycle_due_ms(self, ledger: Ledger) -> int | None:
        if self._changed_ms is not None:
            return self._changed_ms + self._cadence.round_delay_ms
        if self._wants_rounds(ledger):
            return self._cycle_started_ms + self._cadence.schedule_period_ms
        return None

    def _order(self, ledger: Ledger, pool: str, now_ms: int) -> RoundOrder:
        self._round_runs = True
        self._rounds += 1
        limit = (self._policy.pool(pool) or PoolPolicy(name=pool)).preemption_limit
        preemptions = self._preemptions.setdefault(pool, TokenBucket(limit)) if limit is not None else None
        queue_tokens: dict[str, float] = {}
        if not self._unlimited_queues:
            queue_tokens = {name: self._bucket(name).tokens(now_ms) for name in ledger.queues}
        circumstances = Circumstances(
            executors=frozenset(self._healthy),
            queue_tokens=queue_tokens,
            penalties=ledger.penalties(pool, now_ms),
            global_tokens=self._global.tokens(now_ms),
            preemption_tokens=preemptions.tokens(now_ms) if preemptions is not None else None,
        )
        snapshot = ledger.pool_snapshot(pool, circumstances)
        return RoundOrder(
            pool=pool, snapshot=snapshot, seed=self._rounds, as_of=ledger.next_sequence, started_ms=now_ms
        )

    def _bucket(self, queue: str) -> TokenBucket:
        return self._by_queue.setdefault(queue, TokenBucket(self._policy.rate_per_queue))

    def _healthy_executors(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> tuple[str, ...]:
        """Executors whose nodes take part: heard lately, not cordoned, not behind with confirming leases."""
        oldest_ms = now_ms - self._policy.stale_executor_ms
        limit = self._policy.max_unacknowledged_leases
        return tuple(
            executor_id
            for executor_id in ledger.executor_ids()
            if max(heartbeats.get(executor_id, 0), self._started_ms) > oldest_ms
            and not ledger.is_cordoned(executor_id)
            and ledger.unstarted_count(executor_id) <= limit
        )

    def interrupted(self, ledger: Ledger, now_ms: int) -> None:
        """Begin again after facts could not be appended: nothing that was decided then counts."""
        self._round_runs = False
        self._admission.reconsider(ledger)
        self._changed_ms = now_ms

    def failed_round(self, now_ms: int) -> None:
        """Go on after a round that could not be decided: it is tried again after the schedule period."""
        self._round_runs = False
        self._cycle_started_ms = now_ms

    def finish(self, ledger: Ledger, order: RoundOrder, decisions: Decisions, now_ms: int) -> Outcome:
        """Turn a round's decisions into facts, checked against the ledger as it is now."""
        self._round_runs = False
        self._rests_until_ms = now_ms + int((now_ms - order.started_ms) * self._cadence.rest_share)
        outcome = outcome_of(ledger, self._policy, order, decisions, now_ms)
        self._charge(order.pool, outcome)
        if decisions.termination is Termination.RATE_LIMIT and self._changed_ms is None:
            self._changed_ms = now_ms + self._cadence.rate_retry_ms
        self.reports[order.pool] = RoundReport(
            order=order,
            decisions=decisions,
            finished_ms=now_ms,
            leased=sum(outcome.leased_by_queue.values()),
            preempted=outcome.preempted,
        )
        return outcome

    def _charge(self, pool: str, outcome: Outcome) -> None:
        self._global.take(sum(outcome.leased_by_queue.values()))
        if not self._unlimited_queues:
            for queue, count in outcome.leased_by_queue.items():
                self._bucket(queue).take(count)
        if pool in self._preemptions:
            self._preemptions[pool].take(outcome.preempted_for_share)

    def _wake_at_ms(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> int | None:
        """When to look again though nothing happened."""
        times: list[int] = []
        if not self._round_runs and (due_ms := self._cycle_due_ms(ledger)) is not None:
            times.append(due_ms)
        if self._admission.has_work(ledger):
            times.append(self._settles_at_ms(ledger, heartbeats, now_ms))
        for executor_id in dict.fromkeys((*ledger.executor_ids(), *ledger.lease_holders())):
            heard_ms = max(heartbeats.get(executor_id, 0), self._started_ms)
            limits_ms = (self._policy.stale_executor_ms, self._cadence.executor_timeout_ms)
            times.extend(heard_ms + limit_ms + 1 for limit_ms in limits_ms if heard_ms + limit_ms >= now_ms)
        return max(min(times), now_ms + 1) if times else None
