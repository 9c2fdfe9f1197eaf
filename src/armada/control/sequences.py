"""Facts in the form in which they are appended: one sequence per job set, none of them too long."""

from collections.abc import Iterable, Iterator
from typing import Final

from armada.model.events import Event, JobSetEvents

MAX_SEQUENCE_EVENTS: Final = 5_000
"""A longer sequence is cut into several entries, so that no reader has to hold a whole big job set at once."""


def merged_sequences(sequences: Iterable[JobSetEvents]) -> tuple[JobSetEvents, ...]:
    """Join the facts of each job set, in the order in which the job sets first appear; empty ones are left out."""
    joined: dict[tuple[str, str], list[Event]] = {}
    for sequence in sequences:
        if sequence.events:
            joined.setdefault((sequence.queue, sequence.job_set), []).extend(sequence.events)
    return tuple(
        JobSetEvents(queue, job_set, part) for (queue, job_set), events in joined.items() for part in _parts(events)
    )


def _parts(events: list[Event]) -> Iterator[tuple[Event, ...]]:
    for start in range(0, len(events), MAX_SEQUENCE_EVENTS):
        yield tuple(events[start : start + MAX_SEQUENCE_EVENTS])
