"""How long a round takes in which the fairness optimiser takes part: `steady 1`, protected, with one poor queue more.

The reference looks at every job of every node for every job that waits.
"""

import gc
import time
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from armada.model.jobs import JobShape
from armada.model.policy import OptimiserPolicy, PoolPolicy
from armada.scheduling.decisions import Decisions, check_invariants
from armada.scheduling.readiness.warming import warm_up
from armada.scheduling.round import schedule
from tests.benchmarks.figures import Figure
from tests.benchmarks.rounds.columns import POOL, Pool, everywhere, joined, ledger_of, work_of
from tests.benchmarks.rounds.pools import SLOTS, UNIT, policy, shape, steady

NODES: Final = 1_000
QUEUED: Final = 320_000
POOR: Final = "poor"
PROTECTED: Final = 9.0
HARD_TO_PLEASE: Final = 1_000.0
"""In per cent: so much more must a place be worth than it costs; hardly one is."""


def measure() -> Iterable[Figure]:
    """Figures of rounds with deals and of rounds in which none is worth it, both beside the round without."""
    warm_up()
    with_200 = crowded(200)
    alone_ms, _ = timed(with_200, OptimiserPolicy(timeout_ms=60_000), optimises=False)
    yield Figure(name="round: steady 1, protected, and a poor queue; no optimiser", value=alone_ms, unit="ms")
    for deals in (1, 10, 100):
        took_ms, decisions = timed(with_200, OptimiserPolicy(timeout_ms=60_000, max_jobs_per_round=deals))
        expect(decisions, placed=deals)
        yield Figure(
            name=f"round: the same with an optimiser, {deals} deals", value=took_ms, unit="ms", note=told(decisions)
        )
    for shapes in (200, 10_000):
        nothing_worth = OptimiserPolicy(
            timeout_ms=60_000, max_jobs_per_round=100, min_improvement_percent=HARD_TO_PLEASE
        )
        took_ms, decisions = timed(crowded(shapes), nothing_worth)
        expect(decisions, placed=0)
        name = f"round: the same with an optimiser, {shapes:,} shapes, none worth it"
        yield Figure(name=name, value=took_ms, unit="ms", note=told(decisions))


def crowded(shapes: int) -> Pool:
    """`steady 1` with a queue that holds nothing, whose jobs ask for 8 to 24 cpu in so many shapes."""
    full = steady((NODES, QUEUED), protected=PROTECTED)
    large = tuple(large_shape(number) for number in range(shapes))
    waiting = np.arange(max(shapes, 1_000))
    return msgspec.structs.replace(
        full,
        queues=(*full.queues, POOR),
        shapes=(UNIT, *large),
        work=joined(full.work, work_of(0 * waiting + len(full.queues), 1 + waiting % shapes)),
    )


def large_shape(number: int) -> JobShape:
    """One of many large shapes; no two are alike."""
    return shape(cpu=f"{8_000 + number % 17 * 1_000}m", memory=f"{8 * 1024 + number}Mi")


def timed(pool: Pool, optimiser: OptimiserPolicy, *, optimises: bool = True) -> tuple[float, Decisions]:
    """Decide the pool's round a few times; return the best in milliseconds of CPU, and what it decided.

    One of the ten queues that hold the pool is due half of what it holds, the others what they hold.
    """
    with_optimiser = msgspec.structs.replace(policy(PROTECTED), pools=(PoolPolicy(name=POOL, optimiser=optimiser),))
    ledger = ledger_of(msgspec.structs.replace(pool, policy=with_optimiser))
    circumstances = msgspec.structs.replace(
        everywhere(), optimises=optimises, weight_overrides={pool.queues[0]: 2.0, POOR: 2.0}
    )
    best_s, best = float("inf"), None
    gc.collect()
    for number in range(4):
        begun = time.process_time()
        decisions = schedule(ledger.pool_snapshot(POOL, circumstances))
        took_s = time.process_time() - begun
        if number and took_s < best_s:
            best_s, best = took_s, decisions
    if best is None or (broken := check_invariants(best)):
        raise AssertionError(f"the round breaks invariants: {broken}")
    return best_s * 1000, best


def expect(decisions: Decisions, placed: int) -> None:
    """Compare with the known number of placements.

    Raises:
        AssertionError: it differs.
    """
    if len(decisions.leases.row) != placed:
        raise AssertionError(f"placed {len(decisions.leases.row):,} instead of {placed:,}")


def told(decisions: Decisions) -> str:
    """Counts in words."""
    tried = decisions.optimised.tried if decisions.optimised is not None else 0
    running = NODES * SLOTS
    return f"{tried:,} tried, {len(decisions.preemptions.row):,} of {running:,} running jobs had to go"
