"""A log in memory that can be made to fail, and a replica on it."""

import asyncio
from collections.abc import Sequence
from typing import Self

from armada.eventlog.port import Batch, Checkpoint
from armada.model.errors import LogFailed
from armada.model.events import Entry, Position
from armada.model.policy import SchedulingPolicy
from armada.runtime.telemetry import Metrics
from armada.server.replica import Replica
from armada.state.ledger import Ledger


class MemoryLog:
    """The log port on a list. `failure` is raised by appends while it is set; `reads` counts reads of entries.

    `trimmed` is what trimming was asked for; nothing goes.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.checkpoints: list[Checkpoint] = []
        self.trimmed: list[Position] = []
        self.failure: LogFailed | None = None
        self.reads = 0
        self._grown = asyncio.Event()

    async def append(self, batch: Batch, *, epoch: int = 0) -> Position:
        if self.failure is not None:
            raise self.failure
        for ordinal, sequence in enumerate(batch.sequences):
            self.entries.append(
                Entry(
                    position=len(self.entries) + 1,
                    batch_id=batch.batch_id,
                    ordinal=ordinal,
                    time_ms=batch.time_ms,
                    epoch=epoch,
                    queue=sequence.queue,
                    job_set=sequence.job_set,
                    events=sequence.events,
                )
            )
        self._grown.set()
        return len(self.entries)

    async def read(self, after: Position, limit: int) -> Sequence[Entry]:
        self.reads += 1
        return self.entries[after : after + limit]

    async def read_job_set(self, queue: str, job_set: str, after: Position, limit: int) -> Sequence[Entry]:
        found = [entry for entry in self.entries[after:] if (entry.queue, entry.job_set) == (queue, job_set)]
        return found[:limit]

    async def wait(self, after: Position) -> Position:
        while len(self.entries) <= after:
            self._grown.clear()
            await self._grown.wait()
        return len(self.entries)

    async def last_position(self) -> Position:
        return len(self.entries)

    async def position_before(self, time_ms: int) -> Position:
        young = (entry.position - 1 for entry in self.entries if entry.time_ms >= time_ms)
        return next(young, len(self.entries))

    async def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        if self.failure is not None:
            raise self.failure
        self.checkpoints.append(checkpoint)

    async def latest_checkpoint(self) -> Checkpoint | None:
        return self.checkpoints[-1] if self.checkpoints else None

    async def trim(self, below: Position) -> None:
        if self.failure is not None:
            raise self.failure
        self.trimmed.append(below)

    async def close(self) -> None:
        pass


class Followed:
    """A replica that follows a memory log while the block lasts."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.policy = SchedulingPolicy()
        self.metrics = Metrics()
        self.replica = Replica(self.log, Ledger(self.policy), self.metrics)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.replica.follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
