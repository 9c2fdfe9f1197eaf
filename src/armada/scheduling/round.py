"""`schedule`: one round of one pool, from snapshot to decisions.

The steps: (1) shares; (2) evict; (3) order; (4) place gang by gang; (5) evict where nodes gave out too much; (6) place
the evicted again, and let the fairness optimiser add to it; (7) compare with the start to get leases and preemptions;
(8) explain the rest.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armada.scheduling.decisions import (
    Decisions,
    HeldRoom,
    Leases,
    PreemptionKind,
    Preemptions,
    Refusals,
    Termination,
)
from armada.scheduling.eviction import (
    evict_again,
    evict_by_fairness,
    evict_everything,
    evict_oversubscribed,
    highest_first,
    is_oversubscribed,
    lose_siblings,
)
from armada.scheduling.fairness import Shares, due_shares, indicative_shares, queue_figures, work_out_shares
from armada.scheduling.kernels import codes
from armada.scheduling.kernels.columns.rows import take
from armada.scheduling.kernels.draw import draw
from armada.scheduling.kernels.jobs import Jobs, sort_out
from armada.scheduling.kernels.market.turns import Market
from armada.scheduling.market.bidding import open_trade
from armada.scheduling.market.figures import market_figures, no_figures
from armada.scheduling.market.order import line_up
from armada.scheduling.market.pricing import price_gangs
from armada.scheduling.optimising.improving import improve
from armada.scheduling.ordering import expected_order, open_streams, tie_order
from armada.scheduling.placement import USUAL, Board, Tuning, hold_room, lay_out, line_up_victims, placing_for
from armada.scheduling.repeating.stops import Clock, OutOfTime, Stop, Watch
from armada.scheduling.snapshot import Flags, PoolSnapshot, Rows

REPAIRS: Final = 4
"""After so many attempts whoever still sits on an overfull node at that priority has to go."""


class Pass(Enum):
    """Which draw: evicted and queued jobs; those of overfull nodes; the same again, higher priorities first."""

    FIRST = 1
    SECOND = 2
    REPAIR = 3


class _Course(NamedTuple):
    """How a round is carried out: its lot, how it searches, and who watches its time."""

    seed: int
    tuning: Tuning
    watch: Watch


def schedule(
    snapshot: PoolSnapshot,
    seed: int = 0,
    *,
    tuning: Tuning = USUAL,
    clock: Clock | None = None,
    stops: Sequence[Stop] = (),
) -> Decisions:
    """Decide one round of one pool. Equal snapshots, seeds and stops give equal decisions, on any machine.

    Args:
        snapshot: the pool; it is not changed.
        seed: decides ties between queues where the pool's ties rotate. Nothing else is left to chance: ties go by queue
            name, node id and row.
        tuning: how to search; the decisions do not depend on it.
        clock: says how many milliseconds the round has taken. Without one no limit of time holds.
        stops: where the clock stopped an earlier run of this round; given in place of a clock, to repeat it.
    """
    course = _Course(seed, tuning, Watch(snapshot, clock, stops))
    board = lay_out(snapshot, tuning)
    board.books.tie[:] = tie_order(snapshot, seed)
    board = board._replace(trade=open_trade(snapshot, board.jobs))
    # 1. shares
    shares = work_out_shares(snapshot, board.jobs, board.shapes, board.books)
    try:
        return _decide(snapshot, board, shares, course)
    except OutOfTime:
        return _undecided(snapshot, shares, course)


def _decide(snapshot: PoolSnapshot, board: Board, shares: Shares, course: _Course) -> Decisions:
    """Take the steps from 2 on. Raises OutOfTime."""
    ended = codes.COMPLETED
    urgent = np.zeros(0, np.int64)
    evicted = again = np.zeros(0, np.int32)
    figures = no_figures(snapshot) if board.trade is not None else None
    due = due_shares(snapshot, shares)
    if board.trade is None:
        board = board._replace(holds=hold_room(snapshot, board, due))
    lost = _lost_in_passes(snapshot, board.jobs, urgent)
    optimised, yielded = None, np.zeros(len(board.jobs.node), np.uint8)
    if len(snapshot.nodes.ids):
        # 2. evict
        if board.trade is not None:
            evicted = evict_everything(snapshot, board)
        elif snapshot.rules.fairshare_preemption:
            evicted = evict_by_fairness(snapshot, board, due)
        # 3. order, 4. place gang by gang
        ended, turns = _draw(snapshot, board, evicted, course, Pass.FIRST)
        urgent = _placed_by_urgency(board.jobs)
        # 5. evict where nodes gave out too much, 6. place the evicted again
        again = _second_pass(snapshot, board, course)
        lose_siblings(snapshot, board)
        lost = _lost_in_passes(snapshot, board.jobs, urgent)
        if snapshot.optimiser is not None:
            optimised, yielded = improve(snapshot, board, shares, snapshot.optimiser, course.watch.may_optimise)
        if board.trade is not None:
            figures = market_figures(snapshot, board, board.trade, turns, price_gangs(board, board.trade))
    course.watch.check()
    # 7. compare, 8. explain
    leases, refusals = _sorted_out(snapshot, board)
    return Decisions(
        snapshot=snapshot,
        seed=course.seed,
        leases=leases,
        preemptions=_preemptions(snapshot, board.jobs, lost, yielded),
        refusals=refusals,
        queues=queue_figures(snapshot, board.books, shares),
        termination=Termination(ended),
        evicted=_evicted(snapshot, evicted, again),
        held=_held(snapshot, board),
        gave_way=_gave_way(snapshot, board),
        turns=int(board.books.turns[-1, 0]),
        optimised=optimised,
        indicative_shares=indicative_shares(snapshot, board.books, shares),
        stops=tuple(course.watch.stops),
        market=figures,
    )


def _undecided(snapshot: PoolSnapshot, shares: Shares, course: _Course) -> Decisions:
    """Return the decisions of a round whose time ran out: everything stays as it was."""
    board = lay_out(snapshot)
    board.jobs.reason[:] = codes.NOT_CONSIDERED
    leases, refusals = _sorted_out(snapshot, board)
    return Decisions(
        snapshot=snapshot,
        seed=course.seed,
        leases=leases,
        preemptions=_preemptions(
            snapshot,
            board.jobs,
            _lost_in_passes(snapshot, board.jobs, np.zeros(0, np.int64)),
            np.zeros(len(board.jobs.node), np.uint8),
        ),
        refusals=refusals,
        queues=queue_figures(snapshot, board.books, shares),
        termination=Termination.TIMEOUT,
        evicted=np.zeros(0, np.int32),
        held=_held(snapshot, board),
        indicative_shares=indicative_shares(snapshot, board.books, shares),
        stops=tuple(course.watch.stops),
        market=no_figures(snapshot) if snapshot.market is not None else None,
    )


def _evicted(snapshot: PoolSnapshot, first: Rows, second: Rows) -> Rows:
    """Return the rows of running jobs that a pass evicted, whether they came back or not."""
    count = len(snapshot.running.row)
    competed = np.zeros(count, np.bool_)
    competed[first] = True
    competed[second[second < count]] = True
    return snapshot.running.row[competed]


def _gave_way(snapshot: PoolSnapshot, board: Board) -> int:
    """Return for how many jobs fair-share preemption took tokens, whatever became of their winners later."""
    before = snapshot.rules.preemption_tokens
    return 0 if before is None else round(before - float(board.books.preemption_tokens[0]))


def _held(snapshot: PoolSnapshot, board: Board) -> HeldRoom:
    """Return the room that was held to the end, for gangs that found no place."""
    jobs, holds = board.jobs, board.holds
    job = np.repeat(holds.job, np.diff(holds.offsets))
    waits = jobs.node[job] < 0
    return HeldRoom(row=snapshot.queued.row[job[waits] - jobs.running], node=holds.node[waits])


def _placed_by_urgency(jobs: Jobs) -> NDArray[np.int64]:
    """Return the jobs that were placed over lower priorities; of those away, only the fact of being away is kept.

    Members of gangs that were given up again still bear the method of their try, but have no node.
    """
    away = jobs.method == codes.AWAY_BY_URGENCY
    urgent = np.flatnonzero(away | (jobs.method == codes.URGENCY))
    jobs.method[away] = codes.AWAY
    return urgent[jobs.node[urgent] >= 0]


def _second_pass(snapshot: PoolSnapshot, board: Board, course: _Course) -> Rows:
    """Evict jobs at priorities of which a node gave out too much, and let them compete for what it has.

    A queue's running jobs go before those placed in this round. Where that leaves a node overfull, because a lower job
    took what a higher one was counted on, they compete once more with higher priorities first. And where a gang that
    returns late, at the priority of its lowest member, takes too much, the lower ones on that node compete again.
    Returns the jobs that were evicted first.
    """
    evicted = first = evict_oversubscribed(board)
    if not len(evicted):
        return first
    _draw(snapshot, board, evicted, course, Pass.SECOND)
    if not is_oversubscribed(board):
        return first
    evict_again(board, evicted)
    for _ in range(REPAIRS):
        _draw(snapshot, board, highest_first(board.jobs, evicted), course, Pass.REPAIR)
        evicted = evict_oversubscribed(board, spares_overfull=True)
        if not len(evicted):
            return first
    board.jobs.state[evicted] = codes.LOST
    return first


def _draw(snapshot: PoolSnapshot, board: Board, evicted: Rows, course: _Course, which: Pass) -> tuple[int, Market]:
    """Run one pass; what was evicted and did not return has lost its place after it.

    `evicted` come queue by queue in serving order; a market has an order of its own. Return what ended the pass, and
    its turns where there is a market. Raises OutOfTime.
    """
    jobs, shapes, nodes, gangs, books, holds, _ = board
    is_first, by_priority = which is Pass.FIRST, which is Pass.REPAIR
    returning = line_up(board, evicted, queued=False, by_priority=by_priority)
    expected = expected_order(snapshot, board, evicted, returning, second_pass=not is_first)
    victims = line_up_victims(board, expected, course.tuning)
    streams = open_streams(snapshot, jobs, evicted, second_pass=not is_first)
    market = line_up(board, evicted, queued=is_first, by_priority=by_priority)
    placing = placing_for(snapshot, len(jobs.node), len(evicted))
    floating = np.array(snapshot.rules.floating, np.uint8)
    pace = course.watch.start_pass(only_back=not is_first)
    while draw(jobs, shapes, nodes, gangs, victims, books, streams, market, placing, holds, floating, pace):
        course.watch.look(pace)
    course.watch.end_pass(pace)
    back = jobs.state[evicted] == codes.RUNS
    if not is_first:
        jobs.method[evicted[back]] = codes.RESCHEDULED
    jobs.state[evicted[~back]] = codes.LOST
    return int(pace.ended[0]), market


def _sorted_out(snapshot: PoolSnapshot, board: Board) -> tuple[Leases, Refusals]:
    """Return what became of the queued jobs."""
    jobs = board.jobs
    waited = len(jobs.node) - jobs.running
    placed, refused, reason = np.empty(waited, np.int32), np.empty(waited, np.int32), np.empty(waited, np.uint8)
    won, waits = sort_out(jobs, placed, refused, reason)
    row, shape = np.empty(waits, np.int32), np.empty(waits, np.int32)
    take(snapshot.queued.row, refused[:waits], row)
    take(snapshot.queued.shape, refused[:waits], shape)
    refusals = Refusals(row=row, shape=shape, reason=reason[:waits].copy())
    return _leases(snapshot, board, jobs.running + placed[:won]), refusals


def _leases(snapshot: PoolSnapshot, board: Board, new: Rows) -> Leases:
    jobs, gangs = board.jobs, board.gangs
    gang = jobs.gang[new]
    value = np.full(len(new), -1, np.int32)
    value[gang >= 0] = gangs.agreed[gang[gang >= 0]]
    label = np.full(len(new), -1, np.int32)
    label[value >= 0] = gangs.label[gang[value >= 0]]
    return Leases(
        row=snapshot.queued.row[new - jobs.running],
        node=jobs.node[new],
        priority=np.array(snapshot.rules.priorities, np.int64)[jobs.bucket[new]],
        method=jobs.method[new],
        away_entry=jobs.away_entry[new],
        label=label,
        value=value,
    )


class _Lost(NamedTuple):
    """Running jobs that lost their place (K): who has it now, as a job or -1, and the kind of their preemption."""

    job: NDArray[np.int64]
    winner: NDArray[np.int64]
    kind: Flags


def _lost_in_passes(snapshot: PoolSnapshot, jobs: Jobs, urgent: NDArray[np.int64]) -> _Lost:
    """Name for each job that lost its place in the passes the one that has it now.

    `urgent` may have been placed over lower priorities. Who displaced a job may have lost that room again to a job that
    came by urgency, which is named then; so is who took what a job needed of a floating resource. A gang member that
    nobody displaced itself is lost with its gang, to whoever displaced a sibling.
    """
    lost = np.flatnonzero(jobs.state[: jobs.running] == codes.LOST)
    winner = jobs.saved[lost].astype(np.int64)
    kind = np.full(len(lost), PreemptionKind.DISPLACED, np.uint8)
    kind[winner >= 0] = PreemptionKind.FAIR_SHARE
    room_on = jobs.node[np.where(winner >= 0, winner, lost)]
    winner[(winner >= 0) & (jobs.state[winner] == codes.LOST)] = -1
    stayed = urgent[jobs.state[urgent] == codes.RUNS]
    # One more than there are nodes, for jobs whose node, -1, takes no part.
    urgent_on = np.full(len(snapshot.nodes.ids) + 1, -1, np.int64)
    order = np.lexsort((-stayed, jobs.bucket[stayed]))
    urgent_on[jobs.node[stayed[order]]] = stayed[order]
    displaced = np.flatnonzero(winner < 0)
    winner[displaced] = urgent_on[room_on[displaced]]
    kind[displaced[winner[displaced] >= 0]] = PreemptionKind.URGENCY
    short = np.flatnonzero((winner < 0) & (jobs.reason[lost] == codes.FLOATING_EXCEEDED))
    winner[short] = _took_floating(snapshot, jobs, lost[short])
    kind[short[winner[short] >= 0]] = PreemptionKind.FAIR_SHARE
    gang = jobs.gang[lost]
    winner_of_gang = np.full(len(snapshot.gangs.cardinality), -1, np.int64)
    named = (gang >= 0) & (winner >= 0)
    winner_of_gang[gang[named]] = winner[named]
    siblings = np.flatnonzero((gang >= 0) & (winner < 0))
    winner[siblings] = winner_of_gang[gang[siblings]]
    kind[siblings[(winner[siblings] >= 0) | (jobs.node[lost[siblings]] < 0)]] = PreemptionKind.GANG
    return _Lost(lost, winner, kind)


def _took_floating(snapshot: PoolSnapshot, jobs: Jobs, lost: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for jobs that found too little left of a floating resource a new job that has some of it now, or -1.

    Of several it is the first by queue and turn, and the resource is the first that both ask for.
    """
    winner = np.full(len(lost), -1, np.int64)
    new = jobs.running + np.flatnonzero((jobs.node[jobs.running :] >= 0) & (jobs.state[jobs.running :] == codes.RUNS))
    for column in np.flatnonzero(snapshot.rules.floating) if len(lost) else ():
        asks = snapshot.shapes.request[:, column] > 0
        has_some = new[asks[jobs.shape[new]]]
        if len(has_some):
            winner[(winner < 0) & asks[jobs.shape[lost]]] = has_some[0]
    return winner


def _preemptions(snapshot: PoolSnapshot, jobs: Jobs, lost: _Lost, yielded: Flags) -> Preemptions:
    """Return who lost its place in the passes or to the fairness optimiser, to which `yielded` gave way.

    Who has the room of another may have given way in its turn; then the one that has it in the end is named.
    """
    gave_way = np.flatnonzero(yielded[: jobs.running])
    job = np.concatenate((lost.job, gave_way))
    winner: NDArray[np.int64] = np.concatenate((lost.winner, jobs.saved[gave_way].astype(np.int64)))
    kind = np.concatenate((lost.kind, np.full(len(gave_way), PreemptionKind.OPTIMISER, np.uint8)))
    while (again := (winner >= 0) & (yielded[winner] > 0)).any():
        winner[again] = jobs.saved[winner[again]]
    order = np.argsort(job, kind="stable")
    job, winner, kind = job[order], winner[order], kind[order]
    for_row = np.full(len(job), -1, np.int32)
    ran, is_new = (winner >= 0) & (winner < jobs.running), winner >= jobs.running
    for_row[ran] = snapshot.running.row[winner[ran]]
    for_row[is_new] = snapshot.queued.row[winner[is_new] - jobs.running]
    return Preemptions(row=snapshot.running.row[job], node=jobs.node[job], kind=kind, for_row=for_row)
