"""Columns, interner, orders: small parts on which everything in the ledger stands."""

from collections.abc import Mapping
from typing import Any, ClassVar

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from armada.state.table import NONE, Interner, Order, Rows, Table, ensure


class Marbles(Table):
    """A table for tests."""

    COLUMNS: ClassVar[Mapping[str, type[np.integer[Any]]]] = {"size": np.int64, "colour": np.uint8, "place": np.int32}

    size: memoryview
    colour: memoryview
    place: memoryview


def test_rows_are_numbered_from_zero_and_fresh_rows_are_zero() -> None:
    table = Marbles()
    assert [table.allocate() for _ in range(3)] == [0, 1, 2]
    assert [table.size[row] for row in range(3)] == [0, 0, 0]
    assert len(table) == table.high == 3


def test_cells_outlive_growth() -> None:
    table = Marbles()
    for number in range(10_000):
        row = table.allocate()
        table.size[row] = number * 3
        table.colour[row] = number % 251
    assert table.column("size").tolist() == [number * 3 for number in range(10_000)]
    assert [table.colour[row] for row in range(10_000)] == [number % 251 for number in range(10_000)]


def test_freed_rows_are_used_again_and_come_back_as_zero() -> None:
    table = Marbles()
    for _ in range(200):
        row = table.allocate()
        table.size[row] = 7
    for row in range(0, 200, 2):
        table.free(row)
    assert len(table) == 100
    assert table.used_rows().tolist() == list(range(1, 200, 2))
    again = {table.allocate() for _ in range(100)}
    assert again == set(range(0, 200, 2))
    assert all(table.size[row] == 0 for row in again)
    assert table.high == 200


def test_a_table_can_be_filled_and_reached() -> None:
    table = Marbles()
    table.fill({"size": np.arange(100, dtype=np.int64)}, 100)
    assert table.high == len(table) == 100
    assert table.size[99] == 99
    assert table.allocate() == 100
    table.reach(500)
    table.colour[500] = 1
    assert table.high == 501


def test_the_interner_counts_and_uses_numbers_again() -> None:
    interner: Interner[str] = Interner()
    assert interner.find("a") == NONE
    assert [interner.hold("a"), interner.hold("b", 2), interner.hold("a")] == [0, 1, 0]
    assert interner.count(0) == 2
    assert not interner.release(0)
    assert interner.release(0)
    assert interner.find("a") == NONE
    assert interner.get(0) is None
    with pytest.raises(KeyError):
        interner[0]
    assert interner.hold("c") == 0
    assert interner[0] == "c"
    assert list(interner) == [(1, "b"), (0, "c")]
    assert (len(interner), interner.high) == (2, 2)
    interner.validate()


def test_the_interner_notices_lost_references() -> None:
    interner: Interner[str] = Interner()
    interner.hold("a", 0)
    with pytest.raises(AssertionError, match="held by nobody"):
        interner.validate()


def test_ensure_speaks_only_when_something_is_wrong() -> None:
    ensure(1, "fine")
    with pytest.raises(AssertionError, match="not fine"):
        ensure([], "not fine")


class Shelf:
    """Two orders over one table, and the plain lists that they must equal."""

    def __init__(self) -> None:
        self.table = Marbles()
        self.orders = [Order(number + 1, self.keys, lambda: self.table.column("place")) for number in range(2)]
        self.plain: list[set[int]] = [set(), set()]

    def keys(self, rows: Rows) -> tuple[NDArray[np.int64], ...]:
        return (
            self.table.column("colour")[rows].astype(np.int64),
            self.table.column("size")[rows],
            rows.astype(np.int64),
        )

    def add(self, order: int, colour: int, size: int) -> None:
        row = self.table.allocate()
        self.table.colour[row], self.table.size[row] = colour, size
        self.orders[order].add(row, self.table.place)
        self.plain[order].add(row)

    def remove(self, order: int, choice: int) -> int:
        row = sorted(self.plain[order])[choice % len(self.plain[order])]
        self.orders[order].remove(row, self.table.place)
        self.plain[order].discard(row)
        return row

    def check(self, order: int) -> None:
        expected = sorted(self.plain[order], key=lambda row: (self.table.colour[row], self.table.size[row], row))
        assert self.orders[order].rows().tolist() == expected
        assert len(self.orders[order]) == len(expected)


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "drop", "change", "move", "read"]),
        st.integers(0, 1),
        st.integers(0, 3),
        st.integers(-5, 5),
    ),
    max_size=80,
)


@given(steps)
def test_an_order_is_sorted_whatever_happens_between_readings(changes: list[tuple[str, int, int, int]]) -> None:
    shelf = Shelf()
    for what, order, colour, size in changes:
        if what == "add":
            shelf.add(order, colour, size)
        elif what == "read":
            shelf.check(order)
        elif shelf.plain[order]:
            row = shelf.remove(order, size)
            if what == "drop":
                shelf.table.free(row)
            else:
                shelf.table.colour[row] = colour
                goal = order if what == "change" else 1 - order
                shelf.orders[goal].add(row, shelf.table.place)
                shelf.plain[goal].add(row)
    shelf.check(0)
    shelf.check(1)


def test_what_was_read_does_not_change_later() -> None:
    shelf = Shelf()
    for size in (3, 1, 2):
        shelf.add(0, 0, size)
    read = shelf.orders[0].rows()
    before = read.tolist()
    shelf.add(0, 0, 0)
    shelf.remove(0, 1)
    shelf.check(0)
    assert read.tolist() == before


def test_long_tails_are_merged_on_the_way() -> None:
    shelf = Shelf()
    for number in range(20_000):
        shelf.add(0, number * 7 % 5, -number)
    assert len(shelf.orders[0]._tail) < 10_000
    shelf.check(0)
