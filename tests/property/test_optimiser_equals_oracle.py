"""With the fairness optimiser, product and oracle decide every small problem alike, and nothing breaks."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings

from armada.cli.problems.answers import answers
from armada.cli.problems.comparison import differences
from armada.cli.problems.reading import read_problem
from armada.cli.problems.trial import rounds
from armada.scheduling.decisions import PreemptionKind, check_invariants
from tests.oracle.fleet import decide
from tests.oracle.optimiser_strategies import optimised_problems

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(optimised_problems())
def test_kernels_and_oracle_optimise_alike(problem: dict[str, Any]) -> None:
    ours, plain = answers(read_problem(json.dumps(problem).encode(), "drawn")), decide(problem)
    assert differences(ours, plain) == []
    assert differences(plain, ours) == []


@settings(max_examples=50, deadline=None, suppress_health_check=SLOW)
@given(optimised_problems())
def test_the_optimiser_breaks_no_invariant(problem: dict[str, Any]) -> None:
    for trial, pool, decisions in rounds(read_problem(json.dumps(problem).encode(), "drawn")):
        assert check_invariants(decisions) == ()
        settings_of = trial.policy.pool(pool)
        if settings_of is None or settings_of.optimiser is None:
            assert decisions.optimised is None
        winners = {lease.row for lease in decisions.each_lease()}
        for lost in decisions.each_preemption():
            if lost.kind is PreemptionKind.OPTIMISER:
                assert lost.for_row >= 0
                assert lost.for_row in winners
