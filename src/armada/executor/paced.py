"""A stepped cluster behind an event loop: lets it sleep until its next event, and hands out changes in batches."""

import asyncio
from collections.abc import Callable, Sequence

from armada.executor.cluster import (
    Capabilities,
    Changes,
    Creation,
    Listing,
    LogLine,
    LogRequest,
    PodDeletion,
    SteppedCluster,
)
from armada.executor.pods import PodOrder

BATCH_GAP_MS = 4
"""Changes are handed out at most this often: under load many become one batch."""
_LONGEST_SLEEP_MS = 3_600_000


class PacedCluster:
    """Implements `Cluster` on a `SteppedCluster`. `clock_ms` is the time that the stepped cluster is told."""

    def __init__(self, stepped: SteppedCluster, clock_ms: Callable[[], int]) -> None:
        self._stepped = stepped
        self._clock_ms = clock_ms
        self._stirred = asyncio.Event()
        self._last_batch_ms = 0

    @property
    def capabilities(self) -> Capabilities:
        """What the stepped cluster can."""
        return self._stepped.capabilities

    async def list(self) -> Listing:
        """Everything as it is now."""
        return self._stepped.listing(self._clock_ms())

    async def changes(self) -> Changes:
        """Wait for the next batch."""
        while True:
            self._stirred.clear()
            now_ms = self._clock_ms()
            gap_ms = self._last_batch_ms + BATCH_GAP_MS - now_ms
            if 0 < gap_ms <= BATCH_GAP_MS:
                await asyncio.sleep(gap_ms / 1000)
                now_ms = self._clock_ms()
            changes = self._stepped.advance(now_ms)
            if changes:
                self._last_batch_ms = now_ms
                return changes
            wake_ms = self._stepped.next_wake_ms()
            sleep_ms = _LONGEST_SLEEP_MS if wake_ms is None else max(wake_ms - self._clock_ms(), 1)
            await self._sleep(min(sleep_ms, _LONGEST_SLEEP_MS))

    async def _sleep(self, sleep_ms: int) -> None:
        """Sleep, or less when an order or a deletion came in."""
        timer = asyncio.get_running_loop().call_later(sleep_ms / 1000, self._stirred.set)
        try:
            await self._stirred.wait()
        finally:
            timer.cancel()

    async def create(self, orders: Sequence[PodOrder]) -> Sequence[Creation]:
        """Create pods."""
        creations = self._stepped.create(orders, self._clock_ms())
        self._stirred.set()
        return creations

    async def delete(self, deletions: Sequence[PodDeletion]) -> None:
        """Ask for deletions."""
        self._stepped.delete(deletions, self._clock_ms())
        self._stirred.set()

    async def proceed(self) -> None:
        """Nothing to do: a stepped cluster's pods go on by the time alone."""

    async def read_log(self, request: LogRequest) -> Sequence[LogLine]:
        """Lines that the stepped cluster has for a pod."""
        return self._stepped.read_log(request, self._clock_ms())

    async def close(self) -> None:
        """Nothing to let go of."""
