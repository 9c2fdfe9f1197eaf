"""What a benchmark says: a figure beside its target and, where one is known, the reference's."""

import sys
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

UNITS_LARGER_IS_BETTER: Final = ("/s",)
"""Figures in units with this ending are rates; all others (ms, s, MB, %, bytes) are better when smaller."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured value. `target` is in the same unit (None: none set); `reference` is Armada's, as text."""

    name: str
    value: float
    unit: str
    target: float | None = None
    reference: str = ""
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.unit.endswith(UNITS_LARGER_IS_BETTER) else self.value <= self.target

    @property
    def cells(self) -> tuple[str, ...]:
        """The figure as cells of a table: name, value, target, verdict, reference, note."""
        verdict = {None: "", True: "yes", False: "no"}[self.is_met]
        target = "" if self.target is None else f"{shown(self.target)} {self.unit}"
        return (self.name, f"{shown(self.value)} {self.unit}", target, verdict, self.reference, self.note)


HEADINGS: Final = ("what", "here", "target", "reached", "reference", "note")


def shown(value: float) -> str:
    """A number with three significant digits, and thousands set apart."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def markdown(figures: Iterable[Figure]) -> str:
    """The figures as a table for docs/performance.md."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines.extend("| " + " | ".join(figure.cells) + " |" for figure in figures)
    return "\n".join(lines) + "\n"


def plain(figures: Sequence[Figure]) -> str:
    """The figures as aligned lines for a terminal."""
    rows = [HEADINGS, *(figure.cells for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines) + "\n"


def hand_over(figures: Iterable[Figure]) -> None:
    """Print figures as JSON lines on standard output: how a benchmark's process answers the one that started it."""
    for figure in figures:
        sys.stdout.write(msgspec.json.encode(figure).decode() + "\n")
        sys.stdout.flush()
