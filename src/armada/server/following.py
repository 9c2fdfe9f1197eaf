"""Following a job set: what the log holds of it, then what comes."""

from collections.abc import AsyncIterator
from typing import Final

from armada.model.errors import LimitExceeded
from armada.model.events import Entry, Position
from armada.runtime.telemetry import Metrics
from armada.server.replica import Replica

ENTRIES_PER_READ: Final = 200


class Followers:
    """The event streams of this replica; their number is bounded."""

    def __init__(self, replica: Replica, metrics: Metrics, limit: int) -> None:
        self._replica = replica
        self._metrics = metrics
        self._limit = limit
        self._open = 0

    async def exists(self, queue: str, job_set: str) -> bool:
        """Say if anything was ever logged for a job set."""
        return bool(await self._replica.log.read_job_set(queue, job_set, 0, 1))

    async def entries(self, queue: str, job_set: str, after: Position, *, watch: bool) -> AsyncIterator[list[Entry]]:
        """Yield the job set's entries above `after` in order, void parts left out.

        Without `watch` it ends with the last one that is folded when the call comes; else it goes on until closed.
        Raises LimitExceeded when too many streams are open.
        """
        if self._open >= self._limit:
            raise LimitExceeded(f"{self._limit} event streams are open, no more are allowed: try again later")
        self._open += 1
        self._metrics.streams.set(self._open)
        try:
            if watch:
                async for entries in self._watched(queue, job_set, after):
                    yield entries
            else:
                async for entries in self._stored(queue, job_set, after, self._replica.ledger.position):
                    yield entries
        finally:
            self._open -= 1
            self._metrics.streams.set(self._open)

    async def _stored(self, queue: str, job_set: str, after: Position, until: Position) -> AsyncIterator[list[Entry]]:
        while after < until:
            entries = await self._replica.log.read_job_set(queue, job_set, after, ENTRIES_PER_READ)
            shown = [self._replica.ledger.effective(entry) for entry in entries if entry.position <= until]
            if shown:
                yield shown
            # A read may stop short of its limit (it is bounded in bytes too): only an empty one is the end.
            if not entries or len(shown) < len(entries):
                return
            after = entries[-1].position

    async def _watched(self, queue: str, job_set: str, after: Position) -> AsyncIterator[list[Entry]]:
        while True:
            watch = self._replica.watch(queue, job_set)
            try:
                until = self._replica.ledger.position
                async for entries in self._stored(queue, job_set, after, until):
                    yield entries
                after = max(after, until)
                while not watch.overflowed:
                    fresh = [entry for entry in watch.entries if entry.position > after]
                    watch.entries.clear()
                    if fresh:
                        after = fresh[-1].position
                        yield fresh
                    await watch.news()
            finally:
                self._replica.unwatch(queue, job_set, watch)
