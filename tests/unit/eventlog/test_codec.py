"""Events to bytes and back; bytes that can't be right are refused, whatever is wrong with them."""

import zlib
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from armada.eventlog import codec
from armada.eventlog.codec import COMPRESSED_ABOVE_BYTES, decode_events, encode_events, plain_size
from armada.model.errors import CorruptEntry
from armada.model.events import EVENT_KINDS, Event, JobSucceeded, QueueDeleted
from tests.unit.eventlog.every_event import EVERY_EVENT

SMALL: tuple[Event, ...] = (JobSucceeded(at_ms=1, job_id="j"),)
LARGE: tuple[Event, ...] = tuple(JobSucceeded(at_ms=1, job_id=f"job-{index}") for index in range(500))


def test_every_kind_is_among_the_examples() -> None:
    assert {type(event) for event in EVERY_EVENT} == set(EVENT_KINDS)


@pytest.mark.parametrize("event", EVERY_EVENT, ids=lambda event: type(event).__name__)
def test_every_kind_comes_back_equal(event: Event) -> None:
    assert decode_events(encode_events((event,))) == (event,)


def test_a_sequence_keeps_its_order() -> None:
    assert decode_events(encode_events(EVERY_EVENT)) == EVERY_EVENT


def test_equal_events_give_equal_bytes() -> None:
    assert encode_events(EVERY_EVENT) == encode_events(tuple(EVERY_EVENT))


def test_large_sequences_are_compressed_and_small_ones_are_not() -> None:
    plain_bytes = sum(len(event.job_id) for event in LARGE if isinstance(event, JobSucceeded))
    assert plain_bytes > COMPRESSED_ABOVE_BYTES
    assert len(encode_events(LARGE)) < plain_bytes
    assert b"JobSucceeded" in encode_events(SMALL)
    assert b"JobSucceeded" not in encode_events(LARGE)


def test_an_entry_says_its_plain_size() -> None:
    for events in (SMALL, LARGE):
        assert plain_size(encode_events(events)) == len(msgspec.msgpack.encode(events))


@pytest.mark.parametrize("events", [SMALL, LARGE], ids=["plain", "compressed"])
def test_no_single_damaged_byte_goes_unnoticed(events: tuple[Event, ...]) -> None:
    payload = encode_events(events)
    for place in range(min(len(payload), 200)):
        for change in (1, 0x80):
            damaged = bytearray(payload)
            damaged[place] ^= change
            with pytest.raises(CorruptEntry):
                decode_events(bytes(damaged))


@pytest.mark.parametrize("events", [SMALL, LARGE], ids=["plain", "compressed"])
def test_no_cut_or_longer_entry_goes_unnoticed(events: tuple[Event, ...]) -> None:
    payload = encode_events(events)
    for length in range(min(len(payload), 60)):
        with pytest.raises(CorruptEntry):
            decode_events(payload[:length])
    with pytest.raises(CorruptEntry):
        decode_events(payload + b"\0")


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(CorruptEntry):
        decode_events(noise)


def sealed(version: int, flags: int, body: bytes) -> bytes:
    """An entry with a right checksum, whatever else is wrong."""
    return bytes([version, flags]) + zlib.crc32(body).to_bytes(4, "little") + body


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (sealed(codec.SCHEMA_VERSION + 1, 0, b"\x90"), "versions up to"),
        (sealed(0, 0, b"\x90"), "nothing here can read"),
        (sealed(1, 2, b"\x90"), "unknown flags"),
        (sealed(1, 0, b"\x91\x81\xa4type\xa7Unheard"), "can't be read"),
        (sealed(1, 0, b"\xc1"), "can't be read"),
        (sealed(1, 1, b"\x01"), "lacks its size"),
        (sealed(1, 1, (2**32 - 1).to_bytes(4, "little") + b"x"), "claims a size"),
        (sealed(1, 1, (3).to_bytes(4, "little") + b"noise"), "can't be unpacked"),
        (sealed(1, 1, (2).to_bytes(4, "little") + zlib.compress(b"\x90")), "another size"),
        (sealed(1, 1, (1).to_bytes(4, "little") + zlib.compress(b"\x90\x90")), "another size"),
    ],
)
def test_each_fault_is_named(payload: bytes, says: str) -> None:
    with pytest.raises(CorruptEntry, match=says):
        decode_events(payload)


def test_old_versions_are_read_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 1 said QueueDropped and version 2 called the name a title; both read as today's QueueDeleted."""

    def renamed_kind(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [event | {"type": "QueueDeleted"} if event["type"] == "QueueDropped" else event for event in events]

    def renamed_field(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"name" if key == "title" else key: value for key, value in event.items()} for event in events]

    old = b"\x91\x83\xa4type\xacQueueDropped\xa5at_ms\x05\xa5title\xa2qa"
    monkeypatch.setattr(codec, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(codec, "UPCASTERS", {1: renamed_kind, 2: renamed_field})
    assert decode_events(sealed(1, 0, old)) == (QueueDeleted(at_ms=5, name="qa"),)
    assert decode_events(encode_events(SMALL)) == SMALL
    monkeypatch.setattr(codec, "UPCASTERS", {1: renamed_kind})
    with pytest.raises(CorruptEntry, match="nothing here can read"):
        decode_events(sealed(2, 0, old))


def test_text_that_is_no_text_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        encode_events((QueueDeleted(at_ms=1, name="\ud800"),))


def test_a_sequence_beyond_the_limit_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_SEQUENCE_BYTES", 1_000)
    with pytest.raises(ValueError, match="larger than 1000"):
        encode_events(LARGE)
