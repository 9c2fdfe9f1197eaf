"""The leader: decides what is due and turns what rounds decide into facts.

`step` is called after every change and at the time that the last step named. It never does two things at once: what it
returns is carried out (facts appended and folded, or a round run) before it is asked again.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from armada.control.admitting.admission import Admission
from armada.control.admitting.eligibility import Eligibility
from armada.control.ending.gangs import IncompleteGangs
from armada.control.ending.reconciliation import Reconciliation
from armada.control.measuring.leading import LeaderTally
from armada.control.outcome import Outcome, RoundOrder
from armada.control.retries import CanRun, Retries
from armada.control.rounds.cadence import Cadence
from armada.control.rounds.feeds import Feeds
from armada.control.rounds.planning import RoundFailure, RoundReport, Rounds
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
from armada.model.policy import SchedulingPolicy
from armada.scheduling.decisions import Decisions
from armada.state.ledger import Ledger
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


class Step(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What a step asks for: facts to append with `epoch`, or a round to run, or nothing before `wake_at_ms`.

    `warnings` are for whoever operates the system, whatever else is asked for.
    """

    sequences: tuple[JobSetEvents, ...] = ()
    epoch: int = 0
    round: RoundOrder | None = None
    wake_at_ms: int | None = None
    warnings: tuple[str, ...] = ()


class Leader:
    """One replica's will to lead and what it decides while it does."""

    def __init__(self, policy: SchedulingPolicy, cadence: Cadence, holder: str, started_ms: int) -> None:
        self._policy = policy
        self._cadence = cadence
        self._holder = holder
        self._started_ms = started_ms
        self._gives_up = False
        self._warnings: tuple[str, ...] = ()
        self.eligibility = Eligibility(policy)
        self._admission = Admission(self.eligibility, policy.fleet_refresh_ms)
        self._rounds = Rounds(policy, cadence, started_ms, self._admission)
        self._reconciliation = Reconciliation(policy, cadence.node_timeout_ms, cadence.schedule_period_ms)
        self._incomplete = IncompleteGangs(policy.incomplete_gang_ms)
        self.tally = LeaderTally()
        """What is measured of this leadership; whoever carries the steps out knows how long they took."""

    @property
    def policy(self) -> SchedulingPolicy:
        """What it decides by."""
        return self._policy

    @property
    def reports(self) -> Mapping[str, RoundReport]:
        """The latest round of each pool."""
        return self._rounds.reports

    @property
    def failures(self) -> Mapping[str, RoundFailure]:
        """Pools that can't be decided at present, with why."""
        return self._rounds.failures

    # -- what happens -------------------------------------------------------------------------------------------------

    def notice(self, entry: Entry, now_ms: int) -> None:
        """Look at an entry that was just folded (its void parts left out)."""
        self._admission.notice(entry)
        self._reconciliation.notice(entry)
        self._incomplete.notice(entry, now_ms)
        if any(isinstance(event, _CHANGES_WHAT_FITS) for event in entry.events):
            self._rounds.changed(now_ms)

    @property
    def feeds(self) -> Feeds:
        """What services of others have said last."""
        return self._rounds.feeds

    def hear(self, feeds: Feeds, now_ms: int) -> None:
        """Take over what services of others say; the rounds from now on go by it."""
        before = self._rounds.feeds
        self._rounds.hear(feeds)
        if before.overrides is not feeds.overrides or before.bids is not feeds.bids:
            self._rounds.changed(now_ms)

    def forgive(self, now_ms: int) -> None:
        """Go on after the clock has jumped: nobody knows how long anything took, so silence and waits count anew."""
        self._started_ms = now_ms
        self._reconciliation.forgive(now_ms)
        self._rounds.forgive(now_ms)

    def deposed(self) -> None:
        """Give up: the log says that another replica leads in a newer epoch."""
        self._gives_up = True
        self._reconciliation.begin_again()

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

    def looked_at(self) -> Mapping[str, int]:
        """Return how many new kinds of jobs were looked at by queue since this was asked last."""
        return self._admission.looked_at()

    def waits_for(self, job: JobRecord) -> str:
        """Say why a queued job has not been admitted to rounds yet; empty when it has."""
        return self._admission.reason(job.queue, job.shape, job.pools, job.gang.id if job.gang is not None else "")

    # -- what is due --------------------------------------------------------------------------------------------------

    def step(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> Step:
        """Return the next thing to do."""
        step = self._due(ledger, heartbeats, now_ms)
        warnings, self._warnings = (*self._warnings, *self._rounds.take_warnings()), ()
        return msgspec.structs.replace(step, warnings=warnings) if warnings else step

    def _due(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> Step:
        if self._gives_up:
            return Step()
        if ledger.holder != self._holder:
            return self._claim(ledger, now_ms)
        ended = self._expired(ledger, heartbeats, now_ms) or self._reconciled(ledger, now_ms)
        ended = ended or self._incomplete.ended(ledger, now_ms)
        if ended:
            return Step(sequences=ended, epoch=ledger.epoch)
        rejected = self._rejected(ledger, heartbeats, now_ms)
        if rejected:
            return Step(sequences=rejected, epoch=ledger.epoch)
        order = self._rounds.next(ledger, heartbeats, self._reconciliation.errors, now_ms)
        self._count_failures()
        if order is not None:
            return Step(round=order, epoch=ledger.epoch)
        return Step(wake_at_ms=self._wake_at_ms(ledger, heartbeats, now_ms))

    def _claim(self, ledger: Ledger, now_ms: int) -> Step:
        epoch = ledger.epoch + 1
        claim = LeadershipClaimed(at_ms=now_ms, epoch=epoch, holder=self._holder)
        self._admission.reconsider(ledger)
        self._reconciliation.begin_again()
        self._incomplete.begin_again()
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

    def _reconciled(self, ledger: Ledger, now_ms: int) -> tuple[JobSetEvents, ...]:
        """End the runs whose node is not what it was."""
        reconciled = self._reconciliation.decide(ledger, self.can_run(ledger), now_ms)
        self._warnings += reconciled.warnings
        return reconciled.sequences

    def _rejected(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> tuple[JobSetEvents, ...]:
        if not self._admission.has_work(ledger, now_ms) or self._settles_at_ms(ledger, heartbeats, now_ms) > now_ms:
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

    def interrupted(self, ledger: Ledger, now_ms: int) -> None:
        """Begin again after facts could not be appended: nothing that was decided then counts."""
        self._admission.reconsider(ledger)
        self._reconciliation.begin_again()
        self._incomplete.begin_again()
        self._rounds.interrupted(now_ms)

    def failed_round(self, pool: str, reason: str, now_ms: int) -> None:
        """Go on after a round that could not be decided: it is tried again after the schedule period."""
        self._rounds.failed(pool, reason, now_ms)
        self._count_failures()

    def _count_failures(self) -> None:
        for pool in self._rounds.take_failed():
            self.tally.failed(pool)

    def finish(self, ledger: Ledger, order: RoundOrder, decisions: Decisions, now_ms: int) -> Outcome:
        """Turn a round's decisions into facts, checked against the ledger as it is now."""
        return self._rounds.finish(ledger, order, decisions, now_ms)

    def next_held(self, ledger: Ledger, now_ms: int) -> Outcome | None:
        """Return what comes of the next round that was held back to its cycle's end, once the former is stored."""
        return self._rounds.next_held(ledger, now_ms)

    def _wake_at_ms(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> int | None:
        """When to look again though nothing happened."""
        times: list[int] = []
        due_ms = self._rounds.due_ms(ledger)
        if due_ms is not None:
            times.append(due_ms)
        looks = (self._reconciliation.due_ms(), self._incomplete.due_ms())
        times.extend(looks_ms for looks_ms in looks if looks_ms is not None)
        review_ms = self._admission.review_due_ms(ledger)
        if review_ms is not None:
            times.append(review_ms)
        if self._admission.has_work(ledger, now_ms):
            times.append(self._settles_at_ms(ledger, heartbeats, now_ms))
        for executor_id in dict.fromkeys((*ledger.executor_ids(), *ledger.lease_holders())):
            heard_ms = max(heartbeats.get(executor_id, 0), self._started_ms)
            limits_ms = (self._policy.stale_executor_ms, self._cadence.executor_timeout_ms)
            times.extend(heard_ms + limit_ms + 1 for limit_ms in limits_ms if heard_ms + limit_ms >= now_ms)
        return max(min(times), now_ms + 1) if times else None
