"""Spreads of groups: array work against the plain definition."""

import statistics
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armada.state.figures import spreads
from armada.state.figures.spreads import bucket_counts, grouped, numbered, sorted_groups, spread_of, weighted_spread

EDGES = (10, 100, 1_000)

valued = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2_000), st.integers(1, 5)), max_size=60)


def split(rows: list[tuple[int, int, int]]) -> tuple[list[int], dict[int, list[int]]]:
    """Groups renumbered without gaps, and each group's values, each as often as it counts."""
    numbers = {group: number for number, group in enumerate(sorted({group for group, _, _ in rows}))}
    values: dict[int, list[int]] = {}
    for group, value, weight in rows:
        values.setdefault(numbers[group], []).extend([value] * weight)
    return [numbers[group] for group, _, _ in rows], values


def check(spread: spreads.Spread, values: dict[int, list[int]]) -> None:
    assert len(spread.count) == len(values)
    for group, own in values.items():
        assert spread.count[group] == len(own)
        assert spread.at(group) == (sum(own), min(own), max(own), statistics.median(own))


@given(valued)
def test_a_spread_is_what_its_words_say(rows: list[tuple[int, int, int]]) -> None:
    rows = [(group, value, 1) for group, value, _ in rows]
    groups, values = split(rows)
    ordered = sorted_groups(
        np.array(groups, np.int32), np.array([value for _, value, _ in rows], np.int64), len(values)
    )
    check(spread_of(ordered), values)
    buckets = bucket_counts(ordered, np.array(EDGES, np.int64))
    assert buckets.shape == (len(values), len(EDGES) + 1)
    for group, own in values.items():
        wanted = [0] * (len(EDGES) + 1)
        for value in own:
            wanted[bisect_left(EDGES, value)] += 1
        assert buckets[group].tolist() == wanted


@given(valued)
def test_a_weight_stands_for_so_many_values(rows: list[tuple[int, int, int]]) -> None:
    groups, values = split(rows)
    amounts, weights = (np.array([row[column] for row in rows], np.int64) for column in (1, 2))
    check(weighted_spread(np.array(groups, np.int32), amounts, weights, len(values)), values)


@pytest.mark.parametrize("dense", [0, 1 << 23])
@given(st.lists(st.integers(0, 50), max_size=40))
def test_codes_are_numbered_by_either_way(dense: int, codes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spreads, "_DENSE", dense)
        found, counts, places = numbered(np.array(codes, np.int64), 51)
    assert found.tolist() == sorted(set(codes))
    assert counts.tolist() == [codes.count(code) for code in found.tolist()]
    assert [found[place] for place in places.tolist()] == codes


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_rows_are_grouped(rows: list[tuple[int, int]]) -> None:
    columns = [np.array([row[column] for row in rows], np.int32) for column in (0, 1)]
    found, places = grouped(columns, (4, 3))
    assert found == [list(row) for row in sorted(set(rows))]
    assert [tuple(found[place]) for place in places.tolist()] == rows
