"""A series of the metrics page, and values of it: the words in which figures are handed to whoever writes the page."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
HISTOGRAM: Final = "histogram"

OTHERS: Final = "(others)"
"""The label value that stands for everything beyond a limit on the number of series."""

Labels = tuple[str, ...]
"""Values of a series' labels, in the series' order."""

Sample = tuple[Labels, float]


class Series(msgspec.Struct, frozen=True):
    """A name with its type and labels. `meaning` is one sentence; `edges` are the upper ends of a histogram's buckets.

    Where `has_free_labels`, each sample may carry labels of its own after the fixed ones.
    """

    name: str
    kind: str
    labels: Labels
    meaning: str
    edges: tuple[float, ...] = ()
    has_free_labels: bool = False


class Distribution(msgspec.Struct, frozen=True):
    """How many values fell into each bucket (the last one has no upper end), and their sum."""

    counts: tuple[int, ...]
    total: float


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """All values of a series at one moment. `free` has the names of free labels beside each sample."""

    series: Series
    samples: Sequence[Sample] = ()
    distributions: Sequence[tuple[Labels, Distribution]] = ()
    free: Sequence[Labels] = ()


def gauges(labels: Labels, meanings: Iterable[tuple[str, str]], prefix: str) -> dict[str, Series]:
    """Return gauges that share their labels, by name without the prefix."""
    return {name: Series(prefix + name, GAUGE, labels, meaning) for name, meaning in meanings}


def growing_edges(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return upper ends of buckets that grow by a factor, written to six digits."""
    return tuple(float(f"{first * factor**step:.6g}") for step in range(count))
