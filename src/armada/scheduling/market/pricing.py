"""Indicative prices: what gangs of the kinds that the settings name would have to bid to be placed now.

Member by member the cheapest node is taken: there the lowest bids leave until the member fits, and the highest of them
is the price. The dearest member's price is the gang's; where members must agree in a label, its cheapest value counts.
What can't be preempted leaves at no price. Jobs that were just placed count as running.
"""

import math

import numpy as np

from armada.scheduling.decisions import IndicativePrice
from armada.scheduling.kernels import codes
from armada.scheduling.kernels.market.pricing import OUT_OF_STEPS, Seats, price_gang
from armada.scheduling.market.bidding import RUNNING
from armada.scheduling.placement import Board, Trade

_ALL_BOUND = 1
"""The bucket that counts everything that is bound."""


def price_gangs(board: Board, trade: Trade) -> tuple[IndicativePrice, ...]:
    """Return the prices on the nodes as the round leaves them; NaN where there is none or the work allowed ran out."""
    gangs = trade.market.gangs_to_price
    if not gangs.names:
        return ()
    seats = _seats(board, trade)
    prices = []
    for index, name in enumerate(gangs.names):
        domain = gangs.domain[index]
        nodes = np.argsort(domain, kind="stable").astype(np.int32)
        first = int(np.count_nonzero(domain < 0))
        sizes = np.bincount(domain[domain >= 0], minlength=1)
        starts = (first + np.concatenate(([0], np.cumsum(sizes)))).astype(np.int32)
        price = float(price_gang(seats, gangs.request[index], int(gangs.size[index]), nodes, starts))
        prices.append(_told(name, price, any_node=first < len(domain)))
    return tuple(prices)


def _told(name: str, price: float, *, any_node: bool) -> IndicativePrice:
    if price >= 0.0:
        return IndicativePrice(name=name, price=price, evaluated=True, schedulable=True)
    if price == OUT_OF_STEPS:
        reason = "no time was left to look for a price"
    else:
        reason = "no nodes have room for it at any price" if any_node else "no node may run it"
    return IndicativePrice(name=name, price=math.nan, evaluated=price != OUT_OF_STEPS, schedulable=False, reason=reason)


def _seats(board: Board, trade: Trade) -> Seats:
    jobs, shapes, market = board.jobs, board.shapes, trade.market
    free = np.ascontiguousarray(board.nodes.free[_ALL_BOUND])
    count = len(free)
    leaves = (jobs.node >= 0) & (jobs.state == codes.RUNS) & (shapes.preemptible[shapes.class_row[jobs.shape]] > 0)
    row = np.flatnonzero(leaves)
    bid = market.bids[jobs.queue[row], trade.band[row], RUNNING]
    order = np.lexsort((bid, jobs.node[row]))
    row, bid = row[order], bid[order]
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(jobs.node[row], minlength=count), out=offsets[1:])
    return Seats(
        offsets=offsets,
        bid=bid,
        amounts=shapes.wanted[jobs.shape[row]],
        free=free,
        room=np.zeros_like(free),
        gone=np.zeros(count, np.int32),
        cost=np.zeros(count, np.float64),
        sum=np.zeros(free.shape[1], np.int64),
        steps=np.array([market.pricing_steps], np.int64),
    )
