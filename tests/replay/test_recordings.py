"""Logs and checkpoints of every released version are read by this one, and mean what they meant."""

import base64
from pathlib import Path

import msgspec
import pytest

from armada.eventlog.codec import SCHEMA_VERSION, decode_events
from armada.model.events import EVENT_KINDS
from armada.state.ledger import Ledger
from tests.replay.recording import FOLDER, POLICY, Recording

FILES = sorted(FOLDER.glob("version_*.json"))


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def recording(request: pytest.FixtureRequest) -> Recording:
    file: Path = request.param
    return msgspec.json.decode(file.read_bytes(), type=Recording)


def test_every_version_up_to_this_one_is_recorded() -> None:
    assert [file.stem for file in FILES] == [f"version_{version}" for version in range(1, SCHEMA_VERSION + 1)]


def contains(whole: object, part: object) -> bool:
    """Whether `whole` says all that `part` says; it may say more (fields that came later)."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(contains(whole.get(key), value) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part


def test_every_kind_of_event_means_what_it_meant(recording: Recording) -> None:
    for kind, payload in recording.every_event.items():
        (event,) = decode_events(base64.b64decode(payload))
        now = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(event)))
        assert contains(now, recording.meaning[kind]), kind
    assert len(recording.every_event) <= len(EVENT_KINDS)


def test_a_replay_comes_to_the_same(recording: Recording) -> None:
    ledger = Ledger(POLICY)
    entries = [recorded.entry() for recorded in recording.log]
    for entry in entries:
        ledger.apply(entry)
        ledger.validate()
    assert {name: list(counts) for name, counts in ledger.counts().items()} == recording.counts
    assert [entry.position for entry in entries if ledger.void_rows(entry.position)] == recording.void_positions


def test_a_checkpoint_and_its_tail_come_to_the_same(recording: Recording) -> None:
    whole, ledger = Ledger(POLICY), Ledger.from_bytes(base64.b64decode(recording.checkpoint), POLICY)
    ledger.validate()
    assert ledger.position == recording.checkpoint_position
    for recorded in recording.log:
        whole.apply(recorded.entry())
        ledger.apply(recorded.entry())
    assert ledger.digest() == whole.digest()
