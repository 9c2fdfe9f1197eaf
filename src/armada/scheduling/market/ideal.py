"""The ideal round: what queues would gain if the pool were one node that every job may run on.

All jobs of the pool compete anew; running ones bid as before, but none has a place yet. Taints, labels and affinities,
the limit of a round and all rates are left out; limits of queues hold.
"""

from typing import Final

import msgspec
import numpy as np

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.draw import draw
from armada.scheduling.market.order import line_up
from armada.scheduling.matching import FITS
from armada.scheduling.ordering import open_streams
from armada.scheduling.placement import Board, Trade, lay_out, line_up_victims, placing_for
from armada.scheduling.repeating.stops import Watch
from armada.scheduling.snapshot import (
    HOME,
    UNLIMITED,
    NodeColumns,
    PoolSnapshot,
    QueuedColumns,
    Rows,
)

_NOBODY: Final = np.zeros(0, np.int32)


def place_ideally(snapshot: PoolSnapshot, board: Board, trade: Trade) -> Rows:
    """Return the jobs that have a place in the ideal round."""
    own = np.ones(len(board.jobs.node), np.bool_)
    own[: board.jobs.running] = snapshot.running.kind == HOME
    jobs = np.flatnonzero(own)
    jobs = jobs[np.argsort(trade.rank[jobs], kind="stable")]
    ideal = _ideal(snapshot, board, jobs.astype(np.int32))
    there = lay_out(ideal)._replace(trade=trade.reordered(jobs))
    draw(
        there.jobs,
        there.shapes,
        there.nodes,
        there.gangs,
        line_up_victims(there, _NOBODY),
        there.books,
        open_streams(ideal, there.jobs, _NOBODY, second_pass=False),
        line_up(there, _NOBODY, queued=True),
        placing_for(ideal, len(jobs), 0),
        there.holds,
        np.array(ideal.rules.floating, np.uint8),
        Watch(ideal, None).start_pass(only_back=False),
    )
    placed: Rows = jobs[(there.jobs.node >= 0) & (there.jobs.state == codes.RUNS)].astype(np.int32)
    return placed


def _ideal(snapshot: PoolSnapshot, board: Board, jobs: Rows) -> PoolSnapshot:
    """Return a snapshot in which these jobs, queue by queue, wait for one empty node that takes any of them."""
    rules, queues, running = snapshot.rules, len(snapshot.queues.names), snapshot.running
    row = np.zeros(1, np.int32)
    total = np.array([rules.total], np.int64) * ~np.array(rules.floating, np.bool_)
    offsets = np.zeros(queues + 1, np.int64)
    np.cumsum(np.bincount(board.jobs.queue[jobs], minlength=queues), out=offsets[1:])
    changed = msgspec.structs.replace
    return changed(
        snapshot,
        rules=changed(
            rules, round_limit=(UNLIMITED,) * len(rules.round_limit), global_tokens=UNLIMITED, global_burst=UNLIMITED
        ),
        nodes=NodeColumns(
            ids=("everything",),
            total=total,
            allocatable=total,
            rank=row,
            lane=row,
            type=row,
            overfull=np.zeros(1, np.uint8),
        ),
        shapes=changed(snapshot.shapes, verdict=np.full((len(snapshot.shapes.verdict), 1), FITS, np.int32)),
        queues=changed(
            snapshot.queues,
            tokens=np.full(queues, UNLIMITED, np.float64),
            burst=np.full(queues, UNLIMITED, np.int64),
        ),
        queued=QueuedColumns(
            offsets=offsets,
            row=jobs,
            shape=board.jobs.shape[jobs],
            gang=board.jobs.gang[jobs],
        ),
        running=changed(
            running,
            offsets=np.zeros(queues + 1, np.int64),
            row=_NOBODY,
            shape=_NOBODY,
            gang=_NOBODY,
            node=_NOBODY,
            priority=np.zeros(0, np.int64),
            leased_ms=np.zeros(0, np.int64),
            kind=np.zeros(0, np.uint8),
        ),
        gangs=changed(
            snapshot.gangs,
            label=np.full_like(snapshot.gangs.label, -1),
            labels=(),
            values=(),
            domain=np.zeros((0, 1), np.int32),
        ),
        market=None,
    )
