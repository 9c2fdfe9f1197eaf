"""In pools with a market, too, product and plain oracle decide every small problem alike: jobs, prices and values."""

from typing import Any

from hypothesis import HealthCheck, given, settings

from armada.cli.problems.trial import rounds
from armada.scheduling.decisions import check_invariants
from tests.oracle.market_strategies import market_problems
from tests.property.agreement import disagreements, read


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(market_problems())
def test_kernels_and_oracle_clear_markets_alike(problem: dict[str, Any]) -> None:
    assert disagreements(problem) == []


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(market_problems())
def test_no_market_breaks_an_invariant(problem: dict[str, Any]) -> None:
    for _, _, decisions in rounds(read(problem)):
        assert check_invariants(decisions) == ()
        market = decisions.market
        if market is None:
            continue
        paid = [queue.price_override for queue in market.queues if queue.price_override is not None]
        billed = [queue.name for queue in market.queues if any(queue.billable)]
        assert len(paid) == bool(billed), "there is one who sets the price, and only where somebody pays"
        assert all(price <= market.spot_price for price in paid)
        for queue, figures in zip(market.queues, decisions.queues, strict=True):
            assert all(a <= b for a, b in zip(queue.billable, figures.allocated, strict=True))
