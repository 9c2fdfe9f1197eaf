"""Results as Parquet files. Equal results give equal bytes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from armada.simulation.whatif.results import Column, Results, Table

JOBS_FILE: Final = "jobs.parquet"
QUEUES_FILE: Final = "queue_stats.parquet"
ROWS_PER_GROUP: Final = 1_000_000

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


def _field(name: str, column: Column) -> Any:
    """A column's name and type; its unit is the description."""
    kind = pa.string() if isinstance(column, list) else pa.int32() if column.typecode == "i" else pa.float64()
    unit = _UNITS.get(name, "fraction of the pool" if name.endswith("_share") else "")
    return pa.field(name, kind, metadata={"description": unit} if unit else None)


def write(results: Results, folder: Path) -> None:
    """Write both files."""
    _write(results.jobs, folder / JOBS_FILE)
    _write(results.queues, folder / QUEUES_FILE)


def _write(table: Table, file: Path) -> None:
    schema = pa.schema([_field(name, column) for name, column in table.columns.items()])
    columns = [
        pa.array(column if isinstance(column, list) else np.asarray(column), field.type, from_pandas=True)
        for field, column in zip(schema, table.columns.values(), strict=True)
    ]
    pq.write_table(pa.table(columns, schema=schema), file, row_group_size=ROWS_PER_GROUP)
