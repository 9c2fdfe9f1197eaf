"""Drawn work: up to 60 jobs in groups of equal ones, queued, running, ended, or in gangs."""

from typing import Any, Final

from hypothesis import strategies as st

from armada.model.resources import parse_quantity
from tests.oracle.drawing.features import Features, often, one_of
from tests.oracle.drawing.rules import CLASS_NAMES, POOLS

JOBS: Final = 60
QUEUES: Final = ("A", "B", "C", "D", "E")
EARLY: Final = ("mid200", "low100", "mid200", "low100", "flex200", "roam200", "solid200")
"""Early jobs are less important, so that later ones displace them."""

EXPRESSIONS: Final = (
    {"key": "rack", "operator": "In", "values": ["r0", "r2"]},
    {"key": "rack", "operator": "NotIn", "values": ["r1"]},
    {"key": "zone", "operator": "Exists"},
    {"key": "zone", "operator": "DoesNotExist"},
    {"key": "generation", "operator": "Gt", "values": ["3"]},
    {"key": "generation", "operator": "Lt", "values": ["7"]},
)
TOLERATIONS: Final = (
    {"key": "gpu", "operator": "Exists"},
    {"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
    {"key": "team", "value": "x"},
    {"key": "soft", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"operator": "Exists"},
    {"key": "fast", "operator": "Exists", "effect": "NoSchedule"},
)


def _kind(draw: st.DrawFn, on: Features, *, early: bool) -> dict[str, Any]:
    """What jobs of one group have in common."""
    kind: dict[str, Any] = {
        "priorityClass": one_of(draw, *(EARLY if early else CLASS_NAMES)),
        "request": {
            "cpu": one_of(draw, "1", "250m", "550m", "1", "2", "3"),
            "memory": one_of(draw, "1Gi", "2Gi", "6Gi"),
        },
        "priority": one_of(draw, 0, 0, 1, 3),
    }
    request = kind["request"]
    if often(draw, "labels" in on, 4):
        kind["nodeSelector"] = one_of(draw, {"rack": "r0"}, {"zone": "z1"}, {"generation": "7"})
    if often(draw, "affinity" in on, 4):
        terms = draw(st.lists(st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=2), min_size=1, max_size=2))
        kind["nodeAffinity"] = {"nodeSelectorTerms": [{"matchExpressions": one} for one in terms]}
    if often(draw, bool(on & {"taints", "away"}), 4):
        kind["tolerations"] = [one_of(draw, *TOLERATIONS)]
    if often(draw, bool(on & {"away", "unscheduled resources"}), 4):
        request["gpu"] = one_of(draw, "1", "2")
    if often(draw, "floating" in on, 3):
        request["lic"] = one_of(draw, "1", "2")
    if often(draw, "odd requests" in on, 4):
        request.update(one_of(draw, {"gpu": "0"}, {"cpu": "0"}, {"cpu": "1m"}, {"memory": "100G"}, {"cpu": "20"}))
    return kind


def _gang(draw: st.DrawFn, on: Features, number: int, size: int) -> dict[str, Any]:
    gang: dict[str, Any] = {"id": f"g{number}", "cardinality": size + (1 if often(draw, on=True, parts=20) else 0)}
    if often(draw, "uniformity" in on):
        gang["uniformity"] = one_of(draw, "rack", "zone", "kubernetes.io/hostname", "nowhere")
    return gang


class Place:
    """Where and how long jobs run: nodes, with what jobs that run already leave of their cpu and memory; rounds."""

    def __init__(self, nodes: list[dict[str, Any]], rounds: int) -> None:
        self.nodes: list[dict[str, Any]] = nodes
        self.rounds = rounds
        self.left = [[parse_quantity(node["total"][name]) for name in ("cpu", "memory")] for node in nodes]

    def take(self, request: dict[str, str], first: int, *, overfills: bool) -> dict[str, Any] | None:
        """Give the first node with room for the request, from number `first` on."""
        wanted = [parse_quantity(request.get(name, "0")) for name in ("cpu", "memory")]
        for number in [*range(first, len(self.nodes)), *range(first)]:
            left = self.left[number]
            if overfills or all(a <= b for a, b in zip(wanted, left, strict=True)):
                self.left[number] = [b - a for a, b in zip(wanted, left, strict=True)]
                found: dict[str, Any] = self.nodes[number]
                return found
        return None


def _life(draw: st.DrawFn, on: Features, way: str, place: Place, shared: dict[str, Any]) -> dict[str, Any]:
    """How one job stands when the problem begins, and whether it leaves. Without room to run it waits."""
    rounds_left = 0 if "arrives" in shared else place.rounds - 1
    if way == "finished":
        return {"finished": {"pool": one_of(draw, *POOLS[:2]), "runningSecondsAgo": draw(st.integers(0, 90))}}
    life: dict[str, Any] = {}
    if rounds_left > 0 and often(draw, "departures" in on, 5):
        life["leaves"] = draw(st.integers(1, rounds_left))
    if way == "running":
        first = draw(st.integers(0, len(place.nodes) - 1))
        node = place.take(shared["request"], first, overfills=often(draw, "overfull" in on, 4))
        if node is None:
            return life
        run = {"node": node["id"], "pool": node["pool"], "leasedSecondsAgo": draw(st.integers(0, 5))}
        if often(draw, "sick fleet" in on, 6):
            run.update(one_of(draw, {"unacknowledged": True}, {"node": "gone"}, {"pool": one_of(draw, *POOLS)}))
        life["run"] = run
    return life


def _group(draw: st.DrawFn, on: Features, number: int, queues: tuple[str, ...], place: Place) -> list[dict[str, Any]]:
    """Some equal jobs of one queue, or one gang, whose members may want different amounts."""
    arrives = draw(st.integers(0, place.rounds - 1)) if often(draw, "arrivals" in on) else 0
    shared = {"queue": one_of(draw, *queues), **_kind(draw, on, early=arrives == 0)}
    size = draw(st.integers(1, 10))
    if size > 1 and often(draw, "gangs" in on, 3):
        shared["gang"] = _gang(draw, on, number, size)
    if arrives:
        shared["arrives"] = arrives
    if often(draw, "pools" in on):
        shared["pools"] = one_of(draw, ["default"], ["second"], ["default", "second"], ["third", "default"])
    ways = ["queued"]
    if arrives == 0 and "running" in on:
        ways += ["queued", "running", "running"]
    if arrives == 0 and "penalties" in on and "gang" not in shared:
        ways.append("finished")
    way = one_of(draw, *ways)
    jobs = [{**shared, **_life(draw, on, way, place, shared)} for _ in range(size)]
    if "gang" in shared and often(draw, "odd requests" in on):
        jobs[0]["request"] = {**jobs[0]["request"], "cpu": one_of(draw, "1500m", "3", "250m")}
    if way == "running":
        _bind_away(draw, on, jobs)
    return jobs


def _bind_away(draw: st.DrawFn, on: Features, jobs: list[dict[str, Any]]) -> None:
    """Let some running jobs of classes that may go away be bound at such a priority."""
    for job in jobs:
        if "run" in job and job["priorityClass"] in {"flex200", "roam200"} and often(draw, "away" in on, 3):
            job["run"]["scheduledAtPriority"] = 50


def work(
    draw: st.DrawFn, on: Features, rounds: int, queues: tuple[str, ...], nodes: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Draw all jobs of a problem, in the order in which they are submitted."""
    jobs: list[dict[str, Any]] = []
    place = Place(nodes, rounds)
    for number in range(draw(st.integers(2, 16))):
        jobs += _group(draw, on, number, queues, place)
        if len(jobs) >= JOBS:
            break
    mixed = draw(st.permutations(jobs)) if draw(st.integers(0, 3)) == 3 else jobs
    submitted = [{**job, "id": f"{job['queue']}-{order:03d}", "submitted": order} for order, job in enumerate(mixed)]
    return submitted[:JOBS]


def queue(draw: st.DrawFn, on: Features, name: str) -> dict[str, Any]:
    """Draw a queue's settings."""
    settings: dict[str, Any] = {"name": name, "priorityFactor": one_of(draw, 1.0, 1.0, 0.5, 3.0)}
    if often(draw, "queue cordons" in on, 4):
        settings["cordoned"] = True
    if often(draw, "queue limits" in on):
        own: dict[str, Any] = {"maximumResourceFraction": {"cpu": one_of(draw, 1.0, 0.4, 0.2)}}
        if draw(st.booleans()):
            own["maximumResourceFractionByPool"] = {one_of(draw, *POOLS): {"memory": one_of(draw, 0.5, 0.1)}}
        settings["resourceLimitsByPriorityClassName"] = {one_of(draw, *CLASS_NAMES): own}
    return settings
