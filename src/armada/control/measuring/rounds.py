"""What the latest round of each pool came to, as gauges. All are made anew of the rounds whenever they are asked for.

So a series is gone at once when a pool or queue has no figure for it any more: nothing of a former round is left over.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from armada.control.measuring.series import GAUGE, Family, Labels, Sample, Series, gauges
from armada.control.rounds.planning import RoundReport
from armada.scheduling.decisions import QueueMarket, Reason
from armada.scheduling.snapshot import Amounts, PoolSnapshot, Rows

PREFIX: Final = "armada_scheduler_"

_UNIT: Final = 9
"""A unit is 10**9 nano units."""

QUEUE: Final = gauges(
    ("pool", "queue"),
    (
        ("considered_jobs", "Queued jobs that the round looked at"),
        ("fair_share", "Share of the pool by weight alone"),
        (
            "adjusted_fair_share",
            "Share after queues that want less than theirs left the rest to others, capped by demand",
        ),
        ("uncapped_adjusted_fair_share", "The same, not capped by the queue's demand"),
        ("actual_share", "Share of the pool that the queue holds after the round"),
        ("demand", "Share of the pool that the queue holds and waits for"),
        ("constrained_demand", "The same, capped by the queue's limits"),
        ("short_job_penalty", "Share that jobs which ended too soon still count"),
        ("queue_weight", "Weight that the round used"),
        ("raw_queue_weight", "Weight of the queue's own priority factor, before overrides"),
        ("gangs_considered", "Gangs, and jobs of their own, that the round looked at"),
        ("gangs_scheduled", "Gangs, and jobs of their own, that the round leased"),
        ("first_gang_queue_position", "Number of the queue's first turn in the round; 0 if it had none"),
        ("last_gang_queue_position", "Number of the queue's last turn that placed something; 0 if none did"),
        ("per_queue_schedule_cycle_times", "The queue's part of the round in milliseconds, by its turns"),
        ("evicted_jobs", "Running jobs that had to compete for their place again"),
    ),
    PREFIX,
)
QUEUE_RESOURCE: Final = gauges(
    ("pool", "queue", "resource"),
    (("evicted_resources", "What the running jobs hold that had to compete for their place again"),),
    PREFIX,
)
MARKET_QUEUE: Final = gauges(
    ("pool", "queue"),
    (
        ("spot_price_override", "Price that the queue pays in place of the spot price"),
        ("idealised_scheduled_value", "Worth of what the queue would hold if the pool were one node for everything"),
        ("realised_scheduled_value", "Worth of what the queue holds after the round"),
    ),
    PREFIX,
)
MARKET_RESOURCE: Final = gauges(
    ("pool", "queue", "resource"),
    (
        ("billable_resources", "What the queue pays for"),
        ("idealised_allocated_resource", "What the queue would hold if the pool were one node for everything"),
    ),
    PREFIX,
)
POOL: Final = gauges(
    ("pool",),
    (
        ("fairness_error", "What queues hold less than their adjusted fair share, summed up"),
        ("loop_number", "Turns of queues in the round"),
        ("spot_price", "Price that the round of a market found; 0 if it found none"),
        ("protected_fraction_of_fair_share", "Part of its fair share up to which a queue loses nothing to fairness"),
        ("node_pool_size", "Nodes in the round"),
    ),
    PREFIX,
)
INDICATIVE_PRICE: Final = Series(
    f"{PREFIX}indicative_price",
    GAUGE,
    ("pool", "job_shape"),
    "Bid that would place a gang of this kind now; NaN if unknown",
)
INDICATIVE_SCHEDULABLE: Final = Series(
    f"{PREFIX}indicative_price_is_schedulable",
    GAUGE,
    ("pool", "job_shape", "unschedulable_reason"),
    "1 if a gang of this kind can be placed at some price, else 0 with the reason",
)
INDICATIVE_SHARE: Final = Series(
    f"{PREFIX}indicative_share",
    GAUGE,
    ("pool", "priority"),
    "Share that a new queue of this priority factor would get if it wanted everything",
)
UNSCHEDULABLE: Final = Series(
    f"{PREFIX}unschedulable_jobs",
    GAUGE,
    ("pool", "queue", "reason"),
    "Queued jobs that the round looked at and did not place, by reason",
)
LAST_ROUND: Final = Series(
    f"{PREFIX}last_round_timestamp_seconds", GAUGE, ("pool",), "When the pool's latest round ended, in Unix seconds"
)

SERIES: Final = (
    *QUEUE.values(),
    *QUEUE_RESOURCE.values(),
    *MARKET_QUEUE.values(),
    *MARKET_RESOURCE.values(),
    *POOL.values(),
    INDICATIVE_SHARE,
    INDICATIVE_PRICE,
    INDICATIVE_SCHEDULABLE,
    UNSCHEDULABLE,
    LAST_ROUND,
)


class _Samples:
    """Values by series, in the order in which they come."""

    def __init__(self) -> None:
        self._found: dict[str, list[Sample]] = {series.name: [] for series in SERIES}

    def add(self, series: Series, labels: Labels, value: float) -> None:
        self._found[series.name].append((labels, value))

    def families(self) -> list[Family]:
        return [Family(series=series, samples=self._found[series.name]) for series in SERIES]


def round_families(reports: Mapping[str, RoundReport]) -> list[Family]:
    """Return all gauges of the latest rounds, by pool."""
    samples = _Samples()
    for pool, report in sorted(reports.items()):
        _pool(samples, pool, report)
        _queues(samples, pool, report)
        _market(samples, pool, report)
    return samples.families()


def _pool(samples: _Samples, pool: str, report: RoundReport) -> None:
    rules, decisions = report.order.snapshot.rules, report.decisions
    figures = {
        "fairness_error": decisions.fairness_error,
        "loop_number": decisions.turns,
        "spot_price": decisions.market.spot_price if decisions.market is not None else 0.0,
        "protected_fraction_of_fair_share": rules.protected_fraction,
        "node_pool_size": len(report.order.snapshot.nodes.ids),
    }
    for name, value in figures.items():
        samples.add(POOL[name], (pool,), value)
    for indicative in decisions.indicative_shares:
        samples.add(INDICATIVE_SHARE, (pool, str(indicative.priority)), indicative.share)
    samples.add(LAST_ROUND, (pool,), report.finished_ms / 1_000)


def _queues(samples: _Samples, pool: str, report: RoundReport) -> None:
    snapshot, decisions = report.order.snapshot, report.decisions
    queued, running = snapshot.queued, snapshot.running
    leased = places(queued.row, decisions.leases.row)
    refused = places(queued.row, decisions.refusals.row)
    evicted = places(running.row, decisions.evicted)
    leased_queue, refused_queue = queues_at(queued.offsets, leased), queues_at(queued.offsets, refused)
    evicted_queue = queues_at(running.offsets, evicted)
    took_ms = report.finished_ms - report.order.started_ms
    for figures in decisions.queues:
        queue = snapshot.queues.names.index(figures.name)
        own_leased, own_refused = leased[leased_queue == queue], refused_queue == queue
        own_evicted = evicted[evicted_queue == queue]
        scheduled = _gangs(queued.gang[own_leased])
        values = {
            "considered_jobs": len(own_leased) + int(own_refused.sum()),
            "fair_share": figures.fair_share,
            "adjusted_fair_share": figures.demand_capped_share,
            "uncapped_adjusted_fair_share": figures.uncapped_share,
            "actual_share": figures.actual_share,
            "demand": figures.demand_share,
            "constrained_demand": figures.constrained_demand_share,
            "short_job_penalty": figures.penalty_share,
            "queue_weight": figures.weight,
            "raw_queue_weight": figures.raw_weight,
            "gangs_considered": scheduled + _gangs(queued.gang[refused[own_refused]]),
            "gangs_scheduled": scheduled,
            "first_gang_queue_position": figures.first_turn,
            "last_gang_queue_position": figures.last_placing_turn,
            "per_queue_schedule_cycle_times": took_ms * figures.turns / max(1, decisions.turns),
            "evicted_jobs": len(own_evicted),
        }
        for name, value in values.items():
            samples.add(QUEUE[name], (pool, figures.name), value)
        amounts = snapshot.shapes.request[running.shape[own_evicted]].sum(axis=0)
        for resource, amount in in_units(snapshot, amounts):
            samples.add(QUEUE_RESOURCE["evicted_resources"], (pool, figures.name, resource), amount)
        reasons, counts = np.unique(decisions.refusals.reason[own_refused], return_counts=True)
        for reason, count in zip(reasons.tolist(), counts.tolist(), strict=True):
            samples.add(UNSCHEDULABLE, (pool, figures.name, Reason(reason).name.lower()), count)


def _market(samples: _Samples, pool: str, report: RoundReport) -> None:
    market = report.decisions.market
    if market is None:
        for figures in report.decisions.queues:
            for name in ("idealised_scheduled_value", "realised_scheduled_value"):
                samples.add(MARKET_QUEUE[name], (pool, figures.name), 0.0)
        return
    for queue in market.queues:
        _market_queue(samples, pool, queue, report.order.snapshot)
    for price in market.indicative_prices:
        samples.add(INDICATIVE_PRICE, (pool, price.name), price.price if price.evaluated else math.nan)
        samples.add(INDICATIVE_SCHEDULABLE, (pool, price.name, price.reason), float(price.schedulable))


def _market_queue(samples: _Samples, pool: str, queue: QueueMarket, snapshot: PoolSnapshot) -> None:
    labels = (pool, queue.name)
    if queue.price_override is not None:
        samples.add(MARKET_QUEUE["spot_price_override"], labels, queue.price_override)
    samples.add(MARKET_QUEUE["idealised_scheduled_value"], labels, queue.idealised_value)
    samples.add(MARKET_QUEUE["realised_scheduled_value"], labels, queue.realised_value)
    for name, amounts in (("billable_resources", queue.billable), ("idealised_allocated_resource", queue.idealised)):
        for resource, amount in in_units(snapshot, np.array(amounts, np.int64)):
            samples.add(MARKET_RESOURCE[name], (*labels, resource), amount)


def _gangs(numbers: Rows) -> int:
    """Count gangs, and jobs in none (-1) each for itself."""
    in_gang = numbers[numbers >= 0]
    return len(np.unique(in_gang)) + len(numbers) - len(in_gang)


def places(rows: Rows, named: Rows) -> Rows:
    """Return where the named rows stand in a column of distinct rows."""
    if not len(named):
        return np.zeros(0, np.int32)
    table = np.zeros(int(rows.max()) + 1, np.int32)
    table[rows] = np.arange(len(rows), dtype=np.int32)
    found: Rows = table[named]
    return found


def queues_at(offsets: Amounts, where: Rows) -> Amounts:
    """Return the queue of each place in columns that go queue by queue."""
    found: Amounts = np.searchsorted(offsets, where, side="right") - 1
    return found


def in_units(snapshot: PoolSnapshot, amounts: Amounts) -> Iterator[tuple[str, float]]:
    """Give each resource with its amount in units: cores, bytes, devices."""
    rules = snapshot.rules
    for name, exponent, amount in zip(rules.resources, rules.exponents, amounts.tolist(), strict=True):
        yield name, in_unit(amount, exponent)


def in_unit(amount: float, exponent: int) -> float:
    """Return an amount of a column whose unit is 10**`exponent` nano units, in whole units."""
    return amount * float(10 ** (exponent - _UNIT)) if exponent >= _UNIT else amount / 10 ** (_UNIT - exponent)
