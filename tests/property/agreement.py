"""What product and oracle must agree in, and what no round may break, as sentences about one problem."""

import json
from collections.abc import Iterator
from typing import Any

from armada.cli.problems.answers import Answer, answer
from armada.cli.problems.comparison import differences
from armada.cli.problems.reading import ReadProblem, read_problem
from armada.cli.problems.trial import rounds
from armada.scheduling.decisions import check_invariants
from tests.oracle.fleet import decide


def read(problem: dict[str, Any]) -> ReadProblem:
    """Read a problem as `armada decide` would."""
    return read_problem(json.dumps(problem).encode(), "drawn")


def disagreements(problem: dict[str, Any]) -> list[str]:
    """Decide a problem by the product and by the oracle; return all that is wrong, nothing when all is well."""
    found: list[str] = []
    problem_read = read(problem)
    ours: list[dict[str, Answer]] = [{} for _ in range(problem_read.problem.rounds)]
    for trial, pool, decisions in rounds(problem_read):
        ours[trial.number][pool] = answer(decisions, trial.policy, trial.job_id)
        found += [f"round {trial.number}, pool {pool}: {broken}" for broken in check_invariants(decisions)]
    plain = decide(problem)
    found += [f"{one} (product against oracle)" for one in differences(ours, plain)]
    found += [f"{one} (oracle against product)" for one in differences(plain, ours)]
    found += different_causes(ours, plain)
    return found


def different_causes(ours: list[dict[str, Answer]], plain: list[dict[str, Answer]]) -> Iterator[str]:
    """Compare for whom preempted jobs made room, where both sides preempt the same jobs."""
    for number, (mine, theirs) in enumerate(zip(ours, plain, strict=True)):
        for pool in mine:
            for job in sorted(mine[pool]["preempted"].keys() & theirs[pool]["preempted"].keys()):
                made, expected = (side[pool]["preempted"][job].get("for") for side in (mine, theirs))
                if made != expected:
                    yield f"round {number}, pool {pool}: {job} made room for {made}, by the oracle for {expected}"
