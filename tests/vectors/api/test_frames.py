"""Messages as a Go program writes them: each decodes whole and encodes to an equal message."""

import json
from typing import Any

import pytest
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from armada._proto import (  # importing them makes their messages known
    control_pb2,
    events_pb2,
    executor_pb2,
    operations_pb2,
    reports_pb2,
)
from armada.wire.podspec import from_json, to_json
from tests.shared_folder import recordings

KNOWN = (control_pb2, events_pb2, executor_pb2, operations_pb2, reports_pb2)
FRAMES = json.loads(recordings("api", "frames.json").read_text())["frames"]


def unknown_fields(message: Message) -> list[str]:
    """Where a message or one inside it has fields that its type does not declare."""
    found = [message.DESCRIPTOR.full_name] if len(UnknownFieldSet(message)) else []
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_name["value"]
            values = list(value.values()) if inner.message_type is not None else []
        else:
            values = list(value) if field.is_repeated else [value]
        for item in values:
            found += [f"{field.name}.{place}" for place in unknown_fields(item)]
    return found


@pytest.mark.parametrize("frame", FRAMES, ids=[f"{n}-{frame['message']}" for n, frame in enumerate(FRAMES)])
def test_a_frame_reads_and_writes(frame: dict[str, Any]) -> None:
    kind = GetMessageClass(Default().FindMessageTypeByName(frame["message"]))
    encoded = bytes.fromhex(frame["hex"])
    message = kind.FromString(encoded)
    assert unknown_fields(message) == []
    again = message.SerializeToString(deterministic=True)
    assert kind.FromString(again) == message
    assert len(again) == len(encoded)
    assert message.ListFields() or not encoded


def test_all_frames_are_there() -> None:
    assert len(FRAMES) == 68
    assert {frame["message"].rpartition(".")[0] for frame in FRAMES} >= {
        "executorapi",
        "armadaevents",
        "controlplaneevents",
        "schedulerobjects",
        "api",
    }


@pytest.mark.parametrize("frame", FRAMES, ids=[f"{n}-{frame['message']}" for n, frame in enumerate(FRAMES)])
def test_the_fields_have_the_names_that_go_gives_them(frame: dict[str, Any]) -> None:
    kind = GetMessageClass(Default().FindMessageTypeByName(frame["message"]))
    value = _without_times(frame["go_json"])
    # Go writes empty fields of Kubernetes' messages too, so that the messages compare as JSON
    shown = to_json(_without_times_in(kind.FromString(bytes.fromhex(frame["hex"]))))
    assert to_json(from_json(value, kind)) == shown


def _without_times(value: Any) -> Any:
    """The same JSON without timestamps and with numbers as numbers: the API's JSON has other forms of both."""
    if isinstance(value, dict):
        kept = {key: _without_times(member) for key, member in value.items() if key not in {"created", "submitTime"}}
        return {key: int(member) if key == "tolerationSeconds" else member for key, member in kept.items()}
    if isinstance(value, list):
        return [_without_times(member) for member in value]
    return value


def _without_times_in(message: Message) -> Message:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.full_name == "google.protobuf.Timestamp":
            message.ClearField(field.name)
        elif field.message_type.GetOptions().map_entry:
            continue
        else:
            for item in list(value) if field.is_repeated else [value]:
                _without_times_in(item)
    return message
