"""Eviction: which running jobs go back into the draw, gangs whole.

First pass: all preemptible jobs of queues above their protected share, or only what such a queue holds beyond it; where
there is a market, everything.
Second pass: jobs, guests among them, at exactly a priority of which their node has given out more than it has.
"""

import numpy as np

from armada.scheduling.fairness import protected_queues
from armada.scheduling.kernels import codes
from armada.scheduling.kernels.eviction import evict, mark_excess, mark_gangs, mark_oversubscribed, mark_unprotected
from armada.scheduling.kernels.jobs import Jobs
from armada.scheduling.placement import Board
from armada.scheduling.snapshot import HOME, Flags, Floats, PoolSnapshot, Rows


def evictable(snapshot: PoolSnapshot, jobs: Jobs) -> Flags:
    """Return which jobs fairness may evict, their class permitting: those whose run belongs to the pool."""
    flags = np.ones(len(jobs.node), np.uint8)
    flags[: jobs.running] = snapshot.running.kind == HOME
    return flags


def evict_by_fairness(snapshot: PoolSnapshot, board: Board, due: Floats) -> Rows:
    """Evict for the first pass; return the jobs, queue by queue in serving order. `due` [Q] are the queues' shares."""
    marked = np.zeros(len(board.jobs.node), np.uint8)
    can_evict = evictable(snapshot, board.jobs)
    protected = protected_queues(snapshot, board.books, due)
    rules = snapshot.rules
    if rules.excess_margin is None:
        mark_unprotected(board.jobs, board.shapes, protected, can_evict, marked)
    else:
        kept = due * max(0.0, rules.protected_fraction - rules.excess_margin)
        left, offsets = board.books.held.copy(), snapshot.running.offsets
        mark_excess(board.jobs, board.shapes, board.books, offsets, protected, kept, left, can_evict, marked)
    _evict(board, can_evict, marked)
    return np.flatnonzero(marked).astype(np.int32)


def evict_everything(snapshot: PoolSnapshot, board: Board) -> Rows:
    """Evict every running job of the pool, as a market does; return the jobs in the order of the snapshot."""
    marked = np.asarray(evictable(snapshot, board.jobs) & (board.jobs.node >= 0), np.uint8)
    evict(board.jobs, board.shapes, board.nodes, board.books, marked)
    return np.flatnonzero(marked).astype(np.int32)


def evict_oversubscribed(board: Board, *, spares_overfull: bool = False) -> Rows:
    """Evict for the second pass, guests too; return the jobs, queue by queue in serving order, new ones last.

    `spares_overfull` leaves nodes alone that were overfull before the round.
    """
    marked = np.zeros(len(board.jobs.node), np.uint8)
    can_evict = np.ones_like(marked)
    if not mark_oversubscribed(board.jobs, board.shapes, board.nodes, can_evict, marked, spares_overfull):
        return np.zeros(0, np.int32)
    _evict(board, can_evict, marked)
    evicted = np.flatnonzero(marked)
    return evicted[np.lexsort((evicted, board.jobs.queue[evicted]))].astype(np.int32)


def is_oversubscribed(board: Board) -> bool:
    """Say whether a node that was not overfull gave out more than it has, at a priority of jobs that can be evicted."""
    marked = np.zeros(len(board.jobs.node), np.uint8)
    can_evict = np.ones_like(marked)
    return mark_oversubscribed(board.jobs, board.shapes, board.nodes, can_evict, marked, spares_overfull=True)


def evict_again(board: Board, evicted: Rows) -> None:
    """Take back that some of these evicted jobs returned and others did not."""
    jobs = board.jobs
    marked = np.zeros(len(jobs.node), np.uint8)
    marked[evicted[jobs.state[evicted] == codes.RUNS]] = 1
    evict(jobs, board.shapes, board.nodes, board.books, marked)
    jobs.state[evicted] = codes.EVICTED


def highest_first(jobs: Jobs, evicted: Rows) -> Rows:
    """Return evicted jobs queue by queue, those leased at higher priorities first, else in the order given."""
    bucket = jobs.bucket.copy()
    bucket[: jobs.running] = jobs.leased_at
    return evicted[np.lexsort((np.arange(len(evicted)), -bucket[evicted], jobs.queue[evicted]))]


def lose_siblings(snapshot: PoolSnapshot, board: Board) -> None:
    """Let members that stand on no node of the round go with their gang, where it lost one that does."""
    jobs, books, kind = board.jobs, board.books, snapshot.running.kind
    gang, state = jobs.gang[: jobs.running], jobs.state[: jobs.running]
    is_torn = np.zeros(len(board.gangs.cardinality) + 1, np.bool_)
    is_torn[gang[(state == codes.LOST) & (gang >= 0)]] = True
    others = np.flatnonzero((jobs.node[: jobs.running] < 0) & is_torn[gang])
    jobs.state[others] = codes.LOST
    counted = others[kind[others] == HOME]
    request, queue = board.shapes.request[jobs.shape[counted]], jobs.queue[counted]
    np.subtract.at(books.held, queue, request)
    np.subtract.at(books.held_in_class, (queue, board.shapes.class_row[jobs.shape[counted]]), request)
    books.all_held[:] -= request.sum(axis=0)


def _evict(board: Board, can_evict: Flags, marked: Flags) -> None:
    if not marked.any():
        return
    mark_gangs(board.jobs, can_evict, np.zeros(len(board.gangs.cardinality), np.uint8), marked)
    evict(board.jobs, board.shapes, board.nodes, board.books, marked)
