"""The page of metrics lists every series, and its queries ask only for series and labels that exist."""

import re
from typing import Final

import pytest

from armada.control.measuring.catalogue import SERIES
from tests.tidy.metrics_page import PAGE, filled
from tests.tidy.repository import Finding, expect_none

_QUERY: Final = re.compile(r"```promql\n(.*?)```", re.DOTALL)
_SERIES: Final = re.compile(r"\b(armada_\w+)(?:\{([^}]*)\})?")
_LABEL: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_BY: Final = re.compile(r"\b(?:by|on|group_left)\s*\(([^)]*)\)")
_ENDINGS: Final = ("_bucket", "_sum", "_count")


def unknown_in(page: str) -> list[Finding]:
    """Series and labels in the page's queries that nothing exports."""
    labels = {series.name: {*series.labels, "le"} for series in SERIES}
    for series in SERIES:
        if series.kind == "histogram":
            labels |= {series.name + ending: {*series.labels, "le"} for ending in _ENDINGS}
    found: list[Finding] = []
    for query in _QUERY.findall(page):
        known: set[str] = set()
        for name, selectors in _SERIES.findall(query):
            known |= labels.get(name, set())
            found += [] if name in labels else [f"{PAGE.name}: no series {name}"]
            wrong = set(_LABEL.findall(selectors)) - labels.get(name, set())
            found += [f"{PAGE.name}: {name} has no label {label}" for label in sorted(wrong)]
        wanted = {label.strip() for group in _BY.findall(query) for label in group.split(",") if label.strip()}
        found += [f"{PAGE.name}: no label {label} in a query" for label in sorted(wanted - known)]
    return found


def test_the_table_is_current() -> None:
    page = PAGE.read_text()
    if filled(page) != page:
        pytest.fail("docs/metrics.md is behind: run .venv/bin/python -m tests.tidy.metrics_page", pytrace=False)


def test_queries_ask_for_what_there_is() -> None:
    page = PAGE.read_text()
    assert len(_QUERY.findall(page)) > 5
    expect_none(unknown_in(page))


def test_the_rule_sees_what_is_missing() -> None:
    page = '```promql\nsum by (pool, planet) (armada_queue_sizes) / armada_scheduler_demand{colour="red"}\n```'
    assert unknown_in(page) == [
        "metrics.md: no series armada_queue_sizes",
        "metrics.md: armada_scheduler_demand has no label colour",
        "metrics.md: no label planet in a query",
    ]
