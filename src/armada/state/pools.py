"""A round's input from the ledger's columns: gathers and copies only, so that its cost follows what a round looks at.

What needs Python objects is done when they come: shapes are mirrored into the scheduler's `ShapeTable`, and a pool's
nodes become a `FleetTable` that is kept until one of them changes.
"""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.fleet import BidTable
from armada.model.jobs import JobShape
from armada.model.lifecycle import RunState
from armada.model.policy import SchedulingPolicy
from armada.model.resources import Vector
from armada.scheduling.intake import build_snapshot
from armada.scheduling.kernels.columns.rows import take
from armada.scheduling.market.columns import Offers
from armada.scheduling.snapshot import AWAY, ELSEWHERE, FOREIGN, HOME, UNLIMITED, PoolSnapshot
from armada.scheduling.tables import (
    FleetTable,
    GangRows,
    OptimiserTurn,
    QueuedJobs,
    QueueLine,
    RunningJobs,
    ShapeTable,
)
from armada.state.fold import Fold
from armada.state.table import NONE, Rows

_FLEETS_KEPT: Final = 64
_NO_SHAPE: Final = JobShape(requests=(), priority_class="")


class Excluded(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Queued jobs that a pool is not for, by queue: jobs of these shapes, and these gangs.

    Shapes are those of jobs that are in no gang and name no pools: whoever names pools is asked for there.
    """

    shapes: dict[str, tuple[JobShape, ...]] = {}
    gangs: dict[str, tuple[str, ...]] = {}


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What a round depends on and the log does not hold.

    `executors` are those whose nodes take part (healthy, not cordoned). By queue: tokens left (missing: unlimited), a
    priority factor in place of the queue's own, and what its short jobs still count (in column units). Queued jobs that
    are `excluded` (judged unable to run in this pool, or better placed in another) are left out, and so are those whose
    rows are `taken` (by rounds of which nothing is stored yet). `bids` are for pools
    with a market; without any, nobody offers anything. By `now_ms` it is known who has waited long. `optimises`: if the
    pool has a fairness optimiser, it takes part.
    """

    executors: frozenset[str]
    queue_tokens: dict[str, float] = {}
    weight_overrides: dict[str, float] = {}
    penalties: dict[str, Vector] = {}
    excluded: Excluded = Excluded()
    taken: tuple[int, ...] = ()
    global_tokens: float = UNLIMITED
    preemption_tokens: float | None = None
    bids: BidTable | None = None
    now_ms: int = 0
    optimises: bool = False


class PoolReader:
    """Makes snapshots of pools from a fold, and keeps what can be used again."""

    def __init__(self, fold: Fold, policy: SchedulingPolicy) -> None:
        self._fold = fold
        self._policy = policy
        self._shapes = ShapeTable(policy)
        self._fleets: dict[str, tuple[int, tuple[str, ...], FleetTable]] = {}
        self._node_places_of: dict[str, tuple[int, FleetTable, Rows]] = {}

    def snapshot(self, pool: str, circumstances: Circumstances) -> PoolSnapshot:
        """Return a pool's snapshot."""
        self._mirror_shapes()
        fleet = self._fleet(
            pool, tuple(name for name in self._fold.fleet.executor_ids() if name in circumstances.executors)
        )
        names = sorted(self._fold.fleet.queues)
        numbers = [self._fold.jobs.queues.find(name) for name in names]
        queued = self._queued(pool, dict(zip(names, numbers, strict=True)), circumstances)
        impatient = self._impatient(pool, queued, circumstances.now_ms)
        lines = tuple(
            QueueLine(
                queue=self._fold.fleet.queues[name],
                tokens=circumstances.queue_tokens.get(name, UNLIMITED),
                burst=self._policy.rate_per_queue.burst,
                weight_override=circumstances.weight_overrides.get(name),
                penalty=circumstances.penalties.get(name),
                holds=place in impatient,
            )
            for place, name in enumerate(names)
        )
        return build_snapshot(
            self._policy,
            pool,
            fleet=fleet,
            shapes=self._shapes,
            queues=lines,
            queued=queued,
            running=self._running(pool, numbers, fleet),
            gangs=self._gangs(),
            global_tokens=circumstances.global_tokens,
            preemption_tokens=circumstances.preemption_tokens,
            optimiser=self._optimiser(circumstances.now_ms) if circumstances.optimises else None,
            offers=self._offers(pool, circumstances.bids),
        )

    def _optimiser(self, now_ms: int) -> OptimiserTurn:
        return OptimiserTurn(now_ms=now_ms, submitted=self._fold.jobs.column("sequence"))

    def shapes(self) -> ShapeTable:
        """Return the jobs' shapes as the scheduler sees them, up to date."""
        self._mirror_shapes()
        return self._shapes

    def _mirror_shapes(self) -> None:
        """Bring the scheduler's table of shapes in line with the jobs' shapes, number by number."""
        shapes = self._fold.jobs.shapes
        known = len(self._shapes)
        self._shapes.extend(shapes.get(number) or _NO_SHAPE for number in range(known, shapes.high))
        for number in self._fold.jobs.fresh_shapes:
            shape = shapes.get(number)
            if number < known and shape is not None:
                self._shapes.replace(number, shape)
        self._fold.jobs.fresh_shapes.clear()

    def _fleet(self, pool: str, executors: tuple[str, ...]) -> FleetTable:
        version, own, table = self._fleets.get(pool, (NONE, (), None))
        if table is None or (version, own) != (self._fold.fleet.version, executors):
            policy = self._policy.pool(pool)
            pools = (pool, *policy.away_pools) if policy is not None else (pool,)
            nodes = [node for name in executors for node in self._fold.fleet.nodes_of(name) if node.pool in pools]
            if table is None or table.nodes != tuple(nodes):
                table = FleetTable(self._policy, pool, nodes)
            self._fleets.pop(pool, None)
            while len(self._fleets) >= _FLEETS_KEPT:
                oldest = next(iter(self._fleets))
                del self._fleets[oldest]
                self._node_places_of.pop(oldest, None)
            self._fleets[pool] = (self._fold.fleet.version, executors, table)
        return table

    def _queued(self, pool: str, queues: dict[str, int], circumstances: Circumstances) -> QueuedJobs:
        jobs, excluded = self._fold.jobs, circumstances.excluded
        taken = np.array(circumstances.taken, np.int32)
        kinds = [number for number, pools in jobs.restricted_kinds.items() if pool not in pools]
        parts = []
        for name, queue in queues.items():
            rows = jobs.queued_order(queue).rows()
            if kinds:
                rows = rows[~_marked(jobs.column("kind")[rows], kinds, jobs.kinds.high)]
            if shapes := excluded.shapes.get(name):
                numbers = [number for number in map(jobs.shapes.find, shapes) if number != NONE]
                is_out = _marked(jobs.column("shape")[rows], numbers, jobs.shapes.high)
                is_out &= jobs.column("gang")[rows] == NONE
                is_out &= ~_marked(jobs.column("kind")[rows], list(jobs.restricted_kinds), jobs.kinds.high)
                rows = rows[~is_out]
            if gangs := excluded.gangs.get(name):
                numbers = [number for gang in gangs if (number := jobs.gangs.numbers.find((queue, gang))) != NONE]
                rows = rows[~_marked(jobs.column("gang")[rows], numbers, jobs.gangs.numbers.high)]
            if len(taken):
                rows = rows[~np.isin(rows, taken)]
            parts.append(rows)
        rows = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        shape, gang = np.empty(len(rows), np.int32), np.full(len(rows), NONE, np.int32)
        take(jobs.column("shape"), rows, shape)
        if len(jobs.gangs):
            take(jobs.column("gang"), rows, gang)
        return QueuedJobs(offsets=offsets, row=rows, shape=shape, gang=gang)

    def _impatient(self, pool: str, queued: QueuedJobs, now_ms: int) -> frozenset[int]:
        """Return the queues (by their places) whose first job has waited so long that room is held for it."""
        after_ms = self._policy.hold_room_after_ms
        own = self._policy.pool(pool)
        if after_ms is None or (own is not None and own.market is not None):
            return frozenset()
        places = np.flatnonzero(np.diff(queued.offsets))
        first = queued.row[queued.offsets[places]]
        waited_ms = now_ms - self._fold.jobs.column("submitted_ms")[first]
        return frozenset(places[waited_ms >= after_ms].tolist())

    def _running(self, pool: str, queues: list[int], fleet: FleetTable) -> RunningJobs:
        jobs, runs = self._fold.jobs, self._fold.runs
        rows = runs.used_rows()
        place_of_node = self._node_places(pool, fleet)
        place_of_queue = np.full(jobs.queues.high + 1, NONE, np.int32)
        place_of_queue[queues] = np.arange(len(queues), dtype=np.int32)

        node = place_of_node[runs.column("node")[rows]]
        queue = place_of_queue[jobs.column("queue")[runs.column("job")[rows]]]
        live = (runs.column("state")[rows] < RunState.SUCCEEDED) & (queue != NONE)
        home = live & (runs.column("pool")[rows] == runs.pools.find(pool))
        kind = np.where(home, HOME, FOREIGN).astype(np.uint8)
        part = np.flatnonzero(home | (node != NONE))
        visiting = live & self._of_guests(pool, rows)
        if len(fleet) and visiting.any():
            here = visiting & (node != NONE) & fleet.is_own[node]
            kind[here] = AWAY
            others = self._siblings(rows, here, visiting & ~here)
            # One that stands on a borrowed node takes its room there as any other; it is named once more as a sibling.
            rows = np.concatenate((rows[part], rows[others]))
            queue = np.concatenate((queue[part], queue[others]))
            node = np.concatenate((node[part], np.full(len(others), NONE, np.int32)))
            kind = np.concatenate((kind[part], np.full(len(others), ELSEWHERE, np.uint8)))
        else:
            rows, queue, node, kind = rows[part], queue[part], node[part], kind[part]
        job: Rows = runs.column("job")[rows]
        return RunningJobs(
            row=job,
            shape=jobs.column("shape")[job],
            queue=np.maximum(queue, 0),
            gang=jobs.column("gang")[job],
            node=node,
            priority=runs.column("priority")[rows],
            job_priority=jobs.column("priority")[job],
            leased_ms=runs.column("leased_ms")[rows],
            submitted=jobs.column("sequence")[job],
            kind=kind,
        )

    def _of_guests(self, pool: str, rows: Rows) -> NDArray[np.bool_]:
        """Say of each run whether its pool is another one, whose jobs may use this pool's nodes."""
        runs = self._fold.runs
        names = [other.name for other in self._policy.pools if pool in other.away_pools and other.name != pool]
        numbers = [number for number in map(runs.pools.find, names) if number != NONE]
        return np.isin(runs.column("pool")[rows], numbers) if numbers else np.zeros(len(rows), np.bool_)

    def _siblings(self, rows: Rows, here: NDArray[np.bool_], others: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the places of those others whose gang has a member here."""
        gang = self._fold.jobs.column("gang")[self._fold.runs.column("job")[rows]]
        gangs = np.unique(gang[here & (gang != NONE)])
        return np.flatnonzero(others & np.isin(gang, gangs)) if len(gangs) else np.zeros(0, np.int64)

    def _node_places(self, pool: str, fleet: FleetTable) -> Rows:
        """Return the place in the fleet of each node that runs name, by its number there; the last one is NONE."""
        nodes = self._fold.runs.nodes
        version, table, places = self._node_places_of.get(pool, (NONE, None, np.zeros(0, np.int32)))
        if version != nodes.version or table is not fleet:
            places = np.full(nodes.high + 1, NONE, np.int32)
            for place, node_id in enumerate(fleet.ids):
                places[nodes.find(node_id)] = place
            places[NONE] = NONE
            self._node_places_of[pool] = (nodes.version, fleet, places)
        return places

    def _offers(self, pool: str, bids: BidTable | None) -> Offers | None:
        """Return what queues bid for their jobs, where the pool has a market."""
        own = self._policy.pool(pool)
        if own is None or own.market is None:
            return None
        jobs = self._fold.jobs
        band_of_kind = np.zeros(jobs.kinds.high + 1, np.uint8)
        band_of_kind[list(jobs.banded_kinds)] = list(jobs.banded_kinds.values())
        return Offers(
            bids=bids if bids is not None else BidTable(),
            band=band_of_kind[jobs.column("kind")],
            submitted=jobs.column("sequence"),
        )

    def _gangs(self) -> GangRows:
        gangs = self._fold.jobs.gangs
        return GangRows(
            cardinality=gangs.column("cardinality"),
            label=gangs.column("label"),
            labels=tuple(gangs.labels.get(number) or "" for number in range(gangs.labels.high)),
        )


def _marked(column: NDArray[np.int32], numbers: list[int], high: int) -> NDArray[np.bool_]:
    """Say of each cell whether it is one of these numbers; NONE never is."""
    marks = np.zeros(high + 1, np.bool_)
    marks[numbers] = True
    return marks[column]
