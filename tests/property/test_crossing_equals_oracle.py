"""With pools whose jobs may use each other's nodes, product and oracle decide alike, and nothing breaks."""

from typing import Any

from hypothesis import HealthCheck, given, settings

from armada.cli.problems.answers import answers
from armada.cli.problems.comparison import differences
from armada.cli.problems.trial import rounds
from armada.scheduling.decisions import PreemptionKind, check_invariants
from tests.oracle.crossing_strategies import crossing_problems
from tests.oracle.fleet import decide
from tests.property.test_round_equals_oracle import crowded, read

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(crossing_problems())
def test_kernels_and_oracle_decide_alike(problem: dict[str, Any]) -> None:
    ours, plain = answers(read(problem)), decide(problem)
    assert differences(ours, plain) == []
    assert differences(plain, ours) == []


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(crossing_problems())
def test_no_node_is_overfull_by_a_decision_and_gangs_go_whole(problem: dict[str, Any]) -> None:
    kinds = read(problem).policy.kinds()
    jobs = {job["id"]: job for job in problem["jobs"]}
    places = {job: one["run"]["node"] for job, one in jobs.items() if "run" in one}
    leaving = {job: one["leaves"] for job, one in jobs.items() if "leaves" in one}
    number = -1
    for trial, pool, decisions in rounds(read(problem)):
        if trial.number > number:
            number = trial.number
            places = {job: node for job, node in places.items() if leaving.get(job) != number}
        before = crowded(problem, places, kinds)
        assert check_invariants(decisions) == ()
        lost = {trial.job_id(one.row): one for one in decisions.each_preemption()}
        for job in lost:
            del places[job]
        for job in lost:
            assert not {other for other in places if gang_of(jobs[other]) == gang_of(jobs[job]) is not None}
        places.update({trial.job_id(lease.row): lease.node_id for lease in decisions.each_lease()})
        assert set(crowded(problem, places, kinds)) <= set(before), f"round {number} of {pool} made a node over-full"
        assert all(one.for_row >= 0 for one in lost.values() if one.kind is not PreemptionKind.DISPLACED)


def gang_of(job: dict[str, Any]) -> tuple[str, str] | None:
    return (job["queue"], job["gang"]["id"]) if "gang" in job else None
