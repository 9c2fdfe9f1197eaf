"""Figures of queues and of jobs that wait or run, by pool and priority class, as series."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from armada.control.measuring.series import GAUGE, HISTOGRAM, Distribution, Family, Labels, Sample, Series
from armada.model.lifecycle import JobState
from armada.state.figures.held import HeldFigures
from armada.state.figures.queued import QueuedFigures, QueuedGroup, WaitingGroup
from armada.state.figures.standing import Standing

PREFIX: Final = "armada_"

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
EDGES_S: Final = (
    *(1, 5, 10, 30),
    *(_MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 5 * _DAY, 10 * _DAY),
)
"""Upper ends of buckets of waiting and running times: from a second to ten days."""

PRIMARY: Final = "primary"
SECONDARY: Final = "secondary"

_QUEUE: Final = ("queueName", "queue")
_WHERE: Final = ("pool", "priorityClass", *_QUEUE)
_QUEUED: Final = (*_WHERE, "priceBand", "resourceType", "accounting_role")
_WAITING: Final = (*_WHERE, "accounting_role")
_HELD: Final = (*_WHERE, "priceBand", "resourceType")
_PRICE: Final = ("pool", "priorityClass", "queue")


def _series(name: str, labels: Labels, meaning: str, kind: str = GAUGE) -> Series:
    return Series(PREFIX + name, kind, labels, meaning, tuple(map(float, EDGES_S)) if kind == HISTOGRAM else ())


def _spread(name: str, labels: Labels, what: str) -> tuple[Series, Series, Series]:
    """Least, greatest and median."""
    return (
        _series(f"{name}_min", labels, f"Least of {what}"),
        _series(f"{name}_max", labels, f"Greatest of {what}"),
        _series(f"{name}_median", labels, f"Median of {what}"),
    )


SIZE: Final = _series("queue_size", (*_QUEUE, "state"), "Jobs of a queue that have not ended, by state")
PRIORITY: Final = _series("queue_priority", _QUEUE, "Priority factor of a queue")
KEYS: Final = _series("queue_distinct_scheduling_keys", _QUEUE, "Kinds of queued jobs that the scheduler tells apart")
LABELS: Final = Series(f"{PREFIX}queue_labels", GAUGE, _QUEUE, "1, with the queue's own labels", has_free_labels=True)
ASKED: Final = (
    _series("queue_resource_queued", _QUEUED, "What queued jobs ask for"),
    *_spread("queue_resource_queued", _QUEUED, "what a queued job asks for"),
    _series("queue_resource_queued_count", _QUEUED, "Queued jobs that ask for the resource"),
)
WAITED: Final = (
    _series("job_queued_seconds", _WAITING, "Seconds since queued jobs were queued last", HISTOGRAM),
    *_spread("job_queued_seconds", _WAITING, "the seconds that a queued job has waited"),
)
RAN: Final = (
    _series("job_run_time_seconds", _WHERE, "Seconds that running jobs have run", HISTOGRAM),
    *_spread("job_run_time_seconds", _WHERE, "the seconds that a running job has run"),
)
HELD: Final = _spread("queue_resource_allocated", _HELD, "what a leased or running job holds")
QUEUED_PRICE: Final = _spread("queue_price_queued", (*_PRICE, "accounting_role"), "what a queue bids for a queued job")
RUNNING_PRICE: Final = _spread("queue_price_running", _PRICE, "what a queue bids for a running job")
BIDS: Final = _series(
    "queue_price_band_phase_bid", ("pool", *_QUEUE, "phase", "priceBand"), "What a queue bids by price band and phase"
)

SERIES: Final = (
    SIZE,
    PRIORITY,
    KEYS,
    LABELS,
    *ASKED,
    *WAITED,
    *RAN,
    *HELD,
    *QUEUED_PRICE,
    *RUNNING_PRICE,
    BIDS,
)

_LIVE: Final = (JobState.QUEUED, JobState.LEASED, JobState.PENDING, JobState.RUNNING)
_LABEL: Final = re.compile(r"[^a-zA-Z0-9_]")
_MAX_QUEUE_LABELS: Final = 20

BidOf = Callable[[str, str, int, int], float]
"""What a queue bids: pool, queue, price band, phase (0 waits, 1 runs)."""


class Naming(msgspec.Struct, frozen=True):
    """What numbers of figures stand for: names of resources and classes, and the worth of a resource's column unit."""

    resources: tuple[str, ...]
    units: tuple[float, ...]
    classes: tuple[str, ...]


class PoolBids(msgspec.Struct, frozen=True, eq=False):
    """Bids in a market pool by queue: [band, phase]."""

    pool: str
    queues: Mapping[str, Sequence[Sequence[float]]]


def band_text(band: int) -> str:
    """Write a price band: A to H, empty for none."""
    return chr(ord("A") + band - 1) if band else ""


def queue_families(standing: Standing, queued: QueuedFigures) -> list[Family]:
    """Return what there is to say of whole queues."""
    names = sorted({name for name in standing.queue_names if name is not None} | set(standing.queues))
    jobs, width = standing.jobs, len(JobState)
    used = jobs["used"]
    codes = jobs["queue"][used].astype(np.int64) * width + jobs["state"][used]
    counts = np.bincount(codes, minlength=len(standing.queue_names) * width).reshape(-1, width)
    number = {name: place for place, name in enumerate(standing.queue_names) if name is not None}
    sizes: list[Sample] = [
        ((name, name, state.name.lower()), float(counts[number[name], state]) if name in number else 0.0)
        for name in names
        for state in _LIVE
    ]
    shown = [(name, _free_labels(queue.labels)) for name, queue in sorted(standing.queues.items()) if queue.labels]
    return [
        Family(series=SIZE, samples=sizes),
        Family(
            series=PRIORITY,
            samples=[((name, name), queue.priority_factor) for name, queue in sorted(standing.queues.items())],
        ),
        Family(series=KEYS, samples=[((name, name), queued.shapes.get(name, 0)) for name in names]),
        Family(
            series=LABELS,
            samples=[((name, name, *labels.values()), 1.0) for name, labels in shown],
            free=[tuple(labels) for _, labels in shown],
        ),
    ]


def _free_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Write a queue's labels under names that Prometheus takes; what would stand there twice is left out."""
    found: dict[str, str] = {}
    for name, value in sorted(labels.items()):
        plain = _LABEL.sub("_", name)
        plain = f"_{plain}" if plain[:1].isdigit() else plain
        if plain and plain not in {*_QUEUE, *found} and not plain.startswith("__") and len(found) < _MAX_QUEUE_LABELS:
            found[plain] = value
    return found


def queued_families(queued: QueuedFigures, naming: Naming) -> list[Family]:
    """Return what queued jobs ask for, and how long they have waited."""
    columns: tuple[list[Sample], ...] = tuple([] for _ in ASKED)
    for group in queued.groups:
        pool, queue, class_row, band = group.key
        for resource, unit, spread in zip(naming.resources, naming.units, group.spreads, strict=True):
            if not spread[2]:
                continue
            labels = (pool, naming.classes[class_row], queue, queue, band_text(band), resource, _role(group))
            for samples, value in zip(columns[:-1], spread, strict=True):
                samples.append((labels, value * unit))
            columns[-1].append((labels, group.count))
    asked = [Family(series=series, samples=samples) for series, samples in zip(ASKED, columns, strict=True)]
    return [*asked, *_times(WAITED, queued.waiting, naming, with_role=True)]


def running_families(held: HeldFigures, naming: Naming) -> list[Family]:
    """Return how long running jobs have run, and what single jobs hold."""
    columns: tuple[list[Sample], ...] = tuple([] for _ in HELD)
    for group in held.groups:
        pool, queue, class_row, band = group.key
        for resource, unit, spread in zip(naming.resources, naming.units, group.spreads, strict=True):
            if spread[2]:
                labels = (pool, naming.classes[class_row], queue, queue, band_text(band), resource)
                for samples, value in zip(columns, spread[1:], strict=True):
                    samples.append((labels, value * unit))
    allocated = [Family(series=series, samples=samples) for series, samples in zip(HELD, columns, strict=True)]
    return [*_times(RAN, held.running, naming, with_role=False), *allocated]


def _times(
    series: Sequence[Series], groups: Iterable[WaitingGroup], naming: Naming, *, with_role: bool
) -> list[Family]:
    histograms: list[tuple[Labels, Distribution]] = []
    columns: tuple[list[Sample], ...] = ([], [], [])
    for group in groups:
        pool, queue, class_row, _ = group.key
        labels: Labels = (pool, naming.classes[class_row], queue, queue)
        if with_role:
            labels = (*labels, _role(group))
        histograms.append((labels, Distribution(group.buckets, group.spread_ms[0] / 1_000)))
        for samples, value in zip(columns, group.spread_ms[1:], strict=True):
            samples.append((labels, value / 1_000))
    spreads = [Family(series=one, samples=samples) for one, samples in zip(series[1:], columns, strict=True)]
    return [Family(series=series[0], distributions=histograms), *spreads]


def price_families(
    queued: QueuedFigures, held: HeldFigures, markets: Sequence[PoolBids], naming: Naming
) -> list[Family]:
    """Return what queues bid in pools with a market: for the jobs they have, and by band and phase."""
    bids = {market.pool: market for market in markets}
    found: list[Family] = []
    for series, groups, phase in ((QUEUED_PRICE, queued.groups, 0), (RUNNING_PRICE, held.groups, 1)):
        prices: dict[Labels, list[tuple[float, int]]] = {}
        for group in groups:
            pool, queue, class_row, band = group.key
            market = bids.get(pool)
            if market is not None and queue in market.queues:
                labels: Labels = (pool, naming.classes[class_row], queue)
                labels = labels if phase else (*labels, _role(group))
                prices.setdefault(labels, []).append((market.queues[queue][band][phase], group.count))
        columns = (
            [(labels, min(price for price, _ in each)) for labels, each in prices.items()],
            [(labels, max(price for price, _ in each)) for labels, each in prices.items()],
            [(labels, weighted_median(each)) for labels, each in prices.items()],
        )
        found += [Family(series=one, samples=samples) for one, samples in zip(series, columns, strict=True)]
    by_band: list[Sample] = [
        ((market.pool, queue, queue, phase, band_text(band)), bid)
        for market in markets
        for queue, table in market.queues.items()
        for band, pair in enumerate(table)
        for phase, bid in zip(("queueing", "running"), pair, strict=True)
    ]
    return [*found, Family(series=BIDS, samples=by_band)]


def weighted_median(values: Iterable[tuple[float, int]]) -> float:
    """Return the median of values that each stand for so many; of an even number the mean of the two in the middle."""
    ordered = sorted(values)
    total = sum(count for _, count in ordered)
    middle: list[float] = []
    for wanted in ((total - 1) // 2, total // 2):
        reached = 0
        for value, count in ordered:
            reached += count
            if reached > wanted:
                middle.append(value)
                break
    return sum(middle) / 2


def _role(group: QueuedGroup | WaitingGroup) -> str:
    return PRIMARY if group.is_primary else SECONDARY
