"""Market order: each queue's jobs lined up by what they bid, evicted and queued ones merged.

The snapshot brings running and queued jobs in market order; what is left is to merge them.
"""

from typing import Final

import numpy as np

from armada.scheduling.kernels.market.turns import AGE, Market
from armada.scheduling.placement import Board
from armada.scheduling.snapshot import Rows

KEY_COLUMNS: Final = AGE + 1


def line_up(board: Board, evicted: Rows, *, queued: bool, by_priority: bool = False) -> Market:
    """Return a pass over evicted jobs, and over the queued ones if `queued`; without a market one that is not open.

    `by_priority` puts jobs bound at higher priorities first, whatever they bid.
    """
    jobs, trade = board.jobs, board.trade
    if trade is None:
        return _closed()
    line = evicted
    if queued:
        line = np.concatenate((evicted, np.arange(jobs.running, len(jobs.node), dtype=np.int32)))
    rank = trade.rank[line]
    order = np.argsort(rank, kind="stable")
    if by_priority:
        bucket = jobs.bucket.copy()
        bucket[: jobs.running] = jobs.leased_at
        order = np.lexsort((rank, -bucket[line], jobs.queue[line]))
    is_back = np.zeros(len(jobs.node), np.uint8)
    is_back[evicted] = 1
    queues = len(board.books.weight)
    offsets = np.zeros(queues + 1, np.int64)
    np.cumsum(np.bincount(jobs.queue[line], minlength=queues), out=offsets[1:])
    return Market(
        is_open=1,
        by_priority=int(by_priority),
        line=line[order],
        line_at=offsets[:-1].copy(),
        line_end=offsets[1:].copy(),
        is_back=is_back,
        bid=trade.bid,
        runs=trade.runs,
        leased=trade.leased,
        head_key=np.zeros((queues, KEY_COLUMNS), np.float64),
        best=np.full(2 * _power_of_two(queues), -1, np.int32),
        last=np.full(1, -1, np.int32),
        last_bid=np.zeros(1, np.float64),
        placed_job=np.zeros(len(line), np.int32),
        placed_turn=np.zeros(len(line), np.int32),
        waiting=np.zeros(len(line), np.float64),
        counts=np.zeros(2, np.int64),
        only_back=np.zeros(1, np.uint8),
    )


def _closed() -> Market:
    """Return what stands for a pass in a pool without a market."""
    rows, amounts = np.zeros(0, np.int32), np.zeros(0, np.int64)
    flags, floats = np.zeros(0, np.uint8), np.zeros(0, np.float64)
    return Market(
        is_open=0,
        by_priority=0,
        line=rows,
        line_at=amounts,
        line_end=amounts,
        is_back=flags,
        bid=floats,
        runs=flags,
        leased=amounts,
        head_key=np.zeros((0, KEY_COLUMNS), np.float64),
        best=rows,
        last=rows,
        last_bid=floats,
        placed_job=rows,
        placed_turn=rows,
        waiting=floats,
        counts=amounts,
        only_back=flags,
    )


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()
