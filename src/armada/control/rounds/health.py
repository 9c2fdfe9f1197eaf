"""Which executors' nodes take part in rounds: those heard lately, not cordoned, not behind with confirming leases."""

from collections.abc import Mapping

from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger


class FleetHealth:
    """What the executors' silence and cordons mean for rounds; their runs go on counting whatever it is."""

    def __init__(self, policy: SchedulingPolicy, started_ms: int) -> None:
        """Silence counts from `started_ms` at the earliest: nobody could be heard before."""
        self._policy = policy
        self._heard_from_ms = started_ms
        self._taking_part: tuple[str, ...] = ()
        self._behind: tuple[str, ...] = ()

    def forgive(self, now_ms: int) -> None:
        """Let silence count anew: the clock has jumped."""
        self._heard_from_ms = now_ms

    def look(self, ledger: Ledger, heartbeats: Mapping[str, int], now_ms: int) -> bool:
        """Look at all executors; say if there is a change."""
        before = (self._taking_part, self._behind)
        oldest_ms = now_ms - self._policy.stale_executor_ms
        self._taking_part = tuple(
            executor_id
            for executor_id in ledger.executor_ids()
            if max(heartbeats.get(executor_id, 0), self._heard_from_ms) >= oldest_ms
            and not ledger.is_cordoned(executor_id)
        )
        limit = self._policy.max_unacknowledged_leases
        self._behind = tuple(each for each in self._taking_part if ledger.unstarted_count(each) > limit)
        return before != (self._taking_part, self._behind)

    def taking_part(self, ledger: Ledger, pool: str) -> frozenset[str]:
        """Return whose nodes take part in a round of a pool. Only leases that may meet there make one fall behind."""
        limit = self._policy.max_unacknowledged_leases
        meeting = self._meeting(pool) if self._behind else ()
        behind = [each for each in self._behind if ledger.unstarted_count(each, meeting) > limit]
        return frozenset(self._taking_part).difference(behind)

    def _meeting(self, pool: str) -> tuple[str, ...]:
        """Return the pool, those whose nodes it may use, and those that may use its nodes."""
        own = self._policy.pool(pool)
        guests = [other.name for other in self._policy.pools if pool in other.away_pools]
        return (pool, *(own.away_pools if own is not None else ()), *guests)
