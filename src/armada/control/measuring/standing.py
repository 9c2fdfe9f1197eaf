"""All figures of what stands at one moment: queues, jobs, nodes, capacity. Pure work on copies, for any thread."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from armada.control.measuring import fleet, queues
from armada.control.measuring.fleet import NOWHERE, NodeLine, Offer, Place, place_of
from armada.control.measuring.queues import EDGES_S, Naming, PoolBids
from armada.control.measuring.rounds import in_unit
from armada.control.measuring.series import Family
from armada.control.rounds.planning import RoundReport
from armada.model.fleet import Node
from armada.model.jobs import JobShape
from armada.model.leases import NodeUsage
from armada.model.policy import MetricsPolicy, SchedulingPolicy
from armada.state.figures.held import held_figures
from armada.state.figures.queued import queued_figures
from armada.state.figures.spreads import Rows
from armada.state.figures.standing import Standing

SERIES: Final = (*queues.SERIES, *fleet.SERIES)

EDGES_MS: Final = tuple(edge * 1_000 for edge in EDGES_S)

Judged = Callable[[str, JobShape, tuple[str, ...] | None], tuple[str, ...] | None]
"""Says in which pools jobs of a queue and shape can run, as far as somebody has looked; None: nobody has."""


class Circumstances(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the log does not hold: time, latest rounds, words of executors by id, and which jobs can run where."""

    now_ms: int
    judged: Judged
    reports: Mapping[str, RoundReport] = {}
    heartbeats: Mapping[str, int] = {}
    usage: Mapping[str, Sequence[NodeUsage]] = {}


class StandingFigures:
    """Makes series of what stands, and keeps what nodes offer from one time to the next."""

    def __init__(self, policy: SchedulingPolicy, metrics: MetricsPolicy) -> None:
        kinds = policy.kinds()
        self._kinds = kinds
        self._metrics = metrics
        self._configured = tuple(pool.name for pool in policy.pools)
        self._guests: dict[str, tuple[str, ...]] = {}
        for pool in policy.pools:
            for host in pool.away_pools:
                self._guests[host] = (*self._guests.get(host, ()), pool.name)
        self._naming = Naming(
            kinds.names,
            tuple(in_unit(1, exponent) for exponent in kinds.exponents),
            tuple(each.name for each in policy.priority_classes),
        )
        self._preemptible = np.array([each.preemptible for each in policy.priority_classes], np.int32)
        self._nodes: dict[str, Offer] = {}
        self._most_values = 0

    def families(self, standing: Standing, seen: Circumstances) -> list[Family]:
        """Return all series, in the order of `SERIES` as far as they are made together."""
        lines = self._lines(standing)
        places, place_of_node = self._places(standing, lines)
        queued = queued_figures(standing, self._pools_of(standing, seen), EDGES_MS, seen.now_ms)
        held = held_figures(standing, place_of_node, self._preemptible, EDGES_MS, seen.now_ms)
        self._most_values = max(self._most_values, standing.values_held)
        pools = sorted({*self._configured, *(place.pool for place in places if place is not NOWHERE)})
        found = [
            *queues.queue_families(standing, queued),
            *queues.queued_families(queued, self._naming),
            *queues.running_families(held, self._naming),
            *queues.price_families(queued, held, _markets(seen.reports), self._naming),
            *fleet.allocated_families(held, places, self._naming),
            *fleet.capacity_families(lines, self._guests, self._naming),
            *fleet.executor_families(standing.executors, seen.heartbeats),
            fleet.usage_family(seen.usage, lines),
            Family(series=fleet.POOLS, samples=[((pool,), 1.0) for pool in pools]),
            Family(series=fleet.INTERNED, samples=[((), self._most_values)]),
        ]
        if self._metrics.shows_nodes:
            found += fleet.node_families(lines, held, self._guests, self._naming)
        return found

    def _lines(self, standing: Standing) -> list[NodeLine]:
        """Return all reported nodes; one that has not changed since the last time is not read again."""
        numbers = {node_id: number for number, node_id in enumerate(standing.node_ids) if node_id is not None}
        known, self._nodes = self._nodes, {}
        lines: list[NodeLine] = []
        for record in standing.executors:
            for node in record.nodes:
                offer = known.get(node.node_id)
                if offer is None or offer.node is not node:
                    offer = self._offer(node)
                self._nodes[node.node_id] = offer
                takes_jobs = not (node.unschedulable or record.settings.cordoned)
                lines.append(NodeLine(offer, numbers.get(node.node_id, -1), takes_jobs))
        return lines

    def _offer(self, node: Node) -> Offer:
        """Read what a node has, and what pods that are not ours leave of it."""
        total = self._kinds.vector_down(node.total)
        taken = [0] * len(total)
        for quantities in node.unallocatable.values():
            taken = [before + more for before, more in zip(taken, self._kinds.vector_up(quantities), strict=True)]
        ours = [max(0, most - less) for most, less in zip(total, taken, strict=True)]
        units = self._naming.units
        return Offer(
            node,
            place_of(node, self._metrics.scalable_unit_label),
            tuple(amount * unit for amount, unit in zip(total, units, strict=True)),
            tuple(amount * unit for amount, unit in zip(ours, units, strict=True)),
        )

    def _places(self, standing: Standing, lines: Sequence[NodeLine]) -> tuple[list[Place], Rows]:
        """Return the distinct places, the first for nodes that nobody reports, and each node number's place."""
        places: dict[Place, int] = {NOWHERE: 0}
        of_line = [places.setdefault(line.offer.place, len(places)) for line in lines]
        of_node = np.zeros(len(standing.node_ids) + 1, np.int32)
        of_node[[line.number for line in lines]] = of_line
        of_node[-1] = 0
        return list(places), of_node

    def _pools_of(self, standing: Standing, seen: Circumstances) -> Callable[..., tuple[str, ...]]:
        nodes = [node.pool for record in standing.executors for node in record.nodes]
        known = tuple(dict.fromkeys((*self._configured, *nodes)))
        rank = {pool: place for place, pool in enumerate(self._metrics.primary_pools)}

        ordered: dict[tuple[str, ...], tuple[str, ...]] = {}

        def pools_of(queue: str, kind: int, restricted: tuple[str, ...] | None) -> tuple[str, ...]:
            asked = standing.kinds[kind] if kind >= 0 else None
            shape = standing.shapes[asked.shape] if asked is not None else None
            found = seen.judged(queue, shape, restricted) if shape is not None else None
            if found is None:
                found = restricted if restricted is not None else known
            if found not in ordered:
                ordered[found] = tuple(sorted(found, key=lambda pool: rank.get(pool, len(rank)))) or ("",)
            return ordered[found]

        return pools_of


def _markets(reports: Mapping[str, RoundReport]) -> list[PoolBids]:
    """Return what queues bid in the latest rounds of pools with a market."""
    found: list[PoolBids] = []
    for pool, report in sorted(reports.items()):
        snapshot = report.order.snapshot
        if snapshot.market is not None:
            bids = snapshot.market.bids.tolist()
            found.append(PoolBids(pool, dict(zip(snapshot.queues.names, bids, strict=True))))
    return found
