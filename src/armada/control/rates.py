"""Token buckets that bound how fast jobs are scheduled; they live as long as a leadership and start full."""

from armada.model.policy import NO_LIMIT, RateLimit
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
