"""The problems of `problems` for `columns`: the same fleets, draws and jobs, in a second instead of minutes."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from armada.cli.problems import facts
from armada.cli.problems.reading import ReadProblem, read_problem
from armada.model.fleet import Node
from armada.model.jobs import GangSpec, JobShape
from armada.model.policy import SchedulingPolicy
from tests.benchmarks.rounds import problems
from tests.benchmarks.rounds.columns import Pool, joined, work_of

CLASS: Final = "mid200"
SLOTS: Final = 32
"""Jobs of one cpu that an even node holds."""

Counts = tuple[int, int]
"""Numbers of nodes and of jobs (gangs, where the problem is about them)."""


@cache
def policy(protected: float = 1.0) -> SchedulingPolicy:
    """The policy of all problems."""
    return _read([], protected).policy


def _read(nodes: list[Any], protected: float = 1.0) -> ReadProblem:
    values = problems.problem("pool", nodes, [], problems.Submissions(), protected=protected)
    return read_problem(json.dumps(values).encode(), "pool")


def fleet(nodes: list[Any]) -> tuple[Node, ...]:
    """Nodes as their executor reports them."""
    spec = _read(nodes).problem.executors[0]
    return tuple(facts.node(one, spec.id) for one in spec.nodes)


def shape(**requests: str) -> JobShape:
    """A shape of the problems' class; names of resources with `_` for `-`."""
    named = {name.replace("_", "-"): amount for name, amount in requests.items()}
    return JobShape(requests=tuple(sorted(named.items())), priority_class=CLASS)


UNIT: Final = shape(**problems.UNIT)


def fill(sizes: Counts) -> Pool:
    """An empty mixed fleet, 200 shapes from 100 queues."""
    chance = random.Random(1)
    shapes = tuple(shape(**one) for one in problems.fill_shapes(chance))
    nodes, jobs = sizes
    drawn = np.fromiter((chance.randrange(200) for _ in range(jobs)), np.int32, jobs)
    return Pool(
        name="fill",
        policy=policy(),
        nodes=fleet(problems.mixed_fleet(nodes)),
        queues=tuple(f"q{number:03d}" for number in range(100)),
        shapes=shapes,
        work=work_of(np.arange(jobs) % 100, drawn),
    )


def identical(sizes: Counts) -> Pool:
    """One queue, equal jobs."""
    nodes, jobs = sizes
    machines = [problems.machine(f"n{number:04d}", {"cpu": "32", "memory": "256Gi"}) for number in range(nodes)]
    zero = np.zeros(jobs, np.int32)
    return Pool(
        name="identical",
        policy=policy(),
        nodes=fleet(machines),
        queues=("A",),
        shapes=(UNIT,),
        work=work_of(zero, zero),
    )


def steady(sizes: Counts, *, protected: float = 0.0, queue_count: int = 10) -> Pool:
    """A full even fleet shared evenly, and queued jobs."""
    nodes, jobs = sizes
    running, queued = np.arange(nodes * SLOTS), np.arange(jobs)
    return Pool(
        name="steady",
        policy=policy(protected),
        nodes=fleet(problems.even_fleet(nodes)),
        queues=tuple(f"q{number:04d}" for number in range(queue_count)),
        shapes=(UNIT,),
        work=joined(
            work_of(running % queue_count, 0 * running, node=running // SLOTS),
            work_of(queued % queue_count, 0 * queued),
        ),
    )


def preempting(sizes: Counts) -> Pool:
    """One queue holds everything; nine others arrive."""
    nodes, jobs = sizes
    running, queued = np.arange(nodes * SLOTS), np.arange(jobs)
    return Pool(
        name="preempting",
        policy=policy(),
        nodes=fleet(problems.even_fleet(nodes)),
        queues=tuple(f"q{number}" for number in range(10)),
        shapes=(UNIT,),
        work=joined(work_of(0 * running, 0 * running, node=running // SLOTS), work_of(1 + queued % 9, 0 * queued)),
    )


def distinct(sizes: Counts) -> Pool:
    """Jobs of which hardly two are equal."""
    nodes, jobs = sizes
    machines = problems.mixed_fleet(nodes)
    for one in machines:
        one["total"]["ephemeral-storage"] = "100Gi"
    shapes = tuple(JobShape(tuple(sorted(one.items())), CLASS) for one in problems.distinct_requests(jobs))
    return Pool(
        name="distinct",
        policy=policy(),
        nodes=fleet(machines),
        queues=tuple(f"q{number:02d}" for number in range(10)),
        shapes=shapes,
        work=work_of(np.arange(jobs) % 10, np.arange(jobs)),
    )


def gangs(sizes: Counts) -> Pool:
    """Gangs of 8 to 512 on an empty fleet of accelerators."""
    nodes, count = sizes
    chance = random.Random(3)
    members = [chance.choice(problems.GANG_SIZES) for _ in range(count)]
    gang = np.repeat(np.arange(count), members)
    return Pool(
        name="gangs",
        policy=policy(),
        nodes=fleet(problems.accelerators(nodes)),
        queues=tuple(f"q{number}" for number in range(10)),
        shapes=(shape(cpu="12", memory="90Gi", gpu="1"), shape(cpu="12", memory="90Gi", gpu="8")),
        gangs=tuple(GangSpec(f"g{number}", size) for number, size in enumerate(members)),
        work=work_of(gang % 10, np.array(members)[gang] >= problems.LARGE_GANG, gang=gang),
    )


def at_scale(make: Callable[[Counts], Pool], nodes: int, jobs: int) -> Callable[[float], Pool]:
    """The problem by one number, 1 being the size that is named."""
    return lambda scale: make((int(nodes * scale), int(jobs * scale) or 1))


POOLS: Final[dict[str, Callable[[float], Pool]]] = {
    "fill": at_scale(fill, 20_000, 1_000_000),
    "identical": at_scale(identical, 1_000, 64_000),
    "steady": at_scale(steady, 1_000, 320_000),
    "steady-protected": at_scale(lambda sizes: steady(sizes, protected=1.0), 1_000, 320_000),
    "steady-1000-queues": at_scale(lambda sizes: steady(sizes, queue_count=1_000), 1_000, 320_000),
    "distinct": at_scale(distinct, 10_000, 50_000),
    "preempting": at_scale(preempting, 1_000, 32_000),
    "gangs": at_scale(gangs, 10_000, 200),
}
