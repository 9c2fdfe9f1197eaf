"""The port of the ordered log: what every backend must do, and nothing about how.

The contract (one numbered test each in tests/contract/test_eventlog.py, run against every backend):

1. One total order: every entry has a position; positions only grow.
2. A position becomes visible only after all lower ones.
3. A batch is atomic: readers see all of its entries or none.
4. Acknowledged is durable.
5. A failed append may have happened: batches carry an id, and a batch whose id the log holds already is not stored
   again (the position of the first is returned).
6. Reads repeat exactly.
7. Leadership is in the log: a claim counts only if its epoch is the current one plus one, and an append that carries
   an older epoch is refused (`EpochLost`).
8. The log is trimmed only below a checkpoint that has been read back and verified.
9. Age goes by order: what lies behind an entry is never older than it, whatever the clocks of their authors said.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from armada.model.events import Entry, JobSetEvents, Position


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What is appended at once. `batch_id` is chosen by the author; a repeat under the same id is stored once."""

    batch_id: str
    time_ms: int
    sequences: tuple[JobSetEvents, ...]


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A saved ledger: its bytes fold all entries up to and with `position`."""

    position: Position
    payload: bytes


class EventLog(Protocol):
    """The log. All methods may raise `LogFailed`; none blocks the event loop."""

    async def append(self, batch: Batch, *, epoch: int = 0) -> Position:
        """Store a batch and return the position of its last entry, once durable.

        An epoch above 0 must be the current one, or with a `LeadershipClaimed` in the batch the current one plus one.
        Concurrent appends share one commit. Raises EpochLost, LogFull, LogFailed.
        """
        ...

    async def read(self, after: Position, limit: int) -> Sequence[Entry]:
        """Entries above `after` in order, at most `limit`; empty at the end of the log."""
        ...

    async def read_job_set(self, queue: str, job_set: str, after: Position, limit: int) -> Sequence[Entry]:
        """The same, of one job set only."""
        ...

    async def wait(self, after: Position) -> Position:
        """Return the last position as soon as it is above `after`."""
        ...

    async def last_position(self) -> Position:
        """The position of the last durable entry; 0 for an empty log."""
        ...

    async def position_before(self, time_ms: int) -> Position:
        """The last position of which all entries that are held, up to and with it, were appended before `time_ms`.

        That is right before the first entry of that time or later; the last position when there is none. An entry of a
        clock that was set back does not count as older than those before it.
        """
        ...

    async def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint beside the older ones, durable on return."""
        ...

    async def latest_checkpoint(self) -> Checkpoint | None:
        """The newest checkpoint whose bytes are what was saved; damaged ones are passed over."""
        ...

    async def trim(self, below: Position) -> None:
        """Drop entries below `below`, which must not be above a checkpoint that reads back whole."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of the storage."""
        ...
