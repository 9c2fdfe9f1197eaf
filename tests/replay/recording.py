"""Recordings of what a version of this program wrote: a log's entries as stored bytes, and a checkpoint in mid-log.

`python -m tests.replay.recording` writes the file of the present version, once, at its release. Recordings are never
written again: that today's code reads them is what `test_recordings` is for.
"""

import base64
import sys
from pathlib import Path
from typing import Any

import msgspec

from armada.eventlog.codec import SCHEMA_VERSION, decode_events, encode_events
from armada.model import events as facts
from armada.model.events import Entry
from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger
from tests.unit.eventlog.every_event import EVERY_EVENT
from tests.unit.state.building import Story, leased, queue, ran, submitted

FOLDER = Path(__file__).parent
POLICY = SchedulingPolicy()


class RecordedEntry(msgspec.Struct):
    """An entry with its events as the log stored them (base64)."""

    position: int
    batch_id: str
    time_ms: int
    epoch: int
    queue: str
    job_set: str
    ordinal: int
    payload: str

    def entry(self) -> Entry:
        """The entry as today's code reads it."""
        names = [name for name in Entry.__struct_fields__ if name != "events"]
        events = decode_events(base64.b64decode(self.payload))
        return Entry(events=events, **{name: getattr(self, name) for name in names})


class Recording(msgspec.Struct):
    """Everything of one version. `every_event` has one payload a kind of event, by kind, and `meaning` their JSON."""

    schema_version: int
    every_event: dict[str, str]
    meaning: dict[str, Any]
    log: list[RecordedEntry]
    checkpoint: str
    checkpoint_position: int
    counts: dict[str, list[int]]
    void_positions: list[int]


def story_of_this_version() -> Story:
    """A short log in which much happens."""
    story = Story(POLICY)
    story.fact(facts.LeadershipClaimed(at_ms=1, epoch=1, holder="r1"), epoch=1)
    story.fact(queue("qa"), queue("qb"))
    story.node()
    story.tell(submitted(*(f"01h{index:023d}" for index in range(5))))
    names = [f"01h{index:023d}" for index in range(5)]
    story.tell(*(leased(name) for name in names[:3]), epoch=1)
    story.tell(*ran(names[0]))
    story.tell(facts.JobCancelled(at_ms=9, job_id=names[1]), *ran(names[1]))
    story.tell(
        facts.RunLeaseExpired(at_ms=9, job_id=names[2], run_id=f"{names[2]}-r"),
        facts.JobRequeued(at_ms=9, job_id=names[2], avoid_nodes=("n1",)),
    )
    story.fact(facts.RunsReleased(at_ms=10, run_ids=(f"{names[0]}-r",)))
    story.tell(submitted("another"), queue="qb")
    return story


def record() -> Recording:
    """Make the recording of the present version."""
    story = story_of_this_version()
    ledger = Ledger(POLICY)
    for entry in story.entries[:7]:
        ledger.apply(entry)
    return Recording(
        schema_version=SCHEMA_VERSION,
        every_event={type(event).__name__: base64.b64encode(encode_events((event,))).decode() for event in EVERY_EVENT},
        meaning={type(event).__name__: msgspec.to_builtins(event) for event in EVERY_EVENT},
        log=[
            RecordedEntry(
                payload=base64.b64encode(encode_events(entry.events)).decode(),
                **{name: getattr(entry, name) for name in RecordedEntry.__struct_fields__ if name != "payload"},
            )
            for entry in story.entries
        ],
        checkpoint=base64.b64encode(ledger.to_bytes()).decode(),
        checkpoint_position=ledger.position,
        counts={name: list(counts) for name, counts in story.ledger.counts().items()},
        void_positions=[entry.position for entry in story.entries if story.ledger.void_rows(entry.position)],
    )


if __name__ == "__main__":
    file = FOLDER / f"version_{SCHEMA_VERSION}.json"
    if file.exists():
        sys.exit(f"{file.name} exists: a recording is never written again")
    file.write_bytes(msgspec.json.format(msgspec.json.encode(record()), indent=1) + b"\n")
