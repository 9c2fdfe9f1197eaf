"""The numbered contract of `armada.eventlog.port`, against every backend."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from armada.eventlog.port import Batch, Checkpoint, EventLog
from armada.eventlog.sqlite import CHECKPOINT_FOLDER, SqliteEventLog
from armada.model.errors import EpochLost, LogFailed
from armada.model.events import Entry, JobCancelRequested, JobSetEvents, LeadershipClaimed, Position, QueueDeleted


class Backend(msgspec.Struct, frozen=True):
    """How to open a log, again and again; `survives` when what was stored is there after reopening."""

    open: Callable[[], AbstractAsyncContextManager[EventLog]]
    survives: bool
    damage_newest_checkpoint: Callable[[EventLog], None]


def _sqlite(folder: Path | None) -> Backend:
    @asynccontextmanager
    async def opened() -> AsyncIterator[EventLog]:
        log = SqliteEventLog.open(folder)
        try:
            yield log
        finally:
            await log.close()

    def damage(log: EventLog) -> None:
        assert isinstance(log, SqliteEventLog)
        if folder is None:
            kept = log._checkpoints._sealed  # type: ignore[attr-defined]  # the store in memory
            newest = max(kept)
            kept[newest] = kept[newest][:-1] + b"?"
        else:
            newest_file = max((folder / CHECKPOINT_FOLDER).iterdir())
            newest_file.write_bytes(newest_file.read_bytes()[:-1] + b"?")

    return Backend(open=opened, survives=folder is not None, damage_newest_checkpoint=damage)


@pytest.fixture(params=["sqlite", "memory"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return _sqlite(tmp_path / "data" if request.param == "sqlite" else None)


@pytest.fixture
async def log(backend: Backend) -> AsyncIterator[EventLog]:
    async with backend.open() as opened:
        yield opened


def cancelled(job_id: str) -> JobCancelRequested:
    return JobCancelRequested(at_ms=5, job_id=job_id)


def batch(batch_id: str, *job_sets: str, queue: str = "qa") -> Batch:
    """A batch with one sequence for each job set named."""
    return Batch(
        batch_id=batch_id,
        time_ms=7,
        sequences=tuple(JobSetEvents(queue, name, (cancelled(batch_id),)) for name in job_sets or ("s",)),
    )


def claim(epoch: int, batch_id: str = "", holder: str = "r1") -> Batch:
    claimed = LeadershipClaimed(at_ms=1, epoch=epoch, holder=holder)
    return Batch(
        batch_id=batch_id or f"claim-{epoch}-{holder}", time_ms=1, sequences=(JobSetEvents("", "", (claimed,)),)
    )


async def whole(log: EventLog, step: int = 3) -> list[Entry]:
    """Read the log from the beginning in small steps."""
    found: list[Entry] = []
    while entries := await log.read(found[-1].position if found else 0, step):
        assert len(entries) <= step
        found.extend(entries)
    return found


# -- 1. One total order -----------------------------------------------------------------------------------------------


async def test_1_every_entry_has_a_position_and_positions_only_grow(log: EventLog) -> None:
    answers = await asyncio.gather(*(log.append(batch(f"b{index}", "s", "t")) for index in range(50)))
    entries = await whole(log)
    positions = [entry.position for entry in entries]
    assert positions == sorted(set(positions))
    assert len(entries) == 100
    assert sorted(answers) == positions[1::2]
    assert await log.last_position() == positions[-1]


async def test_1_an_author_s_appends_keep_their_order(log: EventLog) -> None:
    answers = [await log.append(batch(f"b{index}")) for index in range(20)]
    assert answers == sorted(set(answers))
    assert [entry.batch_id for entry in await whole(log)] == [f"b{index}" for index in range(20)]


async def test_1_entries_say_what_was_appended(log: EventLog) -> None:
    appended = batch("b", "s", "t")
    last = await log.append(appended)
    assert await whole(log) == [
        Entry(
            position=last - 1 + ordinal,
            batch_id="b",
            time_ms=7,
            epoch=0,
            queue="qa",
            job_set=name,
            events=(cancelled("b"),),
            ordinal=ordinal,
        )
        for ordinal, name in enumerate(("s", "t"))
    ]


# -- 2. A position becomes visible only after all lower ones ----------------------------------------------------------


async def test_2_a_reader_never_sees_a_gap(log: EventLog) -> None:
    seen: list[Entry] = []

    async def follow() -> None:
        while len(seen) < 300:
            await log.wait(seen[-1].position if seen else 0)
            seen.extend(await log.read(seen[-1].position if seen else 0, 7))

    async with asyncio.timeout(30):
        await asyncio.gather(follow(), *(log.append(batch(f"b{index}", "s", "t", "u")) for index in range(100)))
    assert seen == await whole(log)
    assert [entry.position for entry in seen] == list(range(seen[0].position, seen[0].position + 300))


# -- 3. A batch is atomic ---------------------------------------------------------------------------------------------


async def test_3_a_refused_batch_leaves_nothing_behind(log: EventLog) -> None:
    await log.append(batch("good"))
    with pytest.raises(EpochLost):
        await log.append(batch("bad", "s", "t", "u"), epoch=4)
    assert [entry.batch_id for entry in await whole(log)] == ["good"]


async def test_3_one_refused_batch_of_a_group_does_not_touch_the_others(log: EventLog) -> None:
    results = await asyncio.gather(
        log.append(batch("a")), log.append(batch("b"), epoch=9), log.append(batch("c")), return_exceptions=True
    )
    assert isinstance(results[1], EpochLost)
    assert [entry.batch_id for entry in await whole(log)] == ["a", "c"]


async def test_3_a_reader_that_waits_sees_all_of_a_batch(log: EventLog) -> None:
    following = asyncio.create_task(log.wait(0))
    await log.append(batch("b", "s", "t", "u"))
    async with asyncio.timeout(5):
        position = await following
    assert [entry.ordinal for entry in await log.read(0, 100)] == [0, 1, 2]
    assert position == (await log.read(0, 100))[-1].position


# -- 4. Acknowledged is durable ---------------------------------------------------------------------------------------


async def test_4_what_was_acknowledged_is_there_after_reopening(backend: Backend) -> None:
    if not backend.survives:
        return  # a log in memory promises nothing beyond its own life
    async with backend.open() as log:
        await log.append(claim(1), epoch=1)
        await log.append(batch("b", "s", "t"), epoch=1)
        before = await whole(log)
    async with backend.open() as log:
        assert await whole(log) == before
        assert await log.last_position() == before[-1].position
        with pytest.raises(EpochLost):
            await log.append(claim(1, "again"), epoch=1)
        assert await log.append(batch("c"), epoch=1) == before[-1].position + 1


# -- 5. A failed append may have happened -----------------------------------------------------------------------------


async def test_5_a_repeated_batch_is_stored_once_and_answered_alike(log: EventLog) -> None:
    first = await log.append(batch("b", "s", "t"))
    await log.append(batch("c"))
    assert await log.append(batch("b", "s", "t")) == first
    assert [entry.batch_id for entry in await whole(log)] == ["b", "b", "c"]


async def test_5_repeats_at_the_same_moment_are_stored_once(log: EventLog) -> None:
    answers = await asyncio.gather(*(log.append(batch("b", "s", "t")) for _ in range(20)))
    assert len(set(answers)) == 1
    assert len(await whole(log)) == 2


async def test_5_a_repeat_is_known_after_reopening(backend: Backend) -> None:
    if not backend.survives:
        return  # a log in memory promises nothing beyond its own life
    async with backend.open() as log:
        first = await log.append(batch("b"))
    async with backend.open() as log:
        assert await log.append(batch("b")) == first
        assert len(await whole(log)) == 1


async def test_5_a_repeat_of_a_leader_s_batch_is_answered_though_the_epoch_is_over(log: EventLog) -> None:
    await log.append(claim(1), epoch=1)
    first = await log.append(batch("decided"), epoch=1)
    await log.append(claim(2), epoch=2)
    assert await log.append(batch("decided"), epoch=1) == first


async def test_5_an_author_that_gives_up_waiting_may_ask_again(log: EventLog) -> None:
    impatient = asyncio.create_task(log.append(batch("b")))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.wait([impatient])
    position = await log.append(batch("b"))
    assert [entry.position for entry in await whole(log)] == [position]


# -- 6. Reads repeat exactly ------------------------------------------------------------------------------------------


async def test_6_reads_repeat_whatever_the_limit(log: EventLog) -> None:
    for index in range(20):
        await log.append(batch(f"b{index}", "s", "t"))
    once = await whole(log, step=1)
    assert await whole(log, step=1000) == once == await whole(log, step=7)
    assert list(await log.read(once[10].position, 5)) == once[11:16]
    assert list(await log.read(once[-1].position, 5)) == []
    assert list(await log.read(once[-1].position + 10, 5)) == []


async def test_6_a_job_set_reads_alone(log: EventLog) -> None:
    for index in range(10):
        await log.append(batch(f"b{index}", "s", "t"))
        await log.append(batch(f"c{index}", "s", queue="qb"))
    expected = [entry for entry in await whole(log) if (entry.queue, entry.job_set) == ("qa", "s")]
    assert list(await log.read_job_set("qa", "s", 0, 100)) == expected
    assert list(await log.read_job_set("qa", "s", expected[3].position, 4)) == expected[4:8]
    assert list(await log.read_job_set("qa", "none", 0, 100)) == []


async def test_6_reads_from_disk_equal_reads_from_memory(backend: Backend) -> None:
    if not backend.survives:
        return  # a log in memory promises nothing beyond its own life
    async with backend.open() as log:
        for index in range(10):
            await log.append(batch(f"b{index}", "s", "t"))
        fresh = await whole(log), await log.read_job_set("qa", "t", 3, 5)
    async with backend.open() as log:
        assert (await whole(log), await log.read_job_set("qa", "t", 3, 5)) == fresh


# -- 7. Leadership is in the log --------------------------------------------------------------------------------------


async def test_7_only_the_next_epoch_can_be_claimed(log: EventLog) -> None:
    for wrong in (0, 2, 5):
        with pytest.raises(EpochLost):
            await log.append(claim(wrong), epoch=wrong)
    await log.append(claim(1), epoch=1)
    with pytest.raises(EpochLost):
        await log.append(claim(1, holder="r2"), epoch=1)
    await log.append(claim(2, holder="r2"), epoch=2)
    assert [entry.epoch for entry in await whole(log)] == [1, 2]


async def test_7_a_claim_must_be_made_under_its_own_epoch_and_first(log: EventLog) -> None:
    with pytest.raises(EpochLost):
        await log.append(claim(1), epoch=0)
    late = Batch(batch_id="late", time_ms=1, sequences=(*batch("x").sequences, *claim(1).sequences))
    with pytest.raises(EpochLost):
        await log.append(late, epoch=1)
    assert await whole(log) == []


async def test_7_decisions_of_an_old_epoch_are_refused(log: EventLog) -> None:
    await log.append(claim(1), epoch=1)
    await log.append(batch("a"), epoch=1)
    await log.append(claim(2), epoch=2)
    with pytest.raises(EpochLost):
        await log.append(batch("b"), epoch=1)
    await log.append(batch("c"), epoch=2)
    await log.append(batch("d"))
    assert [entry.batch_id for entry in await whole(log)] == ["claim-1-r1", "a", "claim-2-r1", "c", "d"]


async def test_7_of_two_claims_at_once_one_wins(log: EventLog) -> None:
    results = await asyncio.gather(
        *(log.append(claim(1, holder=f"r{index}"), epoch=1) for index in range(5)), return_exceptions=True
    )
    assert sum(isinstance(result, EpochLost) for result in results) == 4
    assert len(await whole(log)) == 1


# -- 8. Trimmed only below a checkpoint that reads back ---------------------------------------------------------------


async def test_8_nothing_is_trimmed_without_a_checkpoint(log: EventLog) -> None:
    for index in range(10):
        await log.append(batch(f"b{index}"))
    with pytest.raises(LogFailed):
        await log.trim(5)
    await log.save_checkpoint(Checkpoint(position=4, payload=b"four"))
    with pytest.raises(LogFailed):
        await log.trim(5)
    assert len(await whole(log)) == 10
    await log.trim(4)
    assert [entry.position for entry in await whole(log)] == [4, 5, 6, 7, 8, 9, 10]
    assert list(await log.read_job_set("qa", "s", 0, 100)) == await whole(log)


async def test_8_a_damaged_checkpoint_does_not_allow_trimming(backend: Backend, log: EventLog) -> None:
    for index in range(10):
        await log.append(batch(f"b{index}"))
    await log.save_checkpoint(Checkpoint(position=3, payload=b"three"))
    await log.save_checkpoint(Checkpoint(position=8, payload=b"eight"))
    backend.damage_newest_checkpoint(log)
    with pytest.raises(LogFailed):
        await log.trim(8)
    await log.trim(3)
    assert await log.latest_checkpoint() == Checkpoint(position=3, payload=b"three")


async def test_8_the_newest_checkpoint_that_reads_back_is_found(backend: Backend, log: EventLog) -> None:
    assert await log.latest_checkpoint() is None
    for index in range(5):
        await log.append(batch(f"b{index}"))
        await log.save_checkpoint(Checkpoint(position=index + 1, payload=bytes([index]) * 1000))
    assert await log.latest_checkpoint() == Checkpoint(position=5, payload=b"\4" * 1000)
    backend.damage_newest_checkpoint(log)
    assert await log.latest_checkpoint() == Checkpoint(position=4, payload=b"\3" * 1000)


async def test_8_a_trimmed_log_goes_on(backend: Backend) -> None:
    async with backend.open() as log:
        for index in range(10):
            await log.append(batch(f"b{index}"))
        await log.save_checkpoint(Checkpoint(position=8, payload=b"eight"))
        await log.trim(7)
        assert await log.append(batch("next")) == 11
        if not backend.survives:
            return
    async with backend.open() as log:
        assert [entry.position for entry in await whole(log)] == [7, 8, 9, 10, 11]
        assert await log.append(batch("more")) == 12
        backend.damage_newest_checkpoint(log)
        with pytest.raises(LogFailed, match="begins at entry 7"):
            await log.latest_checkpoint()


# -- 9. Age goes by order ---------------------------------------------------------------------------------------------


async def append_at(log: EventLog, *times_ms: int) -> None:
    for time_ms in times_ms:
        position = await log.last_position() + 1
        await log.append(msgspec.structs.replace(batch(f"b{position}"), time_ms=time_ms))


async def test_9_the_last_entry_before_a_time_is_found(log: EventLog) -> None:
    assert await log.position_before(10) == 0
    await append_at(log, 10, 20, 20, 30)
    found = [await log.position_before(time_ms) for time_ms in (0, 10, 11, 20, 21, 30, 31, 2**62)]
    assert found == [0, 0, 1, 1, 3, 3, 4, 4]


async def test_9_entries_of_one_batch_are_of_one_age(log: EventLog) -> None:
    await log.append(batch("b", "s", "t", "u"))  # time 7
    await append_at(log, 8)
    assert [await log.position_before(time_ms) for time_ms in (7, 8, 9)] == [0, 3, 4]


async def test_9_a_clock_that_was_set_back_makes_no_entry_older_than_those_before_it(log: EventLog) -> None:
    await append_at(log, 10, 50, 20, 20, 60)
    assert [await log.position_before(time_ms) for time_ms in (15, 30, 50, 55, 70)] == [1, 1, 1, 4, 5]


async def test_9_age_is_told_of_what_is_held(backend: Backend) -> None:
    async with backend.open() as log:
        await append_at(log, 50, 10, 20, 30)
        await log.save_checkpoint(Checkpoint(position=4, payload=b"four"))
        await log.trim(2)
        found = [await log.position_before(time_ms) for time_ms in (5, 10, 15, 25, 100)]
        assert found == [1, 1, 2, 3, 4]
        if not backend.survives:
            return
    async with backend.open() as log:
        assert [await log.position_before(time_ms) for time_ms in (5, 10, 15, 25, 100)] == found


# -- besides ----------------------------------------------------------------------------------------------------------


async def test_wait_returns_at_once_when_there_is_more(log: EventLog) -> None:
    position = await log.append(batch("b"))
    assert await log.wait(0) == position


async def test_all_waiters_wake_on_append_and_a_cancelled_one_does_no_harm(log: EventLog) -> None:
    waiters = [asyncio.create_task(log.wait(0)) for _ in range(10)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    position = await log.append(batch("b"))
    async with asyncio.timeout(5):
        assert await asyncio.gather(*waiters[1:]) == [position] * 9


async def test_a_closed_log_says_so(backend: Backend) -> None:
    async with backend.open() as log:
        waiter = asyncio.create_task(log.wait(0))
        await asyncio.sleep(0)
    with pytest.raises(LogFailed):
        await waiter
    calls: list[Callable[[], Awaitable[Position]]] = [
        lambda: log.append(batch("b")),
        lambda: log.wait(0),
        lambda: log.position_before(1),
    ]
    for call in calls:
        with pytest.raises(LogFailed):
            await call()
    await log.close()


async def test_appends_that_wait_are_finished_by_close(backend: Backend) -> None:
    async with backend.open() as log:
        pending = [asyncio.create_task(log.append(batch(f"b{index}"))) for index in range(20)]
        await asyncio.sleep(0)
    assert sorted(await asyncio.gather(*pending)) == list(range(1, 21))


async def test_an_empty_batch_is_refused(log: EventLog) -> None:
    for wrong in (
        Batch(batch_id="b", time_ms=1, sequences=()),
        Batch(batch_id="b", time_ms=1, sequences=(JobSetEvents("q", "s", ()),)),
        Batch(batch_id="", time_ms=1, sequences=batch("b").sequences),
    ):
        with pytest.raises(ValueError, match="a batch needs"):
            await log.append(wrong)
    with pytest.raises(ValueError, match="limit"):
        await log.read(0, 0)


async def test_a_batch_that_cannot_be_encoded_fails_alone(log: EventLog) -> None:
    bad = Batch(batch_id="bad", time_ms=1, sequences=(JobSetEvents("", "", (QueueDeleted(at_ms=1, name="\ud800"),)),))
    results = await asyncio.gather(
        log.append(batch("a")), log.append(bad), log.append(batch("c")), return_exceptions=True
    )
    assert isinstance(results[1], LogFailed)
    assert [entry.batch_id for entry in await whole(log)] == ["a", "c"]
