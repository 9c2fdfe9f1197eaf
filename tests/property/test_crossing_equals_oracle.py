"""With pools whose jobs may use each other's nodes, product and oracle decide alike, and nothing breaks."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from armada.cli.problems.trial import rounds
from tests.oracle.crossing_strategies import crossing_problems
from tests.property.agreement import disagreements, read
from tests.property.settling import unrest_where_jobs_fail, unrest_where_jobs_wait_again
from tests.property.test_round_equals_oracle import crowded

SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.timeout(600)
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(crossing_problems())
def test_product_and_oracle_decide_alike(problem: dict[str, Any]) -> None:
    assert disagreements(problem) == []


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(crossing_problems())
def test_no_pool_makes_a_node_overfull_and_gangs_go_whole_wherever_they_stand(problem: dict[str, Any]) -> None:
    kinds = read(problem).policy.kinds()
    jobs = {job["id"]: job for job in problem["jobs"]}
    places = {job: one["run"]["node"] for job, one in jobs.items() if "run" in one}
    number = -1
    for trial, pool, decisions in rounds(read(problem)):
        if trial.number > number:
            number = trial.number
            places = {job: node for job, node in places.items() if jobs[job].get("leaves") != number}
        before = crowded(problem, places, kinds)
        lost = {gang_of(jobs[job]) for job in (trial.job_id(one.row) for one in decisions.each_preemption())}
        for one in decisions.each_preemption():
            del places[trial.job_id(one.row)]
        assert not {gang_of(jobs[job]) for job in places} & (lost - {None}), "a gang was torn"
        places.update({trial.job_id(lease.row): lease.node_id for lease in decisions.each_lease()})
        assert set(crowded(problem, places, kinds)) <= set(before), f"pool {pool} made a node over-full"


@pytest.mark.timeout(600)
@settings(max_examples=40, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(crossing_problems())
def test_pools_that_borrow_from_each_other_come_to_rest(problem: dict[str, Any]) -> None:
    assert unrest_where_jobs_fail(problem) == []
    assert unrest_where_jobs_wait_again(problem) == []


def gang_of(job: dict[str, Any]) -> tuple[str, str] | None:
    return (job["queue"], job["gang"]["id"]) if "gang" in job else None
