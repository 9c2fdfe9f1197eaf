"""Clearing: the spot price of a round, and what each queue pays for.

The price is set by the gang with which all that was placed comes to cost more than the cutoff: the lowest bid in it.
Everything placed until then is billed. The queue that sets the price pays what the next queue would have paid.

Only what holds its place at the end counts: where the second pass took places away again, the market is cleared as
if the jobs that lost them had not been there (the reference takes them off the bill and leaves the price as it was).
"""

from bisect import bisect_left

import msgspec
import numpy as np

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import share
from armada.scheduling.kernels.market.turns import Market
from armada.scheduling.placement import Board
from armada.scheduling.snapshot import Amounts


class Clearing(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What a market comes to: the price (0: none was found), what is billed [Q, R], and who pays `override` instead."""

    spot_price: float
    billable: Amounts
    price_setter: int
    override: float


def clear(board: Board, first_pass: Market, cutoff: float) -> Clearing:
    """Clear the market on what the first pass placed and the round left in place."""
    jobs, books = board.jobs, board.books
    billable = np.zeros_like(books.held)
    logged = slice(0, int(first_pass.counts[0]))
    job, turn = first_pass.placed_job[logged], first_pass.placed_turn[logged]
    stays = jobs.state[job] == codes.RUNS
    job, turn = job[stays], turn[stays]
    amounts = board.shapes.request[jobs.shape[job]]
    placed = np.cumsum(amounts, axis=0)
    ends = np.flatnonzero(np.diff(turn, append=-1))

    def crosses(end: int) -> bool:
        return bool(share(books.total, books.multiplier, placed[end]) > cutoff)

    crossing = bisect_left(ends, 1, key=crosses)
    if crossing == len(ends):
        return Clearing(spot_price=0.0, billable=billable, price_setter=-1, override=0.0)
    billed = slice(0, int(ends[crossing]) + 1)
    np.add.at(billable, jobs.queue[job[billed]], amounts[billed])
    setter = turn[ends[crossing]]
    return Clearing(
        spot_price=float(first_pass.bid[job[turn == setter]].min()),
        billable=billable,
        price_setter=int(jobs.queue[job[ends[crossing]]]),
        override=float(first_pass.waiting[setter]),
    )
