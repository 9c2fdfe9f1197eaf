"""`build_snapshot`: one pool's round, put together from tables and columns.

Steps: (1) which queues have work here; (2) which nodes take part and what the pool offers; (3) the jobs, ordered and
renamed to the round's own rows; (4) which shapes may run on which node types.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.policy import OPTIMISER_RESERVE_MS, PoolPolicy, SchedulingPolicy
from armada.model.resources import fraction_of
from armada.scheduling.kernels.columns.rows import add_by_node, renumber, translate
from armada.scheduling.market.columns import Ground, Offers, with_market
from armada.scheduling.matching import Judgements, PlacementRule, Verdicts
from armada.scheduling.snapshot import (
    AWAY,
    CROSS_POOL,
    EVICTED,
    FOREIGN,
    GUEST_SUFFIX,
    HOME,
    UNLIMITED,
    Amounts,
    ClassColumns,
    Flags,
    GangColumns,
    NodeColumns,
    OptimiserColumns,
    PoolSnapshot,
    QueueColumns,
    QueuedColumns,
    RoundRules,
    Rows,
    RunningColumns,
    ShapeColumns,
)
from armada.scheduling.tables import (
    FleetTable,
    GangRows,
    OptimiserTurn,
    QueuedJobs,
    QueueLine,
    RunningJobs,
    ShapeTable,
)


class _Line(NamedTuple):
    """A line of the round: a queue's own jobs, or its guests. `place` is the queue's among those given."""

    place: int
    is_guest: bool
    name: str


KEPT_VERDICTS = 8
"""How many verdict tables a fleet remembers: equal rounds follow each other."""

KEPT_RULES = 4_096
"""When this many rules more than twice those in use were judged, all are judged anew, so that nothing piles up."""


def build_snapshot(  # noqa: PLR0913 - one argument a table or number that its owner holds
    policy: SchedulingPolicy,
    pool: str,
    *,
    fleet: FleetTable,
    shapes: ShapeTable,
    queues: list[QueueLine] | tuple[QueueLine, ...],
    queued: QueuedJobs,
    running: RunningJobs,
    gangs: GangRows,
    global_tokens: float = UNLIMITED,
    preemption_tokens: float | None = None,
    optimiser: OptimiserTurn | None = None,
    offers: Offers | None = None,
) -> PoolSnapshot:
    """Return the snapshot of one pool's round. What it got of queued jobs it may keep: the caller leaves it as it is.

    `preemption_tokens` None means that fair-share preemption has no rate limit. `optimiser` has an effect in pools
    that have a fairness optimiser. `offers` are needed where the pool has a market.
    """
    lines = _lines(queues, queued, running)
    nodes, node_row, overfull = _nodes(fleet, shapes, running)
    terms = _Terms(policy, pool, nodes)
    queued_columns = _queued(queued, lines)
    running_columns = _running(running, lines, node_row, terms.class_priority[shapes.class_row[shapes.kind]])
    used, queued_shape, running_shape = _used_kinds(shapes, queued_columns.shape, running_columns.shape)
    labels = _labels_in_use(gangs, queued_columns.gang)
    verdicts, rule_place = _verdicts(_Question(terms.pool, labels, overfull), fleet, shapes, used)
    shape_columns = _shapes(shapes, used, verdicts, rule_place)
    snapshot = PoolSnapshot(
        rules=terms.rules(
            _priorities(running_columns, shape_columns, terms.class_priority),
            global_tokens,
            preemption_tokens,
        ),
        nodes=msgspec.structs.replace(nodes, type=verdicts.type[node_row >= 0]),
        classes=ClassColumns(
            names=tuple(kind.name for kind in policy.priority_classes),
            priority=terms.class_priority,
            preemptible=np.array([kind.preemptible for kind in policy.priority_classes], np.uint8),
        ),
        shapes=shape_columns,
        queues=terms.queues(lines, [queues[line.place] for line in lines]),
        queued=msgspec.structs.replace(queued_columns, shape=queued_shape),
        running=msgspec.structs.replace(running_columns, shape=running_shape),
        gangs=_gangs(fleet, gangs, labels, verdicts),
        optimiser=_optimiser(terms, optimiser, np.concatenate((running_columns.row, queued_columns.row))),
    )
    if terms.pool.market is None:
        return snapshot
    if offers is None:
        raise ValueError(f"pool {pool} has a market, which needs offers")
    return with_market(snapshot, policy, terms.pool, Ground(fleet, node_row >= 0, overfull), offers)


class _Terms:
    """A pool's settings, turned into plain numbers as far as they depend on what the pool offers."""

    def __init__(self, policy: SchedulingPolicy, pool: str, nodes: NodeColumns) -> None:
        self.policy = policy
        self.pool = policy.pool(pool) or PoolPolicy(name=pool)
        self.kinds = policy.kinds()
        self.class_priority: Amounts = np.array([kind.priority for kind in policy.priority_classes], np.int64)
        total = [max(0, int(amount)) for amount in nodes.allocatable.sum(axis=0)]
        for kind in policy.floating_resources:
            offered = self.kinds.vector_down({kind.name: kind.quantities.get(pool, "0")})
            total[self.kinds.names.index(kind.name)] = max(0, offered[self.kinds.names.index(kind.name)])
        self.total = tuple(total)

    def rules(self, priorities: Amounts, global_tokens: float, preemption_tokens: float | None) -> RoundRules:
        """Return the rules; `priorities` are those in use."""
        policy, pool, names = self.policy, self.pool, self.kinds.names
        multipliers = {resource.name: resource.multiplier for resource in policy.fairness_of(pool)}
        fractions = policy.round_fractions_of(pool.name)
        floating = {kind.name for kind in policy.floating_resources}
        return RoundRules(
            pool=pool.name,
            resources=names,
            exponents=self.kinds.exponents,
            multipliers=tuple(multipliers.get(name, 0.0) for name in names),
            indexed=self._indexed(),
            priorities=(EVICTED, CROSS_POOL, *priorities.tolist()),
            total=self.total,
            round_limit=tuple(
                fraction_of(amount, fractions[name]) if name in fractions else UNLIMITED
                for name, amount in zip(names, self.total, strict=True)
            ),
            floating=tuple(name in floating for name in names),
            unscheduled=tuple(name in pool.unscheduled_resources for name in names),
            protected_fraction=policy.protected_fraction_of(pool),
            protects_uncapped_share=pool.protects_uncapped_share,
            excess_margin=policy.excess_margin,
            global_tokens=float(global_tokens),
            global_burst=policy.rate.burst,
            preemption_tokens=preemption_tokens,
            lookback=policy.max_queue_lookback,
            max_round_ms=policy.max_round_ms,
            max_new_jobs_ms=policy.max_new_jobs_ms,
            max_new_jobs_per_queue_ms=policy.max_new_jobs_per_queue_ms,
            rotates_ties=policy.rotates_ties,
            indicative_priorities=policy.indicative_share_priorities,
            prefers_large_jobs=policy.prefers_large_jobs,
            home_scheduling=pool.home_scheduling,
            away_scheduling=pool.away_scheduling,
            gang_away_scheduling=pool.gang_away_scheduling,
            fairshare_preemption=pool.fairshare_preemption,
            urgency_preemption=pool.urgency_preemption,
            cross_pool_preempted_first=pool.cross_pool_preempted_first,
        )

    def queues(self, places: list[_Line], lines: list[QueueLine]) -> QueueColumns:
        """Return the queues as columns: for each place what its queue says."""
        width = len(self.kinds)
        limit = np.full((len(lines), len(self.class_priority), width), UNLIMITED, np.int64)
        is_home = np.array([not place.is_guest for place in places], np.bool_)
        for index, line in enumerate(lines):
            self._write_limits(limit[index], line)
        factors = [line.queue.priority_factor for line in lines]
        overrides = [line.weight_override or 0.0 for line in lines]
        raw = [1.0 / factor if factor > 0 else 1.0 for factor in factors]
        weight = [1.0 / one if one > 0 else own for one, own in zip(overrides, raw, strict=True)]
        zero = (0,) * width
        penalty = [line.penalty or zero for line in lines]
        return QueueColumns(
            names=tuple(place.name for place in places),
            guest=np.asarray(~is_home, np.uint8),
            weight=np.array(weight, np.float64),
            raw_weight=np.array(raw, np.float64),
            cordoned=np.array([line.queue.cordoned for line in lines], np.uint8) * is_home,
            tokens=np.array([line.tokens for line in lines], np.float64),
            burst=np.array([line.burst for line in lines], np.int64),
            penalty=np.array(penalty, np.int64).reshape(len(lines), width) * is_home[:, np.newaxis],
            limit=limit,
            holds=np.array([line.holds for line in lines], np.uint8) * is_home,
        )

    def _write_limits(self, rows: Amounts, line: QueueLine) -> None:
        for place, priority_class in enumerate(self.policy.priority_classes):
            for name, fraction in self.policy.queue_fractions(line.queue, priority_class, self.pool.name).items():
                column = self.kinds.index(name)
                if column is not None:
                    rows[place, column] = fraction_of(self.total[column], fraction)

    def _indexed(self) -> tuple[tuple[int, int], ...]:
        """Return (column, resolution in column units) of the resources by which nodes are sorted."""
        pairs = []
        for kind in self.policy.index():
            column = self.kinds.index(kind.name)
            if column is not None:
                pairs.append((column, max(1, self.kinds.vector_down({kind.name: kind.resolution})[column])))
        return tuple(pairs)


def _optimiser(terms: _Terms, turn: OptimiserTurn | None, rows: Rows) -> OptimiserColumns | None:
    """Return the optimiser's terms; `rows` are running and queued jobs."""
    rules = terms.pool.optimiser
    if turn is None or rules is None or terms.pool.market is not None:
        return None
    fractions = rules.max_round_fractions
    return OptimiserColumns(
        most_jobs=rules.max_jobs_per_round,
        most=tuple(
            fraction_of(amount, fractions[name]) if name in fractions else UNLIMITED
            for name, amount in zip(terms.kinds.names, terms.total, strict=True)
        ),
        smallest=terms.kinds.vector_up(rules.min_job_size),
        largest=terms.kinds.vector_up(rules.max_victim_size),
        improvement_percent=rules.min_improvement_percent,
        now_ms=turn.now_ms,
        submitted=turn.submitted[rows],
        timeout_ms=max(1, rules.timeout_ms - OPTIMISER_RESERVE_MS),
    )


def _lines(
    queues: list[QueueLine] | tuple[QueueLine, ...],
    queued: QueuedJobs,
    running: RunningJobs,
) -> list[_Line]:
    """Return the queues that have a job here, and once more those that have guests here, by name."""
    waiting = np.diff(queued.offsets)
    held = np.bincount(running.queue[running.kind == HOME], minlength=len(queues))
    homes = np.flatnonzero((waiting > 0) | (held > 0)).tolist()
    guests = np.unique(running.queue[running.kind == AWAY]).tolist()
    lines = [_Line(index, is_guest=False, name=queues[index].queue.name) for index in homes]
    taken = {line.queue.name for line in queues} if len(guests) else set()
    for index in guests:
        name = queues[index].queue.name + GUEST_SUFFIX
        while name in taken:
            name += GUEST_SUFFIX
        taken.add(name)
        lines.append(_Line(index, is_guest=True, name=name))
    return sorted(lines, key=lambda line: line.name)


def _nodes(fleet: FleetTable, shapes: ShapeTable, running: RunningJobs) -> tuple[NodeColumns, Rows, Flags]:
    """Return the nodes that take part, each fleet node's row among them (or -1), and which of the fleet are overfull.

    A node that takes no new work is left out unless it holds jobs of ours.
    """
    taken, bound = np.zeros_like(fleet.allocatable), np.zeros_like(fleet.allocatable)
    on_node = running.node >= 0
    foreign = on_node & (running.kind == FOREIGN)
    ours = on_node & ~foreign
    for part, amounts in ((foreign, taken), (ours, bound)):
        add_by_node(running.node, running.shape, shapes.kind, shapes.request, part, amounts)
    allocatable = fleet.allocatable - taken
    floating = ~fleet.on_nodes
    bound[:, floating] = 0
    allocatable[:, floating] = 0
    overfull: Flags = np.asarray((bound > allocatable).any(axis=1), np.uint8)
    holds_jobs = np.bincount(running.node[ours], minlength=len(fleet)) > 0
    kept = holds_jobs | ~((overfull > 0) | fleet.unschedulable)
    row = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    places = np.flatnonzero(kept)
    columns = NodeColumns(
        ids=tuple(fleet.ids[place] for place in places) if len(places) < len(fleet) else fleet.ids,
        total=fleet.total[places],
        allocatable=allocatable[places],
        rank=fleet.rank[places],
        lane=fleet.lane[places],
        type=np.zeros(len(places), np.int32),
        overfull=overfull[places],
    )
    return columns, row, overfull


def _queued(queued: QueuedJobs, lines: list[_Line]) -> QueuedColumns:
    sizes = np.append(np.diff(queued.offsets), 0)
    offsets = np.zeros(len(lines) + 1, np.int64)
    np.cumsum(sizes[[-1 if line.is_guest else line.place for line in lines]], out=offsets[1:])
    homes = [line.place for line in lines if not line.is_guest]
    if homes == list(range(len(homes))):
        places: Any = slice(0, int(offsets[-1]))
    else:
        spans = [np.arange(queued.offsets[index], queued.offsets[index + 1]) for index in homes]
        places = np.concatenate(spans) if spans else np.zeros(0, np.int64)
    return QueuedColumns(offsets=offsets, row=queued.row[places], shape=queued.shape[places], gang=queued.gang[places])


def _running(running: RunningJobs, lines: list[_Line], node_row: Rows, class_priority: Amounts) -> RunningColumns:
    """Sort the running jobs as their queues would serve them; `class_priority` is by shape.

    Foreign runs have done their part: they took room.
    """
    place_of = np.full((2, max((line.place for line in lines), default=-1) + 2), -1, np.int32)
    for row, line in enumerate(lines):
        place_of[int(line.is_guest), line.place] = row
    part = np.flatnonzero(running.kind != FOREIGN)
    own = place_of[(running.kind[part] != HOME).astype(np.intp), running.queue[part]]
    order = np.lexsort(
        (
            running.submitted[part],
            running.leased_ms[part],
            running.job_priority[part],
            -class_priority[running.shape[part]],
            own,
        ),
    )
    part = part[order]
    offsets = np.zeros(len(lines) + 1, np.int64)
    np.cumsum(np.bincount(own, minlength=len(lines)), out=offsets[1:])
    node = running.node[part]
    return RunningColumns(
        offsets=offsets,
        row=running.row[part],
        shape=running.shape[part],
        gang=running.gang[part],
        node=np.where(node >= 0, node_row[node] if len(node_row) else -1, -1).astype(np.int32),
        priority=running.priority[part],
        leased_ms=running.leased_ms[part],
        kind=running.kind[part],
    )


def _used_kinds(shapes: ShapeTable, queued: Rows, running: Rows) -> tuple[NDArray[np.int64], Rows, Rows]:
    """Return the kinds that occur, and both columns of shapes in terms of their places."""
    in_use = np.zeros(len(shapes.rule), np.uint8)
    kinds = np.empty(len(queued), np.int32), np.empty(len(running), np.int32)
    for own, found in zip((queued, running), kinds, strict=True):
        translate(own, shapes.kind, found, in_use)
    if not in_use.all():
        place = (np.cumsum(in_use, dtype=np.int64) - 1).astype(np.int32)
        for found in kinds:
            renumber(found, place)
    return np.flatnonzero(in_use).astype(np.int64), *kinds


def _labels_in_use(gangs: GangRows, gang: Rows) -> tuple[str, ...]:
    if not gangs.labels:
        return ()
    labels = np.unique(gangs.label[gang[gang >= 0]])
    return tuple(gangs.labels[label] for label in labels if label >= 0)


class _Question(msgspec.Struct, frozen=True, eq=False):
    """What besides rules and nodes the verdicts depend on."""

    pool: PoolPolicy
    labels: tuple[str, ...]
    overfull: Flags


def _verdicts(
    question: _Question,
    fleet: FleetTable,
    shapes: ShapeTable,
    used: NDArray[np.int64],
) -> tuple[Verdicts, Rows]:
    """Judge the rules in use on the fleet, or find that it was just done. Also return each rule's place, or -1."""
    in_use = np.zeros(len(shapes.rules), np.bool_)
    in_use[shapes.rule[used]] = True
    if shapes.away:
        for kind in used.tolist():
            in_use[[rule for rule, _, _ in shapes.away.get(kind, ())]] = True
    place = np.where(in_use, np.cumsum(in_use) - 1, -1).astype(np.int32)
    tolerations = question.pool.default_tolerations
    about = (question.overfull.tobytes(), question.labels, tolerations)
    key = (shapes.rules_epoch, in_use.tobytes(), *about)
    known = fleet.verdicts.get(key)
    if known is None:
        places = np.flatnonzero(in_use).tolist()
        judgements = fleet.judgements.get(about)
        if judgements is None or len(judgements) > KEPT_RULES + 2 * len(places):
            sets, taint_set = fleet.taint_sets_with(question.overfull)
            judgements = Judgements(
                sets, taint_set, fleet.label, question.labels, lambda rule: _widened(rule, question.pool)
            )
            _keep(fleet.judgements, about, judgements)
        known = judgements.verdicts(shapes.rules, places)
        _keep(fleet.verdicts, key, known)
    return known, place


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember a value; the oldest ones are forgotten."""
    kept.pop(key, None)
    while len(kept) >= KEPT_VERDICTS:
        kept.pop(next(iter(kept)))
    kept[key] = value


def _widened(rule: PlacementRule, pool: PoolPolicy) -> PlacementRule:
    if not pool.default_tolerations:
        return rule
    tolerations = tuple(sorted({*rule.tolerations, *pool.default_tolerations}))
    return msgspec.structs.replace(rule, tolerations=tolerations)


def _shapes(shapes: ShapeTable, used: NDArray[np.int64], verdicts: Verdicts, place: Rows) -> ShapeColumns:
    offsets = np.zeros(len(used) + 1, np.int32)
    entries: list[tuple[int, int, int]] = []
    if shapes.away:
        for index, shape in enumerate(used.tolist()):
            entries.extend(shapes.away.get(shape, ()))
            offsets[index + 1] = len(entries)
    return ShapeColumns(
        request=shapes.request[used],
        class_row=shapes.class_row[used],
        rule=place[shapes.rule[used]],
        verdict=verdicts.verdict,
        texts=verdicts.texts,
        away_offsets=offsets,
        away_rule=place[np.array([rule for rule, _, _ in entries], np.int64)],
        away_priority=np.array([priority for _, priority, _ in entries], np.int64),
        away_entry=np.array([entry for _, _, entry in entries], np.int32),
    )


def _priorities(running: RunningColumns, shapes: ShapeColumns, class_priority: Amounts) -> Amounts:
    """Return the priorities at which jobs of the round are or may be bound, ascending."""
    of_classes = class_priority[shapes.class_row]
    return np.unique(np.concatenate((of_classes, running.priority, shapes.away_priority)))


def _gangs(fleet: FleetTable, gangs: GangRows, labels: tuple[str, ...], verdicts: Verdicts) -> GangColumns:
    places = {label: place for place, label in enumerate(labels)}
    own = np.array([places.get(label, -1) for label in (*gangs.labels, "")], np.int32)
    columns = [fleet.label(label) for label in labels]
    return GangColumns(
        cardinality=gangs.cardinality.astype(np.int32),
        label=own[gangs.label] if len(gangs.label) else np.zeros(0, np.int32),
        labels=labels,
        values=tuple(column.values for column in columns),
        domain=np.array([column.code[verdicts.first] for column in columns], np.int32).reshape(
            len(labels),
            len(verdicts.first),
        ),
    )
