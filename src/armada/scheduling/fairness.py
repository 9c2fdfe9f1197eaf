"""Fairness: what each queue holds and wants, which share of the pool is its due, and who is protected.

Cost is the dominant share: the largest fraction of any resource of the pool, times that resource's multiplier. Queues
form one level now; a tree would be shared out level by level through the same functions.
"""

import msgspec
import numpy as np

from armada.scheduling.decisions import IndicativeShare, QueueFigures
from armada.scheduling.kernels.books import Books, adjust_shares, enter_running, share, sum_demand
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.snapshot import ELSEWHERE, UNLIMITED, Amounts, Flags, Floats, PoolSnapshot


class Shares(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The queues' shares [Q] and what they were made of [Q, R]; `demand` is of all they hold and want.

    `wanted` [Q] is the share of the pool that the constrained demand makes.
    """

    fair: Floats
    demand_capped: Floats
    uncapped: Floats
    demand: Amounts
    constrained_demand: Amounts
    wanted: Floats


def open_books(snapshot: PoolSnapshot, jobs: Jobs, shapes: Shapes) -> Books:
    """Return the queues' accounts as they stand before the round."""
    rules, queues = snapshot.rules, snapshot.queues
    width, classes = len(rules.resources), len(snapshot.classes.names)
    limited = rules.preemption_tokens is not None
    books = Books(
        total=np.array(rules.total, np.int64),
        multiplier=np.array(rules.multipliers, np.float64),
        weight=queues.weight.copy(),
        tie=np.arange(len(queues.names), dtype=np.int32),
        held=np.zeros((len(queues.names), width), np.int64),
        held_in_class=np.zeros((len(queues.names), classes, width), np.int64),
        all_held=np.zeros(width, np.int64),
        penalty=queues.penalty.copy(),
        limit=queues.limit.copy(),
        budget=np.zeros(len(queues.names), np.float64),
        cordoned=queues.cordoned.copy(),
        tokens=queues.tokens.copy(),
        burst=queues.burst.copy(),
        pool_tokens=np.array([rules.global_tokens], np.float64),
        pool_burst=rules.global_burst,
        placed=np.zeros(width, np.int64),
        round_limit=np.array(rules.round_limit, np.int64),
        preemption_tokens=np.array([rules.preemption_tokens if limited else UNLIMITED], np.float64),
        turns=np.zeros((len(queues.names) + 1, 3), np.int64),
        nothing=np.zeros(width, np.int64),
    )
    # Guests count as far as they stand on this pool's nodes: what they hold elsewhere is no business of its queues.
    enter_running(jobs, shapes, books, (snapshot.running.kind != ELSEWHERE).astype(np.uint8))
    return books


def work_out_shares(snapshot: PoolSnapshot, jobs: Jobs, shapes: Shapes, books: Books) -> Shares:
    """Return every queue's due: by weight, and after what others do not use was handed on. Sets the books' budgets."""
    queues = snapshot.queues
    by_class = books.held_in_class.copy()
    by_class[queues.guest > 0] = 0
    kinds = len(snapshot.shapes.rule)
    scratch = np.zeros(kinds, np.int64), np.zeros(kinds, np.int32)
    sum_demand(jobs, shapes, queues.cordoned, snapshot.queued.offsets, by_class, *scratch)
    constrained = np.minimum(by_class, books.limit).sum(axis=1)
    wanted = np.array([share(books.total, books.multiplier, row) for row in constrained], np.float64)
    if not books.total.any():
        wanted[:] = 1.0
    fair = books.weight / books.weight.sum() if len(wanted) else np.zeros(0)
    capped, uncapped = np.zeros_like(wanted), np.zeros_like(wanted)
    adjust_shares(books.weight, wanted, capped, uncapped, np.zeros_like(wanted), np.zeros(len(wanted), np.uint8))
    books.budget[:] = capped / books.weight
    return Shares(
        fair=fair,
        demand_capped=capped,
        uncapped=uncapped,
        demand=by_class.sum(axis=1),
        constrained_demand=constrained,
        wanted=wanted,
    )


def due_shares(snapshot: PoolSnapshot, shares: Shares) -> Floats:
    """Return the share by which each queue is measured when fairness asks whether it holds too much."""
    if snapshot.rules.protects_uncapped_share:
        return shares.uncapped
    return np.maximum(shares.demand_capped, shares.fair)


def protected_queues(snapshot: PoolSnapshot, books: Books, due: Floats) -> Flags:
    """Return which queues hold no more than the protected fraction of their share, so that fairness takes nothing."""
    rules = snapshot.rules
    protected = np.zeros(len(due), np.uint8)
    for queue in range(len(due)):
        held = share(books.total, books.multiplier, books.held[queue])
        if due[queue] == 0.0:
            protected[queue] = held == 0.0
        else:
            protected[queue] = held / due[queue] <= rules.protected_fraction
    return protected


def indicative_shares(snapshot: PoolSnapshot, books: Books, shares: Shares) -> tuple[IndicativeShare, ...]:
    """Return what one more queue would have as its due that could use any amount, for each priority that is asked."""
    found = []
    for priority in snapshot.rules.indicative_priorities:
        weight = np.append(books.weight, 1.0 / priority)
        wanted = np.append(shares.wanted, np.inf)
        capped = np.zeros_like(wanted)
        spare, achieved = np.zeros_like(wanted), np.zeros(len(wanted), np.uint8)
        adjust_shares(weight, wanted, capped, np.zeros_like(wanted), spare, achieved)
        found.append(IndicativeShare(priority=priority, share=float(capped[-1])))
    return tuple(found)


def queue_figures(snapshot: PoolSnapshot, books: Books, shares: Shares) -> tuple[QueueFigures, ...]:
    """Return how each queue stands after the round."""
    queues = snapshot.queues

    def part(amounts: Amounts) -> float:
        return float(share(books.total, books.multiplier, amounts))

    return tuple(
        QueueFigures(
            name=name,
            weight=float(queues.weight[index]),
            raw_weight=float(queues.raw_weight[index]),
            fair_share=float(shares.fair[index]),
            demand_capped_share=float(shares.demand_capped[index]),
            uncapped_share=float(shares.uncapped[index]),
            actual_share=part(books.held[index]),
            demand_share=part(shares.demand[index]),
            constrained_demand_share=part(shares.constrained_demand[index]),
            allocated=tuple(books.held[index].tolist()),
            demand=tuple(shares.demand[index].tolist()),
            constrained_demand=tuple(shares.constrained_demand[index].tolist()),
            penalty=tuple(queues.penalty[index].tolist()),
            penalty_share=part(queues.penalty[index]),
            turns=int(books.turns[index, 0]),
            first_turn=int(books.turns[index, 1]),
            last_placing_turn=int(books.turns[index, 2]),
        )
        for index, name in enumerate(queues.names)
    )
