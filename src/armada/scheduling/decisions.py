"""What a round decided: who runs where, who makes room, who waits and why, and how the queues stand.

Results are arrays first, because a round may decide about a hundred thousand jobs; single decisions and texts are made
when asked for. Rows are the caller's own names for jobs (`row` of the snapshot's columns).
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.resources import format_quantity
from armada.scheduling.kernels import codes
from armada.scheduling.repeating.stops import Stop
from armada.scheduling.snapshot import AWAY, CROSS_POOL, HOME, Amounts, Flags, PoolSnapshot, Rows

SHARE_TOLERANCE: Final = 1e-9


class Method(IntEnum):
    """How a lease's place was found. A job placed in the first pass and put back in the second is RESCHEDULED."""

    FREE_ROOM = codes.FREE_ROOM
    FAIR_SHARE = codes.FAIR_SHARE
    URGENCY = codes.URGENCY
    AWAY = codes.AWAY
    RESCHEDULED = codes.RESCHEDULED
    OPTIMISER = codes.OPTIMISER


class PreemptionKind(IntEnum):
    """Why a running job loses its place.

    FAIR_SHARE: to a queue below its share (siblings in a gang too). URGENCY: to a job of higher or equal class on its
    node. OPTIMISER: to a job whose place makes the pool fairer by more than those that it costs. GANG: only because a
    sibling lost its own. DISPLACED: to jobs that the round put first, none in particular.
    """

    FAIR_SHARE = 1
    URGENCY = 2
    OPTIMISER = 3
    GANG = 4
    DISPLACED = 5


class Reason(IntEnum):
    """Why a job that the round looked at was not placed."""

    NO_FIT = codes.NO_FIT
    GANG_NO_FIT = codes.GANG_NO_FIT
    FLOATING_EXCEEDED = codes.FLOATING_EXCEEDED
    LABEL_UNKNOWN = codes.LABEL_UNKNOWN
    LABEL_NO_FIT = codes.LABEL_NO_FIT
    QUEUE_LIMIT = codes.QUEUE_LIMIT
    QUEUE_CORDONED = codes.QUEUE_CORDONED
    QUEUE_RATE = codes.QUEUE_RATE
    QUEUE_BURST = codes.QUEUE_BURST
    QUEUE_RATE_GANG = codes.QUEUE_RATE_GANG
    GLOBAL_RATE = codes.GLOBAL_RATE
    GLOBAL_BURST = codes.GLOBAL_BURST
    GLOBAL_RATE_GANG = codes.GLOBAL_RATE_GANG
    ROUND_LIMIT = codes.ROUND_LIMIT
    GANG_INCOMPLETE = codes.GANG_INCOMPLETE
    UNSCHEDULED_RESOURCE = codes.UNSCHEDULED_RESOURCE
    LOST_AGAIN = codes.LOST_AGAIN
    GANG_LOST_AGAIN = codes.GANG_LOST_AGAIN
    GLOBAL_NEW_JOB_TIME = codes.GLOBAL_NEW_JOB_TIME
    QUEUE_NEW_JOB_TIME = codes.QUEUE_NEW_JOB_TIME


class Termination(IntEnum):
    """What ended the placing of new jobs. After TIMEOUT nothing at all was decided."""

    COMPLETED = codes.COMPLETED
    RATE_LIMIT = codes.RATE_LIMIT
    MAX_RESOURCES = codes.MAX_RESOURCES
    SOFT_TIMEOUT = codes.SOFT_TIMEOUT
    TIMEOUT = codes.TIMEOUT


REASON_TEXTS = {
    Reason.NO_FIT: "no node has room for the job",
    Reason.GANG_NO_FIT: "the nodes do not have room for all members of the gang at once",
    Reason.FLOATING_EXCEEDED: "the pool has not enough left of a floating resource that the job asks for",
    Reason.LABEL_UNKNOWN: "no node has the label that the gang's members must agree in",
    Reason.LABEL_NO_FIT: "no value of the label that the gang's members must agree in has room for all of them",
    Reason.QUEUE_LIMIT: "the queue would hold more than it may in this priority class",
    Reason.QUEUE_CORDONED: "the queue is cordoned",
    Reason.QUEUE_RATE: "the queue's scheduling rate is used up for now",
    Reason.QUEUE_BURST: "the gang has more members than the queue's scheduling burst: it can never be placed",
    Reason.QUEUE_RATE_GANG: "the gang has more members than the queue's scheduling rate leaves for now",
    Reason.GLOBAL_RATE: "the scheduling rate is used up for now",
    Reason.GLOBAL_BURST: "the gang has more members than the scheduling burst: it can never be placed",
    Reason.GLOBAL_RATE_GANG: "the gang has more members than the scheduling rate leaves for now",
    Reason.ROUND_LIMIT: "the round has placed as much as one round may",
    Reason.GANG_INCOMPLETE: "not all members of the gang have been submitted",
    Reason.UNSCHEDULED_RESOURCE: "the job asks for a resource that this pool does not give out",
    Reason.LOST_AGAIN: "the job found room, but jobs that go first needed it",
    Reason.GANG_LOST_AGAIN: "the gang found room, but jobs that go first needed some of it",
    Reason.GLOBAL_NEW_JOB_TIME: "the time that one round may spend on new jobs is used up",
    Reason.QUEUE_NEW_JOB_TIME: "the time that one round may spend on the queue's new jobs is used up",
}


class Leases(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Jobs that get a run (K): the node's row in the snapshot, the priority they are bound at, and how.

    `away_entry` is the place in the class's away node types, or -1. `label` and `value` are those that a gang's members
    agree in, as rows of the snapshot's gang labels and their values, or -1.
    """

    row: Rows
    node: Rows
    priority: Amounts
    method: Flags
    away_entry: Rows
    label: Rows
    value: Rows


class Preemptions(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Running jobs that lose their run (K). `for_row` is the job that gets the room, or -1 where no single one does.

    `node` is -1 for a member of a gang that goes with the others and stands on no node of the round.
    """

    row: Rows
    node: Rows
    kind: Flags
    for_row: Rows


class Refusals(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Queued jobs that were looked at and not placed, with the shape's row and the code of the reason."""

    row: Rows
    shape: Rows
    reason: Flags


class HeldRoom(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Nodes (rows of the snapshot) of which free room is kept for a queued job that has waited long, or for its gang.

    `row` is the job, of a gang the first member. One has as many entries as nodes.
    """

    row: Rows
    node: Rows


class QueueFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue stands in the pool. Shares are fractions of the pool; `allocated` is after the round.

    Queues take turns, each with one job or gang: `turns` is how many this one had, `first_turn` the number of its first
    and `last_placing_turn` of the last that placed something, both 0 where there was none.
    """

    name: str
    weight: float
    raw_weight: float
    fair_share: float
    demand_capped_share: float
    uncapped_share: float
    actual_share: float
    demand_share: float
    constrained_demand_share: float
    allocated: tuple[int, ...]
    demand: tuple[int, ...]
    constrained_demand: tuple[int, ...]
    penalty: tuple[int, ...]
    penalty_share: float = 0.0
    turns: int = 0
    first_turn: int = 0
    last_placing_turn: int = 0


class QueueMarket(msgspec.Struct, frozen=True, kw_only=True):
    """What a round of a market comes to for one queue.

    `billable` is what the queue pays for, at `price_override` where that is given, else at the spot price.
    `realised_value` is what its jobs in place are worth to it, `idealised_value` what they would be if the pool were
    one node that everything may run on, with the amounts `idealised` placed. Values are bids times resource units.
    """

    name: str
    billable: tuple[int, ...]
    price_override: float | None
    idealised: tuple[int, ...]
    idealised_value: float
    realised_value: float


class IndicativePrice(msgspec.Struct, frozen=True, kw_only=True):
    """What a gang of a named kind would have to bid to be placed now.

    `price` is NaN where it is unknown: `reason` says whether there is no place at any price or no time was left to
    look for one (`evaluated` is False then).
    """

    name: str
    price: float
    evaluated: bool
    schedulable: bool
    reason: str = ""


class MarketFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a round of a market comes to; queues in the order of `Decisions.queues`. No spot price is 0."""

    spot_price: float
    queues: tuple[QueueMarket, ...]
    indicative_prices: tuple[IndicativePrice, ...]


class Optimised(msgspec.Struct, frozen=True, kw_only=True):
    """What the fairness optimiser did: gangs that it tried and jobs that it placed.

    `stretches` are how many stretches of work it was given; `ran_out` says that it had to stop before the end.
    """

    tried: int
    placed: int
    stretches: int
    ran_out: bool


class IndicativeShare(msgspec.Struct, frozen=True, kw_only=True):
    """The demand-capped share that a new queue of this priority factor with endless demand would have."""

    priority: int
    share: float


class LeaseDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One lease. `uniformity` is the label and value that the gang's members share, or None."""

    row: int
    node_id: str
    priority: int
    method: Method
    away_entry: int
    uniformity: tuple[str, str] | None


class PreemptionDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One preemption. `for_row` is -1 where no single job gets the room; `node_id` is empty outside of the round."""

    row: int
    node_id: str
    kind: PreemptionKind
    for_row: int


class Decisions(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """All that a round decided about one pool. `seed` is the one it ran with.

    `evicted` are the running jobs that had to compete for their place again, whether they kept it or not. `held` is
    room that the round left free on purpose. `market` is there for a pool with a market, `optimised` where the fairness
    optimiser took part. `gave_way` counts the jobs that fair-share preemption took tokens for; 0 where that has no
    limit. `turns` is how often a queue was served. `stops` are where the round's time ran out.
    """

    snapshot: PoolSnapshot
    seed: int
    leases: Leases
    preemptions: Preemptions
    refusals: Refusals
    queues: tuple[QueueFigures, ...]
    termination: Termination
    evicted: Rows
    held: HeldRoom
    gave_way: int = 0
    market: MarketFigures | None = None
    turns: int = 0
    optimised: Optimised | None = None
    indicative_shares: tuple[IndicativeShare, ...] = ()
    stops: tuple[Stop, ...] = ()

    @property
    def fairness_error(self) -> float:
        """By how much queues stay below their demand-capped shares, in all."""
        return sum(max(0.0, queue.demand_capped_share - queue.actual_share) for queue in self.queues)

    def each_lease(self) -> Iterator[LeaseDecision]:
        """Give the leases one by one."""
        leases, gangs, ids = self.leases, self.snapshot.gangs, self.snapshot.nodes.ids
        columns = (
            leases.row,
            leases.node,
            leases.priority,
            leases.method,
            leases.away_entry,
            leases.label,
            leases.value,
        )
        for row, node, priority, method, entry, label, value in zip(*(one.tolist() for one in columns), strict=True):
            yield LeaseDecision(
                row=row,
                node_id=ids[node],
                priority=priority,
                method=Method(method),
                away_entry=entry,
                uniformity=None if label < 0 else (gangs.labels[label], gangs.values[label][value]),
            )

    def each_preemption(self) -> Iterator[PreemptionDecision]:
        """Give the preemptions one by one."""
        lost, ids = self.preemptions, self.snapshot.nodes.ids
        columns = (lost.row, lost.node, lost.kind, lost.for_row)
        for row, node, kind, for_row in zip(*(one.tolist() for one in columns), strict=True):
            yield PreemptionDecision(
                row=row, node_id=ids[node] if node >= 0 else "", kind=PreemptionKind(kind), for_row=for_row
            )

    def each_refusal(self) -> Iterator[tuple[int, Reason]]:
        """Give (row, reason) of the jobs that were looked at and not placed, one by one."""
        for row, reason in zip(self.refusals.row.tolist(), self.refusals.reason.tolist(), strict=True):
            yield row, Reason(reason)

    def reason_text(self, index: int) -> str:
        """Say in words why refusal number `index` was made, with what the nodes have against the job."""
        reason = Reason(int(self.refusals.reason[index]))
        text = REASON_TEXTS[reason]
        if reason not in (Reason.NO_FIT, Reason.GANG_NO_FIT, Reason.LABEL_NO_FIT):
            return text
        return "; ".join((text, *node_objections(self.snapshot, int(self.refusals.shape[index]))))


def node_objections(snapshot: PoolSnapshot, shape: int) -> tuple[str, ...]:
    """Count the nodes by what they have against a shape: tests that they fail, size, or that they are in use."""
    nodes, shapes, rules = snapshot.nodes, snapshot.shapes, snapshot.rules
    verdict = shapes.verdict[shapes.rule[shape]][nodes.type]
    objections = [
        f"{_nodes(int((verdict == text).sum()))}: {shapes.texts[text]}" for text in np.unique(verdict[verdict >= 0])
    ]
    open_nodes = verdict < 0
    for column, name in enumerate(rules.resources):
        wanted = int(shapes.request[shape, column])
        if wanted == 0 or rules.floating[column]:
            continue
        small = open_nodes & (nodes.allocatable[:, column] < wanted)
        if small.any():
            most = int(nodes.allocatable[small, column].max())
            objections.append(
                f"{_nodes(int(small.sum()))}: {shown(snapshot, column, wanted)} {name} asked for,"
                f" at most {shown(snapshot, column, most)} offered",
            )
            open_nodes &= ~small
    if open_nodes.any():
        objections.append(
            f"{_nodes(int(open_nodes.sum()))} could hold it but {'are' if open_nodes.sum() > 1 else 'is'} in use"
        )
    return tuple(objections)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def shown(snapshot: PoolSnapshot, column: int, amount: int) -> str:
    """Return an amount of a column as a quantity."""
    return format_quantity(amount * 10 ** snapshot.rules.exponents[column])


def check_invariants(decisions: Decisions) -> tuple[str, ...]:
    """Return everything in the decisions that no round may ever decide, as sentences; nothing when all is well.

    Checked: every job decided once; nodes not overfull by our doing, at any priority; gangs whole and agreeing in
    their label; nothing non-preemptible preempted; fairness takes nothing from protected queues; no lease against a
    node's taints, labels or size; tokens not overdrawn; shares that add up.
    """
    snapshot, leases, lost = decisions.snapshot, decisions.leases, decisions.preemptions
    queued, running = snapshot.queued, snapshot.running
    won = _places(queued.row, leases.row)
    gone = _places(running.row, lost.row)
    refused = _places(queued.row, decisions.refusals.row)
    found = []
    decided = np.concatenate((won, refused))
    if len(np.unique(decided)) != len(decided):
        found.append("a queued job is decided twice")
    if len(np.unique(gone)) != len(gone):
        found.append("a running job is preempted twice")
    solid = snapshot.classes.preemptible[snapshot.shapes.class_row[running.shape[gone]]] == 0
    if solid.any():
        found.append("a job that is not preemptible is preempted")
    found += _misplaced(snapshot, leases, won)
    found += _overfull(snapshot, leases, won, gone)
    found += _torn_gangs(snapshot, leases, won, gone)
    found += _protected_losses(decisions, gone)
    per_queue = np.bincount(
        np.searchsorted(queued.offsets, won, side="right") - 1, minlength=len(snapshot.queues.names)
    )
    if (per_queue > np.maximum(snapshot.queues.tokens, 0)).any() or len(won) > max(snapshot.rules.global_tokens, 0):
        found.append("more jobs are leased than there were tokens")
    if sum(queue.demand_capped_share for queue in decisions.queues) > 1 + SHARE_TOLERANCE:
        found.append("the demand-capped shares exceed the pool")
    return tuple(found)


def _protected_losses(decisions: Decisions, gone: NDArray[np.int64]) -> list[str]:
    """Check that queues which held no more than their protected share lost nothing to fairness."""
    snapshot, running, rules = decisions.snapshot, decisions.snapshot.running, decisions.snapshot.rules
    if snapshot.market is not None:
        return []
    by_fairness = (decisions.preemptions.kind == PreemptionKind.FAIR_SHARE) & (running.kind[gone] == HOME)
    found = []
    for queue in np.unique(np.searchsorted(running.offsets, gone[by_fairness], side="right") - 1):
        jobs = slice(running.offsets[queue], running.offsets[queue + 1])
        held = snapshot.shapes.request[running.shape[jobs][running.kind[jobs] == HOME]].sum(axis=0)
        amounts = zip(held, rules.total, rules.multipliers, strict=True)
        cost = max(amount / total * multiplier for amount, total, multiplier in amounts if total > 0)
        figures = decisions.queues[queue]
        due = max(figures.demand_capped_share, figures.fair_share)
        if rules.protects_uncapped_share:
            due = figures.uncapped_share
        if cost <= due * rules.protected_fraction - SHARE_TOLERANCE:
            found.append(f"fairness takes from queue {figures.name}, which holds no more than is protected")
    return found


def _places(rows: Rows, named: Rows) -> NDArray[np.int64]:
    """Return where the named rows stand in a column of distinct rows."""
    order = np.argsort(rows, kind="stable")
    places: NDArray[np.int64] = order[np.searchsorted(rows, named, sorter=order)].astype(np.int64)
    return places


def _misplaced(snapshot: PoolSnapshot, leases: Leases, won: NDArray[np.int64]) -> list[str]:
    shapes, nodes = snapshot.shapes, snapshot.nodes
    shape = snapshot.queued.shape[won]
    rule = shapes.rule[shape].copy()
    for index in np.flatnonzero(leases.away_entry >= 0):
        entries = slice(shapes.away_offsets[shape[index]], shapes.away_offsets[shape[index] + 1])
        entry = np.flatnonzero(shapes.away_entry[entries] == leases.away_entry[index])
        rule[index] = shapes.away_rule[entries][entry[0]]
    found = []
    if (shapes.verdict[rule, nodes.type[leases.node]] >= 0).any():
        found.append("a job is leased to a node that it must not run on")
    on_nodes = shapes.request[shape] * ~np.array(snapshot.rules.floating, np.bool_)
    if (on_nodes > nodes.total[leases.node]).any():
        found.append("a job is leased to a node that is smaller than the job")
    return found


def _overfull(snapshot: PoolSnapshot, leases: Leases, won: NDArray[np.int64], gone: NDArray[np.int64]) -> list[str]:
    """Check every bucket of every node that was not overfull before, with what is bound after the round."""
    rules, nodes, running = snapshot.rules, snapshot.nodes, snapshot.running
    on_nodes = snapshot.shapes.request * ~np.array(rules.floating, np.bool_)
    stays = np.ones(len(running.row), np.bool_)
    stays[gone] = False
    stays &= running.node >= 0
    node = np.concatenate((running.node[stays], leases.node))
    shape = np.concatenate((running.shape[stays], snapshot.queued.shape[won]))
    bound_at = np.where((running.kind == AWAY) & rules.cross_pool_preempted_first, CROSS_POOL, running.priority)
    priority = np.concatenate((bound_at[stays], leases.priority))
    solid = snapshot.classes.preemptible[snapshot.shapes.class_row[shape]] == 0
    found = []
    for bucket in rules.priorities[1:]:
        counts = solid | (priority >= bucket)
        free = nodes.allocatable.copy()
        np.subtract.at(free, node[counts], on_nodes[shape[counts]])
        if (free < 0)[nodes.overfull == 0].any():
            found.append(f"a node has given out more than it has at priority {bucket}")
    return found


def _torn_gangs(snapshot: PoolSnapshot, leases: Leases, won: NDArray[np.int64], gone: NDArray[np.int64]) -> list[str]:
    gangs, running = snapshot.gangs, snapshot.running
    count = len(gangs.cardinality)
    gang = snapshot.queued.gang[won]
    members = np.bincount(gang[gang >= 0], minlength=count)
    found = []
    if ((members > 0) & (members != gangs.cardinality)).any():
        found.append("a gang is leased in part")
    before = np.bincount(running.gang[running.gang >= 0], minlength=count)
    lost_gang = running.gang[gone]
    lost = np.bincount(lost_gang[lost_gang >= 0], minlength=count)
    if ((lost > 0) & (lost != before)).any():
        found.append("a gang is preempted in part")
    labelled = np.flatnonzero((gang >= 0) & (leases.label >= 0))
    domain = gangs.domain[leases.label[labelled], snapshot.nodes.type[leases.node[labelled]]]
    if (domain != leases.value[labelled]).any() or (domain < 0).any():
        found.append("members of a gang disagree in the label that they must agree in")
    return found
