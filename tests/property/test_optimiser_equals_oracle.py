"""With the fairness optimiser, product and oracle decide every small problem alike, and nothing breaks."""

from typing import Any

from hypothesis import HealthCheck, given, settings

from armada.cli.problems.trial import rounds
from armada.scheduling.decisions import PreemptionKind, check_invariants
from tests.oracle.optimiser_strategies import optimised_problems
from tests.property.agreement import disagreements, read

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(optimised_problems())
def test_kernels_and_oracle_optimise_alike(problem: dict[str, Any]) -> None:
    assert disagreements(problem) == []


@settings(max_examples=50, deadline=None, suppress_health_check=SLOW)
@given(optimised_problems())
def test_the_optimiser_breaks_no_invariant(problem: dict[str, Any]) -> None:
    for trial, pool, decisions in rounds(read(problem)):
        assert check_invariants(decisions) == ()
        settings_of = trial.policy.pool(pool)
        if settings_of is None or settings_of.optimiser is None:
            assert decisions.optimised is None
        winners = {lease.row for lease in decisions.each_lease()}
        for lost in decisions.each_preemption():
            if lost.kind is PreemptionKind.OPTIMISER:
                assert lost.for_row >= 0
                assert lost.for_row in winners
