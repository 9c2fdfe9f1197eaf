"""The benchmark's problems are those that the recordings time, and their answers the known ones."""

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from armada.cli.problems.reading import read_problem
from armada.cli.problems.trial import Trial
from armada.scheduling.decisions import Decisions, check_invariants
from armada.scheduling.round import schedule
from tests.benchmarks.rounds.columns import everywhere, ledger_of
from tests.benchmarks.rounds.pools import POOLS
from tests.benchmarks.rounds.problems import PROBLEMS
from tests.shared_folder import recordings

SCALES = {"gangs": 0.05, "distinct": 0.01, "fill": 0.002}
SMALL = 0.01


def recorded(name: str, scale: float) -> dict[str, Any]:
    folder = recordings("scheduling", "bench")
    command = [sys.executable, "-B", "bench_scenarios.py", name, str(scale)]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def decided(name: str, scale: float) -> Decisions:
    trial = Trial(read_problem(json.dumps(PROBLEMS[name](scale)).encode(), name))
    trial.begin_round()
    decisions = schedule(trial.snapshot("default"))
    assert check_invariants(decisions) == ()
    return decisions


@pytest.mark.parametrize("name", PROBLEMS)
def test_our_generator_draws_the_recorded_problems(name: str) -> None:
    scale = SCALES.get(name, SMALL)
    ours, theirs = PROBLEMS[name](scale), recorded(name, scale)
    assert len(ours["jobs"]) > 0
    assert set(theirs) <= set(ours)
    assert set(theirs["config"]) == set(ours["config"])
    for key in theirs["config"]:
        assert ours["config"][key] == theirs["config"][key], key
    for key in ("id", "executors", "queues", "jobs", "rounds"):
        assert ours[key] == theirs[key], key


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_made_in_columns_is_the_one_that_is_told(name: str) -> None:
    scale = SCALES.get(name, SMALL)
    trial = Trial(read_problem(json.dumps(PROBLEMS[name](scale)).encode(), name))
    trial.begin_round()
    told, made = trial.snapshot("default"), ledger_of(POOLS[name](scale)).pool_snapshot("default", everywhere())
    assert made.queues.names == told.queues.names
    assert len(made.queued.row) > 0
    # Tokens differ: a problem has rate limits, though none that binds.
    unlimited = msgspec.structs.replace(told, rules=made.rules, queues=made.queues)
    assert made.to_bytes() == unlimited.to_bytes()


@pytest.mark.parametrize(
    ("name", "scale", "placed", "preempted"),
    [
        ("identical", 0.1, 3_200, 0),
        ("steady", 0.05, 0, 0),
        ("steady-protected", 0.05, 0, 0),
        ("preempting", 0.1, 2_880, 2_880),
        ("distinct", 0.1, 5_000, 0),
    ],
)
def test_known_answers(name: str, scale: float, placed: int, preempted: int) -> None:
    decisions = decided(name, scale)
    assert (len(decisions.leases.row), len(decisions.preemptions.row)) == (placed, preempted)


def test_fill_places_what_the_fixed_search_places() -> None:
    assert len(decided("fill", 0.05).leases.row) == 13_043
