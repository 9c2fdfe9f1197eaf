"""The hash table of ids: as a dictionary, only smaller."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from armada.state.ids import IdIndex
from armada.state.table import NONE

ids = st.sampled_from(
    [f"01h{index:023d}" for index in range(8)] + ["", "short", "ü" * 13, "x" * 26, "\0" * 26, "y" * 27]
)


@given(st.lists(st.tuples(ids, st.booleans()), max_size=60))
def test_it_is_a_dictionary(steps: list[tuple[str, bool]]) -> None:
    index, plain = IdIndex(), dict[str, int]()
    for number, (id_, stays) in enumerate(steps):
        if id_ in plain and not stays:
            index.remove(plain.pop(id_))
        elif id_ not in plain:
            free = min(set(range(number + 1)) - set(plain.values()))
            index.add(id_, free)
            plain[id_] = free
        assert {known: index.find(known) for known in plain} == plain
        assert all(index.id(row) == known for known, row in plain.items())
        assert len(index) == len(plain)
    absent = {"", "short", "01h" + "7" * 23} - plain.keys()
    assert all(index.find(id_) == NONE for id_ in absent)
    index.validate(np.array(sorted(plain.values()), np.int32))


def test_many_ids_that_differ_little_are_found_quickly() -> None:
    """Ids of one submission count up; ids of tests are padded numbers. Neither may fall into one place."""
    index = IdIndex()
    names = [f"01jm{batch:012d}{number:010d}" for batch in range(100) for number in range(100)]
    for row, name in enumerate(names):
        index.add(name, row)
    taken = np.flatnonzero(index._slots > 0)
    homes = np.array([index.find(name) for name in names])
    assert homes.tolist() == list(range(len(names)))
    runs = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)
    assert max(len(run) for run in runs) < 120


def test_coming_and_going_does_not_fill_it_up() -> None:
    index = IdIndex()
    for number in range(20_000):
        index.add(f"01h{number:023d}", number % 50)
        if number >= 49:
            index.remove((number + 1) % 50)
    assert len(index._slots) <= 1_024
    index.validate(np.array(sorted(row for row in range(50) if row != 20_000 % 50), np.int32))


@given(st.lists(ids, unique=True, max_size=10))
def test_packed_ids_come_back(names: list[str]) -> None:
    index = IdIndex()
    for row, name in enumerate(names):
        index.add(name, row)
    rows = np.arange(len(names), dtype=np.int32)[::-1]
    restored = IdIndex()
    restored.unpack(*index.pack(rows))
    assert [restored.id(row) for row in range(len(names))] == names[::-1]
    restored.validate(np.arange(len(names), dtype=np.int32))
    assert restored.pack(np.arange(len(names), dtype=np.int32)) == index.pack(rows)
