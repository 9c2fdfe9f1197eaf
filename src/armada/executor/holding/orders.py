"""Pods still to be ordered: by order of their leases, later when an order failed, one batch at a time. Pure."""

import heapq
from collections import deque

from armada.executor.holding.runs import RunEntry, Stage
from armada.executor.pods import PodOrder


class OrderQueue:
    """Runs that wait for their pods to be created. An entry that left stage `WAITING` meanwhile is skipped."""

    def __init__(self, batch: int) -> None:
        """At most `batch` orders are under way at once."""
        self._batch = batch
        self._ready: deque[RunEntry] = deque()
        self._later: list[tuple[int, int, RunEntry]] = []
        self._ties = 0
        self._is_under_way = False

    def add(self, entry: RunEntry) -> None:
        """Order the run's pod as soon as possible."""
        self._ready.append(entry)

    def add_later(self, entry: RunEntry, due_ms: int) -> None:
        """Order it at a given time."""
        self._ties += 1
        heapq.heappush(self._later, (due_ms, self._ties, entry))

    def answered(self) -> None:
        """The batch under way was answered."""
        self._is_under_way = False

    def wake_ms(self) -> int | None:
        """When a postponed order is due."""
        return self._later[0][0] if self._later else None

    def take(self, now_ms: int) -> tuple[PodOrder, ...]:
        """Start the next batch; its runs are in stage `CREATING` from here on."""
        later, ready = self._later, self._ready
        while later and later[0][0] <= now_ms:
            ready.append(heapq.heappop(later)[2])
        if self._is_under_way or not ready:
            return ()
        orders: list[PodOrder] = []
        while ready and len(orders) < self._batch:
            entry = ready.popleft()
            if entry.stage == Stage.WAITING and entry.order is not None:
                entry.stage = Stage.CREATING
                orders.append(entry.order)
        self._is_under_way = bool(orders)
        return tuple(orders)
