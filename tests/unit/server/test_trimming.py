"""When the log is trimmed, and what is said when it can't be."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog
from structlog.testing import LogCapture

from armada.eventlog.port import Batch, Checkpoint
from armada.model.errors import LogFailed
from armada.model.events import JobSetEvents, QueueDeleted
from armada.server.upkeep.trimming import Trimming
from armada.views.history import History
from tests.unit.server.fakes import Followed

NOW_MS = 1_000_000_000
RETENTION_S = 100


@pytest.fixture
async def history(tmp_path: Path) -> AsyncIterator[History]:
    opened = History.open(tmp_path / "history.db")
    yield opened
    await opened.close()


async def prepared(here: Followed, history: History, *ages_s: int) -> tuple[Trimming, LogCapture]:
    """Entries of these ages, all in a checkpoint and in the history."""
    for number, age_s in enumerate(ages_s):
        sequence = JobSetEvents("", "", (QueueDeleted(at_ms=1, name="none"),))
        batch = Batch(batch_id=f"b{number}", time_ms=NOW_MS - age_s * 1_000, sequences=(sequence,))
        await here.log.append(batch)
    here.replica.now_ms = lambda: NOW_MS
    here.log.checkpoints.append(Checkpoint(position=len(ages_s), payload=b""))
    history._position = len(ages_s)
    told = LogCapture()
    log = structlog.wrap_logger(None, processors=[told], wrapper_class=structlog.make_filtering_bound_logger("warning"))
    return Trimming(here.replica, history, retention_s=RETENTION_S, log=log), told


async def running(trimming: Trimming, turns: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the loop run for some turns; return the waits between them."""
    waits: list[float] = []
    pause = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds:  # other tasks only give way
            waits.append(seconds)
            if len(waits) > turns:
                raise asyncio.CancelledError
        await pause(0)

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", sleep)
        with pytest.raises(asyncio.CancelledError):
            await trimming.run()
    return waits


async def test_the_log_is_trimmed_below_the_first_entry_that_is_young(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Followed() as here:
        trimming, _ = await prepared(here, history, 300, 200, 101, 100, 5)
        waits = await running(trimming, 2, monkeypatch)
        assert here.log.trimmed == [4, 4]
        assert waits == [60, RETENTION_S, RETENTION_S]


async def test_a_log_without_old_entries_is_left_alone(history: History) -> None:
    async with Followed() as here:
        trimming, _ = await prepared(here, history, 100, 5)
        assert await trimming.trim(NOW_MS - RETENTION_S * 1_000, NOW_MS) == 1
        assert here.log.trimmed == []


async def test_an_empty_log_is_left_alone(history: History) -> None:
    async with Followed() as here:
        trimming, _ = await prepared(here, history)
        assert await trimming.trim(NOW_MS, NOW_MS) == 0
        assert here.log.trimmed == []


async def test_the_last_entry_that_the_checkpoint_and_the_history_reach_stays(history: History) -> None:
    """By it the history recognises its log, and a reader the checkpoint that it may start from."""
    async with Followed() as here:
        trimming, _ = await prepared(here, history, 300, 300, 300)
        assert await trimming.trim(NOW_MS, NOW_MS) == 3


async def test_a_failure_is_said_and_tried_again(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Followed() as here:
        trimming, told = await prepared(here, history, 300, 5)
        here.log.failure = LogFailed("the disk is gone")
        await running(trimming, 2, monkeypatch)
        assert [line["event"] for line in told.entries] == ["the log could not be trimmed"] * 2
        here.log.failure = None
        await running(trimming, 1, monkeypatch)
        assert here.log.trimmed == [2]


async def test_an_entry_from_the_future_is_pointed_out(history: History) -> None:
    """Its author's clock was wrong. Nothing behind it counts as older, so an operator must know why the log grows."""
    async with Followed() as here:
        trimming, told = await prepared(here, history, -500, 300, 5)
        assert await trimming.trim(NOW_MS - RETENTION_S * 1_000, NOW_MS) == 1
        assert here.log.trimmed == []
        assert ["yet to come" in line["event"] for line in told.entries] == [True]
