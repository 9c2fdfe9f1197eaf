"""The ledger's tables as bytes and back.

The content is canonical: jobs in submit order, runs in lease order, shared values numbered by first use, nothing that
follows from something else. So equal tables give equal bytes whatever their row numbers, and the digest is a hash of
the content. What depends on the policy (class priorities, shapes of jobs that avoid nodes) is worked out anew when a
checkpoint is taken up, so that a changed policy takes hold with a restart.

Layout: magic, version (2 bytes), hash of the rest (32), then compressed msgpack of `Content`.
"""

import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.errors import CorruptEntry
from armada.model.events import Position
from armada.model.fleet import Queue
from armada.model.growth import MemoryGrowth
from armada.model.jobs import GangSpec, JobShape, Toleration
from armada.model.policy import RetryPolicy, SchedulingPolicy
from armada.state.fold import Fold
from armada.state.holdings.jobs import JobKind, JobOrigin
from armada.state.holdings.short_jobs import ShortJobsContent
from armada.state.memory import RememberedColumns, RememberedCopy
from armada.state.records import ExecutorRecord
from armada.state.table import NONE, Interner, Rows, Table

VERSION: Final = 1
_MAGIC: Final = b"ARMADALEDGER"
_HASH_BYTES: Final = 32
_HEADER_BYTES: Final = len(_MAGIC) + 2 + _HASH_BYTES
_COMPRESSION: Final = 1
_NOTHING_REMEMBERED: Final = RememberedColumns(b"", b"", ())

_JOB_COLUMNS: Final = (
    "state", "flags", "runs_leased", "runs_attempted", "runs_failed", "spec_index", "spec_position", "priority",
    "submitted_ms", "queued_ms", "sequence",
)  # fmt: skip
_RUN_COLUMNS: Final = (
    "state", "attempt", "priority", "leased_ms", "pending_ms", "started_ms", "ended_ms", "sequence",
)  # fmt: skip

Value = TypeVar("Value")


class KindContent(msgspec.Struct, frozen=True, array_like=True):
    """A job kind with its shape in full."""

    shape: JobShape
    fail_fast: bool
    price_band: int
    pools: tuple[str, ...] | None
    requeues_preempted: bool | None = None


class GangContent(msgspec.Struct, frozen=True, array_like=True):
    """A gang; `queue` is a number of `Content.queue_names`."""

    queue: int
    spec: GangSpec
    priority_class: str
    submitted: int


class Content(msgspec.Struct, frozen=True, array_like=True):
    """Everything a checkpoint says. Columns are little-endian bytes; numbers point into the tuples of shared values."""

    position: Position
    voids: tuple[tuple[int, int, int], ...]
    time_ms: int
    epoch: int
    holder: str
    last_batch: tuple[str, int]
    next_job_sequence: int
    next_run_sequence: int
    queues: tuple[Queue, ...]
    executors: tuple[tuple[ExecutorRecord, bool], ...]
    clients: RememberedColumns
    batches: RememberedColumns
    job_ids: bytes
    odd_job_ids: tuple[tuple[int, str], ...]
    jobs: dict[str, bytes]
    queue_names: tuple[str, ...]
    sets: tuple[tuple[int, str], ...]
    kinds: tuple[KindContent, ...]
    origins: tuple[JobOrigin, ...]
    gangs: tuple[GangContent, ...]
    avoid_nodes: tuple[tuple[int, tuple[str, ...]], ...]
    run_ids: tuple[str, ...]
    runs: dict[str, bytes]
    executor_ids: tuple[str, ...]
    node_ids: tuple[str, ...]
    node_names: tuple[str, ...]
    pools: tuple[str, ...]
    extras: tuple[tuple[int, tuple[Toleration, ...], dict[str, str]], ...]
    # What came later stands at the end with a default, so that older checkpoints are read.
    growth: tuple[tuple[int, MemoryGrowth], ...] = ()
    retry_policies: tuple[RetryPolicy, ...] = ()
    short_jobs: ShortJobsContent = ShortJobsContent()


class Taken(msgspec.Struct, frozen=True):
    """All that a checkpoint says, taken at one moment; later facts do not touch it. `packed` may run in any thread."""

    content: Content
    """All but what stands beside it, until it is wanted as bytes."""
    jobs: dict[str, NDArray[Any]]
    runs: dict[str, NDArray[Any]]
    clients: RememberedCopy
    batches: RememberedCopy

    def whole(self) -> Content:
        """Return the content with all columns."""
        return msgspec.structs.replace(
            self.content,
            jobs={name: _packed(cells) for name, cells in self.jobs.items()},
            runs={name: _packed(cells) for name, cells in self.runs.items()},
            clients=self.clients.columns(),
            batches=self.batches.columns(),
        )

    def packed(self) -> bytes:
        """Return the checkpoint as bytes. Takes long for large tables."""
        body = zlib.compress(msgspec.msgpack.encode(self.whole()), _COMPRESSION)
        return _MAGIC + VERSION.to_bytes(2, "little") + _hash(body) + body


def taken(fold: Fold) -> Taken:
    """Copy what a checkpoint says out of the tables, column by column."""
    content, jobs, runs = _content(fold)
    return Taken(content, jobs, runs, fold.clients.copied(), fold.batches.copied())


def from_bytes(payload: bytes, policy: SchedulingPolicy) -> Fold:
    """Take up the tables of a checkpoint.

    Raises:
        CorruptEntry: the payload is damaged, or of another version.
    """
    if len(payload) < _HEADER_BYTES or not payload.startswith(_MAGIC):
        raise CorruptEntry("this is no checkpoint of a ledger")
    version = int.from_bytes(payload[len(_MAGIC) : len(_MAGIC) + 2], "little")
    if version != VERSION:
        raise CorruptEntry(f"checkpoint of version {version}; this program reads version {VERSION}")
    body = payload[_HEADER_BYTES:]
    if _hash(body) != payload[_HEADER_BYTES - _HASH_BYTES : _HEADER_BYTES]:
        raise CorruptEntry("checkpoint is damaged: its hash does not match")
    try:
        content = msgspec.msgpack.decode(zlib.decompress(body), type=Content)
    except (zlib.error, msgspec.DecodeError) as error:
        raise CorruptEntry(f"checkpoint cannot be read: {error}") from error
    return restored(content, policy)


def digest(fold: Fold) -> str:
    """Return a hash of the tables' content, without position and voids."""
    content = msgspec.structs.replace(taken(fold).whole(), position=0, voids=())
    return blake2b(msgspec.msgpack.encode(content), digest_size=16).hexdigest()


def _hash(body: bytes) -> bytes:
    return blake2b(body, digest_size=_HASH_BYTES).digest()


# -- writing ----------------------------------------------------------------------------------------------------------


def _packed(values: NDArray[Any]) -> bytes:
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


class _Numbering:
    """The values of one interned column, numbered by first use over rows in a given order."""

    def __init__(self, table: Table, column: str, rows: Rows, high: int) -> None:
        numbers: NDArray[np.int32] = table.column(column)[rows]
        used = numbers[numbers != NONE]
        first = np.full(high, len(used), np.int64)
        first[used[::-1]] = np.arange(len(used))[::-1]
        order = np.argsort(first, kind="stable")
        self.old = order[: int(np.count_nonzero(first < len(used)))].tolist()
        renumbered = np.full(high + 1, NONE, np.int32)
        renumbered[self.old] = np.arange(len(self.old))
        self.cells: NDArray[np.int32] = renumbered[numbers]


def _content(fold: Fold) -> tuple[Content, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the content without columns and memories, the columns of jobs, and those of runs."""
    jobs, runs = fold.jobs, fold.runs
    job_rows = jobs.in_submit_order(jobs.used_rows())
    run_rows = np.array(runs.in_lease_order(runs.used_rows().tolist()), np.int32)
    ids, odd_ids = jobs.ids.pack(job_rows)
    sets = _Numbering(jobs, "job_set", job_rows, jobs.sets.high)
    kinds = _Numbering(jobs, "kind", job_rows, jobs.kinds.high)
    origins = _Numbering(jobs, "origin", job_rows, jobs.origins.high)
    gangs = _Numbering(jobs, "gang", job_rows, jobs.gangs.numbers.high)
    queue_numbers = {name: number for number, name in enumerate(sorted(name for _, name in jobs.queues))}
    places = np.zeros(jobs.high, np.int32)
    places[job_rows] = np.arange(len(job_rows))
    named = {
        "executor": _Numbering(runs, "executor", run_rows, runs.executors.high),
        "node": _Numbering(runs, "node", run_rows, runs.nodes.high),
        "node_name": _Numbering(runs, "node_name", run_rows, runs.node_names.high),
        "pool": _Numbering(runs, "pool", run_rows, runs.pools.high),
    }
    job_columns = {
        **{name: jobs.column(name)[job_rows] for name in _JOB_COLUMNS},
        "job_set": sets.cells,
        "kind": kinds.cells,
        "origin": origins.cells,
        "gang": gangs.cells,
    }
    run_columns = {
        **{name: runs.column(name)[run_rows] for name in _RUN_COLUMNS},
        **{name: numbering.cells for name, numbering in named.items()},
        "job": places[runs.column("job")[run_rows]],
    }
    content = Content(
        position=fold.position,
        voids=fold.voids.columns(),
        time_ms=fold.time_ms,
        epoch=fold.epoch,
        holder=fold.holder,
        last_batch=fold.last_batch,
        next_job_sequence=jobs.next_sequence,
        next_run_sequence=runs.next_sequence,
        queues=tuple(fold.fleet.queues.values()),
        executors=fold.fleet.columns(),
        clients=_NOTHING_REMEMBERED,
        batches=_NOTHING_REMEMBERED,
        job_ids=ids,
        odd_job_ids=odd_ids,
        jobs={},
        queue_names=tuple(queue_numbers),
        sets=tuple((queue_numbers[queue], name) for queue, name in map(jobs.sets.__getitem__, sets.old)),
        kinds=tuple(_kind_content(fold, number) for number in kinds.old),
        origins=tuple(jobs.origins[number] for number in origins.old),
        gangs=tuple(_gang_content(fold, number, queue_numbers) for number in gangs.old),
        avoid_nodes=tuple(sorted((int(places[row]), nodes) for row, nodes in jobs.avoid_nodes.items())),
        run_ids=tuple(runs.run_id(row) for row in run_rows.tolist()),
        runs={},
        executor_ids=tuple(runs.executors[number] for number in named["executor"].old),
        node_ids=tuple(runs.nodes[number] for number in named["node"].old),
        node_names=tuple(runs.node_names[number] for number in named["node_name"].old),
        pools=tuple(runs.pools[number] for number in named["pool"].old),
        extras=tuple((place, *runs.extras[row]) for place, row in enumerate(run_rows.tolist()) if row in runs.extras),
        growth=tuple(
            sorted(((int(places[row]), growth) for row, growth in jobs.growth.items()), key=lambda pair: pair[0])
        ),
        retry_policies=tuple(fold.retry_policies.values()),
        short_jobs=fold.short_jobs.content(fold.time_ms),
    )
    return content, job_columns, run_columns


def _kind_content(fold: Fold, number: int) -> KindContent:
    kind = fold.jobs.kinds[number]
    return KindContent(
        fold.jobs.shapes[kind.shape], kind.fail_fast, kind.price_band, kind.pools, kind.requeues_preempted
    )


def _gang_content(fold: Fold, number: int, queue_numbers: dict[str, int]) -> GangContent:
    gang = fold.jobs.gangs[number]
    queue, _ = fold.jobs.gangs.numbers[number]
    return GangContent(queue_numbers[fold.jobs.queues[queue]], gang.spec, gang.priority_class, gang.submitted)


# -- reading ----------------------------------------------------------------------------------------------------------


def restored(content: Content, policy: SchedulingPolicy) -> Fold:
    """Return tables that hold what the content says."""
    fold = Fold(policy)
    fold.position, fold.time_ms = content.position, content.time_ms
    fold.epoch, fold.holder, fold.last_batch = content.epoch, content.holder, content.last_batch
    fold.voids.restore(content.voids)
    fold.fleet.queues.update((queue.name, queue) for queue in content.queues)
    fold.fleet.restore(content.executors)
    fold.clients.restore(content.clients)
    fold.batches.restore(content.batches)
    _restore_jobs(fold, content)
    _restore_runs(fold, content)
    for row, nodes in content.avoid_nodes:
        fold.jobs.avoid_nodes[row] = nodes
    fold.jobs.growth.update(content.growth)
    for row in sorted(fold.jobs.avoid_nodes.keys() | fold.jobs.growth.keys()):
        fold.jobs.set_changed_shape(row, fold.node_id_label)
    fold.retry_policies.update((policy.name, policy) for policy in content.retry_policies)
    fold.short_jobs.restore(content.short_jobs)
    return fold


def _unpacked(table: Table, columns: dict[str, bytes]) -> dict[str, NDArray[Any]]:
    return {name: np.frombuffer(cells, table.COLUMNS[name]) for name, cells in columns.items()}


def _restore_values(interner: Interner[Any], values: Sequence[object], cells: NDArray[np.int32]) -> None:
    interner.restore(values, np.bincount(cells[cells != NONE], minlength=len(values)).tolist())


def _restore_jobs(fold: Fold, content: Content) -> None:
    jobs = fold.jobs
    columns = _unpacked(jobs, content.jobs)
    columns.setdefault("queued_ms", columns["submitted_ms"])  # older checkpoints don't have it
    count = len(columns["state"])
    set_queues = np.array([queue for queue, _ in content.sets], np.int32)
    columns["queue"] = set_queues[columns["job_set"]] if count else np.zeros(0, np.int32)
    held = np.bincount(columns["queue"], minlength=len(content.queue_names)).tolist()
    for number, name in enumerate(content.queue_names):
        jobs.hold_queue(name)
        jobs.queues.hold_number(number, held[number] + (name in fold.fleet.queues) - 1)
    _restore_values(jobs.sets, [(content.queue_names[queue], name) for queue, name in content.sets], columns["job_set"])
    _restore_values(jobs.origins, content.origins, columns["origin"])
    shape_numbers = [jobs.hold_shape(kind.shape) for kind in content.kinds]
    kinds = [
        JobKind(shape, kind.fail_fast, kind.price_band, kind.pools, kind.requeues_preempted)
        for shape, kind in zip(shape_numbers, content.kinds, strict=True)
    ]
    _restore_values(jobs.kinds, kinds, columns["kind"])
    jobs.restore_marked_kinds()
    for shape, users in zip(shape_numbers, np.bincount(columns["kind"], minlength=len(kinds)).tolist(), strict=True):
        jobs.shapes.hold_number(shape, users)
    gang_keys = [(gang.queue, gang.spec.id) for gang in content.gangs]
    _restore_values(jobs.gangs.numbers, gang_keys, columns["gang"])
    for number, gang in enumerate(content.gangs):
        jobs.gangs.restore(number, gang.spec, gang.priority_class, gang.submitted)
    priorities = np.array([fold.class_priority(kind.shape.priority_class) for kind in content.kinds], np.int32)
    if count:
        columns["class_priority"] = priorities[columns["kind"]]
        columns["shape"] = np.array(shape_numbers, np.int32)[columns["kind"]]
        columns["run"] = np.full(count, NONE, np.int32)
    jobs.fill(columns, count)
    jobs.ids.unpack(content.job_ids, content.odd_job_ids)
    jobs.restore_links()
    jobs.next_sequence = content.next_job_sequence


def _restore_runs(fold: Fold, content: Content) -> None:
    runs, jobs = fold.runs, fold.jobs
    columns = _unpacked(runs, content.runs)
    for name, interner, values in (
        ("executor", runs.executors, content.executor_ids),
        ("node", runs.nodes, content.node_ids),
        ("node_name", runs.node_names, content.node_names),
        ("pool", runs.pools, content.pools),
    ):
        _restore_values(interner, values, columns[name])
    runs.fill(columns, len(content.run_ids))
    runs.restore_links(list(content.run_ids))
    for row in range(runs.high):  # in lease order: the newest run of each job comes last
        job = runs.job[row]
        runs.older[row] = jobs.run[job]
        jobs.run[job] = row
        jobs.runs_held[job] += 1
    for row, tolerations, overlay in content.extras:
        runs.extras[row] = (tolerations, overlay)
    runs.next_sequence = content.next_run_sequence
