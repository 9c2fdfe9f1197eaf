"""What product and oracle must agree in, and what no round may break, as sentences about one problem."""

import json
from collections.abc import Iterator
from typing import Any

from armada.cli.problems.answers import Answer, answer
from armada.cli.problems.comparison import differences
from armada.cli.problems.reading import ReadProblem, read_problem
from armada.cli.problems.trial import rounds
from armada.scheduling.decisions import Decisions, check_invariants
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
        broken = [*check_invariants(decisions), *nameless(decisions)]
        found += [f"round {trial.number}, pool {pool}: {one}" for one in broken]
    plain = decide(problem)
    found += [f"{one} (product against oracle)" for one in differences(ours, plain)]
    found += [f"{one} (oracle against product)" for one in differences(plain, ours)]
    found += different_causes(ours, plain)
    return found


def nameless(decisions: Decisions) -> Iterator[str]:
    """Complain about preempted jobs that name nobody who has their room, though somebody must have it.

    Nobody has it where a node was overfull before the round, or where the pool holds more of a floating resource than
    it has; nor where the rest of a gang went for such a reason.
    """
    snapshot, lost = decisions.snapshot, decisions.preemptions
    running, rules = snapshot.running, snapshot.rules
    held = snapshot.shapes.request[running.shape].sum(axis=0)
    if any(has_none and held[column] > rules.total[column] for column, has_none in enumerate(rules.floating)):
        return
    place = {row: index for index, row in enumerate(running.row.tolist())}
    gangs = [int(running.gang[place[row]]) for row in lost.row.tolist()]
    without = [node < 0 or bool(snapshot.nodes.overfull[node]) for node in lost.node.tolist()]
    excused = {gang for gang, is_excused in zip(gangs, without, strict=True) if is_excused and gang >= 0}
    for one, gang, is_excused in zip(decisions.each_preemption(), gangs, without, strict=True):
        if one.for_row < 0 and not is_excused and gang not in excused:
            yield f"the job of row {one.row} is preempted for nobody"


def different_causes(ours: list[dict[str, Answer]], plain: list[dict[str, Answer]]) -> Iterator[str]:
    """Compare for whom preempted jobs made room, where both sides preempt the same jobs."""
    for number, (mine, theirs) in enumerate(zip(ours, plain, strict=True)):
        for pool in mine:
            for job in sorted(mine[pool]["preempted"].keys() & theirs[pool]["preempted"].keys()):
                made, expected = (side[pool]["preempted"][job].get("for") for side in (mine, theirs))
                if made != expected:
                    yield f"round {number}, pool {pool}: {job} made room for {made}, by the oracle for {expected}"
