"""How rounds grow: each problem at 1x, 4x and 16x of its jobs, of its nodes, and of both, and the fitted exponent.

An exponent of 1 means that four times as much takes four times as long.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

from armada.scheduling.readiness.warming import warm_up
from tests.benchmarks.figures import Figure
from tests.benchmarks.rounds import corners, pools
from tests.benchmarks.rounds.columns import Pool, ledger_of
from tests.benchmarks.rounds.pools import Counts
from tests.benchmarks.rounds.timing import time_round

FACTORS: Final = (1, 4, 16)
TIMES: Final = 3
STEEPEST: Final = 1.15
"""The exponent that is still called proportional: caches end somewhere between the sizes."""


class Growing(NamedTuple):
    """A problem by numbers of nodes and jobs, and its smallest size. `grows` says what may grow."""

    name: str
    make: Callable[[Counts], Pool]
    nodes: int
    jobs: int
    grows: str = "jobs nodes both"


GROWING: Final = (
    Growing("identical", pools.identical, 250, 16_000),
    Growing("fill", pools.fill, 1_250, 62_500),
    Growing("distinct", pools.distinct, 625, 3_125),
    Growing("steady", pools.steady, 250, 80_000),
    Growing("steady-protected", lambda sizes: pools.steady(sizes, protected=1.0), 250, 80_000),
    Growing("steady-1000-queues", lambda sizes: pools.steady(sizes, queue_count=1_000), 250, 80_000),
    Growing("preempting", pools.preempting, 250, 8_000),
    Growing("gangs", pools.gangs, 1_250, 25),
    Growing("nothing to do", lambda sizes: corners.nothing_to_do(*sizes), 250, 62_500),
    Growing("gang of 512 with a label", lambda sizes: corners.uniform_gang(sizes[0]), 1_000, 512, "nodes"),
    Growing("one job preempts", lambda sizes: corners.one_preempts(sizes[0]), 2_500, 1, "nodes"),
)


def measure() -> Iterable[Figure]:
    """One figure for each problem and direction."""
    warm_up()
    for growing in GROWING:
        smallest = milliseconds(growing, 1, 1)
        for direction in growing.grows.split():
            nodes, jobs = (FACTORS if direction != other else (1, 1, 1) for other in ("jobs", "nodes"))
            larger = [milliseconds(growing, *sizes) for sizes in zip(nodes[1:], jobs[1:], strict=True)]
            series = [smallest, *larger]
            yield Figure(
                name=f"growth: {growing.name}, {direction}",
                value=exponent(series),
                unit="exponent",
                target=STEEPEST,
                note=f"{growing.nodes:,} nodes, {growing.jobs:,} jobs: {' / '.join(f'{one:.3g}' for one in series)} ms",
            )


def milliseconds(growing: Growing, nodes: int, jobs: int) -> float:
    """A whole round at a size."""
    pool = growing.make((growing.nodes * nodes, growing.jobs * jobs))
    return time_round(ledger_of(pool), times=TIMES).whole_s * 1000


def exponent(milliseconds_by_factor: list[float]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(FACTORS), np.log(milliseconds_by_factor), 1)[0])
