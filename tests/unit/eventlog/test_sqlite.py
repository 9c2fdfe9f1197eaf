"""What is particular to the SQLite log: groups, full disks, damage, crashes."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from armada.eventlog.database import LogDatabase
from armada.eventlog.port import Batch, Checkpoint
from armada.eventlog.sqlite import DATABASE_FILE, SqliteEventLog, SqliteOptions
from armada.model.errors import CorruptEntry, LogFailed, LogFull, StartupRefused
from armada.model.events import Entry, JobCancelRequested, JobSetEvents
from tests.small_disk import small_disk


def batch(batch_id: str, size: int = 1) -> Batch:
    events = tuple(JobCancelRequested(at_ms=1, job_id=f"{batch_id}-{index}") for index in range(size))
    return Batch(batch_id=batch_id, time_ms=1, sequences=(JobSetEvents("q", "s", events),))


def bulky(batch_id: str) -> Batch:
    """About 200 KB that do not compress well."""
    text = "".join(f"{hash((batch_id, index)):x}" for index in range(13_000))
    event = JobCancelRequested(at_ms=1, job_id="j", reason=text)
    return Batch(batch_id=batch_id, time_ms=1, sequences=(JobSetEvents("q", "s", (event,)),))


async def whole(log: SqliteEventLog) -> list[Entry]:
    found: list[Entry] = []
    while entries := await log.read(found[-1].position if found else 0, 1_000):
        found.extend(entries)
    return found


async def fill(log: SqliteEventLog) -> int:
    """Append until the log is full; return how many batches it took."""
    for index in range(100):
        try:
            await log.append(bulky(f"b{index}"))
        except LogFull as refusal:
            assert "disk is full" in str(refusal)  # noqa: PT017 - the loop ends with it, wherever that is
            return index
    raise AssertionError("the log is never full")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB, where this user may mount one."""
    with small_disk(tmp_path, 2) as disk:
        yield disk


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteEventLog]:
    opened = SqliteEventLog.open(tmp_path)
    yield opened
    await opened.close()


async def test_appends_that_wait_together_share_a_commit(log: SqliteEventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    original = LogDatabase.append

    def counted(self: LogDatabase, pending: list[tuple[Batch, int]]) -> object:
        groups.append(len(pending))
        return original(self, pending)

    monkeypatch.setattr(LogDatabase, "append", counted)
    await asyncio.gather(*(log.append(batch(f"b{index}")) for index in range(400)))
    assert sum(groups) == 400
    assert len(groups) < 40


async def test_the_loop_goes_on_while_the_disk_is_slow(log: SqliteEventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading  # noqa: PLC0415 - only this test holds a thread up

    release = threading.Event()
    original = LogDatabase.append

    def slow(self: LogDatabase, pending: list[tuple[Batch, int]]) -> object:
        release.wait(10)
        return original(self, pending)

    monkeypatch.setattr(LogDatabase, "append", slow)
    appending = asyncio.create_task(log.append(batch("b")))
    for _ in range(5):
        await asyncio.sleep(0)
    assert await log.last_position() == 0
    assert not appending.done()
    release.set()
    assert await appending == 1


async def test_too_many_waiting_batches_are_refused(tmp_path: Path) -> None:
    log = SqliteEventLog.open(tmp_path, options=SqliteOptions(waiting_batches=3))
    results = await asyncio.gather(*(log.append(batch(f"b{index}")) for index in range(5)), return_exceptions=True)
    assert [type(result) for result in results] == [int, int, int, LogFailed, LogFailed]
    assert await log.append(batch("later")) == 4
    await log.close()


async def test_reads_stop_at_a_bound_of_bytes_and_go_on(tmp_path: Path) -> None:
    log = SqliteEventLog.open(tmp_path, options=SqliteOptions(read_bytes=300_000, recent_bytes=0))
    for index in range(5):
        await log.append(bulky(f"b{index}"))
    first = await log.read(0, 100)
    assert 1 <= len(first) < 5
    assert [entry.batch_id for entry in await whole(log)] == [f"b{index}" for index in range(5)]
    await log.close()


async def test_entries_in_memory_are_the_ones_appended(log: SqliteEventLog) -> None:
    appended = batch("b")
    await log.append(appended)
    recent = log.recent(0, 10)
    assert recent is not None
    assert recent[0].events is appended.sequences[0].events


# -- full, read-only, damaged -----------------------------------------------------------------------------------------


async def test_a_full_log_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    log = SqliteEventLog.open(tmp_path, options=SqliteOptions(max_pages=300))
    stored = await fill(log)
    assert stored > 0
    assert [entry.batch_id for entry in await whole(log)] == [f"b{index}" for index in range(stored)]
    await log.close()
    log = SqliteEventLog.open(tmp_path)
    assert await log.append(batch("after")) == stored + 1
    assert len(await whole(log)) == stored + 1
    await log.close()


async def test_what_is_small_enough_still_fits_a_nearly_full_log(tmp_path: Path) -> None:
    log = SqliteEventLog.open(tmp_path, options=SqliteOptions(max_pages=100))
    stored = await fill(log)
    assert await log.append(batch("small")) == stored + 1
    await log.close()


async def test_a_full_disk_says_so_and_does_no_damage(tiny_disk: Path) -> None:
    log = SqliteEventLog.open(tiny_disk)
    stored = await fill(log)
    with pytest.raises(LogFull, match="saving checkpoint 1: No space left"):
        await log.save_checkpoint(Checkpoint(position=1, payload=b"x" * 4_000_000))
    assert await log.latest_checkpoint() is None
    await log.close()
    log = SqliteEventLog.open(tiny_disk)
    assert [entry.batch_id for entry in await whole(log)] == [f"b{index}" for index in range(stored)]
    await log.close()
    assert stored > 0


def test_no_log_is_begun_on_a_full_disk(tiny_disk: Path) -> None:
    (tiny_disk / "lost+found").write_bytes(b"x" * (2 * 1024 * 1024 - 4 * 4_096))
    with pytest.raises(StartupRefused, match="disk is full"):
        SqliteEventLog.open(tiny_disk)
    (tiny_disk / "lost+found").unlink()
    asyncio.run(SqliteEventLog.open(tiny_disk).close())


async def test_after_a_failed_disk_nothing_is_acknowledged(
    log: SqliteEventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync that failed once may "succeed" the next time without the bytes being there."""
    original = LogDatabase.append

    def failing(_self: LogDatabase, _pending: object) -> object:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    await log.append(batch("before"))
    monkeypatch.setattr(LogDatabase, "append", failing)
    with pytest.raises(LogFailed, match="disk I/O error"):
        await log.append(batch("b"))
    monkeypatch.setattr(LogDatabase, "append", original)
    with pytest.raises(LogFailed, match="restart once it works"):
        await log.append(batch("c"))
    assert [entry.batch_id for entry in await whole(log)] == ["before"]


async def test_an_unforeseen_error_fails_the_append_and_not_the_log(
    log: SqliteEventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = LogDatabase.append

    def failing(_self: LogDatabase, _pending: object) -> object:
        raise RuntimeError("a bug")

    monkeypatch.setattr(LogDatabase, "append", failing)
    with pytest.raises(LogFailed, match="a bug"):
        await log.append(batch("b"))
    monkeypatch.setattr(LogDatabase, "append", original)
    assert await log.append(batch("b")) == 1


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    asyncio.run(SqliteEventLog.open(tmp_path).close())
    with sqlite3.connect(tmp_path / DATABASE_FILE) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    for _ in range(2):
        with pytest.raises(StartupRefused, match="has version 7; this program uses version 1"):
            SqliteEventLog.open(tmp_path)


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be looked at " * 50])
def test_a_strange_file_in_its_place_is_refused(tmp_path: Path, content: bytes) -> None:
    asyncio.run(SqliteEventLog.open(tmp_path).close())
    (tmp_path / DATABASE_FILE).write_bytes(content)
    with pytest.raises(StartupRefused, match="not a database"):
        SqliteEventLog.open(tmp_path)
    assert (tmp_path / DATABASE_FILE).read_bytes() == content


def test_somebody_else_s_database_is_refused(tmp_path: Path) -> None:
    asyncio.run(SqliteEventLog.open(tmp_path).close())
    for file in tmp_path.glob("log.db*"):
        file.unlink()
    with sqlite3.connect(tmp_path / DATABASE_FILE) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StartupRefused, match="no log of ours"):
        SqliteEventLog.open(tmp_path)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    log = SqliteEventLog.open(tmp_path)
    with pytest.raises(StartupRefused, match="in use"):
        SqliteEventLog.open(tmp_path)
    asyncio.run(log.close())


async def test_a_damaged_entry_is_named(tmp_path: Path) -> None:
    log = SqliteEventLog.open(tmp_path)
    for index in range(3):
        await log.append(batch(f"b{index}"))
    await log.close()
    with sqlite3.connect(tmp_path / DATABASE_FILE) as connection:
        connection.execute("UPDATE entries SET payload = x'0100' WHERE position = 2")
    connection.close()
    log = SqliteEventLog.open(tmp_path)
    with pytest.raises(CorruptEntry, match="entry 2 of the log"):
        await log.read(0, 10)
    assert [entry.position for entry in await log.read(2, 10)] == [3]
    await log.close()


async def test_a_path_with_odd_characters_is_no_trouble(tmp_path: Path) -> None:
    folder = tmp_path / "a b?c=d%20#e"
    log = SqliteEventLog.open(folder)
    await log.append(batch("b"))
    await log.close()
    log = SqliteEventLog.open(folder, options=SqliteOptions(recent_entries=0))
    assert len(await whole(log)) == 1
    await log.close()


# -- crashes ----------------------------------------------------------------------------------------------------------

WRITER = """
import asyncio, pathlib, sys
from armada.eventlog.port import Batch
from armada.eventlog.sqlite import SqliteEventLog
from armada.model.events import JobCancelRequested, JobSetEvents

async def write(log, writer):
    number = 0
    while True:
        name = f"{writer}-{number}"
        events = tuple(JobCancelRequested(at_ms=1, job_id=f"{name}-{index}") for index in range(20))
        sequences = (JobSetEvents("q", "s", events), JobSetEvents("q", "t", events))
        position = await log.append(Batch(batch_id=f"{sys.argv[2]}-{name}", time_ms=1, sequences=sequences))
        print(position, f"{sys.argv[2]}-{name}", ".", flush=True)
        number += 1

async def main():
    log = SqliteEventLog.open(pathlib.Path(sys.argv[1]))
    await asyncio.gather(*(write(log, writer) for writer in range(4)))

asyncio.run(main())
"""


def killed_while_writing(folder: Path, life: int) -> dict[str, int]:
    """Let a process append and kill it; return what it was told to be stored, by batch id."""
    acknowledged: list[list[str]] = []
    command = [sys.executable, "-c", WRITER, str(folder), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged.extend(process.stdout.readline().split() for _ in range(20 + 37 * life))
        process.send_signal(signal.SIGKILL)
        acknowledged.extend(line.split() for line in process.stdout.read().splitlines() if line.endswith("."))
    return {name: int(position) for position, name, _ in acknowledged}


def test_killed_at_any_moment_it_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    for life in range(5):
        acknowledged.update(killed_while_writing(tmp_path, life))

    async def all_entries() -> list[Entry]:
        log = SqliteEventLog.open(tmp_path)
        found = await whole(log)
        await log.close()
        return found

    entries = asyncio.run(all_entries())
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    last = {entry.batch_id: entry.position for entry in entries}
    assert {name: last.get(name) for name in acknowledged} == acknowledged
    for first, second in zip(entries[::2], entries[1::2], strict=True):
        assert (first.batch_id, first.ordinal, second.ordinal) == (second.batch_id, 0, 1)
