"""The product says of recorded jobs what a real Armada said: can they ever run, and in which pools? All are equal."""

import gzip
import json

from armada.cli.problems.reading import read_problem
from armada.cli.problems.submit_check import answer, differences
from tests.shared_folder import recordings


def test_submit_checks_are_answered_as_recorded() -> None:
    with gzip.open(recordings("scheduling", "submit_check.jsonl.gz"), "rb") as cases:
        lines = list(cases)
    assert len(lines) == 360
    wrong = {}
    for line in lines:
        case = json.loads(line)
        found = differences(answer(read_problem(line, case["id"])), case["expected"])
        if found:
            wrong[case["id"]] = found[:3]
    assert wrong == {}
