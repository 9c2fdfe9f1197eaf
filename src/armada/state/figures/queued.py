"""Queued jobs by queue, priority class, price band and pool: what they ask for, and how long they have waited."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from armada.model.lifecycle import JobState
from armada.state.figures.spreads import (
    MAX_VALUE,
    Amounts,
    Rows,
    Spread,
    bucket_counts,
    grouped,
    numbered,
    sorted_groups,
    spread_of,
    weighted_spread,
)
from armada.state.figures.standing import Standing

PoolsOf = Callable[[str, int, tuple[str, ...] | None], tuple[str, ...]]
"""Says in which pools jobs of a queue and kind (a number) wait, restricted or not, the primary one first."""

GroupKey = tuple[str, str, int, int]
"""Pool, queue, row of the priority class, price band."""

_MAX_ASKED: Final = 20_000
"""Kinds of queues' jobs that are asked about one by one; where there are more, all are taken to wait in every pool."""


class QueuedGroup(msgspec.Struct, frozen=True, eq=False):
    """Jobs that are shown together; `is_primary` as for the metrics' roles.

    `spreads` has for each resource sum, least, greatest and median of what they ask for, in column units.
    """

    key: GroupKey
    is_primary: bool
    count: int
    spreads: tuple[tuple[float, float, float, float], ...]


class WaitingGroup(msgspec.Struct, frozen=True, eq=False):
    """How long jobs have waited, or run: sum, least, greatest and median in milliseconds. The key's price band is 0."""

    key: GroupKey
    is_primary: bool
    count: int
    spread_ms: tuple[float, float, float, float]
    buckets: tuple[int, ...]


class QueuedFigures(msgspec.Struct, frozen=True, eq=False):
    """All groups, and the number of distinct shapes by queue."""

    groups: tuple[QueuedGroup, ...]
    waiting: tuple[WaitingGroup, ...]
    shapes: dict[str, int]


class _Pairs(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Distinct pairs of queue and kind among queued jobs, and the pair of each job."""

    queue: Amounts
    kind: Amounts
    count: Amounts
    of_job: Rows
    class_row: Rows
    band: Rows


def queued_figures(standing: Standing, pools_of: PoolsOf, edges_ms: Sequence[int], now_ms: int) -> QueuedFigures:
    """Work out all figures of queued jobs. `edges_ms` are the upper ends of the buckets of waiting times."""
    jobs = standing.jobs
    rows = np.flatnonzero(jobs["used"] & (jobs["state"] == int(JobState.QUEUED)))
    pairs = _pairs(standing, rows)
    shape = standing.shape_kind[jobs["shape"][rows]]
    distinct = _distinct_shapes(standing, jobs["queue"][rows], shape)
    if not len(rows):
        return QueuedFigures((), (), distinct)
    waited = np.clip(now_ms - jobs["queued_ms"][rows], 0, MAX_VALUE)
    sized = _sized(pairs, shape, len(standing.request))
    edges = np.array(edges_ms, np.int64)
    groups: list[QueuedGroup] = []
    waiting: list[WaitingGroup] = []
    known: dict[bytes, tuple[Spread, Amounts]] = {}
    for pool, role in _by_pool(standing, pairs, pools_of):
        groups += _groups(standing, pairs, sized, pool, role)
        waiting += _waiting(standing, pairs, (waited, edges), (pool, role), known)
    return QueuedFigures(tuple(groups), tuple(waiting), distinct)


def _pairs(standing: Standing, rows: Amounts) -> _Pairs:
    queue, kind = standing.jobs["queue"][rows].astype(np.int64), standing.jobs["kind"][rows].astype(np.int64)
    kinds = max(1, len(standing.kinds))
    codes, count, of_job = numbered(queue * kinds + kind, kinds * max(1, len(standing.queue_names)))
    own = [standing.kinds[number] for number in (codes % kinds).tolist()]
    shapes = np.array([kind.shape if kind is not None else 0 for kind in own], np.int64)
    return _Pairs(
        queue=codes // kinds,
        kind=codes % kinds,
        count=count,
        of_job=of_job,
        class_row=standing.class_row[standing.shape_kind[shapes]],
        band=np.array([kind.price_band if kind is not None else 0 for kind in own], np.int32),
    )


def _distinct_shapes(standing: Standing, queue: Rows, shape: Rows) -> dict[str, int]:
    kinds = max(1, len(standing.request))
    codes, _, _ = numbered(queue.astype(np.int64) * kinds + shape, kinds * max(1, len(standing.queue_names)))
    counts = np.bincount(codes // kinds, minlength=len(standing.queue_names)).tolist()
    return {name: counts[number] for number, name in enumerate(standing.queue_names) if name is not None}


def _sized(pairs: _Pairs, shape: Rows, kinds: int) -> tuple[Amounts, Amounts, Amounts]:
    """Return distinct (pair, size) with their number: a retried job may ask for more than its kind does."""
    codes, count, _ = numbered(pairs.of_job.astype(np.int64) * kinds + shape, len(pairs.queue) * kinds)
    return codes // kinds, codes % kinds, count


def _by_pool(standing: Standing, pairs: _Pairs, pools_of: PoolsOf) -> Iterator[tuple[str, Rows]]:
    """Give each pool with the role of each pair in it: 0 primary, 1 not, -1 not in this pool."""
    together: dict[tuple[str, ...], list[int]] = {}
    asks = len(pairs.queue) <= _MAX_ASKED
    everywhere = pools_of("", -1, None)
    for place, (queue, kind) in enumerate(zip(pairs.queue.tolist(), pairs.kind.tolist(), strict=True)):
        restricted = standing.restricted_kinds.get(kind)
        if asks or restricted is not None:
            pools = pools_of(standing.queue_names[queue] or "", kind if asks else -1, restricted)
        else:
            pools = everywhere
        together.setdefault(pools, []).append(place)
    roles: dict[str, Rows] = {}
    for pools, places in together.items():
        for role, pool in enumerate(pools):
            if pool not in roles:
                roles[pool] = np.full(len(pairs.queue), -1, np.int32)
            roles[pool][places] = min(role, 1)
    yield from sorted(roles.items())


def _groups(
    standing: Standing, pairs: _Pairs, sized: tuple[Amounts, Amounts, Amounts], pool: str, role: Rows
) -> Iterator[QueuedGroup]:
    pair, shape, count = sized
    here = role[pair] >= 0
    pair, shape, count = pair[here], shape[here], count[here]
    parts = (pairs.queue[pair], pairs.class_row[pair], pairs.band[pair], role[pair])
    room = (len(standing.queue_names), _above(pairs.class_row), _above(pairs.band), 2)
    found, group = grouped(parts, room)
    spreads = [
        weighted_spread(group, standing.request[shape, resource], count, len(found))
        for resource in range(standing.request.shape[1])
    ]
    for place, (queue, class_row, band, is_other) in enumerate(found):
        yield QueuedGroup(
            (pool, standing.queue_names[queue] or "", class_row, band),
            is_other == 0,
            int(spreads[0].count[place]),
            tuple(each.at(place) for each in spreads),
        )


def _waiting(
    standing: Standing,
    pairs: _Pairs,
    times: tuple[Amounts, Amounts],
    where: tuple[str, Rows],
    known: dict[bytes, tuple[Spread, Amounts]],
) -> Iterator[WaitingGroup]:
    """Group waiting times (`times`, with the buckets' edges).

    Pools that share all their groups share the work: `known` has what was found, by grouping.
    """
    (waited, edges), (pool, role) = times, where
    here = np.flatnonzero(role >= 0)
    parts = (pairs.queue[here], pairs.class_row[here], role[here])
    found, number = grouped(parts, (len(standing.queue_names), _above(pairs.class_row), 2))
    group = np.full(len(role), -1, np.int32)
    group[here] = number
    key = group.tobytes()
    if key not in known:
        of_job = group[pairs.of_job]
        inside = of_job >= 0
        ordered = sorted_groups(of_job[inside], waited[inside], len(found))
        known[key] = spread_of(ordered), bucket_counts(ordered, edges)
    spread, buckets = known[key]
    for place, (queue, class_row, is_other) in enumerate(found):
        yield WaitingGroup(
            (pool, standing.queue_names[queue] or "", class_row, 0),
            is_other == 0,
            int(spread.count[place]),
            spread.at(place),
            tuple(buckets[place].tolist()),
        )


def _above(numbers: Rows) -> int:
    return int(numbers.max()) + 1 if len(numbers) else 1
