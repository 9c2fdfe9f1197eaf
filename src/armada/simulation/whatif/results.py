"""What happened in a simulation, column by column: jobs that ended, queues at every round, and lengths of queues.

Times are virtual milliseconds; amounts are plain floats: cpus, bytes, pieces.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.resources import NANO_PER_UNIT, parse_quantity
from armada.scheduling.decisions import Decisions
from armada.scheduling.snapshot import Rows

GPU: Final = "nvidia.com/gpu"
BYTES_PER_MB: Final = 1_000_000
SUCCEEDED: Final = "SUCCEEDED"
PREEMPTED: Final = "PREEMPTED"
CANCELLED: Final = "CANCELLED"
REJECTED: Final = "REJECTED"


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """One job that ended. A job that never ran has no `run_id`, and None as `leased_ms`."""

    queue: str
    job_set: str
    job_id: str
    run_id: str
    priority_class: str
    requests: Mapping[str, float]
    state: str
    submitted_ms: int
    leased_ms: int | None
    ended_ms: int


JOB_COLUMNS: Final = (
    "queue",
    "job_set",
    "job_id",
    "run_id",
    "priority_class",
    "cpu",
    "memory",
    "gpu",
    "ephemeral_storage",
    "exit_code",
    "state",
    "submitted_time",
    "scheduled_time",
    "finished_time",
)
QUEUE_COLUMNS: Final = (
    "ts",
    "queue",
    "pool",
    "fair_share",
    "adjusted_fair_share",
    "actual_share",
    "cpu_share",
    "memory_share",
    "gpu_share",
    "allocated_cpu",
    "allocated_memory",
    "allocated_gpu",
    "num_scheduled",
    "num_preempted",
    "num_evicted",
)
LENGTH_COLUMNS: Final = ("ts", "queue", "queued", "running")


_TEXTS: Final = ("queue", "job_set", "job_id", "run_id", "priority_class", "state", "pool")
_COUNTS: Final = ("exit_code", "num_scheduled", "num_preempted", "num_evicted", "queued", "running")

Column: TypeAlias = "list[str] | array[float] | array[int]"


class Table:
    """Rows by column: texts in lists, counts and amounts in arrays. An amount that is not known is NaN."""

    def __init__(self, names: Sequence[str]) -> None:
        self.columns: dict[str, Any] = {name: _column(name) for name in names}
        self._appends = tuple(column.append for column in self.columns.values())

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def add(self, *values: Any) -> None:
        """Add a row, in the order of the columns."""
        for append, value in zip(self._appends, values, strict=True):
            append(value)

    def texts(self, name: str) -> list[str]:
        """Return a column of texts."""
        column: list[str] = self.columns[name]
        return column

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers."""
        return np.array(self.columns[name], np.float64)


def _column(name: str) -> Column:
    if name in _TEXTS:
        return []
    return array("i") if name in _COUNTS else array("d")


class Results:
    """All that a simulation hands on. `jobs` and `queues` have times in seconds and the columns of their files."""

    def __init__(self) -> None:
        self.jobs = Table(JOB_COLUMNS)
        self.queues = Table(QUEUE_COLUMNS)
        self.lengths = Table(LENGTH_COLUMNS)
        self.rounds = 0

    def end_job(self, end: JobEnd) -> None:
        """Note a job that ended."""
        amounts = end.requests
        self.jobs.add(
            end.queue,
            end.job_set,
            end.job_id,
            end.run_id,
            end.priority_class,
            amounts.get("cpu", 0.0),
            amounts.get("memory", 0.0),
            amounts.get(GPU, 0.0),
            amounts.get("ephemeral-storage", 0.0),
            0 if end.state == SUCCEEDED else 1,
            end.state,
            end.submitted_ms / 1_000,
            math.nan if end.leased_ms is None else end.leased_ms / 1_000,
            end.ended_ms / 1_000,
        )

    def end_round(self, at_ms: int, decisions: Decisions, leased_by_queue: Mapping[str, int]) -> None:
        """Note how every queue of a pool stands after a round."""
        self.rounds += 1
        snapshot = decisions.snapshot
        rules = snapshot.rules
        place = {name: index for index, name in enumerate(rules.resources)}
        preempted = _by_queue(decisions, decisions.preemptions.row)
        evicted = _by_queue(decisions, decisions.evicted)
        for index, figures in enumerate(decisions.queues):
            held = [0.0, 0.0, 0.0]
            shares = [0.0, 0.0, 0.0]
            for column, name in enumerate(("cpu", "memory", GPU)):
                at = place.get(name)
                if at is not None:
                    held[column] = figures.allocated[at] * 10 ** rules.exponents[at] / NANO_PER_UNIT
                    shares[column] = figures.allocated[at] / rules.total[at] if rules.total[at] else 0.0
            self.queues.add(
                at_ms / 1_000,
                figures.name,
                rules.pool,
                figures.fair_share,
                figures.demand_capped_share,
                figures.actual_share,
                *shares,
                held[0],
                held[1] / BYTES_PER_MB,
                held[2],
                leased_by_queue.get(figures.name, 0),
                int(preempted[index]),
                int(evicted[index]),
            )

    def note_length(self, at_ms: int, queue: str, queued: int, running: int) -> None:
        """Note how many jobs of a queue wait and run."""
        self.lengths.add(at_ms / 1_000, queue, queued, running)


def _by_queue(decisions: Decisions, rows: Rows) -> Any:
    """Count running jobs, given by row, by the place of their queue."""
    running = decisions.snapshot.running
    count = len(decisions.queues)
    if not len(rows):
        return np.zeros(count, np.int64)
    order = np.argsort(running.row, kind="stable")
    places = order[np.searchsorted(running.row, rows, sorter=order)]
    return np.bincount(np.searchsorted(running.offsets, places, side="right") - 1, minlength=count)


def amounts(requests: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return quantities as plain floats."""
    return {name: parse_quantity(quantity) / NANO_PER_UNIT for name, quantity in requests}
