"""Token buckets that bound how fast jobs are scheduled; they live as long as a leadership and start full."""

from collections.abc import Iterable, Mapping

from armada.model.policy import NO_LIMIT, PoolPolicy, RateLimit, SchedulingPolicy
from armada.scheduling.snapshot import UNLIMITED


class TokenBucket:
    """Gains tokens with time up to its size. Taking may leave it below zero: then it has to catch up first."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._tokens = float(limit.burst)
        self._as_of_ms: int | None = None

    @property
    def is_unlimited(self) -> bool:
        """True when the rate is no limit at all."""
        return self._limit.per_second >= NO_LIMIT

    def tokens(self, now_ms: int) -> float:
        """Return what it holds now."""
        if self.is_unlimited:
            return float(UNLIMITED)
        if self._as_of_ms is not None and now_ms > self._as_of_ms:
            gained = self._limit.per_second * (now_ms - self._as_of_ms) / 1_000
            self._tokens = min(float(self._limit.burst), self._tokens + gained)
        self._as_of_ms = max(now_ms, self._as_of_ms or 0)
        return self._tokens

    def forgive(self, now_ms: int) -> None:
        """Gain from now on: the clock has jumped, and what it gained meanwhile can't be known."""
        self._as_of_ms = now_ms

    def take(self, count: int) -> None:
        """Take tokens out."""
        self._tokens -= count


class Limiters:
    """All buckets of a leadership: the one for everything, one for each queue, one for each pool's preemptions."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._policy = policy
        self._all = TokenBucket(policy.rate)
        self._unlimited_queues = TokenBucket(policy.rate_per_queue).is_unlimited
        self._by_queue: dict[str, TokenBucket] = {}
        self._preemptions: dict[str, TokenBucket] = {}

    def forgive(self, now_ms: int) -> None:
        """Gain from now on, in every bucket."""
        for bucket in (self._all, *self._by_queue.values(), *self._preemptions.values()):
            bucket.forgive(now_ms)

    def tokens(self, now_ms: int) -> float:
        """Return how many jobs may be scheduled now, whosever they are."""
        return self._all.tokens(now_ms)

    def queue_tokens(self, queues: Iterable[str], now_ms: int) -> dict[str, float]:
        """Return how many jobs of each queue may be scheduled now; nothing when queues have no limit."""
        if self._unlimited_queues:
            return {}
        return {name: self._bucket(name).tokens(now_ms) for name in queues}

    def preemption_tokens(self, pool: str, now_ms: int) -> float | None:
        """Return how many jobs of a pool fair share may preempt now; None where there is no limit."""
        limit = (self._policy.pool(pool) or PoolPolicy(name=pool)).preemption_limit
        if limit is None:
            return None
        return self._preemptions.setdefault(pool, TokenBucket(limit)).tokens(now_ms)

    def charge(self, pool: str, leased: Mapping[str, int], preempted_for_share: int) -> None:
        """Take tokens for what a round did: jobs leased by queue, jobs preempted by fair share."""
        self._all.take(sum(leased.values()))
        if not self._unlimited_queues:
            for queue, count in leased.items():
                self._bucket(queue).take(count)
        if pool in self._preemptions:
            self._preemptions[pool].take(preempted_for_share)

    def _bucket(self, queue: str) -> TokenBucket:
        return self._by_queue.setdefault(queue, TokenBucket(self._policy.rate_per_queue))
