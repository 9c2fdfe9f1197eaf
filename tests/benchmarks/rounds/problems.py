"""Large scheduling problems whose rounds are timed, in the format of docs/decide.md.

They are the same problems that the recorded answers name (`../shared/vectors/README.md`): same seeds, same order of
draws. A test compares the two where the recordings are present.
"""

import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

UNLIMITED: Final = 1_000_000_000
ROUNDS: Final = 3
CPUS: Final = (32, 64, 48, 96, 16)
SMALL_CPUS_M: Final = (250, 500, 1000, 1500, 2000, 3000, 4000, 6000, 8000)
GANG_SIZES: Final = (8, 16, 64, 128, 512)
LARGE_GANG: Final = 64
"""From this size on every member asks for a whole node's accelerators."""

Problem = dict[str, Any]


def settings(protected: float) -> Problem:
    """The scheduling configuration of all problems: no limit binds, everything is indexed that jobs ask for."""
    gpu_taint = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    away = [{"priority": 50, "wellKnownNodeTypeName": "gpu"}]
    resolutions = (("memory", "1"), ("cpu", "1m"), ("ephemeral-storage", "1"), ("gpu", "1"))
    return {
        "pools": [{"name": "default"}],
        "supportedResourceTypes": [{"name": name, "resolution": unit} for name, unit in resolutions],
        "indexedResources": [
            {"name": name, "resolution": step} for name, step in (("gpu", "1"), ("cpu", "100m"), ("memory", "1Gi"))
        ],
        "indexedTaints": ["gpu"],
        "indexedNodeLabels": ["rack", "zone"],
        "wellKnownNodeTypes": [{"name": "gpu", "taints": [gpu_taint]}],
        "dominantResourceFairnessResourcesToConsider": ["cpu", "memory", "gpu"],
        "priorityClasses": {
            "low100": {"priority": 100, "preemptible": True},
            "mid200": {"priority": 200, "preemptible": True},
            "high300": {"priority": 300, "preemptible": True},
            "solid200": {"priority": 200, "preemptible": False},
            "top400": {"priority": 400, "preemptible": False},
            "flex200": {"priority": 200, "preemptible": True, "awayNodeTypes": away},
        },
        "defaultPriorityClassName": "mid200",
        "protectedFractionOfFairShare": protected,
        "maximumSchedulingRate": UNLIMITED,
        "maximumSchedulingBurst": UNLIMITED,
        "maximumPerQueueSchedulingRate": UNLIMITED,
        "maximumPerQueueSchedulingBurst": UNLIMITED,
        "maxQueueLookback": 100_000,
        "maxUnacknowledgedJobsPerExecutor": 100_000,
        "executorTimeout": "10m",
        "nodeIdLabel": "kubernetes.io/hostname",
        "maxSchedulingDuration": "60s",
    }


def machine(name: str, total: dict[str, str], **labels: str) -> Problem:
    """One node of the pool."""
    labelled = {"kubernetes.io/hostname": name, **labels}
    return {"id": name, "name": name, "pool": "default", "labels": labelled, "total": total}


def even_fleet(size: int) -> list[Problem]:
    """Nodes of 32 cpu."""
    return [machine(f"n{number:05d}", {"cpu": "32", "memory": "256Gi"}) for number in range(size)]


def mixed_fleet(size: int) -> list[Problem]:
    """Nodes of five sizes; a hundred to a rack, a zone for every size."""
    return [
        machine(
            f"n{number:05d}",
            {"cpu": str(CPUS[number % 5]), "memory": f"{CPUS[number % 5] * 8}Gi"},
            rack=f"r{number // 100}",
            zone=f"z{number % 5}",
        )
        for number in range(size)
    ]


class Submissions:
    """Jobs in submit order; each queue numbers its own."""

    def __init__(self) -> None:
        self.jobs: list[Problem] = []
        self._numbers: dict[str, Iterator[int]] = {}

    def add(self, queue: str, request: dict[str, str], times: int = 1, **more: Any) -> None:
        """Submit equal jobs to a queue."""
        for _ in range(times):
            number = next(self._numbers.setdefault(queue, count()))
            job = {"id": f"{queue}-{number:03d}", "queue": queue, "priorityClass": "mid200"}
            self.jobs.append({**job, "submitted": len(self.jobs), "request": dict(request), **more})


def problem(
    name: str, nodes: list[Problem], queues: list[str], made: Submissions, *, protected: float = 1.0
) -> Problem:
    """The whole problem."""
    return {
        "id": name,
        "config": settings(protected),
        "executors": [{"id": "e1", "nodes": nodes}],
        "queues": [{"name": queue, "priorityFactor": 1.0} for queue in queues],
        "jobs": made.jobs,
        "rounds": ROUNDS,
        "bench": True,
    }


UNIT: Final = {"cpu": "1", "memory": "1Gi"}


def fill_shapes(chance: random.Random) -> list[dict[str, str]]:
    """Draw 200 requests."""
    sizes: set[tuple[int, int]] = set()
    while len(sizes) < 200:
        cpu_m = chance.choice([*SMALL_CPUS_M, 250 * chance.randint(1, 64)])
        sizes.add((cpu_m, chance.randint(1, 64)))
    return [{"cpu": f"{cpu_m}m", "memory": f"{memory}Gi"} for cpu_m, memory in sorted(sizes)]


def fill(scale: float) -> Problem:
    """An empty fleet and twice the work it can hold: 200 shapes from 100 queues."""
    chance = random.Random(1)
    shapes = fill_shapes(chance)
    queues = [f"q{number:03d}" for number in range(100)]
    made = Submissions()
    for number in range(int(1_000_000 * scale)):
        made.add(queues[number % 100], shapes[chance.randrange(200)])
    return problem("fill", mixed_fleet(int(20_000 * scale)), queues, made)


def identical(scale: float) -> Problem:
    """One queue, equal jobs, twice as many as fit."""
    made = Submissions()
    made.add("A", UNIT, int(64_000 * scale))
    nodes = [machine(f"n{number:04d}", {"cpu": "32", "memory": "256Gi"}) for number in range(int(1000 * scale))]
    return problem("identical", nodes, ["A"], made)


def steady(scale: float, *, protected: float = 0.0, queue_count: int = 10, name: str = "steady") -> Problem:
    """A full fleet shared evenly; ten times as much waits; nothing should change."""
    size = int(1000 * scale)
    queues = [f"q{number:04d}" for number in range(queue_count)]
    made = Submissions()
    for number in range(size * 32):
        made.add(queues[number % queue_count], UNIT, run={"node": f"n{number // 32:05d}", "pool": "default"})
    for number in range(size * 320):
        made.add(queues[number % queue_count], UNIT)
    return problem(name, even_fleet(size), queues, made, protected=protected)


def distinct_requests(count: int) -> Iterator[dict[str, str]]:
    """Draw requests of which hardly two are equal."""
    chance = random.Random(2)
    for number in range(count):
        request = {"cpu": f"{250 + number % 8000}m", "memory": f"{1 + number // 8000}Gi"}
        yield {**request, "ephemeral-storage": str(1 + chance.randint(0, 10**6))}


def distinct(scale: float) -> Problem:
    """Jobs of which hardly two are equal; all of them fit."""
    nodes = mixed_fleet(int(10_000 * scale))
    made = Submissions()
    for number, request in enumerate(distinct_requests(int(50_000 * scale))):
        made.add(f"q{number % 10:02d}", request)
    for one in nodes:
        one["total"]["ephemeral-storage"] = "100Gi"
    return problem("distinct", nodes, [f"q{number:02d}" for number in range(10)], made)


def preempting(scale: float) -> Problem:
    """One queue holds everything; nine others arrive with work for all of it."""
    size = int(1000 * scale)
    made = Submissions()
    for number in range(size * 32):
        made.add("q0", UNIT, run={"node": f"n{number // 32:05d}", "pool": "default"})
    for number in range(size * 32):
        made.add(f"q{1 + number % 9}", UNIT)
    return problem("preempting", even_fleet(size), [f"q{number}" for number in range(10)], made)


def accelerators(size: int) -> list[Problem]:
    """Nodes of eight accelerators, a hundred to a rack."""
    total = {"cpu": "96", "memory": "768Gi", "gpu": "8"}
    return [machine(f"n{number:05d}", dict(total), rack=f"r{number // 100}", zone="z") for number in range(size)]


def gangs(scale: float) -> Problem:
    """Gangs of 8 to 512 on a large empty fleet of accelerators."""
    chance = random.Random(3)
    nodes = accelerators(int(10_000 * scale))
    made = Submissions()
    for number in range(int(200 * scale) or 1):
        size = chance.choice(GANG_SIZES)
        request = {"cpu": "12", "memory": "90Gi", "gpu": "1" if size < LARGE_GANG else "8"}
        made.add(f"q{number % 10}", request, size, gang={"id": f"g{number}", "cardinality": size})
    return problem("gangs", nodes, [f"q{number}" for number in range(10)], made)


PROBLEMS: Final[dict[str, Callable[[float], Problem]]] = {
    "fill": fill,
    "identical": identical,
    "steady": steady,
    "steady-protected": lambda scale: steady(scale, protected=1.0, name="steady-protected"),
    "steady-1000-queues": lambda scale: steady(scale, queue_count=1000, name="steady-1000-queues"),
    "distinct": distinct,
    "preempting": preempting,
    "gangs": gangs,
}
