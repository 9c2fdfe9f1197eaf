"""Gangs of which the ledger holds a member: what they are, who belongs to them, and the columns that a round reads."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from armada.model.jobs import GangSpec
from armada.state.table import NONE, Interner, Rows, Table, ensure

_MOST_MEMBERS: Final = 2**31 - 1
"""A larger gang counts as one of this size: neither is ever whole."""


class GangRows:
    """A gang's members. `submitted` counts all that ever came; `rows` are those still here, in submit order."""

    __slots__ = ("priority_class", "rows", "spec", "submitted")

    def __init__(self, spec: GangSpec, priority_class: str) -> None:
        self.spec = spec
        self.priority_class = priority_class
        self.submitted = 0
        self.rows: dict[int, None] = {}


class Gangs(Table):
    """All gangs, by number; `label` is a number of `labels`, or NONE for a gang that may spread."""

    COLUMNS: ClassVar[Mapping[str, type[np.integer[Any]]]] = {"cardinality": np.int32, "label": np.int32}

    cardinality: memoryview
    label: memoryview

    def __init__(self) -> None:
        super().__init__()
        self.numbers: Interner[tuple[int, str]] = Interner()
        """Gangs by queue number and id, held once by each member."""
        self.labels: Interner[str] = Interner()
        self._rows: dict[int, GangRows] = {}

    def __getitem__(self, gang: int) -> GangRows:
        """Return a gang in use."""
        return self._rows[gang]

    def find(self, queue: int, gang_id: str) -> GangRows | None:
        """Return a gang of which a member is here."""
        return self._rows.get(self.numbers.find((queue, gang_id)))

    def hold(self, queue: int, spec: GangSpec, priority_class: str) -> int:
        """Take a reference to a gang's number."""
        gang = self.numbers.hold((queue, spec.id))
        if gang not in self._rows:
            self._place(gang, GangRows(spec, priority_class))
        return gang

    def release(self, gang: int) -> None:
        """Give a reference to a gang's number back."""
        if self.numbers.release(gang):
            del self._rows[gang]
            label = self.label[gang]
            if label != NONE:
                self.labels.release(label)

    def _place(self, gang: int, rows: GangRows) -> None:
        self._rows[gang] = rows
        self.reach(gang)
        self.cardinality[gang] = min(rows.spec.cardinality, _MOST_MEMBERS)
        label = rows.spec.uniformity_label
        self.label[gang] = self.labels.hold(label) if label else NONE

    def restore(self, gang: int, spec: GangSpec, priority_class: str, submitted: int) -> None:
        """Put a gang of a checkpoint back; its members follow with the jobs."""
        rows = GangRows(spec, priority_class)
        rows.submitted = submitted
        self._place(gang, rows)

    def validate(self, gang_of: Rows, rows: Rows) -> None:
        """Check gangs against the jobs' column `gang_of`; `rows` are the jobs' rows in submit order.

        Raises:
            AssertionError: they disagree.
        """
        self.numbers.validate()
        self.labels.validate()
        ensure(self._rows.keys() == {gang for gang, _ in self.numbers}, "gangs without members")
        wanted = [gang.spec.uniformity_label for gang in self._rows.values() if gang.spec.uniformity_label]
        ensure(sum(self.labels.count(label) for label, _ in self.labels) == len(wanted), "labels of gangs")
        for number, gang in self._rows.items():
            members = rows[gang_of[rows] == number].tolist()
            ensure(list(gang.rows) == members, f"members of gang {gang.spec.id}")
            ensure(self.numbers.count(number) == len(members), f"references to gang {gang.spec.id}")
            ensure(len(members) <= gang.submitted <= gang.spec.cardinality, f"size of gang {gang.spec.id}")
            ensure(
                self.cardinality[number] == min(gang.spec.cardinality, _MOST_MEMBERS),
                f"cardinality of gang {gang.spec.id}",
            )
            label = self.label[number]
            text = "" if label == NONE else self.labels[label]
            ensure(text == gang.spec.uniformity_label, f"uniformity label of gang {gang.spec.id}")
