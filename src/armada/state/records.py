"""What the ledger answers: frozen copies of its rows, safe to keep."""

import msgspec

from armada.model.events import Position
from armada.model.fleet import ExecutorSettings, Node
from armada.model.growth import MemoryGrowth
from armada.model.jobs import GangSpec, JobShape, Toleration
from armada.model.lifecycle import JobState, RunState


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `spec_position` and `spec_index` say which event of which entry carries its template.

    `run_id` is the current or last run that the ledger holds, empty when it holds none. `runs_leased` counts all
    leases; `runs_attempted` the ended runs that reached a node; `runs_failed` those that failed or expired (neither
    preempted nor returned). `shape` is as submitted; `avoid_nodes` are nodes that earlier runs were told to stay away
    from, first seen first, and `growth` is what retries have added to its memory. `requeues_preempted` is the job's own
    word on that, None where it has none.
    """

    job_id: str
    queue: str
    job_set: str
    state: JobState
    priority: int
    shape: JobShape
    gang: GangSpec | None
    fail_fast: bool
    price_band: int
    pools: tuple[str, ...] | None
    namespace: str
    external_job_uri: str
    owner: str
    groups: tuple[str, ...]
    submitted_ms: int
    spec_position: Position
    spec_index: int
    run_id: str
    runs_leased: int
    runs_attempted: int
    runs_failed: int
    avoid_nodes: tuple[str, ...]
    growth: MemoryGrowth | None
    requeues_preempted: bool | None
    cancel_requested: bool
    preempt_requested: bool


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is live, or has ended and still holds its node's room. Times are 0 until they are known.

    `priority` is the one that the run was scheduled at. `is_current` is False when the job has moved on.
    """

    run_id: str
    job_id: str
    queue: str
    job_set: str
    attempt: int
    state: RunState
    executor_id: str
    node_id: str
    node_name: str
    pool: str
    priority: int
    leased_ms: int
    pending_ms: int
    started_ms: int
    ended_ms: int
    tolerations: tuple[Toleration, ...]
    overlay: dict[str, str]
    is_current: bool
    job_state: JobState


class RunHead(msgspec.Struct, frozen=True, array_like=True):
    """The few things about a run that a report is checked against."""

    job_id: str
    queue: str
    job_set: str
    executor_id: str
    state: RunState
    is_current: bool


class ExecutorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An executor as last reported: its nodes in index order (the order in which they were first reported)."""

    executor_id: str
    pool: str
    nodes: tuple[Node, ...]
    settings: ExecutorSettings
    first_reported_ms: int
    last_changed_ms: int


class GangRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A gang: `submitted` counts all members that ever came, `member_ids` are those still in the ledger."""

    queue: str
    gang: GangSpec
    priority_class: str
    submitted: int
    member_ids: tuple[str, ...]
