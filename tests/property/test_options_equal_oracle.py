"""Options that the reference does not have: with each switched on, product and plain oracle still decide alike."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armada.cli.problems.answers import answers
from armada.cli.problems.comparison import differences
from tests.oracle.fleet import decide
from tests.oracle.strategies import problems
from tests.property.agreement import read


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(problems(), st.sampled_from([0.0, 0.1, 0.5, 2.0]))
def test_evicting_only_the_excess(problem: dict[str, Any], margin: float) -> None:
    problem = {**problem, "config": {**problem["config"], "excessEvictionMargin": margin}}
    ours, plain = answers(read(problem)), decide(problem)
    assert differences(ours, plain) == []
    assert differences(plain, ours) == []


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(problems())
def test_holding_room_for_the_first_job_of_a_queue(problem: dict[str, Any]) -> None:
    problem = {**problem, "config": {**problem["config"], "holdRoomAfter": "0s"}}
    ours, plain = answers(read(problem)), decide(problem)
    assert differences(ours, plain) == []
    assert differences(plain, ours) == []


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(problems())
def test_ties_between_queues_that_rotate(problem: dict[str, Any]) -> None:
    problem = {**problem, "config": {**problem["config"], "rotateTiesBetweenQueues": True}}
    ours, plain = answers(read(problem)), decide(problem)
    assert differences(ours, plain) == []
    assert differences(plain, ours) == []
