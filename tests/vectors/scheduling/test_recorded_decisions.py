"""The product decides recorded problems as a real Armada did (`../shared/vectors/scheduling`).

Equal means: the same jobs scheduled, on the same nodes, at the same priorities; the same jobs preempted; no
contradiction in why a job waits; shares to 1e-9. What differs is listed in deviations.toml with its reason, and
proven here.
"""

import gzip
import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from armada.cli.problems.answers import answers
from armada.cli.problems.comparison import differences
from armada.cli.problems.reading import read_problem
from tests.oracle.fleet import decide
from tests.shared_folder import recordings

FAMILIES = (
    "fill",
    "shapes",
    "classes",
    "fairness",
    "gangs",
    "gangs_ending",
    "larger",
    "away",
    "limits",
    "preemption_budget",
    "floating",
    "prefer_large",
    "multipliers",
    "pools",
    "away_pools",
    "penalties",
    "sick_fleet",
    "pods",
    "switches",
    "optimiser",
    "market",
)
ROWS = "ADEFGHIJKL"
"""First letters of the hand-made rows that are decided here."""


@cache
def deviations() -> dict[str, frozenset[str]]:
    """The defects by which a case differs, by case."""
    listed = tomllib.loads((Path(__file__).parent / "deviations.toml").read_text(encoding="utf-8"))
    found: dict[str, frozenset[str]] = {}
    for defect, entry in listed["defects"].items():
        assert entry["reason"].strip()
        for case in entry["cases"]:
            found[case] = found.get(case, frozenset()) | {defect}
    return found


@cache
def unrepeatable() -> frozenset[str]:
    """Cases that the recording system itself would decide otherwise another time."""
    listed = tomllib.loads((Path(__file__).parent / "deviations.toml").read_text(encoding="utf-8"))
    assert listed["unrepeatable"]["reason"].strip()
    return frozenset(listed["unrepeatable"]["cases"])


def recorded(family: str) -> Iterator[bytes]:
    with gzip.open(recordings("scheduling", f"{family}.jsonl.gz"), "rb") as file:
        yield from file


def recorded_rows() -> dict[str, bytes]:
    lines = recordings("scheduling", "rows.jsonl").read_bytes().splitlines()
    rows = {json.loads(line)["id"]: line for line in lines}
    return {name: line for name, line in rows.items() if name[0] in ROWS}


def wrong(line: bytes) -> list[str]:
    """Differences of one case that nothing explains."""
    case: dict[str, Any] = json.loads(line)
    ours = answers(read_problem(line, case["id"]))
    found = differences(ours, case["expected"])
    defects = deviations().get(case["id"])
    if defects is None and case["id"] not in unrepeatable():
        return found
    if not found:
        return [f"{case['id']} is listed as a deviation, but it is equal"]
    if defects is None:
        return [f"{one} (ours against the oracle)" for one in differences(ours, decide(case))]
    unexplained = differences(decide(case, defects), case["expected"])
    return [
        *(f"{one} (the oracle with {sorted(defects)} put back, against the recorded answer)" for one in unexplained),
        *(f"{one} (ours against the oracle)" for one in differences(ours, decide(case))),
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_decided_as_recorded(family: str) -> None:
    cases = list(recorded(family))
    assert cases
    different = {json.loads(line)["id"]: found[:3] for line in cases if (found := wrong(line))}
    assert different == {}


def test_rows_are_decided_as_recorded() -> None:
    rows = recorded_rows()
    assert len(rows) > 70
    assert {name: found[:3] for name, line in rows.items() if (found := wrong(line))} == {}


def test_listed_deviations_exist() -> None:
    names, listed = set(recorded_rows()), set(deviations()) | unrepeatable()
    for family in {case.rsplit("-", 1)[0] for case in listed if "-" in case}:
        names |= {json.loads(line)["id"] for line in recorded(family)}
    assert listed <= names
