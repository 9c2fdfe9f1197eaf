"""Event streams: resume anywhere, end in time, leave nothing behind (F048, F092)."""

import asyncio
import time
from pathlib import Path

import grpc
import pytest
from armada_client.armada import event_pb2, submit_pb2

from armada.server.replica import WATCH_LIMIT, Watch
from tests.integration.plane import Executor, Plane, item, opened, plane


async def busy_set(here: Plane) -> None:
    """Fifty jobs in one request, all leased and done."""
    executor = Executor(here.running, cpu="100")
    await executor.exchange()
    await here.client.send(*[item()] * 50)
    await executor.finish(await executor.take(50))


async def test_a_stream_can_be_resumed_after_every_message(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await busy_set(here)
        whole = await here.client.stream()
        assert len(whole) == 300
        for place in range(0, 300, 7):
            rest = await here.client.stream(after=whole[place].id)
            assert [message.id for message in rest] == [message.id for message in whole[place + 1 :]]
        assert await here.client.stream(after=whole[-1].id) == []
        assert await here.client.stream(after="0:0:0:0") == whole
        assert await here.client.stream(after="9999999999999:0:0:0") == []


async def test_a_stream_read_one_by_one_is_the_whole(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(*[item()] * 10)
        whole = await here.client.stream()
        joined: list[event_pb2.EventStreamMessage] = []
        last = ""
        while True:
            call = here.client.events.GetJobSetEvents(
                event_pb2.JobSetRequest(id="s", queue="qa", from_message_id=last, watch=False)
            )
            message = await call.read()
            call.cancel()
            if message is grpc.aio.EOF:
                break
            joined.append(message)
            last = message.id
        assert joined == whole


@pytest.mark.parametrize("garbage", ["garbage", "1:2", "a:b:c:d", "1:2:3:9", ":::", "-", "1:2:3:4:5"])
async def test_garbage_is_no_place_in_a_stream(tmp_path: Path, garbage: str) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(item())
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await here.client.stream(after=garbage)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_stream_without_watch_ends_in_time(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await busy_set(here)
        await here.client.send(item(), job_set="short")
        # The one job of the short set may have been leased by now, and no more: nobody picks it up.
        for job_set, least, most in (("s", 300, 300), ("short", 2, 3), ("empty", 0, 0)):
            started = time.monotonic()
            assert least <= len(await here.client.stream(job_set)) <= most
            assert time.monotonic() - started < 2.0


async def test_what_is_missing_is_said(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        for request in (
            event_pb2.JobSetRequest(id="none", queue="qa", errorIfMissing=True),
            event_pb2.JobSetRequest(id="none", queue="qa", errorIfMissing=True, watch=True),
            event_pb2.JobSetRequest(id="s", queue="ghost"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                [message async for message in here.client.events.GetJobSetEvents(request)]
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_watcher_sees_what_was_and_what_comes_once(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(item())
        call = here.client.events.GetJobSetEvents(event_pb2.JobSetRequest(id="s", queue="qa", watch=True))
        kinds = [opened(await call.read())[0] for _ in range(2)]
        await here.client.send(item(), job_set="other")
        await here.client.submit.CancelJobSet(submit_pb2.JobSetCancelRequest(queue="qa", job_set_id="s"))
        kinds += [opened(await call.read())[0] for _ in range(2)]
        assert kinds == ["submitted", "queued", "cancelling", "cancelled"]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await call.read()
        call.cancel()


async def test_a_slow_watcher_misses_nothing(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        call = here.client.events.GetJobSetEvents(event_pb2.JobSetRequest(id="s", queue="qa", watch=True))
        await call.initial_metadata()
        job_ids: list[str] = []
        for _ in range(30):
            job_ids += await here.client.send(*[item()] * 100)
        seen: list[str] = []
        while len(seen) < len(job_ids):
            kind, message = opened(await call.read())
            if kind == "submitted":
                seen.append(message.job_id)
        call.cancel()
        assert seen == job_ids


def test_a_watch_that_lags_says_so() -> None:
    watch = Watch()
    for _ in range(WATCH_LIMIT):
        watch.offer(None)  # type: ignore[arg-type]  # what it holds does not matter here
    assert not watch.overflowed
    watch.offer(None)  # type: ignore[arg-type]  # as above
    assert watch.overflowed
    assert len(watch.entries) == WATCH_LIMIT


async def test_closed_watchers_leave_nothing_behind(tmp_path: Path) -> None:
    async with plane(tmp_path, max_streams=300) as here:
        await here.client.send(item())
        registry = here.running.control_plane.metrics.registry
        calls = []
        for _ in range(300):
            call = here.client.events.GetJobSetEvents(event_pb2.JobSetRequest(id="s", queue="qa", watch=True))
            await call.read()
            calls.append(call)
        assert registry.get_sample_value("armada_event_streams") == 300
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await here.client.stream()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for call in calls:
            call.cancel()
        async with asyncio.timeout(10):
            while registry.get_sample_value("armada_event_streams"):  # noqa: ASYNC110 - the server's own count
                await asyncio.sleep(0.02)
        assert len(await here.client.stream()) == 2
        assert not here.running.control_plane.replica._watches
