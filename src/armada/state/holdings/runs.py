"""The runs of the ledger as columns: live ones, and ended ones that still hold their node's room."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from armada.model.events import RunLeased
from armada.model.jobs import Toleration
from armada.model.lifecycle import RunState
from armada.model.resources import saturated
from armada.state.table import NONE, Interner, Table, ensure

Extras = tuple[tuple[Toleration, ...], dict[str, str]]
"""What a lease adds to the pod: tolerations and overlay."""

_LEASED: Final = int(RunState.LEASED)
_SUCCEEDED: Final = int(RunState.SUCCEEDED)


class ExecutorRuns:
    """An executor's runs: to start (leased, not confirmed), confirmed (pending or running), ended but not released."""

    __slots__ = ("confirmed", "to_end", "to_start")

    def __init__(self) -> None:
        self.to_start: dict[int, None] = {}
        self.confirmed: dict[int, None] = {}
        self.to_end: dict[int, None] = {}


class Runs(Table):
    """All runs the ledger holds. The runs of one job form a chain from the newest to the oldest."""

    COLUMNS: ClassVar[Mapping[str, type[np.integer[Any]]]] = {
        "state": np.uint8,
        "attempt": np.int64,
        "job": np.int32,
        "older": np.int32,
        "executor": np.int32,
        "node": np.int32,
        "node_name": np.int32,
        "pool": np.int32,
        "priority": np.int64,
        "leased_ms": np.int64,
        "pending_ms": np.int64,
        "started_ms": np.int64,
        "ended_ms": np.int64,
        "sequence": np.int64,
    }

    state: memoryview
    attempt: memoryview
    job: memoryview
    older: memoryview
    executor: memoryview
    node: memoryview
    node_name: memoryview
    pool: memoryview
    priority: memoryview
    leased_ms: memoryview
    pending_ms: memoryview
    started_ms: memoryview
    ended_ms: memoryview
    sequence: memoryview

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, int] = {}
        self._ids: list[str] = []
        self.executors: Interner[str] = Interner()
        self.nodes: Interner[str] = Interner()
        self.node_names: Interner[str] = Interner()
        self.pools: Interner[str] = Interner()
        self.extras: dict[int, Extras] = {}
        self.by_executor: dict[int, ExecutorRuns] = {}
        self.next_sequence = 1

    def run_id(self, row: int) -> str:
        """Return the id of a row in use."""
        return self._ids[row]

    def lease(self, event: RunLeased, job: int, older: int) -> int:
        """Put in a leased run of a job whose newest run so far is `older`; return its row."""
        row = self.allocate()
        if row == len(self._ids):
            self._ids.append(event.run_id)
        else:
            self._ids[row] = event.run_id
        self.rows[event.run_id] = row
        self.state[row] = _LEASED
        self.attempt[row] = saturated(event.attempt)
        self.job[row] = job
        self.older[row] = older
        executor = self.executors.hold(event.executor_id)
        self.executor[row] = executor
        self.node[row] = self.nodes.hold(event.node_id)
        self.node_name[row] = self.node_names.hold(event.node_name)
        self.pool[row] = self.pools.hold(event.pool)
        self.priority[row] = saturated(event.priority)
        self.leased_ms[row] = saturated(event.at_ms)
        self.sequence[row] = self.next_sequence
        self.next_sequence += 1
        if event.tolerations or event.overlay:
            self.extras[row] = (event.tolerations, event.overlay)
        self._of(executor).to_start[row] = None
        return row

    def _of(self, executor: int) -> ExecutorRuns:
        runs = self.by_executor.get(executor)
        if runs is None:
            runs = self.by_executor[executor] = ExecutorRuns()
        return runs

    def confirm(self, row: int, state: int) -> None:
        """The executor holds the run: it is pending or running."""
        if self.state[row] == _LEASED:
            runs = self.by_executor[self.executor[row]]
            del runs.to_start[row]
            runs.confirmed[row] = None
        self.state[row] = state

    def end(self, row: int, state: int, at_ms: int) -> None:
        """The run has ended; it goes on holding its node's room."""
        runs = self.by_executor[self.executor[row]]
        del (runs.to_start if self.state[row] == _LEASED else runs.confirmed)[row]
        runs.to_end[row] = None
        self.state[row] = state
        self.ended_ms[row] = at_ms

    def release(self, row: int) -> None:
        """Forget an ended run. The caller has unlinked it from its job."""
        executor = self.executor[row]
        runs = self.by_executor[executor]
        del runs.to_end[row]
        if self.executors.release(executor):
            del self.by_executor[executor]
        self.nodes.release(self.node[row])
        self.node_names.release(self.node_name[row])
        self.pools.release(self.pool[row])
        self.extras.pop(row, None)
        del self.rows[self._ids[row]]
        self._ids[row] = ""
        self.free(row)

    def in_lease_order(self, rows: list[int]) -> list[int]:
        """Return the rows sorted by the order in which they were leased."""
        sequence = self.sequence
        return sorted(rows, key=sequence.__getitem__)

    def rows_where(self, column: str, number: int) -> list[int]:
        """Return the rows whose cell in `column` is `number`, in lease order."""
        if number == NONE:
            return []
        used = self.used_rows()
        return self.in_lease_order(used[self.column(column)[used] == number].tolist())

    def restore_links(self, ids: list[str]) -> None:
        """Rebuild everything that follows from the filled columns."""
        self._ids = ids
        self.rows = {run_id: row for row, run_id in enumerate(ids)}
        for row in range(self.high):
            runs = self._of(self.executor[row])
            if self.state[row] == _LEASED:
                runs.to_start[row] = None
            elif self.state[row] >= _SUCCEEDED:
                runs.to_end[row] = None
            else:
                runs.confirmed[row] = None

    def validate(self) -> None:
        """Check that ids, references and the executors' lists agree with the columns.

        Raises:
            AssertionError: they do not.
        """
        used = self.used_rows()
        ensure(len(used) == len(self.rows) == len(self), "rows and ids differ in number")
        ensure(all(self._ids[row] == run_id for run_id, row in self.rows.items()), "an id points at another's row")
        for column, interner in (
            ("executor", self.executors),
            ("node", self.nodes),
            ("node_name", self.node_names),
            ("pool", self.pools),
        ):
            interner.validate()
            found = np.bincount(self.column(column)[used], minlength=interner.high)
            for number, value in interner:
                ensure(found[number] == interner.count(number), f"references to {column} {value}")
        ensure(self.by_executor.keys() == {number for number, _ in self.executors}, "executors without runs")
        for row in used.tolist():
            runs = self.by_executor[self.executor[row]]
            ensure((row in runs.to_start) == (self.state[row] == _LEASED), "runs to start")
            ensure((row in runs.to_end) == (self.state[row] >= _SUCCEEDED), "runs to end")
            ensure((row in runs.confirmed) == (_LEASED < self.state[row] < _SUCCEEDED), "confirmed runs")
            ensure((self.ended_ms[row] != 0) <= (self.state[row] >= _SUCCEEDED), "a live run has an end")
        ensure(self.extras.keys() <= set(used.tolist()), "extras of no run")
