"""Asking a service again and again."""

import asyncio
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge

from armada.model.errors import ArmadaError
from armada.runtime.supervision import Backoff
from armada.runtime.telemetry import Log

OVERRIDES: Final = "priority overrides"
BIDS: Final = "bids"
"""Names of the feeds."""

ANSWER_LIMIT_S: Final = 10.0
"""A service that takes longer has failed."""
FIRST_RETRY_S: Final = 0.5
LAST_RETRY_S: Final = 30.0

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


class Source(Protocol[Answer_co]):
    """Something that can be asked."""

    async def ask(self) -> Answer_co:
        """Return the answer as it is now; raises an ArmadaError."""
        ...


class FeedMetrics:
    """Series of all feeds; the one that only bids have is shown once there are any."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._answered = Gauge(
            "armada_feed_last_answer_timestamp_seconds", "Last good answer of a feed", ["feed"], registry=registry
        )
        self._failures = Counter(
            "armada_feed_failures", "Times that a feed could not be had", ["feed"], registry=registry
        )
        self._bids_answered: Gauge | None = None

    def answered(self, feed: str) -> None:
        """Note a good answer, now."""
        self._answered.labels(feed).set_to_current_time()
        if feed == BIDS:
            self._bids_answered = self._bids_answered or Gauge(
                "armada_scheduler_bid_price_cache_last_refresh_timestamp_seconds",
                "Last good answer about bids",
                registry=self._registry,
            )
            self._bids_answered.set_to_current_time()

    def failed(self, feed: str) -> None:
        """Note that a feed could not be had."""
        self._failures.labels(feed).inc()


class Feed(Generic[Answer]):
    """Asks a source every period, sooner after a failure; tells what is new, and what went wrong.

    A failure changes nothing: whoever listens goes on with the last good answer.
    """

    def __init__(  # noqa: PLR0913 - the parts it works with are handed in, never looked up
        self,
        name: str,
        source: Source[Answer],
        *,
        period_s: float,
        on_answer: Callable[[Answer], None],
        on_failure: Callable[[str], None],
        metrics: FeedMetrics,
        log: Log,
    ) -> None:
        self._name = name
        self._source = source
        self._period_s = period_s
        self._on_answer = on_answer
        self._on_failure = on_failure
        self._metrics = metrics
        self._log = log
        self._backoff = Backoff(FIRST_RETRY_S, LAST_RETRY_S)
        self._last: Answer | None = None

    async def run(self) -> None:
        """Go on asking until cancelled."""
        while True:
            wait_s = await self._ask()
            await asyncio.sleep(wait_s)

    async def _ask(self) -> float:
        """Ask once; return how long to wait before the next time."""
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                answer = await self._source.ask()
        except (ArmadaError, TimeoutError) as error:
            reason = str(error) or f"no answer within {ANSWER_LIMIT_S:.0f} s"
            self._metrics.failed(self._name)
            wait_s = min(self._backoff.draw_s(), self._period_s)
            goes_on = "none was received yet" if self._last is None else "going on with the last ones"
            self._log.warning(f"{self._name} can't be had: {goes_on}", reason=reason, wait_s=round(wait_s, 1))
            self._on_failure(reason)
            return wait_s
        self._backoff.reset()
        self._metrics.answered(self._name)
        if answer != self._last:
            self._last = answer
            self._on_answer(answer)
        return self._period_s
