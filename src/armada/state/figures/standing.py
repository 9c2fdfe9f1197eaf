"""What stands at one moment: copies of the columns that figures are made of. Taken in milliseconds, never changed."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.fleet import Queue
from armada.model.jobs import JobShape
from armada.scheduling.tables import ShapeTable
from armada.state.figures.spreads import Amounts, Rows
from armada.state.fold import Fold
from armada.state.holdings.jobs import JobKind
from armada.state.records import ExecutorRecord
from armada.state.table import NONE

_JOB_COLUMNS: Final = ("state", "queue", "kind", "shape", "queued_ms")
_RUN_COLUMNS: Final = ("state", "job", "executor", "node", "pool", "leased_ms", "pending_ms", "started_ms")

Columns = Mapping[str, NDArray[Any]]


class Standing(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Jobs and runs as columns, with `used` to tell rows in use; what their numbers stand for as lists by number.

    `shape_kind` leads from a job's shape to a row of `request` [kinds, R] (column units) and of `class_row`.
    """

    jobs: Columns
    runs: Columns
    queue_names: list[str | None]
    kinds: list[JobKind | None]
    shapes: list[JobShape | None]
    restricted_kinds: Mapping[int, tuple[str, ...]]
    pools: list[str | None]
    node_ids: list[str | None]
    node_names: list[str | None]
    shape_kind: Rows
    request: Amounts
    class_row: Rows
    queues: Mapping[str, Queue]
    executors: tuple[ExecutorRecord, ...]
    values_held: int


def taken(fold: Fold, shapes: ShapeTable) -> Standing:
    """Copy what figures are made of; `shapes` mirrors the jobs' shapes."""
    jobs, runs = fold.jobs, fold.runs
    records = (fold.fleet.executor(executor_id) for executor_id in fold.fleet.executor_ids())
    interners = (jobs.queues, jobs.sets, jobs.shapes, jobs.origins, runs.executors, runs.nodes, runs.pools)
    return Standing(
        jobs={
            **{name: jobs.column(name).copy() for name in _JOB_COLUMNS},
            "used": jobs.column("job_set") != NONE,
        },
        runs={
            **{name: runs.column(name).copy() for name in _RUN_COLUMNS},
            "used": _used(runs.high, runs.free_rows()),
        },
        queue_names=jobs.queues.values(),
        kinds=jobs.kinds.values(),
        shapes=jobs.shapes.values(),
        restricted_kinds=dict(jobs.restricted_kinds),
        pools=runs.pools.values(),
        node_ids=runs.nodes.values(),
        node_names=runs.node_names.values(),
        shape_kind=shapes.kind.copy(),
        request=shapes.request.copy(),
        class_row=shapes.class_row.copy(),
        queues=dict(fold.fleet.queues),
        executors=tuple(record for record in records if record is not None),
        values_held=sum(len(interner) for interner in interners),
    )


def _used(high: int, free: Rows) -> NDArray[np.bool_]:
    used = np.ones(high, np.bool_)
    used[free] = False
    return used
