"""The plain oracle decides recorded problems as a real Armada did, also those that the product does not follow yet.

All known defects of the recording system are put back here, because what is proven is that the oracle knows every rule.
"""

import gzip
import json
from typing import Any

import pytest

from armada.cli.problems.comparison import differences
from tests.oracle.fleet import DEFECTS, check_submissions, decide
from tests.shared_folder import recordings

EQUAL_PRICES = frozenset({"market-0005", "market-0097"})
"""Cases whose answer hangs on the order of equal bids of running jobs, which the recording system can't repeat."""


def cases(family: str) -> list[dict[str, Any]]:
    with gzip.open(recordings("scheduling", f"{family}.jsonl.gz"), "rb") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("family", ["market", "optimiser", "away_pools"])
def test_a_family_is_decided_as_recorded(family: str) -> None:
    different = {
        case["id"]: found[:3]
        for case in cases(family)
        if case["id"] not in EQUAL_PRICES and (found := differences(decide(case, DEFECTS), case["expected"]))
    }
    assert different == {}


def test_rows_are_decided_as_recorded() -> None:
    rows = [json.loads(line) for line in recordings("scheduling", "rows.jsonl").read_bytes().splitlines()]
    assert {row["id"]: f[:3] for row in rows if (f := differences(decide(row, DEFECTS), row["expected"]))} == {}


def test_the_submit_check_is_answered_as_recorded() -> None:
    wrong = {}
    for case in cases("submit_check"):
        answers = check_submissions(case)["check"]
        for job, recorded in case["expected"]["check"].items():
            if answers[job] != recorded:
                wrong[case["id"], job] = (answers[job], recorded)
    assert wrong == {}
