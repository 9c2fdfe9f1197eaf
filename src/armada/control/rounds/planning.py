"""Rounds of pools: what each is given when its turn comes, and what is kept of what it decides."""

from collections.abc import Iterable, Mapping

import msgspec

from armada.control.admitting.admission import Admission
from armada.control.outcome import Outcome, RoundOrder, outcome_of
from armada.control.rounds.agenda import Agenda
from armada.control.rounds.cadence import Cadence
from armada.control.rounds.feeds import Feeds
from armada.control.rounds.health import FleetHealth
from armada.control.rounds.limiters import Limiters
from armada.model.policy import PoolPolicy, SchedulingPolicy
from armada.scheduling.decisions import Decisions, Termination
from armada.state.ledger import Ledger
from armada.state.pools import Circumstances


class RoundReport(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The latest round of a pool, for whoever asks why: figures by queue and reasons by job."""

    order: RoundOrder
    decisions: Decisions
    finished_ms: int
    leased: int
    preempted: int


class RoundFailure(msgspec.Struct, frozen=True):
    """Why a pool could not be decided, and when that was found last; `awaits_feed` where an answer will mend it."""

    reason: str
    at_ms: int
    awaits_feed: bool = False


class Rounds:
    """The leader's rounds, one at a time: pool after pool, cycle after cycle."""

    def __init__(self, policy: SchedulingPolicy, cadence: Cadence, started_ms: int, admission: Admission) -> None:
        self._policy = policy
        self._cadence = cadence
        self._admission = admission
        self._agenda = Agenda(cadence, started_ms)
        self._limiters = Limiters(policy)
        self._ordered = 0
        self._optimised_ms: dict[str, int] = {}
        self._health = FleetHealth(policy, started_ms)
        self._warnings: tuple[str, ...] = ()
        self._held: list[tuple[RoundOrder, Decisions]] = []
        self.feeds = Feeds()
        self.reports: dict[str, RoundReport] = {}
        self.failures: dict[str, RoundFailure] = {}
        """Pools that can't be decided at present."""
        self._failed: list[str] = []

    def changed(self, now_ms: int) -> None:
        """Note that something changed that may let a job be placed."""
        self._agenda.changed(now_ms)

    def hear(self, feeds: Feeds) -> None:
        """Go by what services of others say now; what only waited for them is no failure any more."""
        self.feeds = feeds
        for pool, failure in tuple(self.failures.items()):
            if failure.awaits_feed and not self._awaited(pool):
                del self.failures[pool]

    def _awaited(self, pool: str) -> str:
        return self.feeds.obstacle(self._policy.pool(pool) or PoolPolicy(name=pool))

    def forgive(self, now_ms: int) -> None:
        """Go on after the clock has jumped: silence and waits count anew."""
        self._health.forgive(now_ms)
        self._optimised_ms.clear()
        self._agenda.forgive(now_ms)
        self._limiters.forgive(now_ms)

    def interrupted(self, now_ms: int) -> None:
        """Begin again: nothing that was decided and not yet stored counts."""
        if self._policy.pools_fail_together:
            self._drop_cycle()
        self._agenda.begin_again(now_ms)

    def due_ms(self, ledger: Ledger) -> int | None:
        """Return when the next cycle is due; None while a round runs, or nobody waits, or rounds are switched off."""
        if self._agenda.round_runs or self._policy.disabled:
            return None
        return self._agenda.due_ms(wants_rounds=self._are_wanted(ledger))

    def next(
        self, ledger: Ledger, heartbeats: Mapping[str, int], obstacles: Mapping[str, str], now_ms: int
    ) -> RoundOrder | None:
        """Return the round that is due now, if any.

        A pool among the `obstacles` (with why), or one whose feeds have not answered yet, fails in this cycle; the
        others are decided all the same, unless the policy has pools fail together.
        """
        if self._agenda.round_runs or self._policy.disabled:
            return None
        if self._health.look(ledger, heartbeats, now_ms):
            self._agenda.changed(now_ms)
        if not self._agenda.in_cycle:
            wanted = self._are_wanted(ledger)
            due_ms = self._agenda.due_ms(wants_rounds=wanted)
            if due_ms is None or due_ms > now_ms:
                return None
            self._agenda.start(self._pools(ledger) if wanted else (), now_ms)
        while (pool := self._agenda.next_pool()) is not None:
            awaited = self._awaited(pool)
            if not (awaited or pool in obstacles):
                if (order := self._prepared(ledger, pool, now_ms)) is not None:
                    return order
                continue
            if awaited and pool not in self.failures:
                self._warnings += (f"pool {pool} can't be decided: {awaited}",)
            self._refuse(pool, RoundFailure(awaited or obstacles[pool], now_ms, bool(awaited)))
        return None

    def _refuse(self, pool: str, failure: RoundFailure) -> None:
        """Let a pool fail without a round."""
        self._note_failure(pool, failure)
        if self._policy.pools_fail_together:
            self._drop_cycle()
        else:
            self._agenda.refused()

    def _drop_cycle(self) -> None:
        """Forget what the pools of this cycle decided, and leave out those that are left of it."""
        self._held.clear()
        self._agenda.stopped()

    def _note_failure(self, pool: str, failure: RoundFailure) -> None:
        self.failures[pool] = failure
        self._failed.append(pool)

    def take_failed(self) -> list[str]:
        """Return the pools that failed since this was asked last, each as often as it did."""
        failed, self._failed = self._failed, []
        return failed

    def take_warnings(self) -> tuple[str, ...]:
        """Return what an operator should read, each once."""
        warnings, self._warnings = self._warnings, ()
        return warnings

    def failed(self, pool: str, reason: str, now_ms: int) -> None:
        """Go on after a round that could not be decided: it is tried again after the schedule period."""
        self._note_failure(pool, RoundFailure(f"its round failed: {reason}", now_ms))
        if self._policy.pools_fail_together:
            self._drop_cycle()
        self._agenda.failed(now_ms)

    def finish(self, ledger: Ledger, order: RoundOrder, decisions: Decisions, now_ms: int) -> Outcome:
        """Turn a round's decisions into facts, checked against the ledger as it is now.

        Where pools fail together nothing comes of a round before the last one of its cycle was decided; from then on
        `next_held` has the other pools' outcomes.
        """
        self._agenda.ended(order.started_ms, now_ms)
        if not self._policy.pools_fail_together:
            return self._applied(ledger, order, decisions, now_ms)
        self._held.append((order, decisions))
        return self.next_held(ledger, now_ms) or Outcome(pool=order.pool)

    def next_held(self, ledger: Ledger, now_ms: int) -> Outcome | None:
        """Return what comes of the next round of a cycle that was held back to its end. The former is stored by now."""
        if self._agenda.in_cycle or not self._held:
            return None
        order, decisions = self._held.pop(0)
        return self._applied(ledger, order, decisions, now_ms)

    def _applied(self, ledger: Ledger, order: RoundOrder, decisions: Decisions, now_ms: int) -> Outcome:
        outcome = outcome_of(ledger, self._policy, order, decisions, now_ms)
        self._limiters.charge(order.pool, outcome.leased_by_queue, outcome.preempted_for_share)
        if decisions.optimised is not None:
            self._optimised_ms[order.pool] = order.started_ms
        if decisions.termination is Termination.RATE_LIMIT:
            self._agenda.changed(now_ms + self._cadence.rate_retry_ms)
        elif decisions.termination is Termination.SOFT_TIMEOUT:
            self._agenda.changed(now_ms)
        self.failures.pop(order.pool, None)
        self.reports[order.pool] = RoundReport(
            order=order,
            decisions=decisions,
            finished_ms=now_ms,
            leased=sum(outcome.leased_by_queue.values()),
            preempted=outcome.preempted,
        )
        return outcome

    def _are_wanted(self, ledger: Ledger) -> bool:
        return self._cadence.rounds_without_jobs or ledger.queued_count() > 0

    def _pools(self, ledger: Ledger) -> list[str]:
        """Return the pools that have nodes: configured ones in their order, then those that only executors name."""
        known = ledger.pools()
        configured = [pool.name for pool in self._policy.pools]
        return [name for name in dict.fromkeys([*configured, *known]) if self._has_nodes(name, known)]

    def _has_nodes(self, pool: str, known: Iterable[str]) -> bool:
        policy = self._policy.pool(pool) or PoolPolicy(name=pool)
        return any(name in known for name in (pool, *policy.away_pools))

    def _prepared(self, ledger: Ledger, pool: str, now_ms: int) -> RoundOrder | None:
        """Return a pool's round; None where it can't be put together, which is that pool's failure alone."""
        try:
            return self._order(ledger, pool, now_ms)
        except Exception as error:  # noqa: BLE001 - its pool fails with it, told in reports and log; the others go on
            reason = f"its round could not be put together: {error!r}"
            if pool not in self.failures:
                self._warnings += (f"pool {pool} can't be decided: {reason}",)
            self._refuse(pool, RoundFailure(reason, now_ms))
            return None

    def _order(self, ledger: Ledger, pool: str, now_ms: int) -> RoundOrder:
        self._ordered += 1
        circumstances = Circumstances(
            executors=self._health.taking_part(ledger, pool),
            queue_tokens=self._limiters.queue_tokens(ledger.queues, now_ms),
            weight_overrides=self.feeds.of_pool(pool),
            penalties=ledger.penalties(pool, now_ms),
            excluded=self._admission.excluded(pool),
            bids=self.feeds.bids,
            global_tokens=self._limiters.tokens(now_ms),
            preemption_tokens=self._limiters.preemption_tokens(pool, now_ms),
            taken=tuple(row for _, held in self._held for row in held.leases.row.tolist()),
            now_ms=now_ms,
            optimises=self._optimises(pool, now_ms),
        )
        snapshot = ledger.pool_snapshot(pool, circumstances)
        return RoundOrder(
            pool=pool, snapshot=snapshot, seed=self._ordered, as_of=ledger.next_sequence, started_ms=now_ms
        )

    def _optimises(self, pool: str, now_ms: int) -> bool:
        """Say whether the pool's fairness optimiser takes part: its interval has gone by since it last did."""
        optimiser = (self._policy.pool(pool) or PoolPolicy(name=pool)).optimiser
        if optimiser is None:
            return False
        last_ms = self._optimised_ms.get(pool)
        return last_ms is None or now_ms - last_ms >= optimiser.interval_ms
