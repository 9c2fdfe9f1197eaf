"""Results as Parquet files. Equal results give equal bytes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from armada.simulation.whatif.results import JOB_COLUMNS, QUEUE_COLUMNS, Results, Table

JOBS_FILE: Final = "jobs.parquet"
QUEUES_FILE: Final = "queue_stats.parquet"
ROWS_PER_GROUP: Final = 1_000_000

_TEXTS: Final = ("queue", "pool", "job_set", "job_id", "run_id", "priority_class", "state")
_COUNTS: Final = ("exit_code", "num_scheduled", "num_preempted", "num_evicted")
_UNITS: Final[Mapping[str, str]] = {
    "ts": "seconds since the beginning",
    "submitted_time": "seconds since the beginning",
    "scheduled_time": "seconds since the beginning; null: never scheduled",
    "finished_time": "seconds since the beginning",
    "cpu": "cpus",
    "memory": "bytes",
    "ephemeral_storage": "bytes",
    "gpu": "pieces",
    "allocated_cpu": "cpus",
    "allocated_memory": "megabytes (1,000,000 bytes)",
    "allocated_gpu": "pieces",
}


def schema(names: tuple[str, ...]) -> Any:
    """Return the Parquet schema of these columns; units stand in the fields' descriptions."""
    return pa.schema([_field(name) for name in names])


def _field(name: str) -> Any:
    kind = pa.string() if name in _TEXTS else pa.int32() if name in _COUNTS else pa.float64()
    unit = _UNITS.get(name, "fraction of the pool" if name.endswith("_share") else "")
    return pa.field(name, kind, metadata={"description": unit} if unit else None)


def write(results: Results, folder: Path) -> None:
    """Write both files."""
    _write(results.jobs, JOB_COLUMNS, folder / JOBS_FILE)
    _write(results.queues, QUEUE_COLUMNS, folder / QUEUES_FILE)


def _write(table: Table, names: tuple[str, ...], file: Path) -> None:
    kinds = schema(names)
    columns = [pa.array(table.columns[name], kinds.field(name).type) for name in names]
    pq.write_table(pa.table(columns, schema=kinds), file, row_group_size=ROWS_PER_GROUP)
