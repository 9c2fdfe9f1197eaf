"""Hypothesis draws small problems of pools with a market: few distinct bids, so that many of them are equal."""

from typing import Any

from hypothesis import strategies as st

from tests.oracle.strategies import problems

BIDS = (0.0, 1.0, 1.0, 2.0, 3.5)
UNITS: tuple[dict[str, str], ...] = ({}, {"cpu": "1"}, {"cpu": "2", "memory": "4Gi"}, {"gpu": "1", "memory": "1Gi"})


@st.composite
def market_problems(draw: st.DrawFn) -> dict[str, Any]:
    """Problems as `strategies.problems` draws them; the first pool has a market, the second one sometimes too."""
    problem = draw(problems())
    with_market = [pool for number, pool in enumerate(problem["config"]["pools"]) if number == 0 or draw(st.booleans())]
    for pool in with_market:
        pool.pop("fairsharePreemptionRateLimit", None)
        pool["experimentalMarketScheduling"] = {
            "enabled": True,
            "spotPriceCutoff": draw(st.sampled_from((0.0, 0.2, 0.5, 0.9))),
            "gangIndicativePricingTimeout": "1s",
        }
    for job in problem["jobs"]:
        job["priceBand"] = draw(st.integers(0, 2))
    problem["secondsPerRound"] = draw(st.sampled_from((0, 0, 10)))
    problem["bids"] = [
        {
            "queue": queue["name"],
            "pool": pool["name"],
            "band": band,
            "queued": draw(st.sampled_from(BIDS)),
            "running": draw(st.sampled_from(BIDS)),
        }
        for queue in problem["queues"]
        for pool in with_market
        for band in range(3)
        if draw(st.integers(0, 9))
    ]
    problem["resourceUnits"] = {pool["name"]: draw(st.sampled_from(UNITS)) for pool in with_market}
    return problem
