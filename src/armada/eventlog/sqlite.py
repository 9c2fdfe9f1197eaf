"""The log in one SQLite file, or in memory for tests. The default of `armada up`.

One thread writes. Appends that wait together share one transaction and one sync (group commit). Readers have their own
threads and connections; a log in memory is read by the writer's thread. Nothing here runs SQL in the event loop.

A log belongs to the event loop that uses it first.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from armada.eventlog.checkpoints import CheckpointStore, FolderCheckpoints, MemoryCheckpoints
from armada.eventlog.database import LogDatabase, Written, failure, is_io_error
from armada.eventlog.folder import DataFolder
from armada.eventlog.port import Batch, Checkpoint
from armada.eventlog.recent import MAX_BYTES, MAX_ENTRIES, RecentEntries
from armada.model.errors import LogFailed, LogFull, StartupRefused
from armada.model.events import Entry, Position

DATABASE_FILE: Final = "log.db"
CHECKPOINT_FOLDER: Final = "checkpoints"
_TRIM_ROWS: Final = 5_000

Result = TypeVar("Result")


class SqliteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a log. `max_pages` (of 4 KiB) bounds the database; 0 leaves that to the disk."""

    group_batches: int = 512
    waiting_batches: int = 20_000
    read_bytes: int = 16 * 1024 * 1024
    readers: int = 4
    recent_entries: int = MAX_ENTRIES
    recent_bytes: int = MAX_BYTES
    busy_timeout_ms: int = 10_000
    max_pages: int = 0


class _Append(msgspec.Struct, frozen=True, eq=False):
    """A batch that waits for the writer."""

    batch: Batch
    epoch: int
    answer: "asyncio.Future[Position]"


class _Call(msgspec.Struct, frozen=True, eq=False):
    """Something else for the writer's thread to do."""

    work: Callable[[], Any]
    answer: Future[Any]


class SqliteEventLog:
    """The `EventLog` on SQLite. Make one with `open`."""

    def __init__(
        self, database: LogDatabase, checkpoints: CheckpointStore, folder: DataFolder | None, options: SqliteOptions
    ) -> None:
        self._database = database
        self._checkpoints = checkpoints
        self._folder = folder
        self._path = folder.path / DATABASE_FILE if folder else None
        self._options = options
        self._position, _ = database.head()
        self._recent = RecentEntries(options.recent_entries, options.recent_bytes)
        self._waiters: dict[asyncio.Future[Position], Position] = {}
        self._waiting = 0
        self._closed = False
        self._broken: LogFailed | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: queue.SimpleQueue[_Append | _Call | None] = queue.SimpleQueue()
        self._connections: list[LogDatabase] = []
        self._of_thread = threading.local()
        self._readers = ThreadPoolExecutor(options.readers, thread_name_prefix="log-reader")
        self._writer = threading.Thread(target=self._write_until_closed, name="log-writer", daemon=True)
        self._writer.start()

    @classmethod
    def open(cls, folder: Path | None, *, options: SqliteOptions | None = None) -> "SqliteEventLog":
        """Open the log in a data folder, which is this process's own until `close`; None is a log in memory.

        Raises:
            StartupRefused: the folder can't be used, is in use, or is of another version.
        """
        options = options or SqliteOptions()
        if folder is None:
            return cls(LogDatabase(None, max_pages=options.max_pages), MemoryCheckpoints(), None, options)
        owned = DataFolder.open(folder)
        try:
            database = LogDatabase(
                folder / DATABASE_FILE, busy_timeout_ms=options.busy_timeout_ms, max_pages=options.max_pages
            )
            return cls(database, FolderCheckpoints(folder / CHECKPOINT_FOLDER), owned, options)
        except BaseException:
            owned.close()
            raise

    # -- appending ----------------------------------------------------------------------------------------------------

    async def append(self, batch: Batch, *, epoch: int = 0) -> Position:
        """Store a batch and return the position of its last entry, once durable.

        Raises:
            EpochLost: the epoch is over.
            LogFull: no space, or no permission to write.
            LogFailed: the batch may or may not have been stored; the same batch may be appended again.
            ValueError: the batch is empty.
        """
        if not batch.sequences or not batch.batch_id or not all(sequence.events for sequence in batch.sequences):
            raise ValueError("a batch needs an id and at least one sequence, and a sequence at least one event")
        loop = self._bound_loop()
        if self._waiting >= self._options.waiting_batches:
            raise LogFailed(f"{self._waiting} batches wait for the disk already; try again")
        answer: asyncio.Future[Position] = loop.create_future()
        self._waiting += 1
        self._inbox.put(_Append(batch, epoch, answer))
        return await answer

    def _bound_loop(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise LogFailed("the log is closed")
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError("a log belongs to the event loop that used it first")
        return loop

    def _write_until_closed(self) -> None:
        """The writer's thread."""
        while (item := self._inbox.get()) is not None:
            if isinstance(item, _Call):
                _perform(item)
                continue
            group = [item]
            after: _Append | _Call | None = item
            with contextlib.suppress(queue.Empty):
                while len(group) < self._options.group_batches:
                    after = self._inbox.get_nowait()
                    if not isinstance(after, _Append):
                        break
                    group.append(after)
            self._write(group)
            if after is None:
                return
            if isinstance(after, _Call):
                _perform(after)

    def _write(self, group: list[_Append]) -> None:
        """Store a group of batches and have the loop answer their authors."""
        outcome = self._broken or self._stored(group)
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._settle, group, outcome)

    def _stored(self, group: list[_Append]) -> Written | LogFailed:
        try:
            return self._database.append([(item.batch, item.epoch) for item in group])
        except sqlite3.Error as error:
            known = failure(error, "appending to the log", self._path)
            if is_io_error(error) and not isinstance(known, LogFull):
                # After a failed write or sync nobody knows what is on disk; a later success would prove nothing.
                self._broken = LogFailed(f"the log's disk has failed: {error}; restart once it works")
            return known
        except Exception as error:  # noqa: BLE001 - whatever it is, the authors must hear of it and the thread go on
            return LogFailed(f"appending to the log: {error!r}")

    def _settle(self, group: list[_Append], outcome: Written | LogFailed) -> None:
        """Make a written group known. Runs in the loop."""
        self._waiting -= len(group)
        if isinstance(outcome, LogFailed):
            for item in group:
                if not item.answer.done():
                    item.answer.set_exception(type(outcome)(*outcome.args))
            return
        if outcome.entries:
            self._recent.add(outcome.entries, outcome.sizes)
            self._position = outcome.position
        for item, result in zip(group, outcome.outcomes, strict=True):
            if item.answer.done():
                continue
            if isinstance(result, int):
                item.answer.set_result(result)
            else:
                item.answer.set_exception(result)
        self._wake()

    # -- reading ------------------------------------------------------------------------------------------------------

    async def read(self, after: Position, limit: int) -> Sequence[Entry]:
        """Return entries above `after` in order: at most `limit`, fewer when they are large; none at the end.

        A log that was trimmed begins with the first entry that it still holds.
        """
        recent = self.recent(after, limit)
        if recent is not None:
            return recent
        return await self._reading(lambda database: database.read(after, limit, self._options.read_bytes))

    async def read_job_set(self, queue: str, job_set: str, after: Position, limit: int) -> Sequence[Entry]:
        """Return the same of one job set."""
        recent = self.recent(after, self._options.recent_entries)
        if recent is not None:
            found = (entry for entry in recent if entry.queue == queue and entry.job_set == job_set)
            return [entry for entry, _ in zip(found, range(limit), strict=False)]
        return await self._reading(
            lambda database: database.read_job_set(queue, job_set, after, limit, self._options.read_bytes)
        )

    def recent(self, after: Position, limit: int) -> Sequence[Entry] | None:
        """Return entries above `after` without waiting, or None when they have to be read from disk."""
        if limit < 1:
            raise ValueError("a read has a limit of at least 1")
        return [] if after >= self._position else self._recent.after(after, limit)

    async def _reading(self, read: Callable[[LogDatabase], Result]) -> Result:
        """Run a read in a thread that may block."""
        loop = self._bound_loop()
        if self._path is None:
            return await self._in_writer(lambda: self._readable(read, lambda: self._database))
        return await loop.run_in_executor(self._readers, self._readable, read, self._connection)

    def _connection(self) -> LogDatabase:
        """Return this reader thread's own connection."""
        connection: LogDatabase | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = LogDatabase(self._path, writes=False, busy_timeout_ms=self._options.busy_timeout_ms)
            self._of_thread.connection = connection
            self._connections.append(connection)
        return connection

    def _readable(self, read: Callable[[LogDatabase], Result], connection: Callable[[], LogDatabase]) -> Result:
        """Run a read.

        Raises:
            LogFailed: SQLite could not.
        """
        try:
            return read(connection())
        except sqlite3.Error as error:
            raise failure(error, "reading the log", self._path) from error
        except StartupRefused as error:
            raise LogFailed(f"reading the log: {error}") from error

    async def _in_writer(self, work: Callable[[], Result]) -> Result:
        """Run something in the writer's thread, between groups."""
        call = _Call(work, Future())
        self._inbox.put(call)
        result: Result = await asyncio.wrap_future(call.answer)
        return result

    async def wait(self, after: Position) -> Position:
        """Return the last position as soon as it is above `after`."""
        loop = self._bound_loop()
        if self._position > after:
            return self._position
        waiter: asyncio.Future[Position] = loop.create_future()
        self._waiters[waiter] = after
        try:
            return await waiter
        finally:
            self._waiters.pop(waiter, None)

    def _wake(self) -> None:
        for waiter, after in self._waiters.items():
            if self._position > after and not waiter.done():
                waiter.set_result(self._position)

    async def last_position(self) -> Position:
        """Return the position of the last durable entry; 0 for an empty log."""
        self._bound_loop()
        return self._position

    async def position_before(self, time_ms: int) -> Position:
        """Return the position before the first entry of this time or later; the last one when there is none."""
        return await self._reading(lambda database: database.position_before(time_ms))

    # -- checkpoints --------------------------------------------------------------------------------------------------

    async def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint beside the older ones, durable on return; only the newest few are kept.

        Raises:
            LogFull: there is no space for it.
            LogFailed: it could not be written.
            ValueError: it lies beyond the end of the log.
        """
        loop = self._bound_loop()
        if checkpoint.position > self._position:
            raise ValueError(f"checkpoint at {checkpoint.position}, but the log ends at {self._position}")
        try:
            await loop.run_in_executor(self._readers, self._checkpoints.save, checkpoint)
        except OSError as error:
            raise LogFull(f"saving checkpoint {checkpoint.position}: {error.strerror}") from error

    async def latest_checkpoint(self) -> Checkpoint | None:
        """Return the newest checkpoint that reads back whole; damaged ones are passed over.

        Raises:
            LogFailed: the log was trimmed, and no checkpoint that reads back whole reaches its first entry; or the
                newest one was made of entries that the log does not hold.
        """
        loop = self._bound_loop()
        checkpoint = await loop.run_in_executor(self._readers, self._checkpoints.newest)
        if checkpoint is not None and checkpoint.position > self._position:
            raise LogFailed(
                f"the log ends at entry {self._position}, but there is a checkpoint of entry {checkpoint.position}:"
                " it is an older copy, or has lost entries. Restore it, or remove the folder"
                f" {CHECKPOINT_FOLDER} to go on with what it holds"
            )
        first = await self._reading(lambda database: database.first_position())
        if first > (checkpoint.position if checkpoint else 0) + 1:
            raise LogFailed(f"the log begins at entry {first}, and no checkpoint that reads back whole reaches it")
        return checkpoint

    async def trim(self, below: Position) -> None:
        """Drop entries below `below`, bit by bit.

        Raises:
            LogFailed: no checkpoint at or above `below` reads back whole.
        """
        loop = self._bound_loop()
        whole = await loop.run_in_executor(self._readers, self._checkpoints.whole)
        if not any(position >= below for position in whole):
            raise LogFailed(f"entries below {below} are still needed: no checkpoint there reads back whole")

        def bit() -> int:
            return self._readable(lambda database: database.trim(below, _TRIM_ROWS), lambda: self._database)

        self._recent.forget_below(below)
        while await self._in_writer(bit):
            pass

    async def close(self) -> None:
        """Finish the appends that wait, let go of the folder; whoever waits for more is told that the log is closed."""
        if self._closed:
            return
        self._closed = True
        self._inbox.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.sleep(0)  # the writer's last answers are in the loop already
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(LogFailed("the log is closed"))
        await asyncio.to_thread(self._readers.shutdown)
        for connection in (*self._connections, self._database):
            connection.close()
        if self._folder is not None:
            self._folder.close()


def _perform(call: _Call) -> None:
    try:
        call.answer.set_result(call.work())
    except Exception as error:  # noqa: BLE001 - it is raised again where the call came from
        call.answer.set_exception(error)
