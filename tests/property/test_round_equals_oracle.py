"""The product's rounds and the plain oracle's decide every small problem alike, and keep what no round may break."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from armada.cli.problems.answers import Answer, answers
from tests.oracle.drawing.rules import SOLID
from tests.oracle.strategies import problems
from tests.property.agreement import disagreements, read

SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.timeout(900)
@settings(max_examples=500, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(problems())
def test_product_and_oracle_decide_alike(problem: dict[str, Any]) -> None:
    assert disagreements(problem) == []


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(problems())
def test_no_round_breaks_an_invariant_seen_from_outside(problem: dict[str, Any]) -> None:
    kinds = read(problem).policy.kinds()
    jobs = {job["id"]: job for job in problem["jobs"]}
    places = {job: one["run"]["node"] for job, one in jobs.items() if "run" in one}
    before = crowded(problem, places, kinds)
    for number, decided in enumerate(answers(read(problem))):
        for job, one in jobs.items():
            if one.get("leaves") == number:
                places.pop(job, None)
        for answer in decided.values():
            check_answer(answer, jobs)
            for job in answer["preempted"]:
                assert places.pop(job)
            places.update({job: place["node"] for job, place in answer["scheduled"].items()})
        after = crowded(problem, places, kinds)
        assert set(after) <= set(before), "a round made a node over-full"
        before = after


def check_answer(answer: Answer, jobs: dict[str, dict[str, Any]]) -> None:
    scheduled, preempted = answer["scheduled"], answer["preempted"]
    assert not set(scheduled) & set(preempted)
    assert not set(scheduled) & set(answer["waiting"])
    assert sum(figures["demandCappedAdjustedFairShare"] for figures in answer["queues"].values()) <= 1 + 1e-9
    for job in scheduled:
        if "gang" in jobs[job]:
            gang = jobs[job]["gang"]
            together = [one for one in scheduled if jobs[one].get("gang") == gang]
            assert len(together) == max(1, gang["cardinality"]), "a gang was split"
    for job in preempted:
        assert jobs[job]["priorityClass"] not in SOLID


def crowded(problem: dict[str, Any], places: dict[str, str], kinds: Any) -> list[str]:
    """Nodes that hold more than they have."""
    full = []
    floating = [kind["name"] for kind in problem["config"]["floatingResources"]]
    requests = {
        job["id"]: kinds.vector_up(
            {**{name: q for name, q in job["request"].items() if name not in floating}, "pods": "1"}
        )
        for job in problem["jobs"]
    }
    for node in [node for executor in problem["executors"] for node in executor["nodes"]]:
        free = list(kinds.vector_down(node["total"]))
        for amounts in node.get("unallocatable", {}).values():
            free = [a - b for a, b in zip(free, kinds.vector_up(amounts), strict=True)]
        for job, place in places.items():
            if place == node["id"]:
                free = [a - b for a, b in zip(free, requests[job], strict=True)]
        if min(free) < 0:
            full.append(node["id"])
    return full
