"""How values are spread inside groups: number, sum, least, greatest and median, by sorting once.

Groups are numbered from 0 without gaps: each has at least one value.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.int64]
Rows = NDArray[np.int32]
Floats = NDArray[np.float64]

MAX_VALUE: Final = (1 << 42) - 1
"""Greatest value of `spread_of` (139 years in milliseconds): with the group above it, it makes one int64."""
_SHIFT: Final = 42


class Spread(msgspec.Struct, frozen=True, eq=False):
    """One entry a group. The median of an even number of values is the mean of the two in the middle."""

    count: Amounts
    total: Floats
    least: Floats
    greatest: Floats
    median: Floats

    def at(self, group: int) -> tuple[float, float, float, float]:
        """Return sum, least, greatest and median of one group."""
        columns = (self.total, self.least, self.greatest, self.median)
        total, least, greatest, median = (float(column[group]) for column in columns)
        return total, least, greatest, median


class Sorted(msgspec.Struct, frozen=True, eq=False):
    """Values sorted inside their groups: each is its group shifted left, plus the value."""

    keys: Amounts
    ends: Amounts


def sorted_groups(groups: Rows, values: Amounts, count: int) -> Sorted:
    """Sort values (0 to MAX_VALUE) by group. The costly part, done once for all that is asked of them."""
    keys = np.sort((groups.astype(np.int64) << _SHIFT) | values)
    return Sorted(keys, np.searchsorted(keys, np.arange(1, count + 1, dtype=np.int64) << _SHIFT))


def spread_of(ordered: Sorted) -> Spread:
    """Return the spread of each group's values."""
    values, ends = (ordered.keys & MAX_VALUE).astype(np.float64), ordered.ends
    starts = _starts(ends)
    count = ends - starts
    return Spread(
        count,
        np.add.reduceat(values, starts) if len(starts) else np.zeros(0),
        values[starts],
        values[ends - 1],
        (values[starts + (count - 1) // 2] + values[starts + count // 2]) / 2,
    )


def _starts(ends: Amounts) -> Amounts:
    return np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(ends)]


def bucket_counts(ordered: Sorted, edges: Amounts) -> Amounts:
    """Return for each group how many values are in each bucket [groups, edges + 1]; a value at an edge is below it."""
    count = len(ordered.ends)
    wanted = (np.arange(count, dtype=np.int64)[:, None] << _SHIFT) | edges[None, :]
    starts = _starts(ordered.ends)
    reached = np.searchsorted(ordered.keys, wanted, side="right") - starts[:, None]
    whole = np.column_stack((reached, ordered.ends - starts))
    return np.diff(whole, axis=1, prepend=0)


def weighted_spread(groups: Rows, values: Amounts, weights: Amounts, count: int) -> Spread:
    """Return the spread of values that each stand for as many as their weight says (at least 1)."""
    order = np.lexsort((values, groups))
    sizes, weights = values[order].astype(np.float64), weights[order]
    ends = np.searchsorted(groups[order], np.arange(count), side="right")
    starts = _starts(ends)
    reached = np.cumsum(weights)
    before = np.concatenate((np.zeros(1, np.int64), reached))[starts]
    members = reached[ends - 1] - before
    middle = np.searchsorted(reached, before + (members - 1) // 2, side="right")
    next_to_it = np.searchsorted(reached, before + members // 2, side="right")
    return Spread(
        members,
        np.add.reduceat(sizes * weights, starts) if count else np.zeros(0),
        sizes[starts],
        sizes[ends - 1],
        (sizes[middle] + sizes[next_to_it]) / 2,
    )


def numbered(codes: Amounts, room: int) -> tuple[Amounts, Amounts, Rows]:
    """Number distinct codes (0 to `room` - 1): return them sorted, how often each comes, and each place's number."""
    if room <= _DENSE:
        counts = np.bincount(codes, minlength=room) if len(codes) else np.zeros(room, np.int64)
        found = np.flatnonzero(counts)
        table = np.zeros(room, np.int32)
        table[found] = np.arange(len(found), dtype=np.int32)
        return found, counts[found], table[codes]
    found, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return found, counts, places.astype(np.int32)


def grouped(columns: Sequence[Amounts | Rows], room: Sequence[int]) -> tuple[list[list[int]], Rows]:
    """Number the distinct rows of several columns: return the rows, sorted, and each place's number.

    The values of each column lie between 0 and its `room` - 1.
    """
    sizes = [max(1, size) for size in room]
    codes = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, sizes, strict=True):
        codes = codes * size + column
    found, _, places = numbered(codes, math.prod(sizes))
    parts = np.empty((len(found), len(sizes)), np.int64)
    for place in range(len(sizes) - 1, -1, -1):
        parts[:, place] = found % sizes[place]
        found = found // sizes[place]
    rows: list[list[int]] = parts.tolist()
    return rows, places


_DENSE: Final = 1 << 23
"""Up to so many possible codes a table of them is quicker than sorting."""
