"""The SQLite database of a log: plain calls that block, one connection an object; `sqlite.py` knows about threads."""

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from armada.eventlog.codec import decode_events, encode_events, plain_size
from armada.eventlog.port import Batch
from armada.model.errors import ArmadaError, CorruptEntry, EpochLost, LogFailed, LogFull, StartupRefused
from armada.model.events import Entry, LeadershipClaimed, Position

_APPLICATION_ID: Final = 0x41524D4C
_DATABASE_VERSION: Final = 1
_WAL_BYTES: Final = 64 * 1024 * 1024
_CACHE_KIB: Final = 8_192
_LEAST_FREE_BYTES: Final = 128 * 1024

_SCHEMA: Final = (
    "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), position INTEGER NOT NULL, epoch INTEGER NOT NULL)",
    "INSERT INTO head VALUES (1, 0, 0)",
    """CREATE TABLE entries (
        position INTEGER PRIMARY KEY,
        ordinal INTEGER NOT NULL,
        batch_id TEXT NOT NULL,
        time_ms INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        queue TEXT NOT NULL,
        job_set TEXT NOT NULL,
        payload BLOB NOT NULL
    )""",
    "CREATE INDEX entries_by_batch ON entries (batch_id, position)",
    "CREATE INDEX entries_by_job_set ON entries (queue, job_set, position)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_DATABASE_VERSION}",
)
_INSERT: Final = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_READ: Final = "SELECT * FROM entries WHERE position > ? ORDER BY position LIMIT ?"
_READ_JOB_SET: Final = (
    "SELECT * FROM entries WHERE queue = ? AND job_set = ? AND position > ? ORDER BY position LIMIT ?"
)
_FIRST_SINCE: Final = "SELECT position FROM entries WHERE time_ms >= ? ORDER BY position LIMIT 1"
_LAST_OF_BATCH: Final = "SELECT max(position) FROM entries WHERE batch_id = ?"
_TRIM: Final = "DELETE FROM entries WHERE position IN (SELECT position FROM entries WHERE position < ? LIMIT ?)"


class Written(msgspec.Struct, frozen=True):
    """What one transaction did: an outcome a batch, and the entries stored, with their sizes before compression."""

    outcomes: list[Position | ArmadaError]
    entries: list[Entry]
    sizes: list[int]
    position: Position


def failure(error: sqlite3.Error, doing: str, path: Path | None) -> LogFailed:
    """Say in our own terms what went wrong with the database at `path`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _disk_is_full(path)):
        return LogFull(f"{doing}: the disk is full, or the log has its largest size; free some space")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return LogFull(f"{doing}: the data folder can't be written ({error})")
    return LogFailed(f"{doing}: {error}")


def _disk_is_full(path: Path | None) -> bool:
    """SQLite reports a full disk as an I/O error when it meets it in its shared-memory file."""
    if path is None:
        return False
    disk = os.statvfs(path.parent)
    return disk.f_bavail * disk.f_frsize < _LEAST_FREE_BYTES


def is_io_error(error: sqlite3.Error) -> bool:
    """Return True when the disk itself failed: what it holds now is unknown until the log is opened again."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT)


class LogDatabase:
    """One connection to a log's database; `path` None is a database in memory."""

    def __init__(self, path: Path | None, *, writes: bool = True, busy_timeout_ms: int = 0, max_pages: int = 0) -> None:
        """Connect, making the database when it is new.

        Raises:
            StartupRefused: it can't be used, is damaged, or has another version.
        """
        name = ":memory:" if path is None else f"file:{quote(str(path))}?mode={'rwc' if writes else 'ro'}"
        connection = None
        try:
            connection = sqlite3.connect(
                name, timeout=busy_timeout_ms / 1000, isolation_level=None, check_same_thread=False, uri=True
            )
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            if writes:
                _prepare(connection, path, max_pages)
        except (sqlite3.Error, StartupRefused) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error):
                raise StartupRefused(str(failure(error, f"log {path}", path))) from error
            raise
        self._connection = connection

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def head(self) -> tuple[Position, int]:
        """Return the last position and the current epoch."""
        position, epoch = self._connection.execute("SELECT position, epoch FROM head").fetchone()
        return position, epoch

    def first_position(self) -> Position:
        """Return the position of the first entry that is held, or 0 when there is none."""
        (position,) = self._connection.execute("SELECT min(position) FROM entries").fetchone()
        return position or 0

    def position_before(self, time_ms: int) -> Position:
        """Return the position before the first entry of this time or later; the last one when there is none.

        A pass over the entries before it.
        """
        last, _ = self.head()  # first: what is appended from here on is not known to be old
        found = self._connection.execute(_FIRST_SINCE, (time_ms,)).fetchone()
        return last if found is None else min(last, found[0] - 1)

    # -- writing ------------------------------------------------------------------------------------------------------

    def append(self, pending: Sequence[tuple[Batch, int]]) -> Written:
        """Store batches, each with the epoch of its author, in one transaction that is durable on return.

        A batch that is refused has its error as outcome and does not touch the others.

        Raises:
            sqlite3.Error: nothing was stored, as far as can be known.
        """
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            position, epoch = self.head()
            written = Written([], [], [], position)
            for batch, author_epoch in pending:
                try:
                    position, epoch = self._store(batch, author_epoch, position, epoch, written)
                except (EpochLost, LogFailed) as refusal:
                    written.outcomes.append(refusal)
            if written.entries:
                connection.execute("UPDATE head SET position = ?, epoch = ?", (position, epoch))
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
            raise
        return msgspec.structs.replace(written, position=position)

    def _store(
        self, batch: Batch, author_epoch: int, position: Position, epoch: int, written: Written
    ) -> tuple[Position, int]:
        """Insert one batch; return the new position and epoch."""
        (known,) = self._connection.execute(_LAST_OF_BATCH, (batch.batch_id,)).fetchone()
        if known is not None:
            written.outcomes.append(known)
            return position, epoch
        new_epoch = _admitted_epoch(batch, author_epoch, epoch)
        try:
            payloads = [encode_events(sequence.events) for sequence in batch.sequences]
        except (ValueError, TypeError, OverflowError) as error:
            raise LogFailed(f"batch {batch.batch_id} can't be encoded: {error}") from error
        entries = [
            Entry(
                position=position + 1 + ordinal,
                batch_id=batch.batch_id,
                time_ms=batch.time_ms,
                epoch=author_epoch,
                queue=sequence.queue,
                job_set=sequence.job_set,
                events=sequence.events,
                ordinal=ordinal,
            )
            for ordinal, sequence in enumerate(batch.sequences)
        ]
        self._connection.executemany(
            _INSERT,
            (
                (one.position, one.ordinal, one.batch_id, one.time_ms, one.epoch, one.queue, one.job_set, payload)
                for one, payload in zip(entries, payloads, strict=True)
            ),
        )
        written.entries.extend(entries)
        written.sizes.extend(map(plain_size, payloads))
        written.outcomes.append(entries[-1].position)
        return entries[-1].position, new_epoch

    def trim(self, below: Position, limit: int) -> int:
        """Delete at most `limit` entries below a position; return how many."""
        return self._connection.execute(_TRIM, (below, limit)).rowcount

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, after: Position, limit: int, max_bytes: int) -> list[Entry]:
        """Return entries above a position: at most `limit`, and no more after `max_bytes` of payload."""
        return _entries(self._connection.execute(_READ, (after, limit)), max_bytes)

    def read_job_set(self, queue: str, job_set: str, after: Position, limit: int, max_bytes: int) -> list[Entry]:
        """The same, of one job set."""
        return _entries(self._connection.execute(_READ_JOB_SET, (queue, job_set, after, limit)), max_bytes)


def _prepare(connection: sqlite3.Connection, path: Path | None, max_pages: int) -> None:
    """Set up a writing connection; make the tables when the database is new."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    if max_pages:
        connection.execute(f"PRAGMA max_page_count = {max_pages}")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == 0 and version == 0:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
            raise
    elif application != _APPLICATION_ID:
        raise StartupRefused(f"{path} is a database, but no log of ours")
    elif version != _DATABASE_VERSION:
        raise StartupRefused(f"log {path} has version {version}; this program uses version {_DATABASE_VERSION}")


def _admitted_epoch(batch: Batch, author_epoch: int, current: int) -> int:
    """Return the epoch after a batch.

    Raises:
        EpochLost: its author does not lead, or its claim is not the next one.
    """
    claims = [
        (ordinal, event.epoch)
        for ordinal, sequence in enumerate(batch.sequences)
        if not sequence.queue
        for event in sequence.events
        if isinstance(event, LeadershipClaimed)
    ]
    if claims:
        if claims != [(0, current + 1)] or author_epoch != current + 1:
            raise EpochLost(f"the claim to lead does not fit: the current epoch is {current}, asked was {author_epoch}")
        return author_epoch
    if author_epoch not in (0, current):
        raise EpochLost(f"epoch {author_epoch} is over: the current one is {current}")
    return current


def _entries(rows: sqlite3.Cursor, max_bytes: int) -> list[Entry]:
    entries: list[Entry] = []
    size = 0
    row: tuple[Any, ...]
    for row in rows:
        position, ordinal, batch_id, time_ms, epoch, queue, job_set, payload = row
        if entries and size + len(payload) > max_bytes:
            break
        size += len(payload)
        try:
            events = decode_events(payload)
        except CorruptEntry as error:
            raise CorruptEntry(f"entry {position} of the log: {error}") from error
        entries.append(
            Entry(
                position=position,
                batch_id=batch_id,
                time_ms=time_ms,
                epoch=epoch,
                queue=queue,
                job_set=job_set,
                events=events,
                ordinal=ordinal,
            )
        )
    rows.close()
    return entries
