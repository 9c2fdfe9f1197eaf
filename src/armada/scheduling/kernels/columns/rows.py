"""Rows: taking cells by row, renumbering, keeping and merging sorted rows. Letters: J rows taken, H cells."""

from armada.scheduling.kernels.compiled import kernel
from armada.scheduling.snapshot import Amounts, Flags, Rows


@kernel
def take(column: Rows, rows: Rows, cells: Rows) -> None:
    """Write `column[rows]` into `cells` [J]."""
    for index in range(rows.shape[0]):
        cells[index] = column[rows[index]]


@kernel
def translate(cells: Rows, number_of: Rows, numbers: Rows, in_use: Flags) -> None:
    """Write `number_of[cells]` into `numbers` [J], and mark in `in_use` which numbers occur."""
    for index in range(cells.shape[0]):
        number = number_of[cells[index]]
        numbers[index] = number
        in_use[number] = 1


@kernel
def renumber(cells: Rows, number_of: Rows) -> None:
    """Replace every cell by `number_of` it."""
    for index in range(cells.shape[0]):
        cells[index] = number_of[cells[index]]


@kernel
def keep(rows: Rows, place: Rows, number: int, kept: Rows) -> int:
    """Write the rows whose `place` [H] is `number` into `kept`, in order; return how many they are."""
    count = 0
    for index in range(rows.shape[0]):
        row = rows[index]
        kept[count] = row
        if place[row] == number:
            count += 1
    return count


@kernel
def merge(rows: Rows, fresh: Rows, before: Amounts, merged: Rows) -> None:
    """Merge fresh rows into sorted ones: `before[i]`, ascending, is how many of `rows` come before `fresh[i]`."""
    goal = 0
    index = 0
    for number in range(fresh.shape[0]):
        while index < before[number]:
            merged[goal] = rows[index]
            goal += 1
            index += 1
        merged[goal] = fresh[number]
        goal += 1
    while index < rows.shape[0]:
        merged[goal] = rows[index]
        goal += 1
        index += 1


@kernel
def add_by_node(node: Rows, shape: Rows, kind: Rows, request: Amounts, included: Flags, amounts: Amounts) -> None:
    """Add the requests [kinds, R] of the jobs marked in `included` to the amounts [N, R] of their nodes."""
    for job in range(node.shape[0]):
        if included[job]:
            own = kind[shape[job]]
            for resource in range(amounts.shape[1]):
                amounts[node[job], resource] += request[own, resource]
