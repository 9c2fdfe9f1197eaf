"""The log becomes rows once, whatever is repeated, cut off or fed again (field case F056)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from armada.model.errors import LogFailed, Unavailable
from armada.model.events import (
    Entry,
    Failure,
    JobCancelled,
    JobFailed,
    JobsSubmitted,
    JobSucceeded,
    RunsReleased,
    RunStarted,
)
from armada.model.lifecycle import JobState
from armada.views import projector as projector_module
from armada.views import schema
from armada.views.history import History
from armada.views.projector import Projector
from tests.unit.views.story import ListedLog, entry, leased, mixed_story, submitted, success, template

Tables = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
async def history(tmp_path: Path) -> AsyncIterator[History]:
    opened = History.open(tmp_path / "history.db")
    yield opened
    await opened.close()


def unchanged(one: Entry) -> Entry:
    return one


def projecting(log: ListedLog, history: History, folded: int | None = None) -> Projector:
    return Projector(log, history, unchanged, lambda: len(log.entries) if folded is None else folded)


def rows(history: History) -> Tables:
    """All tables, in the order of their keys."""
    with history._store.engine.connect() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in (schema.job, schema.run, schema.spec, schema.job_set, schema.progress)
        }


async def test_one_batch_and_single_entries_give_the_same_rows(history: History, tmp_path: Path) -> None:
    log = mixed_story()
    await projecting(log, history).flush()
    at_once = rows(history)
    assert len(at_once["job"]) == 8
    assert len(at_once["run"]) == 7
    slow = History.open(tmp_path / "slow.db")
    for position in range(1, len(log.entries) + 1):
        await projecting(log, slow, folded=position).flush()
    assert rows(slow) == at_once
    await slow.close()


async def test_feeding_the_log_again_changes_nothing(history: History) -> None:
    log = mixed_story()
    await projecting(log, history).flush()
    first = rows(history)
    for _ in range(2):
        await projecting(log, history).flush()
    assert rows(history) == first


async def test_a_rebuild_from_zero_gives_the_same_rows(history: History) -> None:
    log = mixed_story()
    await projecting(log, history).flush()
    first = rows(history)
    await history.reset()
    assert rows(history)["job"] == []
    await projecting(log, history).flush()
    assert rows(history) == first


async def test_an_ended_job_stays_as_it_ended(history: History) -> None:
    """Even if a fact that should have been void reaches the store, in the same batch or a later one."""
    log = ListedLog()
    log.add(submitted("j1"))
    log.add(*success("j1", "r1"), JobCancelled(at_ms=99, job_id="j1"))
    await projecting(log, history).flush()
    log.add(RunStarted(at_ms=100, job_id="j1", run_id="r1"), JobCancelled(at_ms=100, job_id="j1"))
    await projecting(log, history).flush()
    job = (await history.jobs(["j1"], with_runs=True))["j1"]
    assert (job.state, job.last_transition_ms, job.cancelled_ms) == (JobState.SUCCEEDED, 5, None)
    assert (job.runs[0].state.name, job.runs[0].started_ms, job.runs[0].finished_ms) == ("SUCCEEDED", 4, 5)


async def test_a_crash_inside_a_write_leaves_rows_and_position_together(history: History) -> None:
    log = mixed_story()
    before = rows(history)
    store = history._store
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_update", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await projecting(log, history).flush()
    assert rows(history) == before
    assert history.position == 0
    await projecting(log, history).flush()
    assert len(rows(history)["job"]) == 8


async def test_only_what_the_ledger_folded_is_projected(history: History) -> None:
    log = mixed_story()
    await projecting(log, history, folded=2).flush()
    assert history.position == 2
    assert await history.states(["j1"]) == {"j1": JobState.QUEUED}


async def test_void_parts_leave_no_trace_and_specs_keep_their_number(history: History) -> None:
    log = ListedLog()
    log.add(submitted("j1"), submitted("j2", "j3", spec=template(namespace="two")), JobSucceeded(at_ms=3, job_id="j3"))

    def effective(one: Entry) -> Entry:
        first, second, third = one.events
        assert isinstance(first, JobsSubmitted)
        assert isinstance(second, JobsSubmitted)
        # The first submission and the last fact are void, and of the second submission its first row.
        left = (
            msgspec.structs.replace(first, jobs=()),
            msgspec.structs.replace(second, jobs=second.jobs[1:]),
            RunsReleased(at_ms=third.at_ms, run_ids=()),
        )
        return msgspec.structs.replace(one, events=left)

    await Projector(log, history, effective, lambda: 1).flush()
    found = await history.jobs(["j1", "j2", "j3"])
    assert [(job.job_id, job.spec_position, job.spec_index, job.namespace) for job in found.values()] == [
        ("j3", 1, 1, "two"),
    ]
    assert await history.spec(1, 0) is None
    kept = await history.spec(1, 1)
    assert kept is not None
    assert kept.namespace == "two"


@pytest.mark.parametrize("batches", [1, 2])
async def test_a_job_that_fails_takes_its_live_run_along(history: History, batches: int) -> None:
    log = ListedLog()
    log.add(submitted("j1"), leased("j1", "r1"), RunStarted(at_ms=3, job_id="j1", run_id="r1"))
    if batches > 1:
        await projecting(log, history).flush()
    log.add(JobFailed(at_ms=9, job_id="j1", failure=Failure(reason="gang lost", kind="gang_unschedulable")))
    await projecting(log, history).flush()
    (run,) = (await history.runs(["r1"])).values()
    assert (run.state.name, run.finished_ms) == ("FAILED", 9)


async def test_equal_jobs_share_one_spec(history: History) -> None:
    log = ListedLog()
    log.add(submitted(*(f"j{number:06}" for number in range(10_000))))
    await projecting(log, history).flush()
    assert history._store.count(schema.spec) == 1
    assert history._store.count(schema.job) == 10_000


async def test_caught_up_projects_at_once_and_not_only_after_the_gathering_time(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projector_module, "GATHER_MS", 3_600_000)
    log = ListedLog()
    projector = projecting(log, history)
    async with running(projector):
        log.add(submitted("j1"))
        projector.notify()
        await asyncio.wait_for(history.caught_up(1), 5)
        assert await history.states(["j1"]) == {"j1": JobState.QUEUED}
        # Waiting before the entry exists works too.
        waiting = asyncio.create_task(history.caught_up(2))
        await asyncio.sleep(0)
        log.add(*success("j1", "r1"))
        projector.notify()
        await asyncio.wait_for(waiting, 5)
        assert await history.states(["j1"]) == {"j1": JobState.SUCCEEDED}


async def test_caught_up_gives_up_with_a_reason(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armada.views.history._CATCH_UP_LIMIT_S", 0.01)
    with pytest.raises(Unavailable, match="stands at 0, not at 7"):
        await history.caught_up(7)
    assert not history.is_waited_for


@pytest.mark.parametrize(
    "failure", [LogFailed("disk"), OperationalError("INSERT", {}, Exception("database or disk is full"))]
)
async def test_failures_are_tried_again(history: History, monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    monkeypatch.setattr(projector_module, "_RETRY_FIRST_S", 0.001)
    log = ListedLog()
    log.add(submitted("j1"))
    log.failures = [failure] * 3
    async with running(projecting(log, history)):
        await asyncio.wait_for(history.caught_up(1), 5)
    assert log.reads >= 4


async def test_a_history_of_another_log_starts_over(history: History) -> None:
    log = mixed_story()
    await projecting(log, history).flush()
    await projecting(log, history).check()
    assert history.position == len(log.entries)
    other = ListedLog([entry(position + 1, submitted(f"x{position}")) for position in range(len(log.entries))])
    other.entries[-1] = msgspec.structs.replace(other.entries[-1], batch_id="elsewhere")
    await projecting(other, history).check()
    assert history.position == 0
    await projecting(other, history).flush()
    assert await history.jobs(["j1"]) == {}
    shorter = ListedLog(other.entries[:3])
    await projecting(shorter, history).check()
    assert history.position == 0


@pytest.mark.parametrize("batches", [1, 2])
async def test_an_id_that_was_used_before_stays_with_its_first_job(history: History, batches: int) -> None:
    """The ledger forgets ended jobs; a fact that uses such an id again must not stop the projector for good."""
    log = ListedLog()
    log.add(submitted("j1", at_ms=1), *success("j1", "r1"))
    if batches > 1:
        await projecting(log, history).flush()
    log.add(submitted("j1", "j2", at_ms=50), *success("j1", "r1", at_ms=60))
    await projecting(log, history).flush()
    found = await history.jobs(["j1", "j2"], with_runs=True)
    assert (found["j1"].submitted_ms, found["j1"].last_transition_ms, len(found["j1"].runs)) == (1, 5, 1)
    assert found["j2"].state is JobState.QUEUED


async def test_facts_about_unknown_jobs_are_harmless(history: History) -> None:
    """A log trimmed at its start tells of jobs whose submission is gone."""
    log = ListedLog()
    log.add(leased("gone", "r1"), RunStarted(at_ms=3, job_id="gone", run_id="r1"), JobCancelled(at_ms=4, job_id="gone"))
    await projecting(log, history).flush()
    assert await history.jobs(["gone"], with_runs=True) == {}


@contextlib.asynccontextmanager
async def running(projector: Projector) -> AsyncIterator[None]:
    """The projector's loop, for the length of a block."""
    loop = asyncio.create_task(projector.run())
    try:
        yield
    finally:
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop


class Warned:
    """A logger that keeps what it was told."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int]] = []

    def warning(self, event: str, *, history: int, log_begins: int) -> None:
        assert "trimmed" in event
        self.lines.append((history, log_begins))


async def test_a_log_that_was_trimmed_is_projected_from_its_first_entry(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the history never saw is lost to it, which is said; what the log still holds is projected."""
    warned = Warned()
    monkeypatch.setattr(structlog, "get_logger", lambda *_: warned)
    log = ListedLog()
    log.add(submitted("gone"))
    log.add(submitted("there"))
    log.entries = log.entries[1:]
    projector = Projector(log, history, unchanged, lambda: 2)
    await projector.check()
    assert warned.lines == [(0, 2)]
    await projector.flush()
    await projector.check()
    assert len(warned.lines) == 1
    assert list(await history.jobs(["gone", "there"])) == ["there"], "up to its own place is no reason to start over"
