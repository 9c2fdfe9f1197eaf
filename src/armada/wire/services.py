"""The services of the API: bases to implement, stubs to call, errors as status codes, transport options, routes.

Nothing outside `wire` imports generated code: a shell subclasses the servicers below, takes messages apart and builds
answers with the functions of this room, and raises errors of `model.errors`.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import Any, Final, NoReturn, cast

import grpc
import grpc.aio
import msgspec
from armada_client.armada import (
    binoculars_pb2,
    binoculars_pb2_grpc,
    event_pb2,
    event_pb2_grpc,
    job_pb2,
    job_pb2_grpc,
    submit_pb2,
    submit_pb2_grpc,
)
from armada_client.armada.health_pb2 import HealthCheckResponse
from armada_client.google.api import annotations_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.empty_pb2 import Empty

from armada._proto import (
    executor_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
    prices_pb2_grpc,
    reports_pb2,
    reports_pb2_grpc,
)
from armada.model.errors import (
    AlreadyExists,
    ArmadaError,
    FailedPrecondition,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)

StubOf = Callable[[grpc.aio.Channel], Any]
"""Makes the stub of a service on a channel."""

SubmitServicer = submit_pb2_grpc.SubmitServicer
QueueServicer = submit_pb2_grpc.QueueServiceServicer
RetryPolicyServicer = submit_pb2_grpc.RetryPolicyServiceServicer
EventServicer = event_pb2_grpc.EventServicer
JobsServicer = job_pb2_grpc.JobsServicer
LogServicer = binoculars_pb2_grpc.BinocularsServicer
NodeServicer = operations_pb2_grpc.NodeServicer
ExecutorServicer = operations_pb2_grpc.ExecutorServicer
ExecutorApiServicer = executor_pb2_grpc.ExecutorApiServicer
ReportingServicer = reports_pb2_grpc.SchedulerReportingServicer
BidServicer = prices_pb2_grpc.BidRetrieverServiceServicer
PriorityOverrideServicer = prices_pb2_grpc.PriorityOverrideServiceServicer

SubmitStub: StubOf = submit_pb2_grpc.SubmitStub
QueueStub: StubOf = submit_pb2_grpc.QueueServiceStub
RetryPolicyStub: StubOf = submit_pb2_grpc.RetryPolicyServiceStub
EventStub: StubOf = event_pb2_grpc.EventStub
JobsStub: StubOf = job_pb2_grpc.JobsStub
LogStub: StubOf = binoculars_pb2_grpc.BinocularsStub
NodeStub: StubOf = operations_pb2_grpc.NodeStub
ExecutorStub: StubOf = operations_pb2_grpc.ExecutorStub
ExecutorApiStub: StubOf = executor_pb2_grpc.ExecutorApiStub
ReportingStub: StubOf = reports_pb2_grpc.SchedulerReportingStub
BidStub: StubOf = prices_pb2_grpc.BidRetrieverServiceStub
PriorityOverrideStub: StubOf = prices_pb2_grpc.PriorityOverrideServiceStub

_ADDERS: Final[tuple[tuple[type[Any], Callable[[Any, Any], None]], ...]] = (
    (SubmitServicer, submit_pb2_grpc.add_SubmitServicer_to_server),
    (QueueServicer, submit_pb2_grpc.add_QueueServiceServicer_to_server),
    (RetryPolicyServicer, submit_pb2_grpc.add_RetryPolicyServiceServicer_to_server),
    (EventServicer, event_pb2_grpc.add_EventServicer_to_server),
    (JobsServicer, job_pb2_grpc.add_JobsServicer_to_server),
    (LogServicer, binoculars_pb2_grpc.add_BinocularsServicer_to_server),
    (NodeServicer, operations_pb2_grpc.add_NodeServicer_to_server),
    (ExecutorServicer, operations_pb2_grpc.add_ExecutorServicer_to_server),
    (ExecutorApiServicer, executor_pb2_grpc.add_ExecutorApiServicer_to_server),
    (ReportingServicer, reports_pb2_grpc.add_SchedulerReportingServicer_to_server),
    (BidServicer, prices_pb2_grpc.add_BidRetrieverServiceServicer_to_server),
    (PriorityOverrideServicer, prices_pb2_grpc.add_PriorityOverrideServiceServicer_to_server),
)

MAX_RECEIVE_BYTES: Final = 4 * 1024 * 1024
MAX_ERROR_TEXT: Final = 2_000
MAX_RECONNECT_MS: Final = 5_000
"""Longest wait of a client before it tries to connect again; gRPC's own is two minutes, long after a server is back."""
REQUEST_ID_KEY: Final = "x-request-id"

_CODES: Final = {code.name: code for code in grpc.StatusCode}
_ERRORS: Final[dict[grpc.StatusCode, type[ArmadaError]]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.UNIMPLEMENTED: FailedPrecondition,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitExceeded,
}

_FILES: Final[tuple[FileDescriptor, ...]] = (
    submit_pb2.DESCRIPTOR,
    event_pb2.DESCRIPTOR,
    job_pb2.DESCRIPTOR,
    binoculars_pb2.DESCRIPTOR,
    reports_pb2.DESCRIPTOR,
    operations_pb2.DESCRIPTOR,
)

OnCrash = Callable[[str, str, BaseException], None]
"""Called with method, request id and error when a handler fails in a way that nobody planned."""


def register(server: grpc.aio.Server, *servicers: object) -> None:
    """Add servicers to a server, each for every service whose base class it has.

    Raises:
        TypeError: an object that is no servicer.
    """
    for servicer in servicers:
        adders = [add for base, add in _ADDERS if isinstance(servicer, base)]
        if not adders:
            raise TypeError(f"{type(servicer).__name__} serves none of the API's services")
        for add in adders:
            add(servicer, server)


def empty() -> Empty:
    """The empty answer."""
    return Empty()


def healthy() -> HealthCheckResponse:
    """The answer of a service that serves."""
    return HealthCheckResponse(status=HealthCheckResponse.SERVING)


def server_options() -> list[tuple[str, int]]:
    """Transport options for a server, matched to what the reference's clients expect (spec/api.md 1.1)."""
    return [
        ("grpc.max_receive_message_length", MAX_RECEIVE_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", 1_000),
        ("grpc.max_connection_idle_ms", 300_000),
        ("grpc.keepalive_time_ms", 120_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.so_reuseport", 0),
    ]


def channel_options() -> list[tuple[str, int]]:
    """Transport options for a client of ours."""
    return [
        ("grpc.max_receive_message_length", 4 * MAX_RECEIVE_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.max_reconnect_backoff_ms", MAX_RECONNECT_MS),
    ]


def status_of(error: ArmadaError) -> grpc.StatusCode:
    """The status code that a caller sees for an error."""
    return _CODES.get(error.code, grpc.StatusCode.INTERNAL)


def error_from(error: grpc.RpcError) -> ArmadaError:
    """The error behind a failed call. What says nothing about the request itself becomes Unavailable."""
    call = cast(grpc.Call, error)
    code, details = call.code(), call.details() or ""
    kind = _ERRORS.get(code)
    return kind(details) if kind is not None else Unavailable(f"{code.name}: {details}")


def request_id(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The id that the caller gave the request, or a new one."""
    for key, value in context.invocation_metadata() or ():
        if key == REQUEST_ID_KEY and value:
            return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return uuid.uuid4().hex


_STOPPING: Final = "the server is stopping: call again, and ask a stream to go on after the last message"


class Undecodable(msgspec.Struct, frozen=True):
    """Stands for a request whose bytes are no message of its type."""

    reason: str


class _OpenStreams:
    """Streams that are being answered, each by a task of its own; those among them that wait for their next message.

    One that is being sent is not interrupted: gRPC would take its caller for gone and tell it nothing.
    """

    def __init__(self) -> None:
        self._is_ending = False
        self._waiting: set[asyncio.Task[Any]] = set()

    def end(self) -> None:
        self._is_ending = True
        for task in tuple(self._waiting):
            task.cancel()

    async def messages(self, inner: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass on what a stream answers. Raises Unavailable once all of them are being ended."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a stream is answered by a task")
        waiting = self._waiting
        try:
            waiting.add(task)
            if self._is_ending:
                raise Unavailable(_STOPPING)
            async for message in inner:
                waiting.discard(task)
                yield message
                waiting.add(task)
                if self._is_ending:
                    raise Unavailable(_STOPPING)
        except asyncio.CancelledError as cancelled:
            if not self._is_ending:
                raise
            task.uncancel()
            raise Unavailable(_STOPPING) from cancelled
        finally:
            waiting.discard(task)


class ErrorsAnswered(grpc.aio.ServerInterceptor):
    """Turns errors of `model.errors` into status codes, and any other into INTERNAL after telling `on_crash`."""

    def __init__(self, on_crash: OnCrash) -> None:
        self._on_crash = on_crash
        self._guarded: dict[str, tuple[Any, Any]] = {}
        self._streams = _OpenStreams()

    def end_streams(self) -> None:
        """End all streams, and every new one, with UNAVAILABLE: the process stops, and they would never end."""
        self._streams.end()

    async def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Return the method's handler, wrapped; None for an unknown method."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        known, guarded = self._guarded.get(method, (None, None))
        if known is not handler:
            guarded = _guarded(handler, _Guard(method, self._on_crash), self._streams)
            self._guarded[method] = (handler, guarded)
        return cast("grpc.RpcMethodHandler[Any, Any]", guarded)


class _Guard:
    def __init__(self, method: str, on_crash: OnCrash) -> None:
        self._method = method
        self._on_crash = on_crash

    async def abort(self, error: Exception, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
        if isinstance(error, grpc.aio.AbortError):
            raise error
        if isinstance(error, ArmadaError):
            await context.abort(status_of(error), str(error)[:MAX_ERROR_TEXT])
        identifier = request_id(context)
        self._on_crash(self._method, identifier, error)
        await context.abort(grpc.StatusCode.INTERNAL, f"[{identifier}] internal error: {type(error).__name__}")


def _decoding(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if deserialize is None:
        return None

    def decode(encoded: bytes) -> Any:
        try:
            return deserialize(encoded)
        except Exception as error:  # noqa: BLE001 - whatever a decoder raises means that the bytes are bad
            return Undecodable(str(error))

    return decode


def _decoded(request: Any) -> Any:
    if isinstance(request, Undecodable):
        raise InvalidRequest(f"the request can't be decoded: {request.reason}")
    return request


async def _all_decoded(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _decoded(request)


def _guarded(handler: Any, guard: _Guard, streams: _OpenStreams) -> "grpc.RpcMethodHandler[Any, Any]":
    """The same handler with errors answered. Handlers are coroutines or async generators, as `grpc.aio` wants them."""
    if handler.response_streaming:
        inner = handler.stream_stream if handler.request_streaming else handler.unary_stream

        async def stream(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            try:
                request = _all_decoded(request) if handler.request_streaming else _decoded(request)
                async for message in streams.messages(inner(request, context)):
                    yield message
            except Exception as error:  # noqa: BLE001 - every failure is answered, and told to on_crash
                await guard.abort(error, context)

        behaviour: Any = stream
    else:
        inner = handler.stream_unary if handler.request_streaming else handler.unary_unary

        async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            try:
                request = _all_decoded(request) if handler.request_streaming else _decoded(request)
                return await inner(request, context)
            except Exception as error:  # noqa: BLE001 - as above
                await guard.abort(error, context)

        behaviour = answer
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    return make(
        behaviour,
        request_deserializer=_decoding(handler.request_deserializer),
        response_serializer=handler.response_serializer,
    )


class Route(msgspec.Struct, frozen=True):
    """One REST route: `path` holds `{field}` places; `whole_body` says that the body is the request message."""

    verb: str
    path: str
    service: str
    method: str
    whole_body: bool
    streams: bool


@cache
def rest_routes() -> tuple[Route, ...]:
    """All routes that the descriptors declare, in their order."""
    return tuple(
        Route(
            verb=rule.WhichOneof("pattern").upper(),
            path=getattr(rule, rule.WhichOneof("pattern")),
            service=service.full_name,
            method=method.name,
            whole_body=rule.body == "*",
            streams=method.server_streaming,
        )
        for file in _FILES
        for service in file.services_by_name.values()
        for method in service.methods
        if (rule := method.GetOptions().Extensions[annotations_pb2.http]).WhichOneof("pattern")
    )
