"""Small pools made by hand: nodes, queues and jobs in a line each, and the decisions by name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armada.model.fleet import AwayNodeType, AwayTypeRef, Node, PriorityClass, Queue, Taint, WellKnownNodeType
from armada.model.jobs import JobShape
from armada.model.policy import FairnessResource, PoolPolicy, ResourceType, SchedulingPolicy
from armada.scheduling.decisions import Decisions, check_invariants
from armada.scheduling.intake import build_snapshot
from armada.scheduling.placement import USUAL, Tuning
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import HOME, PoolSnapshot
from armada.scheduling.tables import FleetTable, GangRows, QueuedJobs, QueueLine, RunningJobs, ShapeTable

CLASSES = (
    PriorityClass(name="low", priority=100, preemptible=True),
    PriorityClass(name="mid", priority=200, preemptible=True),
    PriorityClass(name="high", priority=300, preemptible=True),
    PriorityClass(name="solid", priority=200),
    PriorityClass(
        name="roam",
        priority=200,
        preemptible=True,
        away_node_types=(AwayNodeType(priority=50, node_types=(AwayTypeRef("gpu"),)),),
    ),
)
GPU_TAINT = Taint("gpu", "true", "NoSchedule")
PRIORITY = {kind.name: kind.priority for kind in CLASSES}


def policy(*, pool: dict[str, Any] | None = None, **settings: Any) -> SchedulingPolicy:
    """A policy with five classes in which everything preemptible is evicted, unless settings say otherwise."""
    values: dict[str, Any] = {
        "priority_classes": CLASSES,
        "default_priority_class": "mid",
        "well_known_node_types": (WellKnownNodeType("gpu", (GPU_TAINT,)),),
        "resource_types": (ResourceType("memory", "1"), ResourceType("cpu", "1m"), ResourceType("gpu", "1")),
        "indexed_resources": (ResourceType("gpu", "1"), ResourceType("cpu", "100m"), ResourceType("memory", "1Gi")),
        "fairness_resources": tuple(FairnessResource(name) for name in ("cpu", "memory", "gpu")),
        "protected_fraction": 0.0,
        "pools": (PoolPolicy(name="p", **(pool or {})),),
    }
    return SchedulingPolicy(**(values | settings))


def node(name: str, cpu: float = 10, memory: str = "100Gi", gpu: int = 0, **values: Any) -> Node:
    """A node of pool p with one label, `host`, besides those given."""
    total = {"cpu": str(cpu), "memory": memory} | ({"gpu": str(gpu)} if gpu else {})
    labels = {"host": name, **values.pop("labels", {})}
    return Node(node_id=name, name=name, executor_id="e", pool="p", total=total, labels=labels, **values)


@dataclass
class Job:
    """A job by name; `node` says where it runs already."""

    name: str
    queue: str
    shape: JobShape
    node: str | None = None
    gang: str | None = None
    size: int = 1
    label: str = ""
    priority: int = 0


@dataclass
class Setting:
    """A pool. Jobs are submitted in the order in which they are added."""

    policy: SchedulingPolicy = field(default_factory=policy)
    nodes: list[Node] = field(default_factory=list)
    factors: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)

    def add(
        self,
        queue: str,
        count: int = 1,
        *,
        cls: str = "mid",
        cpu: float | str = 1,
        memory: str = "1Gi",
        more: dict[str, str] | None = None,
        shape: dict[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """Add jobs of a queue, named by it and a number."""
        requests = {"cpu": str(cpu), "memory": memory} | (more or {})
        made = JobShape(requests=tuple(sorted(requests.items())), priority_class=cls, **(shape or {}))
        for _ in range(count):
            number = sum(job.queue == queue for job in self.jobs)
            self.jobs.append(Job(f"{queue}{number}", queue, made, **values))

    def snapshot(self) -> PoolSnapshot:
        """The pool as a round sees it."""
        names = list(dict.fromkeys(job.queue for job in self.jobs))
        shapes = ShapeTable(self.policy)
        known: dict[JobShape, int] = {}
        for job in self.jobs:
            if known.setdefault(job.shape, len(known)) == len(shapes):
                shapes.extend([job.shape])
        rows = {id(job): row for row, job in enumerate(self.jobs)}
        gangs = list(dict.fromkeys((job.queue, job.gang) for job in self.jobs if job.gang))
        gang_job = {(job.queue, job.gang): job for job in self.jobs if job.gang}
        labels = tuple(dict.fromkeys(job.label for job in self.jobs if job.label))

        def column(jobs: list[Job], what: str) -> np.ndarray[Any, np.dtype[np.int32]]:
            def value(job: Job) -> int:
                if what == "gang":
                    return gangs.index((job.queue, job.gang)) if job.gang else -1
                if what == "shape":
                    return known[job.shape]
                return names.index(job.queue) if what == "queue" else rows[id(job)]

            return np.array([value(job) for job in jobs], np.int32)

        def serving(job: Job) -> tuple[int, int, int]:
            return (-PRIORITY[job.shape.priority_class], job.priority, rows[id(job)])

        waiting = [sorted((j for j in self.jobs if j.queue == q and not j.node), key=serving) for q in names]
        line = [job for jobs in waiting for job in jobs]
        held = [job for job in self.jobs if job.node]
        places = {one.node_id: place for place, one in enumerate(self.nodes)}
        return build_snapshot(
            self.policy,
            "p",
            fleet=FleetTable(self.policy, "p", self.nodes),
            shapes=shapes,
            queues=[
                QueueLine(queue=Queue(name=q, priority_factor=self.factors.get(q, 1.0)), **self.lines.get(q, {}))
                for q in names
            ],
            queued=QueuedJobs(
                offsets=np.cumsum([0, *map(len, waiting)], dtype=np.int64),
                row=column(line, "row"),
                shape=column(line, "shape"),
                gang=column(line, "gang"),
            ),
            running=RunningJobs(
                row=column(held, "row"),
                shape=column(held, "shape"),
                queue=column(held, "queue"),
                gang=column(held, "gang"),
                node=np.array([places.get(job.node or "", -1) for job in held], np.int32),
                priority=np.array([PRIORITY[job.shape.priority_class] for job in held], np.int64),
                job_priority=np.array([job.priority for job in held], np.int64),
                leased_ms=np.zeros(len(held), np.int64),
                submitted=column(held, "row").astype(np.int64),
                kind=np.full(len(held), HOME, np.uint8),
            ),
            gangs=GangRows(
                cardinality=np.array([gang_job[gang].size for gang in gangs], np.int32),
                label=np.array(
                    [labels.index(label) if (label := gang_job[gang].label) else -1 for gang in gangs], np.int32
                ),
                labels=labels,
            ),
            **self.numbers,
        )

    def decide(self, tuning: Tuning = USUAL) -> "Named":
        """Decide a round; its invariants are checked on the way."""
        decisions = schedule(self.snapshot(), tuning=tuning)
        assert check_invariants(decisions) == ()
        return Named(decisions, [job.name for job in self.jobs])


class Named:
    """Decisions with jobs called by their names."""

    def __init__(self, decisions: Decisions, names: list[str]) -> None:
        self.decisions = decisions
        self.placed = {names[lease.row]: lease.node_id for lease in decisions.each_lease()}
        self.how = {names[lease.row]: lease.method.name for lease in decisions.each_lease()}
        self.value = {names[lease.row]: lease.uniformity for lease in decisions.each_lease()}
        self.out = {
            names[one.row]: (one.kind.name, names[one.for_row] if one.for_row >= 0 else None)
            for one in decisions.each_preemption()
        }
        self.waiting = {names[row]: reason.name for row, reason in decisions.each_refusal()}
        self.text = {
            names[row]: decisions.reason_text(index) for index, (row, _) in enumerate(decisions.each_refusal())
        }
