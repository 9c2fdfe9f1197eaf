"""Scheduling problems (docs/decide.md) as plain mutable objects, and what changes in them between rounds."""

from dataclasses import dataclass, field
from typing import Any

from armada.model.configuration import scheduling_policy
from armada.model.fleet import PriorityClass, Taint
from armada.model.jobs import Toleration
from armada.model.policy import SchedulingPolicy
from armada.model.resources import ResourceKinds

Vector = list[int]


@dataclass(eq=False)
class Gang:
    """What a member says about its gang."""

    id: str
    cardinality: int
    uniformity: str


@dataclass(eq=False)
class Job:
    """A job with its run, if any. `state`: absent, queued, running or gone; `phase`: what it bids as, if not that."""

    id: str
    queue: str
    priority_class: PriorityClass
    priority: int
    submitted: int
    request: Vector
    on_node: Vector
    selector: dict[str, str]
    tolerations: list[Toleration]
    affinity: list[Any] | None
    pools: list[str] | None
    gang: Gang | None
    band: int
    arrives: int
    leaves: int | None
    unknown_resources: bool
    state: str = "queued"
    phase: str = ""
    node: str = ""
    pool: str = ""
    run_priority: int = 0
    leased_at: float = 0.0
    unacknowledged: bool = False
    finished_pool: str = ""
    penalty_until: float = 0.0

    def key(self) -> tuple[Any, ...]:
        """Everything that placement can see of the job."""
        return (
            tuple(sorted(self.selector.items())),
            repr(self.affinity),
            tuple(self.tolerations),
            tuple(self.request),
            self.priority_class.name,
        )


@dataclass(eq=False)
class Machine:
    """A node as reported, in column units. `total` is what it has, `free` that without what is not ours."""

    id: str
    order: int
    pool: str
    executor: str
    labels: dict[str, str]
    taints: list[Taint]
    total: Vector
    free: Vector
    unschedulable: bool
    reservation: str


@dataclass(eq=False)
class Executor:
    """An executor's settings and how long ago it was heard."""

    id: str
    cordoned: bool
    heartbeat_ago_s: float


@dataclass(eq=False)
class Tenant:
    """A queue."""

    name: str
    factor: float
    cordoned: bool
    limits: dict[str, dict[str, Any]]


@dataclass(eq=False)
class Problem:
    """A whole problem; `now_s` is the clock of the round that is being decided."""

    id: str
    policy: SchedulingPolicy
    kinds: ResourceKinds
    executors: dict[str, Executor]
    machines: list[Machine]
    tenants: dict[str, Tenant]
    jobs: list[Job]
    rounds: int
    seconds_per_round: float
    bids: dict[tuple[str, int, str], tuple[float, float]]
    overrides: dict[tuple[str, str], float]
    resource_units: dict[str, Any]
    submit_check: bool
    now_s: float = 0.0
    round: int = 0
    by_id: dict[str, Job] = field(default_factory=dict)

    def begin_round(self, number: int) -> None:
        """Let jobs arrive and leave; the clock moves."""
        self.round = number
        self.now_s = number * self.seconds_per_round
        for job in self.jobs:
            if job.state == "absent" and job.arrives <= number:
                job.state = "queued"
            if job.leaves is not None and job.leaves <= number and job.state in {"queued", "running"}:
                if job.state == "running":
                    self._count_on(job)
                job.state = "gone"

    def _count_on(self, job: Job) -> None:
        """Let a job that succeeds now count on, where it ran for less than its pool's cutoff (spec section 19)."""
        pool = self.policy.pool(job.pool)
        job.finished_pool = job.pool
        job.penalty_until = job.leased_at + (pool.short_job_penalty_ms / 1000 if pool else 0.0)


def _toleration(value: dict[str, str]) -> Toleration:
    return Toleration(
        value.get("key", ""),
        value.get("operator", "") or "Equal",
        value.get("value", ""),
        value.get("effect", ""),
    )


def read_problem(values: dict[str, Any]) -> Problem:
    """Read one problem of the documented format; a wrong one fails in any way it likes."""
    policy = scheduling_policy(values["config"])
    kinds = policy.kinds()
    executors: dict[str, Executor] = {}
    machines: list[Machine] = []
    for executor in values["executors"]:
        executors[executor["id"]] = Executor(
            executor["id"],
            executor.get("cordoned", False),
            executor.get("heartbeatSecondsAgo", 0),
        )
        machines += [
            _machine(node, executor["id"], len(machines) + i, kinds) for i, node in enumerate(executor["nodes"])
        ]
    jobs = [_job(value, policy, kinds) for value in values["jobs"]]
    return Problem(
        id=values["id"],
        policy=policy,
        kinds=kinds,
        executors=executors,
        machines=machines,
        tenants={
            q["name"]: Tenant(
                q["name"],
                q.get("priorityFactor", 1.0),
                q.get("cordoned", False),
                q.get("resourceLimitsByPriorityClassName", {}),
            )
            for q in values["queues"]
        },
        jobs=jobs,
        rounds=values.get("rounds", 1),
        seconds_per_round=values.get("secondsPerRound", 0),
        bids={(b["queue"], b["band"], b["pool"]): (b["queued"], b["running"]) for b in values.get("bids", [])},
        overrides={(o["pool"], o["queue"]): o["priority"] for o in values.get("overrides", [])},
        resource_units=values.get("resourceUnits", {}),
        submit_check=values.get("submitCheck", False),
        by_id={job.id: job for job in jobs},
    )


def _job(value: dict[str, Any], policy: SchedulingPolicy, kinds: ResourceKinds) -> Job:
    classes = {kind.name: kind for kind in policy.priority_classes}
    floating = {kind.name for kind in policy.floating_resources}
    request = dict(value.get("request", {}))
    if policy.respects_node_pod_limits:
        request.setdefault("pods", "1")
    vector = list(kinds.vector_up(request))
    job = Job(
        id=value["id"],
        queue=value["queue"],
        priority_class=classes[value.get("priorityClass", policy.default_priority_class)],
        priority=value.get("priority", 0),
        submitted=value.get("submitted", 0),
        request=vector,
        on_node=[0 if name in floating else amount for name, amount in zip(kinds.names, vector, strict=True)],
        selector=value.get("nodeSelector", {}),
        tolerations=[_toleration(t) for t in value.get("tolerations", [])],
        affinity=value["nodeAffinity"]["nodeSelectorTerms"] if value.get("nodeAffinity") else None,
        pools=value.get("pools"),
        gang=None,
        band=value.get("priceBand", 0),
        arrives=value.get("arrives", 0),
        leaves=value.get("leaves"),
        unknown_resources=bool(kinds.unknown(request)),
    )
    gang = value.get("gang")
    if gang and gang["cardinality"] > 1:
        job.gang = Gang(gang["id"], gang["cardinality"], gang.get("uniformity", ""))
    if job.arrives > 0:
        job.state = "absent"
    if run := value.get("run"):
        job.state = "running"
        job.node, job.pool = run["node"], run.get("pool", "default")
        job.run_priority = run.get("scheduledAtPriority", job.priority_class.priority)
        job.leased_at = -run.get("leasedSecondsAgo", 0)
        job.unacknowledged = run.get("unacknowledged", False)
    if finished := value.get("finished"):
        job.state = "gone"
        pool = policy.pool(finished["pool"])
        cutoff = pool.short_job_penalty_ms / 1000 if pool else 0.0
        job.finished_pool = finished["pool"]
        job.penalty_until = cutoff - finished.get("runningSecondsAgo", 0)
    return job


def _machine(node: dict[str, Any], executor: str, order: int, kinds: ResourceKinds) -> Machine:
    total = list(kinds.vector_down(node["total"]))
    free = list(total)
    for amounts in node.get("unallocatable", {}).values():
        free = [a - b for a, b in zip(free, kinds.vector_up(amounts), strict=True)]
    taints = [Taint(t["key"], t.get("value", ""), t.get("effect", "NoSchedule")) for t in node.get("taints", [])]
    if node.get("unschedulable"):
        taints.append(Taint("armadaproject.io/unschedulable", "true", "NoSchedule"))
    return Machine(
        id=node["id"],
        order=order,
        pool=node.get("pool", "default"),
        executor=executor,
        labels=node.get("labels", {}),
        taints=taints,
        total=total,
        free=free,
        unschedulable=node.get("unschedulable", False),
        reservation=node.get("reservation", ""),
    )
