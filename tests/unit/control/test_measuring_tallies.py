"""Counters and histograms: exact, and bounded."""

from armada.control.measuring.series import COUNTER, HISTOGRAM, OTHERS, Distribution, Series, growing_edges
from armada.control.measuring.tallies import Counts, Distributions

COUNTED = Series("jobs", COUNTER, ("queue", "pool"), "jobs")
TIMED = Series("times", HISTOGRAM, ("queue",), "times", (1.0, 10.0))


def test_counts_add_up() -> None:
    counts = Counts(COUNTED)
    counts.add(("qa", "p"))
    counts.add(("qa", "p"), 2.5)
    counts.add(("qb", "p"))
    assert dict(counts.family().samples) == {("qa", "p"): 3.5, ("qb", "p"): 1.0}
    counts.clear()
    assert counts.family().samples == []


def test_what_is_beyond_the_limit_is_summed_up() -> None:
    counts = Counts(COUNTED, limit=2)
    for number in range(100):
        counts.add((f"q{number}", "p"))
    counts.add(("q1", "p"))
    assert dict(counts.family().samples) == {("q0", "p"): 1, ("q1", "p"): 2, (OTHERS, OTHERS): 98}
    times = Distributions(TIMED, limit=1)
    for number in range(10):
        times.observe((f"q{number}",), number)
    assert [labels for labels, _ in times.family().distributions] == [("q0",), (OTHERS,)]


def test_a_value_at_an_edge_is_below_it() -> None:
    times = Distributions(TIMED)
    for value in (0.5, 1.0, 1.1, 10.0, 11.0):
        times.observe(("qa",), value)
    assert times.family().distributions == [(("qa",), Distribution((2, 2, 1), 23.6))]
    times.clear()
    assert times.family().distributions == []


def test_edges_grow_by_a_factor() -> None:
    edges = growing_edges(10.0, 1.1, 110)
    assert (len(edges), edges[0], edges[1], edges[2]) == (110, 10.0, 11.0, 12.1)
    assert growing_edges(0.5, 1.5, 25)[:3] == (0.5, 0.75, 1.125)
