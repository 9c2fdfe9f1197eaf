"""No kind of event is forgotten by those who must know all of them."""

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import pytest

from armada.model.events import EVENT_KINDS
from armada.model.lifecycle import RUN_TRANSITIONS, TRANSITIONS
from tests.tidy.repository import PACKAGE, Finding, Source, expect_none, sample, source

READERS: Final = (f"{PACKAGE}/views/changes.py", f"{PACKAGE}/wire/events.py")
"""Files that decide for each kind what it means to the history, and to the event stream of the API."""

CREATES: Final = frozenset({"JobsSubmitted", "RunLeased"})
"""Kinds that begin a job or a run: they meet no earlier state of it."""


def missing_from_tables(
    kinds: Iterable[type[msgspec.Struct]], jobs: Mapping[str, Any], runs: Mapping[str, Any]
) -> list[Finding]:
    """Facts about a job without a line in the table of jobs, about a run without one in the table of runs."""
    found = []
    for kind in kinds:
        name, fields = kind.__name__, kind.__struct_fields__
        if "job_id" in fields and name not in jobs:
            found.append(f"{name}: no line in TRANSITIONS")
        if "run_id" in fields and name not in runs and name not in CREATES:
            found.append(f"{name}: no line in RUN_TRANSITIONS")
    known = {kind.__name__ for kind in kinds}
    found.extend(f"{name}: in the tables, but no event" for name in sorted({*jobs, *runs} - known))
    return found


def missing_from_reader(kinds: Iterable[type[msgspec.Struct]], file: Source) -> list[Finding]:
    """Kinds that a file never names in its code."""
    named = {node.id for node in ast.walk(file.tree) if isinstance(node, ast.Name)}
    named |= {node.attr for node in ast.walk(file.tree) if isinstance(node, ast.Attribute)}
    return [file.at(1, f"{kind.__name__} is not dealt with") for kind in kinds if kind.__name__ not in named]


def test_the_transition_tables_know_every_kind() -> None:
    expect_none(missing_from_tables(EVENT_KINDS, TRANSITIONS, RUN_TRANSITIONS))


@pytest.mark.parametrize("path", READERS)
def test_readers_know_every_kind(path: str) -> None:
    expect_none(missing_from_reader(EVENT_KINDS, source(path)))


def test_the_rules_see_what_is_missing() -> None:
    without = {name: line for name, line in RUN_TRANSITIONS.items() if name != "RunFailed"}
    assert missing_from_tables(EVENT_KINDS, TRANSITIONS, without) == ["RunFailed: no line in RUN_TRANSITIONS"]
    extra = {**TRANSITIONS, "JobForgotten": ((), None)}
    assert missing_from_tables(EVENT_KINDS, extra, RUN_TRANSITIONS) == ["JobForgotten: in the tables, but no event"]
    named = sample("match event:\n    case RunStarted(): ...\n    case events.RunFailed(): ...\n")[0]
    missing = missing_from_reader(EVENT_KINDS, named)
    assert len(missing) == len(EVENT_KINDS) - 2
