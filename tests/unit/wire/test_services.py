# ruff: noqa: N802, ARG002 - names and arguments of the servicers are those of the API
"""Services over a real connection: errors as codes, bad bytes, limits, routes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from armada_client.armada import event_pb2, submit_pb2

from armada._proto import executor_pb2 as executorapi
from armada.model import errors
from armada.wire import services


class Submit(services.SubmitServicer):
    """Fails as the queue's name asks for."""

    async def CancelJobs(self, request: Any, context: Any) -> Any:
        raise getattr(errors, request.queue)("text " + "x" * 3_000)

    async def Health(self, request: Any, context: Any) -> Any:
        return services.healthy()

    async def SubmitJobs(self, request: Any, context: Any) -> Any:
        raise ZeroDivisionError

    async def PreemptJobs(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.DATA_LOSS, "by hand")


class Events(services.EventServicer):
    """Streams one message, then fails."""

    async def GetJobSetEvents(self, request: Any, context: Any) -> AsyncIterator[Any]:
        yield event_pb2.EventStreamMessage(id="1:0:0:1")
        raise errors.NotFound("gone")


class Endless(services.EventServicer):
    """Streams that never end by themselves; `open` counts those that have begun."""

    def __init__(self) -> None:
        self.open = 0

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[Any]:
        yield event_pb2.EventStreamMessage(id="1:0:0:1")
        self.open += 1
        await asyncio.Event().wait()


async def test_streams_end_with_a_word_when_the_server_stops() -> None:
    answered, endless = services.ErrorsAnswered(lambda *_: None), Endless()
    server = grpc.aio.server(interceptors=[answered], options=services.server_options())
    services.register(server, endless)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    async def watch(stub: Any) -> str:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            async for _ in stub.Watch(event_pb2.WatchRequest()):
                pass
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        return failed.value.details() or ""

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=services.channel_options()) as channel:
        stub = services.EventStub(channel)
        watching = [asyncio.create_task(watch(stub)) for _ in range(20)]
        async with asyncio.timeout(10):
            while endless.open < 20:  # noqa: ASYNC110 - counted by the servicer
                await asyncio.sleep(0.01)
            answered.end_streams()
            told = {*await asyncio.gather(*watching), await watch(stub)}
            assert len(told) == 1
            assert "the server is stopping" in told.pop()
            await server.stop(60.0)


class Agents(services.ExecutorApiServicer):
    """Answers every request of a stream with an end."""

    async def LeaseJobRuns(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:
        async for _ in request_iterator:
            yield executorapi.LeaseStreamMessage(end=executorapi.EndMarker())

    async def ReportEvents(self, request: Any, context: Any) -> Any:
        return services.empty()


Crashes = list[tuple[str, str, str]]


@pytest.fixture
async def served() -> AsyncIterator[tuple[grpc.aio.Channel, Crashes]]:
    """A channel to a server of the three, and what crashed."""
    crashes: Crashes = []

    def on_crash(method: str, request_id: str, error: BaseException) -> None:
        crashes.append((method, request_id, type(error).__name__))

    server = grpc.aio.server(interceptors=[services.ErrorsAnswered(on_crash)], options=services.server_options())
    services.register(server, Submit(), Events(), Agents())
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=services.channel_options()) as channel:
        yield channel, crashes
    await server.stop(None)


def test_a_client_finds_a_server_that_is_back_within_seconds() -> None:
    assert 0 < dict(services.channel_options())["grpc.max_reconnect_backoff_ms"] <= 5_000


Served = tuple[grpc.aio.Channel, Crashes]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("InvalidRequest", grpc.StatusCode.INVALID_ARGUMENT),
        ("NotFound", grpc.StatusCode.NOT_FOUND),
        ("AlreadyExists", grpc.StatusCode.ALREADY_EXISTS),
        ("PermissionDenied", grpc.StatusCode.PERMISSION_DENIED),
        ("Unauthenticated", grpc.StatusCode.UNAUTHENTICATED),
        ("FailedPrecondition", grpc.StatusCode.FAILED_PRECONDITION),
        ("LimitExceeded", grpc.StatusCode.RESOURCE_EXHAUSTED),
        ("Unavailable", grpc.StatusCode.UNAVAILABLE),
        ("LogFailed", grpc.StatusCode.UNAVAILABLE),
        ("CorruptEntry", grpc.StatusCode.DATA_LOSS),
        ("IllegalTransition", grpc.StatusCode.INTERNAL),
    ],
)
async def test_errors_become_codes(served: Served, name: str, code: grpc.StatusCode) -> None:
    stub = services.SubmitStub(served[0])
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stub.CancelJobs(submit_pb2.JobCancelRequest(queue=name))
    assert failed.value.code() is code
    assert (failed.value.details() or "").startswith("text ")
    assert len(failed.value.details() or "") == services.MAX_ERROR_TEXT
    back = services.error_from(failed.value)
    assert type(back).__name__ == name or isinstance(back, errors.Unavailable)
    assert served[1] == []


async def test_a_crash_is_internal_and_told(served: Served) -> None:
    stub = services.SubmitStub(served[0])
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stub.SubmitJobs(submit_pb2.JobSubmitRequest(), metadata=(("x-request-id", "id-7"),))
    assert failed.value.code() is grpc.StatusCode.INTERNAL
    assert failed.value.details() == "[id-7] internal error: ZeroDivisionError"
    assert served[1] == [("/api.Submit/SubmitJobs", "id-7", "ZeroDivisionError")]
    assert isinstance(services.error_from(failed.value), errors.Unavailable)


async def test_an_abort_by_hand_stays(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await services.SubmitStub(served[0]).PreemptJobs(submit_pb2.JobPreemptRequest())
    assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.DATA_LOSS, "by hand")
    assert served[1] == []


async def test_answers_pass(served: Served) -> None:
    health = await services.SubmitStub(served[0]).Health(services.empty())
    assert health.status == health.SERVING


async def test_a_stream_fails_after_what_it_sent(served: Served) -> None:
    call = services.EventStub(served[0]).GetJobSetEvents(event_pb2.JobSetRequest())
    assert (await call.read()).id == "1:0:0:1"
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call.read()
    assert failed.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("path", ["/api.Submit/CancelJobs", "/api.Event/GetJobSetEvents"])
async def test_bytes_that_are_no_request_are_the_callers_fault(served: Served, path: str) -> None:
    channel, crashes = served
    method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(path)
    call = method(b"\xff\xff\xff")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        async for _ in call:
            pass
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert crashes == []


async def test_bad_bytes_in_a_stream_of_requests(served: Served) -> None:
    channel, crashes = served
    path = "/executorapi.ExecutorApi/LeaseJobRuns"
    method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(path)
    call = method(iter([b"\xff\xff\xff"]))
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        async for _ in call:
            pass
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert crashes == []


async def test_an_exchange_over_streams(served: Served) -> None:
    stub = services.ExecutorApiStub(served[0])
    answers = [message async for message in stub.LeaseJobRuns(iter([executorapi.LeaseRequest()]))]
    assert [message.WhichOneof("event") for message in answers] == ["end"]
    await stub.ReportEvents(executorapi.EventList())


async def test_a_request_of_five_megabytes_is_too_large(served: Served) -> None:
    request = submit_pb2.JobCancelRequest(queue="x" * 5 * 1024 * 1024)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await services.SubmitStub(served[0]).CancelJobs(request)
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_an_unknown_method_is_unimplemented(served: Served) -> None:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = served[0].unary_unary("/api.Submit/Nothing")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await method(b"")
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert isinstance(services.error_from(failed.value), errors.FailedPrecondition)


async def test_gzip_is_understood(served: Served) -> None:
    health = await services.SubmitStub(served[0]).Health(services.empty(), compression=grpc.Compression.Gzip)
    assert health.status == health.SERVING


def test_only_servicers_can_be_registered() -> None:
    with pytest.raises(TypeError, match="dict serves none"):
        services.register(None, {})  # type: ignore[arg-type]  # refused before the server is touched


def test_routes_are_those_of_the_api() -> None:
    routes = {(route.verb, route.path): route for route in services.rest_routes()}
    assert len(routes) == len(services.rest_routes())
    submit = routes["POST", "/v1/job/submit"]
    assert (submit.service, submit.method, submit.whole_body, submit.streams) == (
        "api.Submit",
        "SubmitJobs",
        True,
        False,
    )
    assert routes["GET", "/v1/batched/queues"].streams
    assert routes["GET", "/v1/scheduling-report"].service == "schedulerobjects.SchedulerReporting"
    assert routes["DELETE", "/v1/queue/{name}"].whole_body is False
