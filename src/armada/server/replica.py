"""A ledger that follows its log, and whoever waits for it to get somewhere."""

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from armada.eventlog.port import Batch, EventLog
from armada.model.events import Entry, JobSetEvents, Position
from armada.runtime.identifiers import batch_id, wall_clock_ms
from armada.runtime.telemetry import Metrics
from armada.state.ledger import Ledger

ENTRIES_PER_READ: Final = 500
WATCH_LIMIT: Final = 1_000
"""Entries that a watcher may lag behind before it has to read the log again."""

OnEntry = Callable[[Entry], None]


class Watch:
    """Entries of one job set as they are folded. Holds at most `WATCH_LIMIT`; `overflowed` says that some were lost."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.overflowed = False
        self._news = asyncio.Event()

    def offer(self, entry: Entry) -> None:
        """Add an entry, unless the watcher is too far behind."""
        if len(self.entries) >= WATCH_LIMIT:
            self.overflowed = True
        else:
            self.entries.append(entry)
        self._news.set()

    async def news(self) -> None:
        """Return once an entry was offered since the last call."""
        await self._news.wait()
        self._news.clear()


class Replica:
    """The log, the ledger that folds it, and those who wait for a position or watch a job set."""

    def __init__(
        self, log: EventLog, ledger: Ledger, metrics: Metrics, now_ms: Callable[[], int] = wall_clock_ms
    ) -> None:
        self.log = log
        self.ledger = ledger
        self.now_ms = now_ms
        self._metrics = metrics
        self._hooks: list[OnEntry] = []
        self._after: list[Callable[[], None]] = []
        self._waiting: list[tuple[Position, int, asyncio.Future[None]]] = []
        self._ticket = itertools.count()
        self._watches: dict[tuple[str, str], list[Watch]] = {}

    def on_entry(self, hook: OnEntry) -> None:
        """Have every entry shown (void parts left out) right after it was folded."""
        self._hooks.append(hook)

    def after_fold(self, hook: Callable[[], None]) -> None:
        """Have something called after each stretch of entries that was folded."""
        self._after.append(hook)

    async def catch_up(self) -> None:
        """Fold everything that the log holds now."""
        target = await self.log.last_position()
        while self.ledger.position < target:
            self._fold(await self.log.read(self.ledger.position, ENTRIES_PER_READ))
            await asyncio.sleep(0)

    async def follow(self) -> None:
        """Fold the log as it grows, until cancelled."""
        while True:
            entries = await self.log.read(self.ledger.position, ENTRIES_PER_READ)
            if entries:
                self._fold(entries)
                await asyncio.sleep(0)
            else:
                await self.log.wait(self.ledger.position)

    def _fold(self, entries: Sequence[Entry]) -> None:
        ledger, hooks, watches = self.ledger, self._hooks, self._watches
        folded = False
        for entry in entries:
            if entry.position <= ledger.position:
                continue
            ledger.apply(entry)
            folded = True
            shown = ledger.effective(entry)
            for hook in hooks:
                hook(shown)
            if watches and (watching := watches.get((entry.queue, entry.job_set))):
                for watch in watching:
                    watch.offer(shown)
        if not folded:
            return
        self._metrics.position.set(ledger.position)
        while self._waiting and self._waiting[0][0] <= ledger.position:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)
        for after in self._after:
            after()

    async def folded(self, position: Position) -> None:
        """Return once the ledger has folded up to this position."""
        if self.ledger.position >= position:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (position, next(self._ticket), future))
        await future

    async def append(self, sequences: tuple[JobSetEvents, ...], *, epoch: int = 0) -> Position:
        """Store facts and return their last position once they are durable and this ledger has folded them.

        Raises LogFailed (the append may have happened), LogFull, EpochLost.
        """
        batch = Batch(batch_id=batch_id(), time_ms=self.now_ms(), sequences=sequences)
        started = time.perf_counter()
        position = await self.log.append(batch, epoch=epoch)
        self._metrics.appends.inc()
        self._metrics.append_seconds.observe(time.perf_counter() - started)
        await self.folded(position)
        return position

    def watch(self, queue: str, job_set: str) -> Watch:
        """Begin to watch a job set: entries folded from now on are offered to the watch."""
        watch = Watch()
        self._watches.setdefault((queue, job_set), []).append(watch)
        return watch

    def unwatch(self, queue: str, job_set: str, watch: Watch) -> None:
        """Stop watching."""
        watching = self._watches.get((queue, job_set), [])
        if watch in watching:
            watching.remove(watch)
        if not watching:
            self._watches.pop((queue, job_set), None)
