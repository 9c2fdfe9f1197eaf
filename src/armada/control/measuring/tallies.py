"""Counters and histograms that grow as things happen, with a bound on the number of label values.

One thread makes them grow; another may read them meanwhile, because what is read is copied in one step.
"""

from bisect import bisect_left
from typing import Final

from armada.control.measuring.series import OTHERS, Distribution, Family, Labels, Series

MAX_LABELS: Final = 100_000
"""Label values of one series; what comes beyond is summed up under `OTHERS`."""


class Counts:
    """A counter. Adding takes constant time."""

    def __init__(self, series: Series, limit: int = MAX_LABELS) -> None:
        self._series = series
        self._limit = limit
        self._values: dict[Labels, float] = {}

    def add(self, labels: Labels, amount: float = 1.0) -> None:
        """Add to the value of these labels."""
        values = self._values
        if labels not in values and len(values) >= self._limit:
            labels = (OTHERS,) * len(labels)
        values[labels] = values.get(labels, 0.0) + amount

    def clear(self) -> None:
        """Begin again with nothing."""
        self._values.clear()

    def family(self) -> Family:
        """Return all values as they are now."""
        return Family(series=self._series, samples=list(self._values.items()))


class Distributions:
    """A histogram for each label value."""

    def __init__(self, series: Series, limit: int = MAX_LABELS) -> None:
        self._series = series
        self._limit = limit
        self._counts: dict[Labels, list[int]] = {}
        self._totals: dict[Labels, float] = {}

    def observe(self, labels: Labels, value: float) -> None:
        """Count a value."""
        counts = self._counts.get(labels)
        if counts is None:
            if len(self._counts) >= self._limit:
                labels = (OTHERS,) * len(labels)
            counts = self._counts.setdefault(labels, [0] * (len(self._series.edges) + 1))
        counts[bisect_left(self._series.edges, value)] += 1
        self._totals[labels] = self._totals.get(labels, 0.0) + value

    def clear(self) -> None:
        """Begin again with nothing."""
        self._counts.clear()
        self._totals.clear()

    def family(self) -> Family:
        """Return all values as they are now."""
        found = [
            (labels, Distribution(tuple(counts), self._totals[labels]))
            for labels, counts in list(self._counts.items())
            if labels in self._totals
        ]
        return Family(series=self._series, distributions=found)
