"""Ordering: whose turn it is.

Inside a queue: running before queued, then class, priority and age; between queues: the one that would be the
cheapest after being served.

The snapshot brings each queue's jobs in serving order; here the streams of a pass are made of them, and the order in
which evicted jobs are expected to return is found by playing their return through.
"""

from hashlib import blake2b

import numpy as np

from armada.scheduling.kernels.draw import number_expected
from armada.scheduling.kernels.jobs import Jobs
from armada.scheduling.kernels.market.turns import Market
from armada.scheduling.kernels.streams import Streams
from armada.scheduling.placement import Board
from armada.scheduling.snapshot import PoolSnapshot, Rows


def tie_order(snapshot: PoolSnapshot, seed: int) -> Rows:
    """Return the place of each queue among queues of equal cost: by name, or where ties rotate by name and seed.

    Hashed, so that of any two queues each goes first for half of the seeds, whichever other queues there are.
    """
    names = snapshot.queues.names
    tie = np.arange(len(names), dtype=np.int32)
    if snapshot.rules.rotates_ties:
        lots = [blake2b(f"{seed}/{name}".encode(), digest_size=16).digest() for name in names]
        tie[sorted(tie.tolist(), key=lots.__getitem__)] = np.arange(len(names), dtype=np.int32)
    return tie


def open_streams(snapshot: PoolSnapshot, jobs: Jobs, evicted: Rows, *, second_pass: bool) -> Streams:
    """Return the streams of a pass; `evicted` are jobs, queue by queue, in the order in which a queue serves them.

    The second pass has no queued jobs and goes by the priorities that jobs are bound at.
    """
    queues, gangs, rules = len(snapshot.queues.names), len(snapshot.gangs.cardinality), snapshot.rules
    offsets = np.zeros(queues + 1, np.int64)
    np.cumsum(np.bincount(jobs.queue[evicted], minlength=queues), out=offsets[1:])
    needed = np.zeros((2, gangs), np.int32)
    of_gang = jobs.gang[evicted]
    needed[0] = np.bincount(of_gang[of_gang >= 0], minlength=gangs)
    needed[1] = snapshot.gangs.cardinality
    new = snapshot.queued.offsets + jobs.running
    return Streams(
        back=evicted,
        back_at=offsets[:-1].copy(),
        back_end=offsets[1:].copy(),
        new_at=new[1:].copy() if second_pass else new[:-1].copy(),
        new_end=new[1:].copy(),
        read=np.zeros(queues, np.int64),
        lookback=rules.lookback,
        needed=needed,
        seen=np.zeros((2, gangs), np.int32),
        first=np.full((2, gangs), -1, np.int32),
        last=np.full((2, gangs), -1, np.int32),
        next_member=np.empty(len(jobs.node), np.int32),
        head_job=np.full(queues, -1, np.int32),
        head_gang=np.full(queues, -1, np.int32),
        head_is_new=np.zeros(queues, np.uint8),
        head_priority=np.zeros(queues, np.int64),
        head_cost=np.zeros(queues, np.float64),
        head_current=np.zeros(queues, np.float64),
        head_size=np.zeros(queues, np.float64),
        head_request=np.zeros((queues, len(rules.resources)), np.int64),
        only_back=np.zeros(queues, np.uint8),
        blocked=np.zeros(len(snapshot.shapes.rule), np.uint8),
        guest=snapshot.queues.guest,
        gives_way=snapshot.queues.guest if rules.cross_pool_preempted_first else np.zeros(queues, np.uint8),
        heap=np.zeros(queues, np.int32),
        heap_size=np.zeros(1, np.int64),
        by_bucket=int(second_pass),
        prefers_large=int(rules.prefers_large_jobs),
        back_goes_first=np.zeros(1, np.uint8),
    )


def expected_order(snapshot: PoolSnapshot, board: Board, evicted: Rows, market: Market, *, second_pass: bool) -> Rows:
    """Return the evicted jobs in the order in which they would return if everything fitted.

    `market` is a pass over them where the pool has a market.
    """
    job_at = np.zeros(len(evicted), np.int32)
    streams = open_streams(snapshot, board.jobs, evicted, second_pass=second_pass)
    number_expected(board.jobs, board.shapes, board.books, streams, market, job_at)
    return job_at
