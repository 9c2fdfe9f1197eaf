"""The text form of metrics (version 0.0.4), written under exactly the names that are asked for.

prometheus_client gives every counter the ending `_total`, in all its formats. Most counters of an Armada scheduler have
no such ending, and what people scrape, chart and alert on are these names; so our own series are written here. The text
form is the one to answer with whatever a scraper prefers: OpenMetrics would put the ending back.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Buckets(NamedTuple):
    """What a histogram holds: upper edges, the count of each bucket (one more than there are edges), and the sum."""

    edges: Sequence[float]
    counts: Sequence[int]
    total: float


class TextPage:
    """Collects families of series, then is the page's text."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def begin(self, name: str, kind: str, meaning: str) -> None:
        """Begin a family: all that follows is of this name."""
        shown = meaning.replace("\\", "\\\\").replace("\n", "\\n")
        self._parts.append(f"# HELP {name} {shown}\n# TYPE {name} {kind}\n")

    def sample(self, name: str, labels: Sequence[str], values: Sequence[str], value: float) -> None:
        """Write one value."""
        self._parts.append(f"{name}{_braced(labels, values)} {number_text(value)}\n")

    def histogram(self, name: str, labels: Sequence[str], values: Sequence[str], filled: Buckets) -> None:
        """Write one histogram."""
        names, reached = (*labels, "le"), 0
        for edge, count in zip((*filled.edges, math.inf), filled.counts, strict=True):
            reached += count
            shown = "+Inf" if math.isinf(edge) else number_text(edge)
            self._parts.append(f"{name}_bucket{_braced(names, (*values, shown))} {reached}\n")
        own = _braced(labels, values)
        self._parts.append(f"{name}_sum{own} {number_text(filled.total)}\n{name}_count{own} {reached}\n")

    def text(self) -> str:
        """Return all that was written."""
        return "".join(self._parts)


def number_text(value: float) -> str:
    """Write a number as Prometheus reads it: whole ones without a point, as the reference does."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _braced(labels: Iterable[str], values: Iterable[str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(labels, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value
