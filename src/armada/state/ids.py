"""Ids and rows of a large table: a hash table over packed bytes, about 40 bytes a row where a dictionary takes 160.

Ids of 26 ASCII characters (all that this system makes) are packed side by side. Any other id is kept in a dictionary:
nothing depends on it being short, but nothing is saved either.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from armada.model.jobs import JOB_ID_LENGTH
from armada.state.table import NONE, Rows, ensure, grown, zeros

_FIRST_ROWS: Final = 64
_FIRST_SLOTS: Final = 128
_FULL: Final = 0.6
_FORGOTTEN: Final = -1
_WIDTH: Final = JOB_ID_LENGTH
_NOTHING: Final = bytes(_WIDTH)
_HASHED: Final = slice(_WIDTH - 24, _WIDTH)
_WORDS: Final = Struct("<QQQ")
_MULTIPLIERS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)
_SHIFT: Final = 32
_ALL_BITS: Final = (1 << 64) - 1


def open_slots(hashes: NDArray[np.int64], places: Rows, size: int) -> NDArray[np.int32]:
    """Return an open-addressing table of `size` (a power of 2, larger than the number of places).

    A slot holds a place plus 1, or 0. All places look for room in step: who finds a slot taken tries the next one.
    """
    slots = zeros(size, np.int32)
    wanted = hashes & (size - 1)
    while len(places):
        free = slots[wanted] == 0
        slots[wanted[free]] = places[free] + 1
        left = slots[wanted] != places + 1
        places, wanted = places[left], (wanted[left] + 1) & (size - 1)
    return slots


def _hashes(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Hash packed ids [n, 26]: the same as `_hash`, for many."""
    words = np.ascontiguousarray(packed[:, _HASHED]).view("<u8")
    mixed: NDArray[np.uint64] = (words * np.array(_MULTIPLIERS, np.uint64)).sum(axis=1, dtype=np.uint64)
    mixed = (mixed ^ mixed >> np.uint64(_SHIFT)) * np.uint64(_MULTIPLIERS[0])
    return (mixed >> np.uint64(_SHIFT)).astype(np.int64)


def _hash(key: bytes) -> int:
    """Hash a packed id to 32 bits. Its first two characters, which change every 35 years, are left out."""
    first, second, third = _WORDS.unpack_from(key, _HASHED.start)
    one, two, three = _MULTIPLIERS
    mixed = first * one + second * two + third * three & _ALL_BITS
    hashed: int = ((mixed ^ mixed >> _SHIFT) * one & _ALL_BITS) >> _SHIFT
    return hashed


class IdIndex:
    """Which id has which row, and back."""

    def __init__(self) -> None:
        self._packed = np.zeros((_FIRST_ROWS, _WIDTH), np.uint8)
        self._bytes = self._packed.reshape(-1).data
        self._odd_rows: dict[str, int] = {}
        self._odd_ids: dict[int, str] = {}
        self._count = 0
        self._rebuild()

    def __len__(self) -> int:
        """Return the number of ids."""
        return self._count + len(self._odd_rows)

    def _rebuild(self) -> None:
        """Build the hash table anew: large enough to take as many ids again, and without marks."""
        size = _FIRST_SLOTS
        while size * _FULL < 2 * self._count:
            size *= 2
        rows = np.flatnonzero(self._packed[:, 0]).astype(np.int32)
        self._slots = open_slots(_hashes(self._packed[rows]), rows, size)
        self._slot = self._slots.data
        self._mask = size - 1
        self._marks = 0

    def find(self, id_: str) -> int:
        """Return the row of an id, or NONE."""
        key = id_.encode()
        if len(key) == _WIDTH:
            slot = self._find(key)
            if slot != NONE:
                return self._slot[slot] - 1
        return self._odd_rows.get(id_, NONE)

    def _find(self, key: bytes) -> int:
        """Return the slot of a packed id, or NONE."""
        slots, mask, packed = self._slot, self._mask, self._bytes
        slot = _hash(key) & mask
        while place := slots[slot]:
            end = place * _WIDTH
            if place > 0 and packed[end - _WIDTH : end] == key:
                return slot
            slot = (slot + 1) & mask
        return NONE

    def id(self, row: int) -> str:
        """Return the id of a row that has one."""
        if self._odd_ids and row in self._odd_ids:
            return self._odd_ids[row]
        return str(self._bytes[row * _WIDTH : (row + 1) * _WIDTH], "ascii")

    def add(self, id_: str, row: int) -> None:
        """Give a row an id; neither may be known."""
        if len(id_) != _WIDTH or not (id_.isascii() and id_.isalnum()):
            self._odd_rows[id_] = row
            self._odd_ids[row] = id_
            return
        if row >= len(self._packed):
            more = max(row + 1 - len(self._packed), len(self._packed) // 8)
            self._packed = grown(self._packed.reshape(-1), (len(self._packed) + more) * _WIDTH).reshape(-1, _WIDTH)
            self._bytes = self._packed.reshape(-1).data
        if self._count + self._marks >= _FULL * len(self._slots):
            self._rebuild()
        key = id_.encode()
        slots, mask = self._slot, self._mask
        slot = _hash(key) & mask
        while slots[slot] > 0:
            slot = (slot + 1) & mask
        if slots[slot] == _FORGOTTEN:
            self._marks -= 1
        slots[slot] = row + 1
        self._bytes[row * _WIDTH : (row + 1) * _WIDTH] = key
        self._count += 1

    def remove(self, row: int) -> None:
        """Take a row's id away."""
        odd = self._odd_ids.pop(row, None)
        if odd is not None:
            del self._odd_rows[odd]
            return
        cells = slice(row * _WIDTH, (row + 1) * _WIDTH)
        self._slot[self._find(bytes(self._bytes[cells]))] = _FORGOTTEN
        self._bytes[cells] = _NOTHING
        self._marks += 1
        self._count -= 1

    def pack(self, rows: Rows) -> tuple[bytes, tuple[tuple[int, str], ...]]:
        """Return the ids of some rows, side by side, and those that are kept apart with their place among the rows."""
        places = {row: place for place, row in enumerate(rows.tolist())} if self._odd_ids else {}
        odd = sorted((places[row], id_) for row, id_ in self._odd_ids.items())
        if not len(rows) or int(rows.max()) < len(self._packed):
            return np.take(self._packed, rows, axis=0).tobytes(), tuple(odd)
        packed = np.zeros((len(rows), _WIDTH), np.uint8)
        inside = rows < len(self._packed)
        packed[inside] = self._packed[rows[inside]]
        return packed.tobytes(), tuple(odd)

    def unpack(self, packed: bytes, odd: Iterable[tuple[int, str]]) -> None:
        """Take over what `pack` returned, as the ids of rows 0, 1, ... of an empty index."""
        self._packed = np.frombuffer(packed, np.uint8).reshape(-1, _WIDTH).copy()
        if not len(self._packed):
            self._packed = np.zeros((_FIRST_ROWS, _WIDTH), np.uint8)
        self._bytes = self._packed.reshape(-1).data
        self._odd_ids = dict(odd)
        self._odd_rows = {id_: row for row, id_ in self._odd_ids.items()}
        self._count = int(np.count_nonzero(self._packed[:, 0]))
        self._rebuild()

    def validate(self, rows: Rows) -> None:
        """Check that exactly these rows have ids, and that each id is found.

        Raises:
            AssertionError: it is not so.
        """
        ensure(len(self) == len(rows), "rows and ids differ in number")
        ensure(all(self.find(self.id(row)) == row for row in rows.tolist()), "an id points at another's row")
        ensure(int(np.count_nonzero(self._slots > 0)) == self._count, "slots and ids differ in number")
        ensure(int(np.count_nonzero(self._slots == _FORGOTTEN)) == self._marks, "marks are miscounted")
