"""The history of jobs and runs: what happened, also after the ledger has forgotten it.

An asynchronous face on `store` and `reads`: one thread writes, a few read, and the event loop never waits for a disk.
Only `projector` writes. Readers that need their own writes first wait for `caught_up(position)`.
"""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import Connection

from armada.model.errors import Unavailable
from armada.model.events import Position
from armada.model.jobs import JobTemplate
from armada.model.lifecycle import JobState
from armada.views import reads
from armada.views.changes import Changes
from armada.views.records import JobDetails, Preemption, RunDetails
from armada.views.store import Store

__all__ = ["History", "JobDetails", "Preemption", "RunDetails"]

RETENTION_MS: Final = 42 * 24 * 3600 * 1000
"""How long a job is kept after its end, unless settings say otherwise."""

_READERS: Final = 2
_CATCH_UP_LIMIT_S: Final = 10.0

Answer = TypeVar("Answer")


class History:
    """Jobs and runs by id, by job set, by external URI. Made with `open`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._position, self._batch_id = store.progress()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="history-writer")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="history-reader")
        self._waiting: list[tuple[Position, int, asyncio.Future[None]]] = []
        self._waiters = 0
        self.on_demand: Callable[[], None] = lambda: None
        """Called when somebody waits for what is not projected yet; the projector hangs itself in here."""

    @classmethod
    def open(cls, path: Path) -> "History":
        """Open or create the file `path`. Raises StartupRefused when it is unusable or of a newer release."""
        return cls(Store.open(path))

    async def close(self) -> None:
        """Finish what is under way and close the file. Whoever still waits is told that it won't come."""
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(Unavailable("the history is closing"))
        self._waiting.clear()
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        self._store.close()

    # What is there

    @property
    def position(self) -> Position:
        """All entries up to this one are visible to reads."""
        return self._position

    @property
    def batch_id(self) -> str:
        """The batch of the entry at `position`."""
        return self._batch_id

    @property
    def is_waited_for(self) -> bool:
        """True when some reader waits for entries that are not projected yet."""
        while self._waiting and self._waiting[0][2].done():
            heapq.heappop(self._waiting)
        return bool(self._waiting)

    async def caught_up(self, position: Position) -> None:
        """Return as soon as `position` is projected. Raises Unavailable after ten seconds."""
        if position <= self._position:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiters += 1
        heapq.heappush(self._waiting, (position, self._waiters, future))
        self.on_demand()
        try:
            await asyncio.wait_for(future, _CATCH_UP_LIMIT_S)
        except TimeoutError as error:
            raise Unavailable(f"the history is behind: it stands at {self._position}, not at {position} yet") from error

    # Reads

    async def jobs(
        self, job_ids: Sequence[str], *, with_runs: bool = False, with_spec: bool = False
    ) -> dict[str, JobDetails]:
        """The jobs that are known, in the order asked for."""
        return await self._read(lambda c: reads.jobs(c, job_ids, with_runs=with_runs, with_spec=with_spec))

    async def states(self, job_ids: Sequence[str]) -> dict[str, JobState]:
        """The states of those jobs that are known."""
        return await self._read(lambda c: reads.states(c, job_ids))

    async def states_by_uri(self, queue: str, job_set: str, external_job_uri: str) -> dict[str, JobState]:
        """The states of a job set's jobs that were submitted with exactly this external URI."""
        return await self._read(lambda c: reads.states_by_uri(c, queue, job_set, external_job_uri))

    async def errors(self, job_ids: Sequence[str]) -> dict[str, str]:
        """For each known job why it was rejected, else why its latest run ended badly, else ""."""
        return await self._read(lambda c: reads.errors(c, job_ids))

    async def runs(self, run_ids: Sequence[str]) -> dict[str, RunDetails]:
        """The runs that are known."""
        return await self._read(lambda c: reads.runs(c, run_ids))

    async def job_ids_in_set(self, queue: str, job_set: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """Ids of a job set's jobs above `after`, in order, at most `limit`."""
        return await self._read(lambda c: reads.job_ids_in_set(c, queue, job_set, after, limit))

    async def spec(self, position: Position, index: int) -> JobTemplate | None:
        """What event number `index` of the entry at `position` submitted; None when it is not, or no longer, kept."""
        return await self._read(lambda c: reads.template_of(c, position, index))

    async def _read(self, question: Callable[[Connection], Answer]) -> Answer:
        def ask() -> Answer:
            with self._store.engine.connect() as connection:
                return question(connection)

        return await asyncio.get_running_loop().run_in_executor(self._readers, ask)

    # Writes

    async def write(self, make: Callable[[], Changes]) -> None:
        """Store what `make` gathers (in the writer's thread), then let those go on who wait for it."""

        def work() -> Changes:
            changes = make()
            self._store.write(changes)
            return changes

        changes = await asyncio.get_running_loop().run_in_executor(self._writer, work)
        self._position, self._batch_id = changes.position, changes.batch_id
        while self._waiting and self._waiting[0][0] <= self._position:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    async def settle(self) -> None:
        """Return once what was stored so far would survive a power cut too. Raises sqlalchemy's DBAPIError."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self._store.settle)

    async def reset(self) -> None:
        """Forget everything, so that the log is projected from its start."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self._store.reset)
        self._position, self._batch_id = 0, ""

    async def prune(self, before_ms: int, *, batch: int = 1000) -> int:
        """Remove up to `batch` jobs that ended before `before_ms`; returns how many: call again while it is `batch`."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._store.prune, before_ms, batch)
