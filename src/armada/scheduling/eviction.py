"""Eviction: which running jobs go back into the draw, gangs whole.

First pass: all preemptible jobs of queues above their protected share. Second pass: jobs at exactly a priority of
which their node has given out more than it has.
"""

import numpy as np

from armada.scheduling.kernels.books import Books
from armada.scheduling.kernels.eviction import evict, mark_gangs, mark_oversubscribed, mark_unprotected
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.kernels.nodes.room import Nodes
from armada.scheduling.snapshot import HOME, Flags, PoolSnapshot, Rows


def evictable(snapshot: PoolSnapshot, jobs: Jobs) -> Flags:
    """Return which jobs may be evicted at all, their class permitting: those whose run belongs to the pool."""
    flags = np.ones(len(jobs.node), np.uint8)
    flags[: jobs.running] = snapshot.running.kind == HOME
    return flags


def evict_by_fairness(
    snapshot: PoolSnapshot, jobs: Jobs, shapes: Shapes, nodes: Nodes, books: Books, protected: Flags
) -> Rows:
    """Evict for the first pass; return the jobs, queue by queue in serving order."""
    marked = np.zeros(len(jobs.node), np.uint8)
    can_evict = evictable(snapshot, jobs)
    mark_unprotected(jobs, shapes, protected, can_evict, marked)
    mark_gangs(jobs, can_evict, np.zeros(len(snapshot.gangs.cardinality), np.uint8), marked)
    evict(jobs, shapes, nodes, books, marked)
    return np.flatnonzero(marked).astype(np.int32)


def evict_oversubscribed(snapshot: PoolSnapshot, jobs: Jobs, shapes: Shapes, nodes: Nodes, books: Books) -> Rows:
    """Evict for the second pass; return the jobs, queue by queue, those bound at higher priorities first."""
    marked = np.zeros(len(jobs.node), np.uint8)
    can_evict = evictable(snapshot, jobs)
    if not mark_oversubscribed(jobs, shapes, nodes, can_evict, marked):
        return np.zeros(0, np.int32)
    mark_gangs(jobs, can_evict, np.zeros(len(snapshot.gangs.cardinality), np.uint8), marked)
    evict(jobs, shapes, nodes, books, marked)
    evicted = np.flatnonzero(marked)
    order = np.lexsort((evicted, -jobs.bucket[evicted], jobs.queue[evicted]))
    return evicted[order].astype(np.int32)
