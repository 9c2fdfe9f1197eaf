"""What a round did, as data: for a pool, for a queue in it, for a job in it.

Made on demand from the columns of a round, so that a round costs nothing more for being told about. Amounts are
vectors in the column units of the round's snapshot; rows name jobs as in its `Decisions`.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.control.rounds.planning import RoundReport
from armada.model.resources import Vector
from armada.scheduling.decisions import (
    Decisions,
    IndicativeShare,
    MarketFigures,
    Method,
    PreemptionKind,
    QueueFigures,
    QueueMarket,
    Reason,
    Termination,
    node_objections,
)
from armada.scheduling.snapshot import ELSEWHERE, GUEST_SUFFIX, PoolSnapshot, Rows

NO_ROW: Final = -1
NAMED: Final = 3
"""So many nodes are named where there may be many."""

_Places = NDArray[np.int64]


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that a round leased or preempted; `sample_row` is one of them, or -1."""

    jobs: int
    gangs: int
    total: Vector
    by_class: Mapping[str, Vector]
    sample_row: int


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that were looked at and not placed for one reason."""

    reason: Reason
    jobs: int
    sample_row: int


class QueueAccount(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue came out of a round. `unreached` are queued jobs that the round did not get to.

    `preempted` leaves those of the fairness optimiser out; they are `optimised`. `allocated_by_class` is what the queue
    holds after the round. `market` is there in a pool with a market.
    """

    name: str
    finished_ms: int
    figures: QueueFigures
    leased: Moved
    preempted: Moved
    optimised: Moved
    allocated_by_class: Mapping[str, Vector]
    waiting: tuple[Waiting, ...]
    unreached: int
    market: QueueMarket | None = None


class RoundAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A whole round: when, how it ended, with what, and what moved. Queues are in name order.

    `preempted` leaves those of the fairness optimiser out, as for queues. `put_back` are running jobs that competed for
    their place again and kept it: nobody lost them, so they count nowhere else. `market` is there in a pool with a
    market, `indicative_shares` where the policy asks for them.
    """

    pool: str
    started_ms: int
    finished_ms: int
    termination: Termination
    nodes: int
    capacity: Vector
    leased: Moved
    preempted: Moved
    optimised: Moved
    put_back: int
    queues: tuple[QueueAccount, ...]
    market: MarketFigures | None = None
    indicative_shares: tuple[IndicativeShare, ...] = ()


class JobAccount(msgspec.Struct, frozen=True, kw_only=True):
    """How a job fared in a round.

    `outcome` is leased, preempted, refused, kept (it ran and was not touched) or unreached; `text` the reason of a
    refusal, `node_id` where it went or was. `exclusions` say how many nodes have what against the job.
    """

    finished_ms: int
    outcome: str
    text: str = ""
    node_id: str = ""
    method: Method | None = None
    nodes: int = 0
    exclusions: tuple[str, ...] = ()


class _Columns:
    """The columns of a round side by side: of each lease, preemption and refusal the queue, shape and gang."""

    def __init__(self, report: RoundReport) -> None:
        decisions = report.decisions
        self.snapshot: PoolSnapshot = report.order.snapshot
        queued, running = self.snapshot.queued, self.snapshot.running
        self.leased = _places(queued.row, decisions.leases.row)
        self.lost = _places(running.row, decisions.preemptions.row)
        self.refused = _places(queued.row, decisions.refusals.row)
        self.is_optimised = decisions.preemptions.kind == PreemptionKind.OPTIMISER
        self.leased_queue = _queues(queued.offsets, self.leased)
        self.lost_queue = _queues(running.offsets, self.lost)
        self.refused_queue = _queues(queued.offsets, self.refused)

    def moved(self, places: _Places, *, running: bool) -> Moved:
        """Sum up jobs by their places among the queued or the running ones."""
        jobs = self.snapshot.running if running else self.snapshot.queued
        shapes, gangs = jobs.shape[places], jobs.gang[places]
        return Moved(
            jobs=len(places),
            gangs=len(np.unique(gangs[gangs >= 0])),
            total=_sum(self.snapshot, shapes),
            by_class=self._by_class(shapes),
            sample_row=int(jobs.row[places[0]]) if len(places) else NO_ROW,
        )

    def allocated(self, queue: int) -> Mapping[str, Vector]:
        """Return by class what a queue holds after the round."""
        running = self.snapshot.running
        first, last = int(running.offsets[queue]), int(running.offsets[queue + 1])
        stays = running.kind[first:last] != ELSEWHERE
        stays[self.lost[self.lost_queue == queue] - first] = False
        new = self.snapshot.queued.shape[self.leased[self.leased_queue == queue]]
        return self._by_class(np.concatenate((running.shape[first:last][stays], new)))

    def _by_class(self, shapes: Rows) -> Mapping[str, Vector]:
        classes = self.snapshot.shapes.class_row[shapes]
        names = self.snapshot.classes.names
        return {names[each]: _sum(self.snapshot, shapes[classes == each]) for each in np.unique(classes).tolist()}


def _sum(snapshot: PoolSnapshot, shapes: Rows) -> Vector:
    return tuple(snapshot.shapes.request[shapes].sum(axis=0).tolist())


def _places(rows: Rows, named: Rows) -> _Places:
    """Return where the named rows stand in a column of distinct rows."""
    order = np.argsort(rows, kind="stable")
    places: _Places = order[np.searchsorted(rows, named, sorter=order)].astype(np.int64)
    return places


def _queues(offsets: NDArray[np.int64], places: _Places) -> _Places:
    found: _Places = np.searchsorted(offsets, places, side="right").astype(np.int64) - 1
    return found


def round_account(report: RoundReport) -> RoundAccount:
    """Return the account of a round."""
    columns, rules = _Columns(report), report.order.snapshot.rules
    return RoundAccount(
        pool=report.order.pool,
        started_ms=report.order.started_ms,
        finished_ms=report.finished_ms,
        termination=report.decisions.termination,
        nodes=len(columns.snapshot.nodes.ids),
        capacity=tuple(rules.total),
        leased=columns.moved(columns.leased, running=False),
        preempted=columns.moved(columns.lost[~columns.is_optimised], running=True),
        optimised=columns.moved(columns.lost[columns.is_optimised], running=True),
        put_back=len(np.setdiff1d(report.decisions.evicted, report.decisions.preemptions.row)),
        market=report.decisions.market,
        indicative_shares=report.decisions.indicative_shares,
        queues=tuple(_queue_account(report, columns, figures) for figures in report.decisions.queues),
    )


def queue_accounts(report: RoundReport, name: str) -> tuple[QueueAccount, ...]:
    """Return the accounts of one queue in a round: of its own jobs, and of its guests; those that had a part in it."""
    columns = _Columns(report)
    lines = {(name, False), (name + GUEST_SUFFIX, True)}
    return tuple(
        _queue_account(report, columns, figures)
        for figures, is_guest in zip(report.decisions.queues, columns.snapshot.queues.guest > 0, strict=True)
        if (figures.name, bool(is_guest)) in lines
    )


def _queue_account(report: RoundReport, columns: _Columns, figures: QueueFigures) -> QueueAccount:
    queue = columns.snapshot.queues.names.index(figures.name)
    offsets = columns.snapshot.queued.offsets
    leased = columns.leased[columns.leased_queue == queue]
    lost = columns.lost_queue == queue
    refused = columns.refused_queue == queue
    return QueueAccount(
        name=figures.name,
        finished_ms=report.finished_ms,
        figures=figures,
        leased=columns.moved(leased, running=False),
        preempted=columns.moved(columns.lost[lost & ~columns.is_optimised], running=True),
        optimised=columns.moved(columns.lost[lost & columns.is_optimised], running=True),
        allocated_by_class=columns.allocated(queue),
        waiting=_waiting(report, refused),
        unreached=int(offsets[queue + 1] - offsets[queue]) - len(leased) - int(refused.sum()),
        market=_queue_market(report.decisions.market, figures.name),
    )


def _queue_market(market: MarketFigures | None, name: str) -> QueueMarket | None:
    return next((queue for queue in market.queues if queue.name == name), None) if market is not None else None


def _waiting(report: RoundReport, refused: NDArray[np.bool_]) -> tuple[Waiting, ...]:
    """Group refusals by reason, the most frequent first."""
    rows, reasons = report.decisions.refusals.row[refused], report.decisions.refusals.reason[refused]
    codes, first, counts = np.unique(reasons, return_index=True, return_counts=True)
    found = [
        Waiting(reason=Reason(code), jobs=count, sample_row=int(rows[place]))
        for code, place, count in zip(codes.tolist(), first.tolist(), counts.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda waiting: (-waiting.jobs, waiting.reason)))


def job_account(report: RoundReport, row: int) -> JobAccount | None:
    """Return how the job of a row fared in a round; None where the round did not know it."""
    decisions, snapshot = report.decisions, report.order.snapshot
    nodes, ids = len(snapshot.nodes.ids), snapshot.nodes.ids
    if (place := _place(decisions.leases.row, row)) is not None:
        node, method = ids[int(decisions.leases.node[place])], Method(int(decisions.leases.method[place]))
        return JobAccount(finished_ms=report.finished_ms, outcome="leased", node_id=node, method=method, nodes=nodes)
    if (place := _place(decisions.preemptions.row, row)) is not None:
        lost = int(decisions.preemptions.node[place])
        return JobAccount(
            finished_ms=report.finished_ms, outcome="preempted", node_id=ids[lost] if lost >= 0 else "", nodes=nodes
        )
    if (place := _place(decisions.refusals.row, row)) is not None:
        return JobAccount(
            finished_ms=report.finished_ms,
            outcome="refused",
            text=decisions.reason_text(place),
            nodes=nodes,
            exclusions=(*node_objections(snapshot, int(decisions.refusals.shape[place])), *_held_for(decisions, row)),
        )
    if (place := _place(snapshot.running.row, row)) is not None:
        held = int(snapshot.running.node[place])
        return JobAccount(
            finished_ms=report.finished_ms, outcome="kept", node_id=ids[held] if held >= 0 else "", nodes=nodes
        )
    if _place(snapshot.queued.row, row) is not None:
        return JobAccount(finished_ms=report.finished_ms, outcome="unreached", nodes=nodes)
    return None


def _held_for(decisions: Decisions, row: int) -> tuple[str, ...]:
    """Say what is held for a job that has waited long."""
    held, ids = decisions.held, decisions.snapshot.nodes.ids
    names = [ids[node] for node in np.unique(held.node[held.row == row])]
    if not names:
        return ()
    more = f" and of {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (f"it has waited long: free room of {', '.join(names[:NAMED])}{more} is held for it",)


def _place(rows: Rows, row: int) -> int | None:
    places = np.flatnonzero(rows == row)
    return int(places[0]) if len(places) else None
