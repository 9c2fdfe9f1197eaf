"""Live runs by queue and place: what they hold, how long they have run, in which phase they are."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from armada.model.lifecycle import RunState
from armada.state.figures.queued import GroupKey, QueuedGroup, WaitingGroup
from armada.state.figures.spreads import (
    MAX_VALUE,
    Amounts,
    Rows,
    bucket_counts,
    grouped,
    sorted_groups,
    spread_of,
    weighted_spread,
)
from armada.state.figures.standing import Standing

PHASES: Final = ("LEASED", "PENDING", "RUNNING")
"""Phases of live runs, by their state."""


class HeldLine(msgspec.Struct, frozen=True, eq=False):
    """Runs of a queue and class in a pool, on the nodes of one place (a number of the caller's): what they hold."""

    key: GroupKey
    place: int
    amounts: tuple[int, ...]


class HeldFigures(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Everything about live runs.

    `lines` by key and place; `groups` by key over all places, with `running` times of runs in phase RUNNING; `pods` has
    (queue, pool, place, phase) with its number. Of each node, by number: `on_node` [nodes, R] is what runs hold, also
    ended ones whose room is not free yet; `phases` [nodes, 3] is the number of live runs by phase; `solid` says whether
    one of them may not be preempted.
    """

    lines: tuple[HeldLine, ...]
    groups: tuple[QueuedGroup, ...]
    running: tuple[WaitingGroup, ...]
    pods: tuple[tuple[tuple[str, str, int, int], int], ...]
    on_node: Amounts
    phases: Amounts
    solid: Rows


class _Runs(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Columns of live runs, side by side."""

    pool: Rows
    queue: Rows
    class_row: Rows
    band: Rows
    node: Rows
    shape: Rows
    state: Rows
    started_ms: Amounts


def held_figures(
    standing: Standing, place_of_node: Rows, preemptible: Rows, edges_ms: Sequence[int], now_ms: int
) -> HeldFigures:
    """Work out all figures of live runs. `preemptible` [classes] says which may be preempted."""
    runs = _live_runs(standing)
    nodes, width = max(1, len(standing.node_ids)), standing.request.shape[1]
    place = place_of_node[runs.node]
    room = (len(standing.pools), len(standing.queue_names), len(preemptible), int(runs.band.max(initial=0)) + 1)
    keys, group = grouped((runs.pool, runs.queue, runs.class_row, runs.band), room)
    amounts = standing.request[runs.shape]
    on_node = np.zeros((nodes, width), np.int64)
    every = np.flatnonzero(standing.runs["used"])
    asked = standing.shape_kind[standing.jobs["shape"][standing.runs["job"][every]]]
    np.add.at(on_node, standing.runs["node"][every], standing.request[asked])
    phases = np.bincount(runs.node * np.int64(len(PHASES)) + runs.state, minlength=nodes * len(PHASES))
    solid = np.zeros(nodes, np.int32)
    solid[runs.node[preemptible[runs.class_row] == 0]] = 1
    return HeldFigures(
        lines=_lines(standing, keys, group, place, amounts),
        groups=_groups(standing, keys, group, amounts),
        running=_running(standing, runs, room, edges_ms, now_ms),
        pods=_pods(standing, runs, place),
        on_node=on_node,
        phases=phases.reshape(nodes, len(PHASES)),
        solid=solid,
    )


def _live_runs(standing: Standing) -> _Runs:
    columns = standing.runs
    rows = np.flatnonzero(columns["used"] & (columns["state"] < int(RunState.SUCCEEDED)))
    job = columns["job"][rows]
    bands = np.array([kind.price_band if kind is not None else 0 for kind in standing.kinds] or [0], np.int32)
    shape = standing.shape_kind[standing.jobs["shape"][job]]
    return _Runs(
        pool=columns["pool"][rows],
        queue=standing.jobs["queue"][job],
        class_row=standing.class_row[shape],
        band=bands[standing.jobs["kind"][job]],
        node=columns["node"][rows],
        shape=shape,
        state=columns["state"][rows].astype(np.int32),
        started_ms=columns["started_ms"][rows],
    )


def _key(standing: Standing, row: Sequence[int]) -> GroupKey:
    pool, queue, class_row, band = row[:4]
    return standing.pools[pool] or "", standing.queue_names[queue] or "", class_row, band


def _lines(
    standing: Standing, keys: list[list[int]], group: Rows, place: Rows, amounts: Amounts
) -> tuple[HeldLine, ...]:
    places = int(place.max(initial=0)) + 1
    rows, line = grouped((group, place), (len(keys), places))
    sums = np.zeros((len(rows), amounts.shape[1]), np.int64)
    np.add.at(sums, line, amounts)
    return tuple(
        HeldLine(_key(standing, keys[number]), at, tuple(total))
        for (number, at), total in zip(rows, sums.tolist(), strict=True)
    )


def _groups(standing: Standing, keys: list[list[int]], group: Rows, amounts: Amounts) -> tuple[QueuedGroup, ...]:
    ones = np.ones(len(group), np.int64)
    spreads = [weighted_spread(group, amounts[:, resource], ones, len(keys)) for resource in range(amounts.shape[1])]
    return tuple(
        QueuedGroup(
            _key(standing, row),
            True,
            int(spreads[0].count[number]),
            tuple(each.at(number) for each in spreads),
        )
        for number, row in enumerate(keys)
    )


def _running(
    standing: Standing, runs: _Runs, room: tuple[int, ...], edges_ms: Sequence[int], now_ms: int
) -> tuple[WaitingGroup, ...]:
    running = runs.state == int(RunState.RUNNING)
    columns = (runs.pool[running], runs.queue[running], runs.class_row[running])
    rows, group = grouped(columns, room[:3])
    ran = np.clip(now_ms - runs.started_ms[running], 0, MAX_VALUE)
    ordered = sorted_groups(group, ran, len(rows))
    spread, buckets = spread_of(ordered), bucket_counts(ordered, np.array(edges_ms, np.int64))
    return tuple(
        WaitingGroup(_key(standing, (*row, 0)), True, int(spread.count[number]), spread.at(number), tuple(counts))
        for number, (row, counts) in enumerate(zip(rows, buckets.tolist(), strict=True))
    )


def _pods(standing: Standing, runs: _Runs, place: Rows) -> tuple[tuple[tuple[str, str, int, int], int], ...]:
    room = (len(standing.queue_names), len(standing.pools), int(place.max(initial=0)) + 1, len(PHASES))
    rows, group = grouped((runs.queue, runs.pool, place, runs.state), room)
    counts = np.bincount(group, minlength=len(rows)).tolist()
    return tuple(
        ((standing.queue_names[queue] or "", standing.pools[pool] or "", at, phase), count)
        for (queue, pool, at, phase), count in zip(rows, counts, strict=True)
    )
