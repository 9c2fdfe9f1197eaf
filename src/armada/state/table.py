"""Growable columns with reuse of rows, an order over rows, and an interner that hands out small dense numbers.

A `Table` is a set of equally long numpy arrays. Single cells are read and written through memoryviews (attributes of
the column's name), which is several times faster than indexing an array; whole columns are read through `column`. A row
number means nothing by itself: rows are used again, and no answer of the ledger may depend on them.
"""

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any, ClassVar, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from armada.scheduling.kernels.columns.rows import keep, merge

NONE: Final = -1
"""In a column of row numbers: no row."""

_FIRST_CAPACITY: Final = 64
_GROWTH: Final = 1.125
_DOUBLES_BELOW: Final = 65_536
_TAIL_LIMIT: Final = 4_096
_TAIL_LIMIT_MOST: Final = 65_536
_OWN_MAPPING_BYTES: Final = 1 << 20

Rows = NDArray[np.int32]
"""Row numbers of a table."""


def ensure(holds: object, otherwise: str) -> None:
    """Check an invariant, with Python's optimisations as without.

    Raises:
        AssertionError: it does not hold; the text is `otherwise`.
    """
    if not holds:
        raise AssertionError(otherwise)


def zeros(count: int, dtype: Any) -> NDArray[Any]:
    """Return an array of zeros; a large one in a mapping of its own.

    What grows leaves its former place behind. The heap would keep such holes for good (a third of a ledger's memory); a
    mapping goes back to the system. Cells that were never written take no memory either way.
    """
    kind = np.dtype(dtype)
    if count * kind.itemsize < _OWN_MAPPING_BYTES:
        return np.zeros(count, kind)
    return np.frombuffer(mmap(-1, count * kind.itemsize, flags=MAP_PRIVATE | MAP_ANONYMOUS), kind)


def grown(cells: NDArray[Any], capacity: int) -> NDArray[Any]:
    """Return a copy with room for this many, filled up with zeros."""
    larger = zeros(capacity, cells.dtype)
    larger[: len(cells)] = cells
    return larger


class Table:
    """Columns that grow together. Subclasses list their columns in `COLUMNS` and annotate them as memoryviews.

    A fresh row is zero in all columns.
    """

    COLUMNS: ClassVar[Mapping[str, type[np.integer[Any]]]] = {}

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.zeros(_FIRST_CAPACITY, dtype) for name, dtype in self.COLUMNS.items()
        }
        self._capacity = _FIRST_CAPACITY
        self._free: Rows = np.zeros(_FIRST_CAPACITY, np.int32)
        self._free_count = 0
        self.high = 0
        """Rows 0 to `high` - 1 have been used at some time."""
        self._bind()

    def __len__(self) -> int:
        """Return the number of rows in use."""
        return self.high - self._free_count

    def _bind(self) -> None:
        self._cells = [array.data for array in self._arrays.values()]
        for name, cells in zip(self._arrays, self._cells, strict=True):
            setattr(self, name, cells)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column's cells up to `high`, free rows included. A view: it is stale after the next growth."""
        return self._arrays[name][: self.high]

    def reserve(self, capacity: int) -> None:
        """Make room for this many rows at once."""
        if capacity <= self._capacity:
            return
        for name, cells in self._arrays.items():
            self._arrays[name] = grown(cells, capacity)
        self._capacity = capacity
        self._bind()

    def allocate(self) -> int:
        """Return a fresh row."""
        if self._free_count:
            self._free_count -= 1
            return int(self._free[self._free_count])
        if self.high == self._capacity:
            factor = 2 if self._capacity < _DOUBLES_BELOW else _GROWTH
            self.reserve(int(self._capacity * factor))
        self.high += 1
        return self.high - 1

    def reach(self, row: int) -> None:
        """Make sure that a row exists, for tables whose rows somebody else numbers."""
        if row >= self._capacity:
            self.reserve(max(row + 1, 2 * self._capacity))
        self.high = max(self.high, row + 1)

    def fill(self, columns: Mapping[str, NDArray[Any]], count: int) -> None:
        """Put `count` rows into an empty table; columns that are not given stay zero."""
        self.reserve(count)
        self.high = count
        for name, values in columns.items():
            self._arrays[name][:count] = values

    def free(self, row: int) -> None:
        """Give a row back, zeroed."""
        for cells in self._cells:
            cells[row] = 0
        if self._free_count == len(self._free):
            self._free = grown(self._free, 2 * len(self._free))
        self._free[self._free_count] = row
        self._free_count += 1

    def free_rows(self) -> Rows:
        """Return the rows below `high` that are not in use, in no order."""
        return self._free[: self._free_count]

    def used_rows(self) -> Rows:
        """Return the rows in use, ascending."""
        used = np.ones(self.high, np.bool_)
        used[self.free_rows()] = False
        return np.flatnonzero(used).astype(np.int32)


Key = TypeVar("Key", bound=Hashable)


class Interner(Generic[Key]):
    """Dense numbers for values, counted: a number is used again once its last reference was released."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._values: list[Key | None] = []
        self._counts: list[int] = []
        self._free: list[int] = []
        self.version = 0
        """Grows whenever a value comes or leaves."""

    def __len__(self) -> int:
        """Return how many values are held."""
        return len(self._numbers)

    def __iter__(self) -> Iterator[tuple[int, Key]]:
        """Iterate over (number, value), in the order in which the values came."""
        return ((number, value) for value, number in self._numbers.items())

    @property
    def high(self) -> int:
        """All numbers are below this."""
        return len(self._values)

    def values(self) -> list[Key | None]:
        """Return a copy of all values by number; None where a number is not in use."""
        return self._values.copy()

    def find(self, value: Key) -> int:
        """Return the value's number, or NONE."""
        return self._numbers.get(value, NONE)

    def hold(self, value: Key, count: int = 1) -> int:
        """Take `count` references to a value and return its number."""
        number = self._numbers.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._values[number] = value
            else:
                number = len(self._values)
                self._values.append(value)
                self._counts.append(0)
            self._numbers[value] = number
            self.version += 1
        self._counts[number] += count
        return number

    def hold_number(self, number: int, count: int = 1) -> None:
        """Take `count` more references to a value that is held."""
        self._counts[number] += count

    def release(self, number: int, count: int = 1) -> bool:
        """Give references back; True when the value has left."""
        self._counts[number] -= count
        if self._counts[number]:
            return False
        value = self[number]
        del self._numbers[value]
        self.version += 1
        self._values[number] = None
        self._free.append(number)
        return True

    def __getitem__(self, number: int) -> Key:
        """Return the value of a number in use."""
        value = self._values[number]
        if value is None:
            raise KeyError(number)
        return value

    def get(self, number: int) -> Key | None:
        """Return the value of a number, or None when it is not in use."""
        return self._values[number]

    def count(self, number: int) -> int:
        """Return the number of references to a value."""
        return self._counts[number]

    def restore(self, values: Iterable[Key], counts: Iterable[int]) -> None:
        """Number values 0, 1, ... with these counts (all above 0), in an empty interner."""
        self._values = list(values)
        self._counts = list(counts)
        self._numbers = {value: number for number, value in enumerate(self._values) if value is not None}
        self.version += 1

    def validate(self) -> None:
        """Check that numbers, values and counts agree.

        Raises:
            AssertionError: they do not.
        """
        for value, number in self._numbers.items():
            ensure(self._values[number] == value, f"number {number} belongs to another value")
            ensure(self._counts[number] > 0, f"number {number} is held by nobody")
        ensure(len(self._numbers) + len(self._free) == len(self._values), "numbers got lost")


Keys = Callable[[Rows], tuple[NDArray[np.int64], ...]]
"""Sort keys of rows, most significant first; all ascending, and no two rows have equal keys."""

Place = Callable[[], NDArray[np.int32]]
"""The column that says in which order a row stands (0: in none)."""


class Order:
    """Rows sorted by `keys`, kept so that reading them all after a few changes costs little more than a copy.

    There is a sorted array of rows and a small unsorted tail. A change marks the row's old place as gone and puts the
    row into the tail; the next reading drops what is gone and merges the tail, in a few passes over plain integers and
    never by sorting all rows again. A row stands in one order at most: the table's column `place` says in which, by the
    order's `number` (above 0) where it is among the sorted rows, and less than 0 where it is in the tail.
    """

    def __init__(self, number: int, keys: Keys, place: Place) -> None:
        self.number = number
        self._keys = keys
        self._place = place
        self._sorted: Rows = np.zeros(0, np.int32)
        self._tail = array("i")
        self._gone = 0
        self._waiting = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._sorted) - self._gone + self._waiting

    def add(self, row: int, place: memoryview) -> None:
        """Put in a row that stands in no order; its keys must not change while it is here."""
        self._tail.append(row)
        self._waiting += 1
        place[row] = -self.number
        if len(self._tail) > min(_TAIL_LIMIT + len(self._sorted) // 4, _TAIL_LIMIT_MOST):
            self.rows()

    def remove(self, row: int, place: memoryview) -> None:
        """Take out a row that is here, before its keys change."""
        if place[row] == self.number:
            self._gone += 1
        else:
            self._waiting -= 1
        place[row] = 0

    def replace(self, rows: Rows) -> None:
        """Start anew with these rows."""
        self._tail, self._waiting, self._gone = array("i"), 0, 0
        self._sorted = rows[np.lexsort(self._keys(rows)[::-1])]
        self._place()[rows] = self.number

    def rows(self) -> Rows:
        """Return all rows in order; the array is replaced, never changed, by later changes."""
        place = self._place()
        if self._gone:
            kept = np.empty(len(self._sorted), np.int32)
            self._sorted = kept[: keep(self._sorted, place, self.number, kept)]
            self._gone = 0
        if self._tail:
            fresh = np.unique(np.frombuffer(self._tail, np.int32))
            fresh = fresh[place[fresh] == -self.number]
            self._tail, self._waiting = array("i"), 0
            if len(fresh):
                fresh = fresh[np.lexsort(self._keys(fresh)[::-1])]
                self._sorted = self._merged(fresh)
                place[fresh] = self.number
        return self._sorted

    def _merged(self, fresh: Rows) -> Rows:
        """Merge sorted rows into the sorted ones."""
        if not len(self._sorted):
            return fresh
        if _before(self._keys(self._sorted[-1:]), self._keys(fresh[:1]))[0]:
            return np.concatenate((self._sorted, fresh))
        merged = np.empty(len(self._sorted) + len(fresh), np.int32)
        merge(self._sorted, fresh, self._insertion_points(fresh), merged)
        return merged

    def _insertion_points(self, fresh: Rows) -> NDArray[np.int64]:
        """Find for each fresh row how many sorted rows come before it: a binary search, all rows in step."""
        wanted = self._keys(fresh)
        low = np.zeros(len(fresh), np.int64)
        high = np.full(len(fresh), len(self._sorted), np.int64)
        while True:
            open_ = low < high
            if not open_.any():
                return low
            middle = np.minimum((low + high) // 2, len(self._sorted) - 1)
            before = _before(self._keys(self._sorted[middle]), wanted)
            low = np.where(open_ & before, middle + 1, low)
            high = np.where(open_ & ~before, middle, high)


def _before(left: tuple[NDArray[np.int64], ...], right: tuple[NDArray[np.int64], ...]) -> NDArray[np.bool_]:
    """Compare keys lexicographically, element by element."""
    less = np.zeros(len(left[0]), np.bool_)
    equal = np.ones(len(left[0]), np.bool_)
    for a, b in zip(left, right, strict=True):
        less |= equal & (a < b)
        equal &= a == b
    return less
