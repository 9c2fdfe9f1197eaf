"""Figures of a market's round: prices, bills and values, put together for the decisions."""

import numpy as np
from numpy.typing import NDArray

from armada.scheduling.decisions import IndicativePrice, MarketFigures, QueueMarket
from armada.scheduling.kernels import codes
from armada.scheduling.kernels.market.turns import Market
from armada.scheduling.market.bidding import RUNNING
from armada.scheduling.market.clearing import clear
from armada.scheduling.market.ideal import place_ideally
from armada.scheduling.placement import Board, Trade
from armada.scheduling.snapshot import HOME, Floats, PoolSnapshot, Rows


def no_figures(snapshot: PoolSnapshot) -> MarketFigures:
    """Return the figures of a pool without nodes, where nothing was done."""
    nothing = (0,) * len(snapshot.rules.resources)
    queues = tuple(
        QueueMarket(
            name=name,
            billable=nothing,
            price_override=None,
            idealised=nothing,
            idealised_value=0.0,
            realised_value=0.0,
        )
        for name in snapshot.queues.names
    )
    return MarketFigures(spot_price=0.0, queues=queues, indicative_prices=())


def market_figures(
    snapshot: PoolSnapshot,
    board: Board,
    trade: Trade,
    first_pass: Market,
    indicative_prices: tuple[IndicativePrice, ...],
) -> MarketFigures:
    """Return what the round comes to, once everybody has their place."""
    jobs = board.jobs
    clearing = clear(board, first_pass, trade.market.cutoff)
    ideal = place_ideally(snapshot, board, trade)
    idealised = np.zeros_like(clearing.billable)
    np.add.at(idealised, jobs.queue[ideal], board.shapes.request[jobs.shape[ideal]])
    in_place = (jobs.node >= 0) & (jobs.state == codes.RUNS)
    in_place[: jobs.running] &= snapshot.running.kind == HOME
    realised = np.flatnonzero(in_place).astype(np.int32)
    idealised_value = _values(board, trade, ideal, trade.runs[ideal].astype(np.int64))
    realised_value = _values(board, trade, realised, np.full(len(realised), RUNNING))
    return MarketFigures(
        spot_price=clearing.spot_price,
        queues=tuple(
            QueueMarket(
                name=name,
                billable=tuple(clearing.billable[queue].tolist()),
                price_override=clearing.override if queue == clearing.price_setter else None,
                idealised=tuple(idealised[queue].tolist()),
                idealised_value=float(idealised_value[queue]),
                realised_value=float(realised_value[queue]),
            )
            for queue, name in enumerate(snapshot.queues.names)
        ),
        indicative_prices=indicative_prices,
    )


def _values(board: Board, trade: Trade, rows: Rows, phase: NDArray[np.int64]) -> Floats:
    """Return by queue what jobs are worth to it at their bids for a phase: bid times resource units, summed [Q]."""
    jobs, market = board.jobs, trade.market
    counts = market.unit > 0
    units = (board.shapes.request[:, counts] / market.unit[counts]).max(axis=1, initial=0.0)
    worth = market.bids[jobs.queue[rows], trade.band[rows], phase] * units[jobs.shape[rows]]
    summed: Floats = np.bincount(jobs.queue[rows], worth, len(board.books.weight)).astype(np.float64)
    return summed
