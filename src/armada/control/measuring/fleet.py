"""Figures of executors and nodes: what they offer, what is held there, by whom, as series."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from armada.control.measuring.queues import Naming, band_text
from armada.control.measuring.series import COUNTER, GAUGE, Family, Labels, Sample, Series
from armada.model.fleet import Node
from armada.model.leases import NodeUsage
from armada.state.figures.held import PHASES, HeldFigures
from armada.state.records import ExecutorRecord

_WORDS: Final = {True: "true", False: "false"}
DEDICATED: Final = "dedicated"
SHARED: Final = "shared"
"""Capacity of a pool's own nodes, and of nodes that it may use as a guest."""

_QUEUE: Final = ("queueName", "queue")
_PLACE: Final = ("nodeType", "reservation", "physical_pool")
_NODE: Final = ("pool", "node", "cluster", "nodeType")
_STATUS: Final = ("schedulable", "overAllocated")
_OWNER: Final = ("physical_pool", "capacity_class", "scalable_unit")
_NODE_RESOURCE: Final = (*_NODE, "resource", "reservation", *_STATUS, *_OWNER)
_CAPACITY: Final = ("cluster", "pool", "resourceType", *_PLACE, "capacity_class", "scalable_unit")


def _series(name: str, labels: Labels, meaning: str, kind: str = GAUGE) -> Series:
    return Series(f"armada_{name}", kind, labels, meaning)


PREEMPTIBILITY: Final = _series(
    "scheduler_node_preemptibility",
    (*_NODE, "isPreemptible", "reason"),
    "1; whether all its jobs may be preempted",
)
NODE_ALLOCATABLE: Final = _series(
    "scheduler_node_allocatable_resource", _NODE_RESOURCE, "What a node has for our jobs, used or not"
)
NODE_ALLOCATED: Final = _series(
    "scheduler_node_allocated_resource", _NODE_RESOURCE, "What our jobs hold of a node, with room that is not free yet"
)
ALLOCATED: Final = _series(
    "queue_resource_allocated",
    ("cluster", "pool", "priorityClass", *_QUEUE, "priceBand", "resourceType", *_PLACE, "scalable_unit"),
    "What leased and running jobs hold",
)
USED: Final = _series(
    "queue_resource_used",
    ("cluster", "pool", *_QUEUE, "resourceType", *_PLACE, "scalable_unit"),
    "What jobs use, as executors report it",
)
PODS: Final = _series(
    "queue_leased_pod_count",
    ("cluster", "pool", *_QUEUE, "phase", "nodeType", "reservation"),
    "Live runs of a queue, by phase",
)
NODE_PHASES: Final = _series("node_job_phase_count", ("node", "cluster", "phase"), "Live runs on a node, by phase")
CAPACITY: Final = _series("cluster_capacity", _CAPACITY, "What nodes have for our jobs, used or not")
FARM_CAPACITY: Final = _series("cluster_farm_capacity", _CAPACITY, "All that nodes have, for whatever pods")
AVAILABLE: Final = _series(
    "cluster_available_capacity", _CAPACITY, "What nodes that take new jobs have for our jobs, used or not"
)
CORDONED: Final = _series("cluster_cordoned_status", ("cluster", "reason", "setByUser"), "1 if an executor is cordoned")
POOLS: Final = _series("scheduler_pool_info", ("pool",), "1 for each pool that is configured or has nodes")
HEARD: Final = _series(
    "executor_last_heartbeat_timestamp_seconds", ("executor",), "When an executor was last heard, in Unix seconds"
)
INTERNED: Final = _series(
    "scheduler_interned_strings", (), "Most shared values (names, shapes, owners) that were held at once", COUNTER
)

SERIES: Final = (
    PREEMPTIBILITY,
    NODE_ALLOCATABLE,
    NODE_ALLOCATED,
    ALLOCATED,
    USED,
    PODS,
    NODE_PHASES,
    CAPACITY,
    FARM_CAPACITY,
    AVAILABLE,
    CORDONED,
    POOLS,
    HEARD,
    INTERNED,
)

NODES: Final = "nodes"
"""`resourceType` under which the number of nodes stands beside their resources."""


class Place(msgspec.Struct, frozen=True):
    """What nodes have in common, as far as series tell nodes apart."""

    cluster: str = ""
    node_type: str = ""
    reservation: str = ""
    pool: str = ""
    unit: str = ""


NOWHERE: Final = Place()
"""The place of runs whose node is not reported any more."""


class Offer(msgspec.Struct, frozen=True, eq=False):
    """What a node has, in whole units: all of it, and what is left for our jobs."""

    node: Node
    place: Place
    total: tuple[float, ...]
    ours: tuple[float, ...]


class NodeLine(msgspec.Struct, frozen=True, eq=False):
    """A node as it stands. `number` is the ledger's, -1 where no run is on it."""

    offer: Offer
    number: int
    takes_jobs: bool


def place_of(node: Node, unit_label: str) -> Place:
    """Return a node's place."""
    unit = node.labels.get(unit_label, "") if unit_label else ""
    return Place(node.executor_id, node.node_type, node.reservation, node.pool, unit)


def node_families(
    lines: Sequence[NodeLine], held: HeldFigures, guests: Mapping[str, Sequence[str]], naming: Naming
) -> list[Family]:
    """Return the series of single nodes, for their own pool and for each pool in `guests` that may use its nodes."""
    preemptible: list[Sample] = []
    allocatable: list[Sample] = []
    allocated: list[Sample] = []
    phases: list[Sample] = []
    for line in lines:
        node, place, ours = line.offer.node, line.offer.place, line.offer.ours
        known = line.number >= 0
        used = [int(amount) for amount in held.on_node[line.number]] if known else [0] * len(naming.resources)
        shown = [amount * unit for amount, unit in zip(used, naming.units, strict=True)]
        over = any(amount > most for amount, most in zip(shown, ours, strict=True))
        solid = known and bool(held.solid[line.number])
        for pool, capacity in _pools(place.pool, guests):
            where = (pool, node.name, place.cluster, place.node_type)
            preemptible.append(((*where, _WORDS[not solid], "non_preemptible_job" if solid else ""), 1.0))
            rest = (
                place.reservation,
                _WORDS[bool(line.takes_jobs)],
                _WORDS[bool(over)],
                place.pool,
                capacity,
                place.unit,
            )
            for resource, most, amount in zip(naming.resources, ours, shown, strict=True):
                if most or amount:
                    allocatable.append(((*where, resource, *rest), most))
                    allocated.append(((*where, resource, *rest), amount))
        if known:
            counts = held.phases[line.number].tolist()
            phases += [
                ((node.name, place.cluster, phase), count) for phase, count in zip(PHASES, counts, strict=True) if count
            ]
    return [
        Family(series=PREEMPTIBILITY, samples=preemptible),
        Family(series=NODE_ALLOCATABLE, samples=allocatable),
        Family(series=NODE_ALLOCATED, samples=allocated),
        Family(series=NODE_PHASES, samples=phases),
    ]


def capacity_families(lines: Sequence[NodeLine], guests: Mapping[str, Sequence[str]], naming: Naming) -> list[Family]:
    """Return what all nodes of a place have, and how many they are. Never below zero."""
    names = (*naming.resources, NODES)
    numbers: dict[Place, int] = {}
    place_of_line = [numbers.setdefault(line.offer.place, len(numbers)) for line in lines]
    ours = np.array([(*line.offer.ours, 1.0) for line in lines]).reshape(-1, len(names))
    total = np.array([(*line.offer.total, 1.0) for line in lines]).reshape(-1, len(names))
    available = ours * np.array([line.takes_jobs for line in lines], np.float64)[:, None]
    found: list[Family] = []
    for series, amounts_of in ((CAPACITY, ours), (FARM_CAPACITY, total), (AVAILABLE, available)):
        sums = np.zeros((len(numbers), len(names)))
        np.add.at(sums, place_of_line, amounts_of)
        samples: list[Sample] = []
        for place, amounts in zip(numbers, sums.tolist(), strict=True):
            for pool, capacity in _pools(place.pool, guests):
                for name, amount in zip(names, amounts, strict=True):
                    labels = (place.cluster, pool, name, place.node_type, place.reservation, place.pool)
                    samples.append(((*labels, capacity, place.unit), amount))
        found.append(Family(series=series, samples=samples))
    return found


def allocated_families(held: HeldFigures, places: Sequence[Place], naming: Naming) -> list[Family]:
    """Return what runs hold by queue and place, and their number by phase."""
    allocated: list[Sample] = []
    for line in held.lines:
        pool, queue, class_row, band = line.key
        place = places[line.place]
        who = (place.cluster, pool, naming.classes[class_row], queue, queue, band_text(band))
        for resource, unit, amount in zip(naming.resources, naming.units, line.amounts, strict=True):
            if amount:
                where = (place.node_type, place.reservation, place.pool, place.unit)
                allocated.append(((*who, resource, *where), amount * unit))
    pods: dict[Labels, float] = {}
    for (queue, pool, number, phase), count in held.pods:
        place = places[number]
        labels = (place.cluster, pool, queue, queue, PHASES[phase], place.node_type, place.reservation)
        pods[labels] = pods.get(labels, 0.0) + count
    return [Family(series=ALLOCATED, samples=allocated), Family(series=PODS, samples=list(pods.items()))]


def usage_family(usage: Mapping[str, Sequence[NodeUsage]], lines: Iterable[NodeLine]) -> Family:
    """Return what jobs use, summed up over the nodes of a place."""
    nodes = {(line.offer.node.executor_id, line.offer.node.name): line.offer.place for line in lines} if usage else {}
    sums: dict[Labels, float] = {}
    for executor_id, used in usage.items():
        for each in used:
            place = nodes.get((executor_id, each.node_name), Place(cluster=executor_id))
            where = (place.node_type, place.reservation, place.pool, place.unit)
            for resource, amount in each.amounts:
                labels = (executor_id, each.pool, each.queue, each.queue, resource, *where)
                sums[labels] = sums.get(labels, 0.0) + amount
    return Family(series=USED, samples=list(sums.items()))


def executor_families(records: Iterable[ExecutorRecord], heartbeats: Mapping[str, int]) -> list[Family]:
    """Return which executors are cordoned, and when each was last heard."""
    cordoned: list[Sample] = []
    for record in records:
        settings = record.settings
        is_cordoned = settings.cordoned
        labels = (record.executor_id, *((settings.cordon_reason, settings.set_by) if is_cordoned else ("", "")))
        cordoned.append((labels, float(is_cordoned)))
    heard: list[Sample] = [((executor_id,), ms / 1_000) for executor_id, ms in sorted(heartbeats.items())]
    return [Family(series=CORDONED, samples=cordoned), Family(series=HEARD, samples=heard)]


def _pools(own: str, guests: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(own, DEDICATED), *((pool, SHARED) for pool in guests.get(own, ()))]
