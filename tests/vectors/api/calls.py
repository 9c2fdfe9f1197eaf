"""Calling any method of the API by its full name, with requests and answers as JSON."""

from typing import Any, Final

import grpc
import grpc.aio
import msgspec
from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from armada.wire import services

DEADLINE_S: Final = 20.0
_SERVICES: Final = services.__name__  # importing it makes every service known


class Answer(msgspec.Struct, frozen=True):
    """What a call gave: its code, and the messages that came before it ended."""

    code: str
    messages: tuple[dict[str, Any], ...] = ()
    text: str = ""


class Api:
    """A connection on which every call is one of a caller without credentials."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def call(self, name: str, *requests: dict[str, Any], deadline_s: float = DEADLINE_S) -> Answer:
        """Call `package.Service.Method` with one request, or several where it takes a stream."""
        service, _, method = name.rpartition(".")
        described = Default().FindServiceByName(service).methods_by_name[method]
        messages = [ParseDict(request, GetMessageClass(described.input_type)()) for request in requests]
        path = f"/{service}/{method}"
        wire: dict[str, Any] = {
            "request_serializer": _encoded,
            "response_deserializer": GetMessageClass(described.output_type).FromString,
        }
        received: list[dict[str, Any]] = []
        try:
            if described.client_streaming:
                call: Any = self.channel.stream_stream(path, **wire)(iter(messages), timeout=deadline_s)
            elif described.server_streaming:
                call = self.channel.unary_stream(path, **wire)(messages[0], timeout=deadline_s)
            else:
                answer = await self.channel.unary_unary(path, **wire)(messages[0], timeout=deadline_s)
                return Answer("OK", (MessageToDict(answer),))
            async for message in call:
                received.append(MessageToDict(message))  # noqa: PERF401 - kept when the call fails
        except grpc.aio.AioRpcError as error:
            return Answer(error.code().name, tuple(received), error.details() or "")
        return Answer("OK", tuple(received))

    async def events(self, queue: str, job_set: str) -> list[dict[str, Any]]:
        """All messages of a job set so far, as `{"id", "message"}`."""
        answer = await self.call("api.Event.GetJobSetEvents", {"queue": queue, "id": job_set})
        return list(answer.messages)


def _encoded(message: Message) -> bytes:
    return message.SerializeToString()


def told(events: list[dict[str, Any]]) -> list[str]:
    """Messages as lines `type job`, with the types of the recordings."""
    lines = []
    for event in events:
        ((kind, part),) = event["message"].items()
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind)
        lines.append(f"{snake} {part['jobId']}")
    return lines
