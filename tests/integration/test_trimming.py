"""Old entries leave the log; whatever is alive goes on (field cases F048, F114)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from armada_client.armada import event_pb2, job_pb2

from armada import assembly
from armada.eventlog.port import Checkpoint
from armada.eventlog.sqlite import DATABASE_FILE
from armada.model.errors import StartupRefused
from armada.model.events import Position
from armada.model.lifecycle import JobState
from armada.state import checkpoint as ledger_checkpoint
from tests.integration.plane import Executor, Plane, item, opened, plane, settings_for

DAY_MS = 86_400_000


async def age_and_trim(here: Plane, *, days: int = 15) -> Position:
    """Have a checkpoint and the history reach the end of the log, then trim as if that many days had passed."""
    control_plane = here.running.control_plane
    replica = control_plane.replica
    payload = replica.ledger.to_bytes()
    await replica.log.save_checkpoint(Checkpoint(position=replica.ledger.position, payload=payload))
    await control_plane._history.caught_up(replica.ledger.position)
    later_ms = replica.now_ms() + days * DAY_MS
    return await control_plane.trimming.trim(later_ms - 14 * DAY_MS, later_ms)


async def submitted_at(here: Plane, job_id: str) -> Position:
    job = here.running.control_plane.replica.ledger.job(job_id)
    assert job is not None
    return job.spec_position


async def fill(here: Plane, count: int = 20) -> None:
    """Entries of another job set."""
    for _ in range(count):
        await here.client.send(item(), job_set="other")


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_job_outlives_the_entry_that_submitted_it(tmp_path: Path, *, restarts: bool) -> None:
    """Queued for longer than entries are kept: it is shown, leased with its spec, and runs."""
    async with plane(tmp_path) as here:
        (job_id,) = await here.client.send(item("3", client_id="mine"))
        await fill(here)
        first = await age_and_trim(here)
        assert first > await submitted_at(here, job_id)
        if not restarts:
            await _run_to_the_end(here, job_id)
            return
    async with plane(tmp_path) as here:
        assert (await here.running.control_plane.replica.log.read(0, 1))[0].position == first
        assert await here.client.send(item("3", client_id="mine")) == [job_id], "the client id is still known"
        await _run_to_the_end(here, job_id)


async def _run_to_the_end(here: Plane, job_id: str) -> None:
    assert await here.client.state(job_id) == "QUEUED"
    asked = job_pb2.JobDetailsRequest(job_ids=[job_id], expand_job_spec=True)
    details = (await here.client.jobs.GetJobDetails(asked)).job_details[job_id]
    assert details.job_spec.pod_spec.containers[0].resources.requests["cpu"].string == "3"
    executor = Executor(here.running)
    lease = next(lease for lease in await executor.take(21, seconds=60) if lease.job_id == job_id)
    assert b'"3"' in lease.template.pod_spec
    await executor.finish([lease])
    assert await here.client.until(job_id, "SUCCEEDED") == "SUCCEEDED"


async def test_a_running_job_outlives_all_entries_about_it(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        (job_id,) = await here.client.send(item())
        executor = Executor(here.running)
        (lease,) = await executor.take()
        await executor.report(lease, "pending", "running")
        await fill(here, 5)
        await age_and_trim(here)
    async with plane(tmp_path) as here:
        assert await here.client.state(job_id) == "RUNNING"
        again = Executor(here.running)
        await again.report(lease, "succeeded")
        again.held[lease.run_id] = "succeeded"
        assert await here.client.until(job_id, "SUCCEEDED") == "SUCCEEDED"


async def test_a_stream_resumes_at_what_is_kept(tmp_path: Path) -> None:
    """An id of an entry that has left stands for the oldest entry that is kept, and later ids mean what they meant."""
    async with plane(tmp_path) as here:
        before = await here.client.send(item())
        early = await here.client.stream()
        await fill(here)
        after = await here.client.send(item())
        late = await here.client.stream()
        kept = [message for message in late if opened(message)[1].job_id in after]
        first = await age_and_trim(here)
        assert first <= await submitted_at(here, after[0])
        assert first > await submitted_at(here, before[0])
        assert await here.client.stream() == kept
        for message in early:
            assert await here.client.stream(after=message.id) == kept
        for place, message in enumerate(kept):
            assert await here.client.stream(after=message.id) == kept[place + 1 :]
        request = event_pb2.JobSetRequest(id="s", queue="qa", watch=True, from_message_id=early[0].id)
        call = here.client.events.GetJobSetEvents(request)
        watched = [await call.read() for _ in kept]
        assert watched == kept
        call.cancel()


async def test_what_is_young_stays(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(item())
        held = await here.client.stream()
        assert await age_and_trim(here, days=13) == 1
        assert await here.client.stream() == held


async def test_what_is_still_to_be_read_stays(tmp_path: Path) -> None:
    """Nothing goes without a checkpoint, nothing above it, nothing that the history lacks."""
    async with plane(tmp_path) as here:
        control_plane = here.running.control_plane
        replica, trimming = control_plane.replica, control_plane.trimming
        await fill(here)
        later_ms = replica.now_ms() + DAY_MS
        await control_plane._history.caught_up(replica.ledger.position)
        assert await trimming.trim(later_ms, later_ms) == 1
        await replica.log.save_checkpoint(Checkpoint(position=10, payload=b"ten"))
        assert await trimming.trim(later_ms, later_ms) == 10
        await replica.log.save_checkpoint(Checkpoint(position=replica.ledger.position, payload=b"all"))
        control_plane._history._position = 12
        assert await trimming.trim(later_ms, later_ms) == 12
        assert [entry.position for entry in await replica.log.read(0, 2)] == [12, 13]


async def test_trimming_makes_room(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await fill(here, 200)
        await age_and_trim(here)
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database:
        (rows,) = database.execute("SELECT count(*) FROM entries").fetchone()
        (free,) = database.execute("PRAGMA freelist_count").fetchone()
    assert rows < 20
    assert free > 20


async def test_void_facts_are_forgotten_one_turn_later(tmp_path: Path) -> None:
    """What leaves now may be in the hands of a slow reader, who still has to know what was void in it."""
    async with plane(tmp_path) as here:
        ledger = here.running.control_plane.replica.ledger
        await here.client.send(item(client_id="one"))
        await here.client.send(item(client_id="two"), item(client_id="two"))
        ledger._fold.voids.add(ledger.position, 0, 0)
        position = ledger.position
        await fill(here)
        assert await age_and_trim(here) > position
        assert ledger.void_rows(position)
        await age_and_trim(here)
        assert not ledger.void_rows(position)


async def test_a_trimmed_log_needs_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the ledger would be wrong, so nothing starts, and the reason is said."""
    async with plane(tmp_path) as here:
        await fill(here)
        await age_and_trim(here)
    with monkeypatch.context() as patched:
        patched.setattr(ledger_checkpoint, "VERSION", 2)
        with pytest.raises(StartupRefused, match=r"version .* log was trimmed"):
            async with assembly.serving(settings_for(tmp_path)):
                pass
    async with plane(tmp_path) as here:
        counts = here.running.control_plane.replica.ledger.counts()
        assert counts["qa"][JobState.QUEUED] == 20
