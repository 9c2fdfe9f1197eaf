"""What the ledger remembers of the past: client ids of old jobs, ids of applied batches, and facts that were void."""

from bisect import bisect_left
from hashlib import blake2b
from struct import Struct
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.events import Entry, Event, JobsSubmitted, Position, RunsReleased
from armada.state.ids import open_slots
from armada.state.table import NONE, ensure, zeros

_FIRST_CAPACITY: Final = 1_024
_SLOTS_PER_ITEM: Final = 2
_FORGOTTEN: Final = -1
_WORDS: Final = Struct("<QQ")

WHOLE_ENTRY: Final = (NONE, NONE)
"""In a set of void rows: nothing of the entry counts."""

VOIDS_LIMIT: Final = 200_000
"""Void facts that are remembered; beyond, the oldest are forgotten (about 110 bytes each)."""


def fingerprint(*parts: str) -> bytes:
    """Return 16 bytes that stand for some texts; equal ones only for equal texts, as far as anyone can tell."""
    digest = blake2b(digest_size=16)
    for part in parts:
        text = part.encode()
        digest.update(len(text).to_bytes(4, "little"))
        digest.update(text)
    return digest.digest()


class RememberedColumns(msgspec.Struct, frozen=True):
    """The items of a memory, oldest first, as a checkpoint holds them. Arrays are little-endian bytes."""

    keys: bytes
    times_ms: bytes
    texts: tuple[str, ...]


class RememberedCopy:
    """The items of a memory as they were, apart from it: `columns` may be made of them later and in any thread."""

    def __init__(
        self, keys: NDArray[np.uint64], times_ms: NDArray[np.int64], texts: NDArray[np.bytes_], long: dict[bytes, str]
    ) -> None:
        """Take arrays over, oldest item first; `texts` is empty for a memory without texts."""
        self._keys = keys
        self._times_ms = times_ms
        self._texts = texts
        self._long_texts = long

    def columns(self) -> RememberedColumns:
        """Return all items, oldest first."""
        texts = tuple(text.decode() for text in self._texts.tolist())
        if self._long_texts:
            named = zip(texts, self._keys.tolist(), strict=True)
            texts = tuple(self._long_texts.get(_WORDS.pack(*words), text) for text, words in named)
        return RememberedColumns(self._keys.astype("<u8").tobytes(), self._times_ms.astype("<i8").tobytes(), texts)


class Remembered:
    """A first-in-first-out memory of fingerprints, with a time and perhaps a short text each.

    Items sit in a ring of columns: 24 bytes an item, its text's place, and 8 bytes of hash table. The table is open:
    a slot holds a ring place plus 1, 0 when it was never used, or a mark where an item was forgotten; it is built anew
    when items and marks fill half of it.
    """

    def __init__(self, limit: int, text_bytes: int = 0) -> None:
        """`limit` bounds the number of items (the oldest leave first); texts above `text_bytes` are kept apart."""
        self._limit = limit
        self._long_texts: dict[bytes, str] = {}
        self._start = 0
        self._count = 0
        self._allocate(_FIRST_CAPACITY, text_bytes)

    def __len__(self) -> int:
        """Return the number of items."""
        return self._count

    def _allocate(self, capacity: int, text_bytes: int) -> None:
        self._keys = zeros(2 * capacity, np.uint64).reshape(capacity, 2)
        self._times = zeros(capacity, np.int64)
        self._texts = zeros(capacity, f"S{max(text_bytes, 1)}")
        self._text_bytes = text_bytes
        self._words = self._keys.reshape(-1).data
        self._times_ms = self._times.data
        self._index()

    def _index(self) -> None:
        """Build the hash table of all items."""
        places = self._places()
        self._slots = open_slots(self._keys[places, 0].astype(np.int64), places, _SLOTS_PER_ITEM * len(self._times))
        self._slot = self._slots.data
        self._mask = len(self._slots) - 1
        self._marks = 0

    def _places(self) -> NDArray[np.int32]:
        """Return the ring places of all items, oldest first."""
        places = (self._start + np.arange(self._count)) % len(self._times)
        return places.astype(np.int32)

    def _grow(self) -> None:
        places = self._places()
        keys, times, texts = self._keys[places], self._times[places], self._texts[places]
        count, self._count, self._start = self._count, 0, 0
        self._allocate(2 * len(times), self._text_bytes)
        self._keys[:count], self._times[:count], self._texts[:count] = keys, times, texts
        self._count = count
        self._index()

    def _find(self, key: bytes) -> int:
        """Return the slot that holds the key, or NONE."""
        low, high = _WORDS.unpack(key)
        slot, words, mask = low & self._mask, self._words, self._mask
        while place := self._slot[slot]:
            if place > 0 and words[2 * place - 2] == low and words[2 * place - 1] == high:
                return int(slot)
            slot = (slot + 1) & mask
        return NONE

    def __contains__(self, key: bytes) -> bool:
        """Return True when the fingerprint is remembered."""
        return self._find(key) != NONE

    def text(self, key: bytes) -> str | None:
        """Return the text of a fingerprint, or None when it is not remembered."""
        slot = self._find(key)
        if slot == NONE:
            return None
        long_text = self._long_texts.get(key)
        if long_text is not None:
            return long_text
        return bytes(self._texts[self._slot[slot] - 1]).decode()

    def add(self, key: bytes, time_ms: int, text: str = "") -> None:
        """Remember a fingerprint that is not remembered yet."""
        if self._count == self._limit:
            self._forget_oldest()
        if self._count == len(self._times):
            self._grow()
        elif self._count + self._marks >= len(self._times):
            self._index()
        low, high = _WORDS.unpack(key)
        slot = low & self._mask
        while self._slot[slot] > 0:
            slot = (slot + 1) & self._mask
        if self._slot[slot] == _FORGOTTEN:
            self._marks -= 1
        place = (self._start + self._count) % len(self._times)
        self._slot[slot] = place + 1
        self._words[2 * place], self._words[2 * place + 1] = low, high
        self._times_ms[place] = time_ms
        self._put_text(key, place, text)
        self._count += 1

    def _put_text(self, key: bytes, place: int, text: str) -> None:
        encoded = text.encode()
        if len(encoded) > self._text_bytes or encoded.endswith(b"\0"):
            self._long_texts[key] = text
        elif self._text_bytes:
            self._texts[place] = encoded

    def _forget_oldest(self) -> None:
        low, high = self._words[2 * self._start], self._words[2 * self._start + 1]
        key = _WORDS.pack(low, high)
        self._slot[self._find(key)] = _FORGOTTEN
        self._marks += 1
        self._long_texts.pop(key, None)
        self._start = (self._start + 1) % len(self._times)
        self._count -= 1

    def forget_before(self, time_ms: int) -> None:
        """Forget items from the oldest on, up to the first that is not older than this."""
        while self._count and self._times_ms[self._start] < time_ms:
            self._forget_oldest()

    def copied(self) -> RememberedCopy:
        """Return a copy of all items. Costs little more than the memory it takes."""
        places = self._places()
        texts = self._texts[places] if self._text_bytes else self._texts[:0]
        return RememberedCopy(self._keys[places], self._times[places], texts, dict(self._long_texts))

    def columns(self) -> RememberedColumns:
        """Return all items, oldest first."""
        return self.copied().columns()

    def restore(self, columns: RememberedColumns) -> None:
        """Take over the items of a checkpoint, into an empty memory."""
        keys = np.frombuffer(columns.keys, "<u8").reshape(-1, 2)
        times = np.frombuffer(columns.times_ms, "<i8")
        capacity = _FIRST_CAPACITY
        while capacity < len(times):
            capacity *= 2
        self._allocate(capacity, self._text_bytes)
        self._keys[: len(keys)], self._times[: len(times)] = keys, times
        self._count = len(times)
        self._index()
        for place, text in enumerate(columns.texts):
            self._put_text(_WORDS.pack(*keys[place].tolist()), place, text)

    def validate(self) -> None:
        """Check that every item is found, and nothing else.

        Raises:
            AssertionError: an item is lost.
        """
        ensure(int(np.count_nonzero(self._slots > 0)) == self._count, "slots and items differ in number")
        ensure(int(np.count_nonzero(self._slots == _FORGOTTEN)) == self._marks, "marks are miscounted")
        for place in self._places().tolist():
            slot = self._find(_WORDS.pack(self._words[2 * place], self._words[2 * place + 1]))
            ensure(slot != NONE, "an item is lost")
            ensure(self._slot[slot] == place + 1, "an item is kept twice")


class Voids:
    """Which facts of which entries changed nothing, by position. Positions are added in order."""

    def __init__(self, limit: int = VOIDS_LIMIT) -> None:
        self._limit = limit
        self._positions: list[Position] = []
        self._rows: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """Return how many facts are remembered as void."""
        return len(self._rows)

    def add(self, position: Position, event: int, row: int) -> None:
        """Remember one; the oldest tenth is forgotten beyond the limit."""
        if len(self._rows) >= self._limit:
            self._drop(max(1, self._limit // 10))
        self._positions.append(position)
        self._rows.append((event, row))

    def _drop(self, count: int) -> None:
        del self._positions[:count]
        del self._rows[:count]

    def at(self, position: Position) -> frozenset[tuple[int, int]]:
        """Return an entry's void rows: (event, row); row NONE is the whole event, WHOLE_ENTRY everything."""
        if not self._positions or position > self._positions[-1]:
            return frozenset()
        first = bisect_left(self._positions, position)
        last = bisect_left(self._positions, position + 1, first)
        return frozenset(self._rows[first:last])

    def forget_below(self, position: Position) -> None:
        """Forget what lies below a position."""
        self._drop(bisect_left(self._positions, position))

    def columns(self) -> tuple[tuple[int, int, int], ...]:
        """Return (position, event, row) of all, in order."""
        return tuple((position, *row) for position, row in zip(self._positions, self._rows, strict=True))

    def restore(self, columns: tuple[tuple[int, int, int], ...]) -> None:
        """Take over what a checkpoint holds."""
        self._positions = [position for position, _, _ in columns]
        self._rows = [(event, row) for _, event, row in columns]


def without(entry: Entry, void_rows: frozenset[tuple[int, int]]) -> Entry:
    """Return the entry without its void rows; the same object when there are none.

    Places of events inside the entry stay what they were: a void `JobsSubmitted` keeps no jobs, and any other void
    event gives way to a `RunsReleased` of no runs, which says nothing.
    """
    if not void_rows:
        return entry
    everything = WHOLE_ENTRY in void_rows
    events: list[Event] = []
    for index, event in enumerate(entry.events):
        void = everything or (index, NONE) in void_rows
        if isinstance(event, JobsSubmitted):
            rows = enumerate(event.jobs)
            jobs = () if void else tuple(job for row, job in rows if (index, row) not in void_rows)
            events.append(event if len(jobs) == len(event.jobs) else msgspec.structs.replace(event, jobs=jobs))
        else:
            events.append(RunsReleased(at_ms=event.at_ms, run_ids=()) if void else event)
    return msgspec.structs.replace(entry, events=tuple(events))
