"""Bids: what every job of a round counts as bidding, and its place in market order.

Market order inside a queue: class priority and bid, both descending; running before queued; among running jobs the
older lease, among queued ones the earlier submission.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from armada.scheduling.kernels.jobs import Jobs
from armada.scheduling.placement import Trade
from armada.scheduling.snapshot import Amounts, ClassColumns, Flags, Floats, PoolSnapshot, Rows

RUNNING: Final = 1
"""The phase of running jobs in `MarketColumns.bids`."""

KEPT: Final = 1_000_000.0
"""What a running job counts as bidding that can't be preempted."""


def open_trade(snapshot: PoolSnapshot, jobs: Jobs) -> Trade | None:
    """Return the bids of a round's jobs, if there is a market."""
    market = snapshot.market
    if market is None:
        return None
    band = np.concatenate((market.running_band, market.queued_band))
    runs = np.zeros(len(band), np.uint8)
    runs[: jobs.running] = 1
    leased = np.zeros(len(band), np.int64)
    leased[: jobs.running] = snapshot.running.leased_ms
    class_row = snapshot.shapes.class_row[jobs.shape]
    bids = Bids(snapshot.classes, market.bids)
    bid, rank = bids.of(jobs.queue, class_row, band, runs)
    return Trade(market=market, bid=bid, band=band, runs=runs, leased=leased, rank=rank)


class Bids:
    """What jobs count as bidding [Q, band, phase], and their places in market order, worked out once for every cell."""

    def __init__(self, classes: ClassColumns, bids: Floats) -> None:
        self._preemptible = classes.preemptible
        self._bid = bids.reshape(-1)
        self._cells = bids.shape[1] * bids.shape[2]
        levels = np.unique(np.append(self._bid, KEPT))
        standings = np.unique(classes.priority)
        self._level = 2 * (len(levels) - 1 - np.searchsorted(levels, self._bid))
        self._level_kept = 2 * (len(levels) - 1 - int(np.searchsorted(levels, KEPT)))
        self._standing = 2 * len(levels) * (len(standings) - 1 - np.searchsorted(standings, classes.priority))
        self._queue = 2 * len(levels) * len(standings)

    def of(self, queue: Rows, class_row: Rows, band: Flags, runs: Flags) -> tuple[Floats, Amounts]:
        """Return each job's bid and its rank: ranks sort jobs by queue and then in market order, ages left out."""
        cell = queue.astype(np.int64) * self._cells + 2 * band.astype(np.int64) + runs
        bid, level = self._bid[cell], self._level[cell]
        kept = np.flatnonzero((runs == 1) & (self._preemptible[class_row] == 0))
        bid[kept], level[kept] = KEPT, self._level_kept
        rank: Amounts = (
            self._queue * queue.astype(np.int64) + self._standing[class_row] + level + (1 - runs.astype(np.int64))
        )
        return bid, rank


def bids_by_row(snapshot: PoolSnapshot, wanted: Iterable[int]) -> dict[int, float]:
    """Return what the jobs of some of the caller's rows count as bidding; nothing where there is no market."""
    market = snapshot.market
    found: dict[int, float] = {}
    if market is None:
        return found
    bids = Bids(snapshot.classes, market.bids)
    rows = np.array(sorted(set(wanted)), np.int64)
    parts = ((snapshot.running, market.running_band, 1), (snapshot.queued, market.queued_band, 0))
    for columns, bands, runs in parts:
        places = np.flatnonzero(np.isin(columns.row, rows))
        queue = np.searchsorted(columns.offsets, places, side="right") - 1
        class_row = snapshot.shapes.class_row[columns.shape[places]]
        phase = np.full(len(places), runs, np.uint8)
        bid, _ = bids.of(queue.astype(np.int32), class_row, bands[places], phase)
        found.update(zip(columns.row[places].tolist(), bid.tolist(), strict=True))
    return found
