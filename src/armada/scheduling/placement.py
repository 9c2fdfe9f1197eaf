"""Placement: nodes, shapes, gangs and victims laid out for the kernels that place one gang, all or nothing.

How a place is found, dearer choice after dearer: free room; room of evicted jobs, the last expected to return first;
room of jobs at lower priorities. All of it is in `kernels.gangs`, `kernels.search` and `kernels.victims`.
"""

from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.scheduling.fairness import open_books
from armada.scheduling.kernels.books import Books, share
from armada.scheduling.kernels.columns.sizes import SLOTS, count_nodes, find_sizes, list_nodes, mark_hopeless
from armada.scheduling.kernels.eviction import bind_running
from armada.scheduling.kernels.gangs import Placing
from armada.scheduling.kernels.jobs import HOPELESS, WITHHELD, Gangs, Jobs, Shapes
from armada.scheduling.kernels.nodes.holding import Holds, hold
from armada.scheduling.kernels.nodes.index import CHUNK
from armada.scheduling.kernels.nodes.room import Nodes
from armada.scheduling.kernels.victims import Victims, link
from armada.scheduling.snapshot import (
    AWAY,
    CROSS_POOL,
    Amounts,
    Flags,
    Floats,
    MarketColumns,
    PoolSnapshot,
    Rows,
)


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """Where one way of searching hands over to another. No decision depends on any of it.

    A rule that at most `few_nodes` nodes satisfy is searched by looking at each of them. A search for victims that has
    looked at `longest_walk` of them goes on with a heap; `heaps` kinds of request have one at a time, and `freed_ring`
    changes of nodes are remembered for them.
    """

    few_nodes: int = 24
    longest_walk: int = 192
    heaps: int = 24
    freed_ring: int = 4096


USUAL: Final = Tuning()


class Trade(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Every job of the round (running ones first) as the market sees it [X], and the `market` itself.

    `bid` is what it counts as bidding. `runs` and `leased` say if it ran when the round began, and since
    when. `rank` puts each queue's jobs in market order, apart from their ages.
    """

    market: MarketColumns
    bid: Floats
    band: Flags
    runs: Flags
    leased: Amounts
    rank: Amounts

    def reordered(self, rows: NDArray[np.int64]) -> "Trade":
        """Return the same of other rows."""
        return msgspec.structs.replace(
            self,
            bid=self.bid[rows],
            band=self.band[rows],
            runs=self.runs[rows],
            leased=self.leased[rows],
            rank=self.rank[rows],
        )


class Board(NamedTuple):
    """The state of a round: what kernels read and write. `trade` is set where the pool has a market."""

    jobs: Jobs
    shapes: Shapes
    nodes: Nodes
    gangs: Gangs
    books: Books
    holds: Holds
    trade: Trade | None


def lay_out(snapshot: PoolSnapshot, tuning: Tuning = USUAL) -> Board:
    """Return the board as it stands before the round: running jobs on their nodes and in the books."""
    jobs = lay_out_jobs(snapshot)
    shapes = lay_out_shapes(snapshot, tuning.few_nodes)
    nodes = lay_out_nodes(snapshot, shapes)
    bind_running(jobs, shapes, nodes)
    books = open_books(snapshot, jobs, shapes)
    return Board(jobs, shapes, nodes, lay_out_gangs(snapshot), books, _holds(snapshot, [], []), None)


def lay_out_jobs(snapshot: PoolSnapshot) -> Jobs:
    """Return running and queued jobs as one table, running ones first."""
    running, queued = snapshot.running, snapshot.queued
    count, waiting = len(running.row), len(queued.row)
    every = count + waiting
    queues = np.arange(len(snapshot.queues.names), dtype=np.int32)
    sizes = np.concatenate((np.diff(running.offsets), np.diff(queued.offsets)))
    node = np.full(every, -1, np.int32)
    node[:count] = running.node
    bucket = np.zeros(every, np.int32)
    priorities = np.array(snapshot.rules.priorities, np.int64)
    leased_at = np.searchsorted(priorities, running.priority).astype(np.int32)
    gives_way = (running.kind == AWAY) & snapshot.rules.cross_pool_preempted_first
    bucket[:count] = np.where(gives_way, snapshot.rules.priorities.index(CROSS_POOL), leased_at)
    return Jobs(
        shape=np.concatenate((running.shape, queued.shape)),
        gang=np.concatenate((running.gang, queued.gang)),
        queue=np.repeat(np.concatenate((queues, queues)), sizes),
        node=node,
        bucket=bucket,
        leased_at=leased_at,
        state=np.zeros(every, np.uint8),
        method=np.zeros(every, np.uint8),
        reason=np.zeros(every, np.uint8),
        saved=np.full(every, -1, np.int32),
        away_entry=np.full(every, -1, np.int32),
        running=count,
    )


def lay_out_shapes(snapshot: PoolSnapshot, few_nodes: int = USUAL.few_nodes) -> Shapes:
    """Return the shapes, with the nodes of those rules that few nodes satisfy."""
    shapes, rules, classes = snapshot.shapes, snapshot.rules, snapshot.classes
    bucket_of = {priority: bucket for bucket, priority in enumerate(rules.priorities)}
    on_nodes = ~np.array(rules.floating, np.bool_)
    wanted = np.ascontiguousarray(shapes.request * on_nodes)
    has_few, offsets, listed = _few_nodes(snapshot, few_nodes)
    return Shapes(
        request=shapes.request,
        wanted=wanted,
        class_row=shapes.class_row,
        rule=shapes.rule,
        verdict=shapes.verdict,
        has_few=has_few,
        few_offsets=offsets,
        few_nodes=listed,
        away_offsets=shapes.away_offsets,
        away_rule=shapes.away_rule,
        away_bucket=np.array([bucket_of[int(one)] for one in shapes.away_priority], np.int32),
        away_entry=shapes.away_entry,
        bucket_of_class=np.array([bucket_of.get(int(one), 0) for one in classes.priority], np.int32),
        priority_of_class=classes.priority,
        preemptible=classes.preemptible,
        barred=_barred(snapshot, wanted),
        priority_of_bucket=np.array(rules.priorities, np.int64),
    )


def _few_nodes(snapshot: PoolSnapshot, few_nodes: int) -> tuple[Flags, Rows, Rows]:
    """Return which rules accept few nodes only, the offsets of their lists, and the lists."""
    verdict, type_of = snapshot.shapes.verdict, snapshot.nodes.type
    of_type = np.bincount(type_of, minlength=verdict.shape[1]).astype(np.int64)
    counts = np.zeros(len(verdict), np.int64)
    count_nodes(verdict, of_type, few_nodes, counts)
    offsets = np.zeros(len(verdict) + 1, np.int32)
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    listed = np.zeros(int(offsets[-1]), np.int32)
    if len(listed):
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(of_type)))
        list_nodes(verdict, first, np.argsort(type_of, kind="stable"), offsets, listed)
    return (counts >= 0).astype(np.uint8), offsets, listed


def _barred(snapshot: PoolSnapshot, wanted: Amounts) -> Flags:
    """Return which shapes are placed nowhere, and for which of both reasons."""
    shapes, nodes = snapshot.shapes, snapshot.nodes
    room = max(shapes.verdict.shape[1], SLOTS // 2)
    size_type, size_room = np.zeros(room, np.int32), np.zeros((room, wanted.shape[1]), np.int64)
    sizes = find_sizes(nodes.type, nodes.allocatable, size_type, size_room, np.full(SLOTS, -1, np.int32))
    barred = np.zeros(len(shapes.rule), np.uint8)
    away = shapes.away_offsets, shapes.away_rule
    mark_hopeless(wanted, shapes.rule, *away, shapes.verdict, size_type, size_room, sizes, barred)
    barred *= HOPELESS
    for column in np.flatnonzero(snapshot.rules.unscheduled):
        barred[shapes.request[:, column] > 0] = WITHHELD
    return barred


def lay_out_nodes(snapshot: PoolSnapshot, shapes: Shapes) -> Nodes:
    """Return the nodes, empty of our jobs, with an index that is not built yet."""
    nodes, rules = snapshot.nodes, snapshot.rules
    buckets, count, width = len(rules.priorities), len(nodes.ids), len(rules.resources)
    column = np.array([column for column, _ in rules.indexed], np.int32)
    step = np.array([step for _, step in rules.indexed], np.int64)
    for index in range(len(column)):
        if not (
            (nodes.allocatable[:, column[index]] % step[index]).any() or _uneven(shapes, column[index], step[index])
        ):
            step[index] = 1
    lanes_merge = bool(count) and int(nodes.lane.max()) != int(nodes.lane.min())
    uneven = np.flatnonzero(step > 1)
    if lanes_merge:
        block = int(uneven[0]) + 1 if len(uneven) else len(step)
        key_column = np.concatenate((column[:block], column[block - 1 :]))
        key_step = np.concatenate((step[:block], np.ones(len(step) - block + 1, np.int64)))
    else:
        block, key_column, key_step = len(step), column, step
    keys = len(key_column) + 1
    ranks_follow_rows = _ranks_follow_rows(nodes.lane, nodes.rank)
    lanes = int(nodes.lane.max()) + 1 if count else 0
    return Nodes(
        free=np.repeat(nodes.allocatable[np.newaxis], buckets, axis=0),
        overfull=nodes.overfull,
        type=nodes.type,
        lane=nodes.lane,
        rank=nodes.rank,
        tie=nodes.rank if lanes_merge else np.arange(count, dtype=np.int32),
        column=column,
        step=step,
        key_column=key_column,
        key_step=key_step,
        block=block,
        lanes_merge=int(lanes_merge),
        ranks_follow_rows=int(ranks_follow_rows),
        walk_matters=int(lanes_merge and (len(uneven) > 0 or not ranks_follow_rows)),
        order=np.zeros((buckets, count), np.int32),
        key=np.zeros((buckets, count, keys), np.int64),
        built=np.zeros(buckets, np.uint8),
        stale=np.zeros((buckets, count), np.uint8),
        stale_list=np.zeros((buckets, count), np.int32),
        stale_count=np.zeros(buckets, np.int64),
        most=np.zeros((buckets, -(-count // CHUNK), width), np.int64),
        latest=np.zeros(buckets, np.int32),
        bound=np.zeros(keys, np.int64),
        spare=np.zeros(count, np.int32),
        lane_first=np.full(lanes, -1, np.int32),
        lane_top=np.full(lanes, -1, np.int32),
        lane_list=np.zeros(lanes, np.int32),
    )


def _uneven(shapes: Shapes, column: int, step: int) -> bool:
    return bool((shapes.wanted[:, column] % step).any())


def _ranks_follow_rows(lane: Rows, rank: Rows) -> bool:
    """Say whether in every lane the ranks of ids grow with the rows, so that a tie is decided alike by both."""
    order = np.lexsort((np.arange(len(lane)), lane))
    same_lane = lane[order][1:] == lane[order][:-1]
    return bool((rank[order][1:] > rank[order][:-1])[same_lane].all())


def lay_out_gangs(snapshot: PoolSnapshot) -> Gangs:
    """Return the gangs, and the nodes of every value of every label that gangs must agree in."""
    gangs, nodes = snapshot.gangs, snapshot.nodes
    base = np.zeros(len(gangs.labels) + 1, np.int32)
    np.cumsum([len(values) for values in gangs.values], out=base[1:])
    lists: list[NDArray[Any]] = []
    sizes: list[NDArray[Any]] = []
    for label, values in enumerate(gangs.values):
        code = gangs.domain[label][nodes.type]
        order = np.argsort(code, kind="stable")
        lists.append(order[np.count_nonzero(code < 0) :])
        sizes.append(np.bincount(code[code >= 0], minlength=len(values)))
    offsets = np.zeros(int(base[-1]) + 1, np.int32)
    np.cumsum(np.concatenate([*sizes, np.zeros(0, np.int64)]), out=offsets[1:])
    types = snapshot.shapes.verdict.shape[1]
    return Gangs(
        cardinality=gangs.cardinality,
        label=gangs.label,
        base=base,
        domain_of_type=gangs.domain if len(gangs.labels) else np.full((1, types), -1, np.int32),
        offsets=offsets,
        nodes=np.concatenate([*lists, np.zeros(0, np.int64)]).astype(np.int32),
        agreed=np.full(len(gangs.cardinality), -1, np.int32),
    )


def hold_room(snapshot: PoolSnapshot, board: Board, due: Floats) -> Holds:
    """Hold free room for the first gang of every queue that is to have some held and holds less than its due [Q].

    No room is held for what its queue may not have, for gangs with a member that fits no node at all, nor for gangs
    whose members must agree in a label, because no one can say yet on which value they will.
    """
    jobs, shapes, nodes, books = board.jobs, board.shapes, board.nodes, board.books
    queued, queues = snapshot.queued, snapshot.queues
    gangs: list[tuple[int, int, int]] = []
    held: list[tuple[int, Amounts]] = []
    for queue in np.flatnonzero(queues.holds & np.uint8(snapshot.rules.home_scheduling)):
        members = _first_gang(snapshot, int(queue))
        own = queued.shape[members]
        if not len(members) or queues.cordoned[queue] or (shapes.barred[own] == WITHHELD).any():
            continue
        class_row = shapes.class_row[own[0]]
        would_hold = books.held_in_class[queue, class_row] + shapes.request[own].sum(axis=0)
        has_its_due = share(books.total, books.multiplier, books.held[queue]) >= due[queue]
        if has_its_due or (would_hold > books.limit[queue, class_row]).any():
            continue
        if not all(_fits_an_empty_node(snapshot, shapes, int(shape)) for shape in np.unique(own)):
            continue
        for shape in own:
            room = np.zeros(len(would_hold), np.int64)
            verdict = shapes.verdict[shapes.rule[shape]]
            if (node := hold(nodes, snapshot.nodes.allocatable, verdict, shapes.wanted[shape], room)) >= 0:
                held.append((node, room))
        gangs.append((int(queue), jobs.running + int(members[0]), len(held)))
    return _holds(snapshot, gangs, held)


def _fits_an_empty_node(snapshot: PoolSnapshot, shapes: Shapes, shape: int) -> bool:
    """Say whether a node that takes new jobs could hold a shape at home if nothing ran there."""
    nodes = snapshot.nodes
    fits = (nodes.allocatable >= shapes.wanted[shape]).all(axis=1) & (nodes.overfull == 0)
    return bool((fits & (shapes.verdict[shapes.rule[shape]][nodes.type] < 0)).any())


def _holds(snapshot: PoolSnapshot, gangs: list[tuple[int, int, int]], held: list[tuple[int, Amounts]]) -> Holds:
    """Return holds as columns: gangs as (queue, first member, number of holds with it), holds as (node, room)."""
    first = np.full(len(snapshot.queues.names), -1, np.int32)
    offsets = np.zeros(len(snapshot.queues.names) + 1, np.int32)
    for queue, job, end in gangs:
        first[queue] = job
        offsets[queue + 1] = end
    return Holds(
        job=first,
        offsets=np.maximum.accumulate(offsets),
        node=np.array([node for node, _ in held], np.int32),
        room=np.array([room for _, room in held], np.int64).reshape(len(held), len(snapshot.rules.resources)),
    )


def _first_gang(snapshot: PoolSnapshot, queue: int) -> NDArray[np.int64]:
    """Return the places of the queued jobs that a queue would have served first; none if they can't be held for."""
    queued, gangs = snapshot.queued, snapshot.gangs
    start, end = int(queued.offsets[queue]), int(queued.offsets[queue + 1])
    if start == end or queued.gang[start] < 0:
        return np.arange(start, min(start + 1, end))
    gang = queued.gang[start]
    members = start + np.flatnonzero(queued.gang[start:end] == gang)
    is_whole = len(members) == gangs.cardinality[gang] and gangs.label[gang] < 0
    return members if is_whole else members[:0]


def line_up_victims(board: Board, job_at: Rows, tuning: Tuning = USUAL) -> Victims:
    """Return the evicted jobs that can be preempted, given all in the order in which they are expected to return."""
    jobs, shapes = board.jobs, board.shapes
    job_at = job_at[shapes.preemptible[shapes.class_row[jobs.shape[job_at]]] > 0]
    count, node_count, width = len(job_at), board.nodes.free.shape[1], board.nodes.free.shape[2]
    node = jobs.node[job_at]
    offsets = np.zeros(node_count + 1, np.int32)
    np.cumsum(np.bincount(node, minlength=node_count), out=offsets[1:])
    heap_room = 2 * node_count + 64
    victims = Victims(
        job=job_at,
        place_of=np.full(len(jobs.node), -1, np.int32),
        is_out=np.ones(count, np.uint8),
        before=np.zeros(count + 1, np.int32),
        after=np.zeros(count + 1, np.int32),
        offsets=offsets,
        on_node=np.lexsort((-np.arange(count), node)).astype(np.int32),
        sibling=np.full(count, -1, np.int32),
        gang_start=np.full(len(board.gangs.cardinality), -1, np.int32),
        stamp=np.zeros(node_count, np.int64),
        gathered=np.zeros((node_count, width), np.int64),
        clock=np.zeros(1, np.int64),
        freed=np.zeros(tuning.freed_ring, np.int32),
        freed_count=np.zeros(1, np.int64),
        heap_place=np.zeros((tuning.heaps, heap_room), np.int32),
        heap_node=np.zeros((tuning.heaps, heap_room), np.int32),
        heap_size=np.zeros(tuning.heaps, np.int64),
        heap_kind=np.full((tuning.heaps, 3), -1, np.int64),
        heap_cursor=np.zeros(tuning.heaps, np.int64),
        heap_used=np.zeros(tuning.heaps, np.int64),
        longest_walk=tuning.longest_walk,
    )
    link(jobs, victims)
    return victims


def placing_for(snapshot: PoolSnapshot, job_count: int, victim_count: int) -> Placing:
    """Return how this pool places jobs, with an empty journal."""
    rules = snapshot.rules
    steps = job_count + 2 * victim_count + 1
    return Placing(
        home=int(rules.home_scheduling),
        away=int(rules.away_scheduling),
        gang_away=int(rules.gang_away_scheduling),
        takes_fair_share=int(rules.fairshare_preemption),
        takes_by_urgency=int(rules.urgency_preemption),
        step=np.zeros(steps, np.uint8),
        job=np.zeros(steps, np.int32),
        noted=np.zeros(1, np.int64),
    )
