"""The nodes of one round: what is free at which priority, and where one job may go (spec sections 9.1-9.4)."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from armada.model.fleet import Taint
from armada.model.jobs import Toleration
from armada.model.resources import parse_quantity
from tests.oracle.problem import Job, Machine, Problem, Vector

EVICTED = -2
CROSS_POOL = -1
UNSCHEDULABLE = Taint("armadaproject.io/unschedulable", "true", "NoSchedule")


def plus(left: Vector, right: Vector) -> Vector:
    return [a + b for a, b in zip(left, right, strict=True)]


def minus(left: Vector, right: Vector) -> Vector:
    return [a - b for a, b in zip(left, right, strict=True)]


def within(left: Vector, right: Vector) -> bool:
    return all(a <= b for a, b in zip(left, right, strict=True))


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator == "Equal" and toleration.key != "" and toleration.value == taint.value


def _expression_holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values", [])
    present = key in labels
    if operator == "In":
        return present and labels[key] in values
    if operator == "NotIn":
        return not present or labels[key] not in values
    if operator == "Exists":
        return present
    if operator == "DoesNotExist":
        return not present
    try:
        have, limit = int(labels[key]), int(values[0])
    except (KeyError, ValueError):
        return False
    return have > limit if operator == "Gt" else have < limit


def affinity_holds(terms: list[Any], labels: dict[str, str], name: str) -> bool:
    for term in terms:
        expressions = term.get("matchExpressions", [])
        fields = term.get("matchFields", [])
        if not expressions and not fields:
            continue
        if all(_expression_holds(e, labels) for e in expressions) and all(
            _expression_holds(e, {"metadata.name": name}) for e in fields
        ):
            return True
    return False


@dataclass(eq=False)
class Seat:
    """A job bound to a node: at which priority its room is taken, and whether it is evicted."""

    job: Job
    priority: int
    evicted: bool = False


@dataclass(eq=False)
class Node:
    """A node in a round. `allocatable` is what our jobs may use in all, `free` what is left of it by bucket."""

    machine: Machine
    kind: tuple[Any, ...]
    allocatable: Vector
    free: dict[int, Vector]
    seats: dict[str, Seat] = field(default_factory=dict)
    over_allocated: bool = False


class Cluster:
    """All nodes of a round. `binds_low` says which jobs take their room in the cross-pool bucket."""

    def __init__(
        self, problem: Problem, machines: Iterable[Machine], priorities: Iterable[int], defects: frozenset[str]
    ) -> None:
        self.problem = problem
        self.defects = defects
        self.buckets = sorted({EVICTED, CROSS_POOL, *priorities})
        policy = problem.policy
        self.index = [
            (problem.kinds.names.index(kind.name), max(1, _in_column(problem, kind.name, kind.resolution)))
            for kind in policy.index()
        ]
        taints, labels = policy.indexed_taints, policy.indexed_node_labels
        self.nodes: list[Node] = []
        for machine in machines:
            kind = (
                tuple(t for t in machine.taints if taints is None or t.key in taints),
                tuple(machine.labels.get(name) for name in labels),
            )
            self.nodes.append(Node(machine, kind, machine.free, {b: list(machine.free) for b in self.buckets}))
        self.by_id = {node.machine.id: node for node in self.nodes}

    # --- taking and giving room

    def bind(self, node: Node, job: Job, priority: int) -> None:
        """Take room for a job at a priority; a job that is evicted from this node comes back."""
        seat = node.seats.get(job.id)
        if seat is not None:
            assert seat.evicted
            if not job.priority_class.preemptible:
                seat.evicted = False
                return
            self.drop(node, job)
        for bucket in self.buckets:
            if bucket <= priority or not job.priority_class.preemptible:
                node.free[bucket] = minus(node.free[bucket], job.on_node)
        node.seats[job.id] = Seat(job, priority)

    def evict(self, node: Node, job: Job) -> None:
        """Give the room back everywhere but in the bucket of evicted jobs. What can't be preempted keeps its room."""
        seat = node.seats[job.id]
        assert not seat.evicted
        for bucket in self.buckets:
            if bucket != EVICTED and bucket <= seat.priority and job.priority_class.preemptible:
                node.free[bucket] = plus(node.free[bucket], job.on_node)
        seat.evicted = True

    def drop(self, node: Node, job: Job) -> None:
        """Take an evicted job off the node for good."""
        assert node.seats.pop(job.id).evicted
        node.free[EVICTED] = plus(node.free[EVICTED], job.on_node)

    def save(self) -> Any:
        """What `restore` needs to undo everything since."""
        return [
            (
                {b: list(v) for b, v in n.free.items()},
                {k: Seat(s.job, s.priority, s.evicted) for k, s in n.seats.items()},
            )
            for n in self.nodes
        ]

    def restore(self, saved: Any) -> None:
        for node, (free, seats) in zip(self.nodes, saved, strict=True):
            node.free, node.seats = free, seats

    # --- finding room

    def may_run(self, node: Node, job: Job, tolerations: list[Toleration], selector: dict[str, str]) -> bool:
        """Static requirements: taints, selectors, affinity, the node's total."""
        machine = node.machine
        if node.over_allocated and not any(tolerates(t, UNSCHEDULABLE) for t in job.tolerations + tolerations):
            return False
        everything = job.tolerations + tolerations
        labels = machine.labels
        return (
            all(any(tolerates(t, taint) for t in everything) for taint in machine.taints)
            and all(labels.get(k) == v for k, v in selector.items())
            and all(labels.get(k) == v for k, v in job.selector.items())
            and (job.affinity is None or affinity_holds(job.affinity, labels, machine.id))
            and within(job.on_node, machine.total)
        )

    def search(self, job: Job, bucket: int, tolerations: list[Toleration], selector: dict[str, str]) -> Node | None:
        """The best node in a bucket: least room first, in the order of the index."""
        kinds: dict[tuple[Any, ...], list[Node]] = {}
        for node in self.nodes:
            kinds.setdefault(node.kind, []).append(node)
        streams = [self._walk(nodes, job, bucket) for nodes in kinds.values()]

        def unrounded(node: Node) -> tuple[Any, ...]:
            return (*(node.free[bucket][column] for column, _ in self.index), node.machine.id)

        for node in heapq.merge(*streams, key=unrounded):
            if within(job.on_node, node.free[bucket]) and self.may_run(node, job, tolerations, selector):
                return node
        return None

    def _walk(self, nodes: list[Node], job: Job, bucket: int) -> Iterator[Node]:
        def key(node: Node) -> tuple[int, ...]:
            return tuple(node.free[bucket][column] // step * step for column, step in self.index)

        wanted = tuple(job.on_node[column] for column, _ in self.index)
        bound = wanted
        for node in sorted(nodes, key=lambda n: (key(n), n.machine.order)):
            if "27.3" in self.defects and key(node) < bound:
                continue
            lacking = [i for i, (column, _) in enumerate(self.index) if node.free[bucket][column] < wanted[i]]
            if lacking:
                bound = key(node)[: lacking[0]] + wanted[lacking[0] :]
                continue
            yield node


def _in_column(problem: Problem, name: str, resolution: str) -> int:
    exponent = problem.kinds.exponents[problem.kinds.names.index(name)]
    return int(parse_quantity(resolution) // 10**exponent)
