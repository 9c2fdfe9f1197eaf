"""How long a round of a market takes: the pool of `steady 1`, with bids in eight bands. The best of five."""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from armada.model.fleet import Bid, BidTable, PoolBids
from armada.model.policy import MarketPolicy, PoolPolicy, PricedGang
from armada.scheduling.readiness.warming import warm_up
from tests.benchmarks.figures import Figure
from tests.benchmarks.rounds.columns import POOL, Pool, ledger_of
from tests.benchmarks.rounds.pools import CLASS, SLOTS, UNIT, policy, steady
from tests.benchmarks.rounds.timing import Timed, figure, time_round

NODES: Final = 1_000
QUEUED: Final = 320_000
BANDS: Final = 8
GANGS: Final = tuple(
    PricedGang(name=f"{size} of {cpu} cpu", size=size, priority_class=CLASS, requests={"cpu": str(cpu)})
    for size in (1, 8, 64, 512)
    for cpu in (1, 8)
)


def measure() -> Iterable[Figure]:
    """Figures of rounds in which nothing changes, in which everything does, and in which gangs are priced."""
    warm_up()
    for queues in (10, 1_000):
        full = market(steady((NODES, QUEUED), queue_count=queues))
        timed = time_round(ledger_of(full), bids=bids(full, running=20.0))
        expect(timed, 0)
        yield figure(f"market 1, {queues:,} queues, nothing changes", timed)
    full = market(steady((NODES, QUEUED)))
    timed = time_round(ledger_of(full), bids=bids(full, running=0.5))
    expect(timed, NODES * SLOTS)
    yield figure("market 1, everybody bids more than who runs", timed)
    priced = market(steady((NODES, QUEUED)), GANGS)
    timed = time_round(ledger_of(priced), bids=bids(priced, running=20.0))
    prices = timed.decisions.market.indicative_prices if timed.decisions.market is not None else ()
    if [one.price for one in prices] != [20.0] * len(GANGS):
        raise AssertionError(f"indicative prices: {prices}")
    yield figure(f"market 1, nothing changes, {len(GANGS)} gangs priced", timed)


def market(pool: Pool, gangs: tuple[PricedGang, ...] = ()) -> Pool:
    """The pool with a market; its jobs are of all bands in turns."""
    terms = MarketPolicy(spot_price_cutoff=0.9, pricing_timeout_ms=1_000, priced_gangs=gangs)
    jobs = len(pool.work.queue)
    return msgspec.structs.replace(
        pool,
        policy=msgspec.structs.replace(policy(), pools=(PoolPolicy(name=POOL, market=terms),)),
        shapes=(UNIT,) * BANDS,
        bands=tuple(range(1, BANDS + 1)),
        work=pool.work._replace(shape=(np.arange(jobs) // len(pool.queues) % BANDS).astype(np.int32)),
    )


def bids(pool: Pool, running: float) -> BidTable:
    """Every queue bids its own amounts for jobs that wait, from 1 to 10, and the same for all that run."""
    table = {
        queue: {POOL: PoolBids({band: Bid(1.0 + (number + band) % 10, running) for band in range(1, BANDS + 1)})}
        for number, queue in enumerate(pool.queues)
    }
    return BidTable(queues=table, resource_units={POOL: {"cpu": "1"}})


def expect(timed: Timed, moved: int) -> None:
    """Compare with how many jobs must have changed places.

    Raises:
        AssertionError: it is another number.
    """
    found = len(timed.decisions.leases.row), len(timed.decisions.preemptions.row)
    if found != (moved, moved):
        raise AssertionError(f"placed and preempted {found} instead of {moved:,} each")
