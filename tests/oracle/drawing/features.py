"""Features that a drawn problem has or has not.

Problems have few features, some, or half of all: with everything on at once most features would hide behind the few
that decide first, and a difference would say little about its cause.
"""

from typing import Any, Final

from hypothesis import strategies as st

CORE: Final = ("arrivals", "away", "gangs", "running")
"""On in half of all problems: without these there is little to decide."""

FEATURES: Final = (
    "affinity",
    "budget",
    "class limits",
    "clock",
    "default tolerations",
    "departures",
    "floating",
    "foreign pods",
    "labels",
    "lookback",
    "multipliers",
    "odd requests",
    "overfull",
    "overrides",
    "own protection",
    "penalties",
    "pods",
    "pools",
    "prefers large",
    "queue cordons",
    "queue limits",
    "rates",
    "round limits",
    "sick fleet",
    "switches",
    "taints",
    "uncapped protection",
    "uniformity",
    "unschedulable",
    "unscheduled resources",
)

Features = frozenset[str]

SELDOM: Final = st.integers(0, 9).map(lambda drawn: drawn == 9)
"""One in ten."""


@st.composite
def features(draw: st.DrawFn) -> Features:
    """Some features of all."""
    parts = one_of(draw, 8, 4, 2)
    core = [name for name in CORE if draw(st.booleans())]
    return frozenset(core + [name for name in FEATURES if often(draw, on=True, parts=parts)])


def often(draw: st.DrawFn, on: bool, parts: int = 2) -> bool:  # noqa: FBT001 # reads as a sentence: often(draw, "x" in on)
    """Say for one thing whether it has a feature that is on: one in `parts`."""
    return on and draw(st.integers(0, parts - 1)) == parts - 1


def one_of(draw: st.DrawFn, *values: Any) -> Any:
    """Draw one of the values; the first is the simplest."""
    return draw(st.sampled_from(values))
