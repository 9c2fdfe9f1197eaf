"""Pools of a million jobs as a ledger, made directly in columns: a checkpoint's content is filled and taken up.

`Pool` says the same as a problem in JSON (`problems`), far shorter; a test compares the snapshots of both.
"""

from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.events import Entry, Event, ExecutorReported, QueueCreated
from armada.model.fleet import Node, Queue
from armada.model.jobs import GangSpec, JobShape
from armada.model.lifecycle import JobState, RunState
from armada.model.policy import SchedulingPolicy
from armada.scheduling.snapshot import Rows
from armada.state import checkpoint
from armada.state.checkpoint import GangContent, KindContent
from armada.state.holdings.jobs import JobOrigin
from armada.state.ledger import Ledger
from armada.state.pools import Circumstances
from armada.state.table import NONE

POOL: Final = "default"
EXECUTOR: Final = "e1"
JOB_SET: Final = "problem"
NOW_MS: Final = 1_700_000_000_000
ID_HEAD: Final = b"01jm"
ID_DIGITS: Final = 22
"""A job's number stands at the end of its id, filled up with zeros."""


class Work(NamedTuple):
    """Jobs in submit order: places in a pool's queues, shapes, gangs (or -1) and nodes (or -1: it is queued)."""

    queue: Rows
    shape: Rows
    gang: Rows
    node: Rows


class Pool(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One pool and all its jobs. Queues submit one after another, in the order in which they are listed.

    `bands` are the price bands of the shapes; empty where there is no market.
    """

    name: str
    policy: SchedulingPolicy
    nodes: tuple[Node, ...]
    queues: tuple[str, ...]
    shapes: tuple[JobShape, ...]
    bands: tuple[int, ...] = ()
    gangs: tuple[GangSpec, ...] = ()
    work: Work
    priority: int = 200
    """At which the running jobs run."""


def work_of(
    queue: NDArray[Any], shape: NDArray[Any], *, gang: NDArray[Any] | None = None, node: NDArray[Any] | None = None
) -> Work:
    """Jobs, of which none is in a gang and none runs unless it is said."""
    nowhere = np.full(len(queue), NONE, np.int32)
    return Work(
        queue=queue.astype(np.int32),
        shape=shape.astype(np.int32),
        gang=nowhere if gang is None else gang.astype(np.int32),
        node=nowhere if node is None else node.astype(np.int32),
    )


def joined(*parts: Work) -> Work:
    """Jobs of several kinds, submitted one kind after the other."""
    return Work(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def everywhere() -> Circumstances:
    """The circumstances of a round in which the pool's executor takes part and no rate limit binds."""
    return Circumstances(executors=frozenset({EXECUTOR}))


def job_id(number: int) -> str:
    """The id of a pool's job: jobs are numbered queue by queue, each queue's in submit order."""
    return f"{ID_HEAD.decode()}{number:0{ID_DIGITS}d}"


def entry(position: int, *events: Event, queue: str = "") -> Entry:
    """An entry of the log."""
    return Entry(
        position=position,
        batch_id="",
        time_ms=NOW_MS,
        epoch=0,
        queue=queue,
        job_set=JOB_SET if queue else "",
        events=events,
    )


def ledger_of(pool: Pool) -> Ledger:
    """The ledger that would have folded all this, made in a few array operations."""
    empty = Ledger(pool.policy)
    created = (QueueCreated(at_ms=NOW_MS, queue=Queue(name=name)) for name in pool.queues)
    reported = ExecutorReported(at_ms=NOW_MS, executor_id=EXECUTOR, pool=POOL, nodes=pool.nodes)
    empty.apply(entry(1, *created, reported))
    work = Work(*(column[np.argsort(pool.work.queue, kind="stable")] for column in pool.work))
    content = _with_runs(_with_jobs(empty.taken().whole(), pool, work), pool, work)
    return Ledger(pool.policy, checkpoint.restored(content, pool.policy))


def _bytes(**columns: NDArray[Any]) -> dict[str, bytes]:
    return {name: column.tobytes() for name, column in columns.items()}


def _with_jobs(content: checkpoint.Content, pool: Pool, work: Work) -> checkpoint.Content:
    count = len(work.queue)
    shapes, kind = _by_first_use(work.shape)
    gangs, gang = _by_first_use(work.gang[work.gang != NONE])
    own_gang = work.gang.copy()
    own_gang[work.gang != NONE] = gang
    named = sorted(pool.queues)
    nothing, numbers = np.zeros(count, np.int32), np.arange(1, count + 1, dtype=np.int64)
    first_member = dict(zip(work.gang[::-1].tolist(), range(count - 1, -1, -1), strict=True))
    return msgspec.structs.replace(
        content,
        next_job_sequence=count + 1,
        job_ids=_packed_ids(count),
        jobs=_bytes(
            state=np.where(work.node != NONE, int(JobState.PENDING), int(JobState.QUEUED)).astype(np.uint8),
            flags=nothing.astype(np.uint8),
            runs_leased=(work.node != NONE).astype(np.int32),
            runs_attempted=nothing,
            runs_failed=nothing,
            spec_index=nothing,
            spec_position=np.ones(count, np.int64),
            priority=nothing.astype(np.int64),
            submitted_ms=np.full(count, NOW_MS, np.int64),
            sequence=numbers,
            job_set=np.array([named.index(queue) for queue in pool.queues], np.int32)[work.queue],
            kind=kind,
            origin=nothing,
            gang=own_gang,
        ),
        queue_names=tuple(named),
        sets=tuple((number, JOB_SET) for number in range(len(named))),
        kinds=tuple(
            KindContent(pool.shapes[shape], False, pool.bands[shape] if pool.bands else 0, None) for shape in shapes
        ),
        origins=(JobOrigin("", (), "default", ""),),
        gangs=tuple(
            GangContent(
                named.index(pool.queues[work.queue[first_member[one]]]),
                pool.gangs[one],
                pool.shapes[work.shape[first_member[one]]].priority_class,
                pool.gangs[one].cardinality,
            )
            for one in gangs
        ),
    )


def _with_runs(content: checkpoint.Content, pool: Pool, work: Work) -> checkpoint.Content:
    jobs = np.flatnonzero(work.node != NONE).astype(np.int32)
    nodes, node = _by_first_use(work.node[jobs])
    ids = tuple(pool.nodes[place].node_id for place in nodes)
    count = len(jobs)
    zero, now = np.zeros(count, np.int64), np.full(count, NOW_MS, np.int64)
    return msgspec.structs.replace(
        content,
        next_run_sequence=count + 1,
        run_ids=tuple(f"{job_id(number)}/run" for number in jobs.tolist()),
        runs=_bytes(
            state=np.full(count, int(RunState.PENDING), np.uint8),
            attempt=zero,
            priority=np.full(count, pool.priority, np.int64),
            leased_ms=now,
            pending_ms=now,
            started_ms=zero,
            ended_ms=zero,
            sequence=np.arange(1, count + 1, dtype=np.int64),
            executor=zero.astype(np.int32),
            node=node,
            node_name=node,
            pool=zero.astype(np.int32),
            job=jobs,
        ),
        executor_ids=(EXECUTOR,) if count else (),
        node_ids=ids,
        node_names=ids,
        pools=(POOL,) if count else (),
    )


def _by_first_use(values: Rows) -> tuple[list[int], Rows]:
    """The distinct values in the order in which they come up, and each value's place among them."""
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return distinct[order].tolist(), place[inverse.reshape(-1)]


def _packed_ids(count: int) -> bytes:
    packed = np.full((count, len(ID_HEAD) + ID_DIGITS), ord("0"), np.uint8)
    packed[:, : len(ID_HEAD)] = np.frombuffer(ID_HEAD, np.uint8)
    rest, column = np.arange(count), packed.shape[1]
    while rest.any():
        column -= 1
        packed[:, column] += (rest % 10).astype(np.uint8)
        rest //= 10
    return packed.tobytes()
