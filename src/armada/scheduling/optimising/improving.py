"""`improve`: gangs of queues below their share get places for which few others have to go (0022).

The rules are those of the reference's fairness optimiser. What a place costs is the dominant share of the jobs that
have to go, without those of lower priority and those whose queue stays above its due all the same. The kernels are in
`kernels.optimising`; here their tables are made, and they are given work in stretches, so that whoever has a clock can
stop them.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from armada.scheduling.decisions import Optimised
from armada.scheduling.fairness import Shares
from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import share
from armada.scheduling.kernels.optimising import deals
from armada.scheduling.kernels.optimising.deals import Deals, make_deals, open_deals, price_shapes
from armada.scheduling.kernels.optimising.offers import Offers
from armada.scheduling.kernels.streams import Streams
from armada.scheduling.ordering import open_streams
from armada.scheduling.placement import Board
from armada.scheduling.snapshot import Flags, OptimiserColumns, PoolSnapshot, Rows

STRETCH: Final = 2_000_000
"""So many nodes are looked at before anybody is asked whether there is time for more: some ten milliseconds."""


def improve(
    snapshot: PoolSnapshot,
    board: Board,
    shares: Shares,
    terms: OptimiserColumns,
    may_go_on: Callable[[], bool],
) -> tuple[Optimised, Flags]:
    """Make every deal that is worth it; return figures, and which jobs gave way in one.

    `may_go_on` is asked before every stretch of work; where it says no the optimiser ends, with whole deals.
    """
    jobs, shapes, nodes, gangs, books, holds, _ = board
    _send_back(board)
    streams = _streams(snapshot, board, _waiting_of_poor(snapshot, board, shares))
    offers, candidates = _offers(snapshot, board, shares, terms)
    bounds = _deals(board, terms)
    open_deals(jobs, shapes, books, streams, offers, candidates)
    floating = np.array(snapshot.rules.floating, np.uint8)
    stretches, is_more = 0, snapshot.rules.home_scheduling
    while is_more and may_go_on():
        is_more = make_deals(jobs, shapes, nodes, gangs, books, streams, offers, bounds, holds, floating, STRETCH)
        stretches += 1
    figures = Optimised(
        tried=int(bounds.tally[deals.TRIED]),
        placed=int(bounds.tally[deals.JOBS]),
        stretches=stretches,
        ran_out=bool(is_more),
    )
    return figures, bounds.yielded


def _send_back(board: Board) -> None:
    """Let jobs that the second pass drove out of a new place wait again, with the reason that is true so far."""
    jobs = board.jobs
    dropped = jobs.running + np.flatnonzero(jobs.state[jobs.running :] == codes.LOST)
    jobs.reason[dropped] = np.where(jobs.gang[dropped] >= 0, codes.GANG_LOST_AGAIN, codes.LOST_AGAIN)
    jobs.node[dropped] = -1
    jobs.state[dropped] = codes.RUNS


def _waiting_of_poor(snapshot: PoolSnapshot, board: Board, shares: Shares) -> Rows:
    """Return the waiting jobs of queues that hold less than their due, queue by queue, as far as queues are read."""
    jobs, books, offsets = board.jobs, board.books, snapshot.queued.offsets
    parts = [np.zeros(0, np.int64)]
    for queue in range(len(snapshot.queues.names)):
        held = share(books.total, books.multiplier, books.held[queue] + books.penalty[queue])
        if held < shares.demand_capped[queue]:
            first, last = jobs.running + int(offsets[queue]), jobs.running + int(offsets[queue + 1])
            waiting = first + np.flatnonzero(jobs.node[first:last] < 0)
            parts.append(waiting[: snapshot.rules.lookback])
    return np.concatenate(parts).astype(np.int32)


def _streams(snapshot: PoolSnapshot, board: Board, waiting: Rows) -> Streams:
    """Return streams of the waiting jobs, in which a gang is complete with all the members that it says it has."""
    streams = open_streams(snapshot, board.jobs, waiting, second_pass=True)
    needed = np.repeat(snapshot.gangs.cardinality[np.newaxis], 2, axis=0)
    return streams._replace(needed=needed, by_bucket=0, prefers_large=0)


def _offers(snapshot: PoolSnapshot, board: Board, shares: Shares, terms: OptimiserColumns) -> tuple[Offers, Rows]:
    """Return the table of offers, still without candidates, and the candidates by node in the order of its chain."""
    jobs, shapes, books = board.jobs, board.shapes, board.books
    cost = np.zeros(len(shapes.request), np.float64)
    price_shapes(books.total, books.multiplier, shapes.request, cost)
    largest = np.array(terms.largest, np.int64)
    is_small = ((largest == 0) | (shapes.request <= largest)).all(axis=1)
    goes = is_small & (shapes.preemptible[shapes.class_row] == 1)
    count, node_count, width = len(jobs.node), len(snapshot.nodes.ids), len(snapshot.rules.resources)
    scheduled_at = np.where(
        jobs.node >= 0, shapes.priority_of_bucket[jobs.bucket], shapes.priority_of_class[shapes.class_row[jobs.shape]]
    )
    scheduled_at[: jobs.running] = snapshot.running.priority
    leased_ms = np.full(count, terms.now_ms, np.int64)
    leased_ms[: jobs.running] = snapshot.running.leased_ms
    placed = np.flatnonzero((jobs.node >= 0) & (jobs.state == codes.RUNS) & (jobs.gang < 0) & goes[jobs.shape])
    keys = (
        terms.submitted[placed],
        -leased_ms[placed],
        cost[jobs.shape[placed]],
        scheduled_at[placed],
        jobs.queue[placed],
        jobs.node[placed],
    )
    candidates = placed[np.lexsort(keys)].astype(np.int32)
    places = len(candidates) + min(terms.most_jobs, count - jobs.running)
    queues = len(snapshot.queues.names)
    offers = Offers(
        cost=cost,
        goes=goes.astype(np.uint8),
        due=shares.demand_capped,
        held=np.zeros(queues, np.float64),
        scheduled_at=scheduled_at,
        leased_ms=leased_ms,
        submitted=terms.submitted,
        first=np.full(node_count, -1, np.int32),
        after=np.full(count, -1, np.int32),
        room=np.zeros((node_count, width), np.int64),
        start=np.zeros(node_count, np.int64),
        length=np.zeros(node_count, np.int64),
        built=np.full(node_count, -1, np.int64),
        order=np.zeros(places, np.int32),
        freed=np.zeros((places, width), np.int64),
        price=np.zeros(places, np.float64),
        clock=np.array([0, -1], np.int64),
        used=np.zeros(1, np.int64),
        head=np.zeros(queues, np.int32),
        left=np.zeros(queues, np.float64),
        here=np.zeros(queues, np.int32),
        taken=np.zeros(queues, np.float64),
    )
    return offers, candidates


def _deals(board: Board, terms: OptimiserColumns) -> Deals:
    count, node_count, width = len(board.jobs.node), board.nodes.free.shape[1], board.nodes.free.shape[2]
    return Deals(
        most_jobs=terms.most_jobs,
        most=np.array(terms.most, np.int64),
        smallest=np.array(terms.smallest, np.int64),
        improvement=float(terms.improvement_percent),
        placed=np.zeros(width, np.int64),
        tally=np.zeros(5, np.int64),
        gone=np.zeros(count, np.int32),
        settled=np.zeros(count, np.int32),
        all_nodes=np.arange(node_count, dtype=np.int32),
        yielded=np.zeros(count, np.uint8),
    )
