"""Hypothesis draws scheduling problems with every feature that a round knows, in the documented format."""

from typing import Any

from hypothesis import strategies as st

from tests.oracle.drawing.features import SELDOM, Features, features, often, one_of
from tests.oracle.drawing.fleet import RACKS, fleet
from tests.oracle.drawing.rules import CLASSES, POOLS, rules
from tests.oracle.drawing.work import QUEUES, queue, work

__all__ = ["CLASSES", "QUEUES", "RACKS", "SELDOM", "problems"]


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Crowded pools of up to 30 nodes and 60 jobs over up to 5 rounds."""
    on = draw(features())
    pools = POOLS[: draw(st.integers(2, 3))] if "pools" in on else POOLS[:1]
    # Where amounts are indexed coarsely, nodes of different kinds are merged by what is left (spec section 9.4).
    cpu_index = one_of(draw, "50m", "50m", "100m", "250m", "1")
    executors = fleet(draw, on, pools)
    nodes = [node for executor in executors for node in executor["nodes"]]
    rounds = draw(st.integers(1, 5))
    queues = QUEUES[: one_of(draw, 2, 1, 3, 5)]
    return {
        "id": "drawn",
        "config": rules(draw, on, pools, cpu_index),
        "executors": executors,
        "queues": [queue(draw, on, name) for name in queues],
        "jobs": work(draw, on, rounds, queues, nodes),
        "rounds": rounds,
        "secondsPerRound": one_of(draw, 1.0, 0.5, 4.0) if "clock" in on else 0.0,
        "overrides": _overrides(draw, on),
    }


def _overrides(draw: st.DrawFn, on: Features) -> list[dict[str, Any]]:
    return [
        {"pool": pool, "queue": name, "priority": one_of(draw, 0.25, 0.0, 8.0)}
        for pool in POOLS
        for name in QUEUES[:2]
        if often(draw, "overrides" in on, 3)
    ]
