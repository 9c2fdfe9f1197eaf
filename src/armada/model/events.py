"""Every fact that the log can hold, one frozen struct each, and their closed union `Event`.

Facts about jobs of one job set are grouped in sequences (`JobSetEvents`); facts that belong to no job set (queues,
executors, leadership) travel in a sequence with empty names. `at_ms` is when the fact became true, in Unix
milliseconds, by the clock of whoever saw it.
"""

from typing import get_args

import msgspec

from armada.model.fleet import ExecutorSettings, Node, Queue
from armada.model.growth import MemoryGrowth
from armada.model.jobs import JobTemplate, NewJob, Toleration
from armada.model.policy import RetryPolicy


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    at_ms: int


class _JobFact(_Fact, frozen=True, kw_only=True):
    job_id: str


class _RunFact(_JobFact, frozen=True, kw_only=True):
    run_id: str


class ContainerStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one container of a pod ended."""

    name: str
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class PodIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which pod, where: as far as the executor knew when it reported."""

    cluster: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    node_name: str = ""
    number: int = 0
    pool: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a run or job failed.

    `cause` is one of error, evicted, oom, deadline_exceeded, rejected; `kind` names the source: pod, lease_expired,
    lease_returned, max_runs_exceeded, preempted, rejected, gang_unschedulable, reconciliation, executor.
    """

    reason: str
    kind: str = "pod"
    cause: str = "error"
    category: str = ""
    subcategory: str = ""
    debug: str = ""
    pod: PodIdentity | None = None
    containers: tuple[ContainerStatus, ...] = ()


class JobsSubmitted(_Fact, frozen=True, kw_only=True):
    """Jobs that share one template entered the queue, in this order."""

    template: JobTemplate
    jobs: tuple[NewJob, ...]
    owner: str = ""
    groups: tuple[str, ...] = ()


class JobReprioritisationRequested(_JobFact, frozen=True, kw_only=True):
    """A user asked for another priority by job id."""

    priority: int
    requestor: str = ""


class JobReprioritised(_JobFact, frozen=True, kw_only=True):
    """The job's priority inside its queue changed."""

    priority: int
    requestor: str = ""


class JobCancelRequested(_JobFact, frozen=True, kw_only=True):
    """A user asked to cancel the job."""

    requestor: str = ""
    reason: str = ""


class JobCancelled(_JobFact, frozen=True, kw_only=True):
    """The job ended by cancellation; its current run, if any, ends with it."""

    requestor: str = ""
    reason: str = ""


class JobPreemptRequested(_JobFact, frozen=True, kw_only=True):
    """A user asked to preempt the job."""

    requestor: str = ""
    reason: str = ""


class JobRejected(_JobFact, frozen=True, kw_only=True):
    """The job can never run anywhere; `reason` says why, per pool."""

    reason: str


class JobSucceeded(_JobFact, frozen=True, kw_only=True):
    """The job ended well."""


class JobFailed(_JobFact, frozen=True, kw_only=True):
    """The job ended badly. `decision` is what the retry policy `policy` said to that, where one was asked."""

    failure: Failure
    policy: str = ""
    decision: str = ""


class JobPreempted(_JobFact, frozen=True, kw_only=True):
    """The job ended because its run was preempted (users see `failed` after `preempted`)."""

    failure: Failure


class JobRequeued(_JobFact, frozen=True, kw_only=True):
    """The job's last run ended badly and the job waits again, away from `avoid_nodes`.

    `failure` is set when users are told of it (they see a retryable `failed`): a retry policy (`policy`) granted the
    retry, or the job was preempted and may wait again. `growth` is how much more memory than submitted the job gets
    from here on; None leaves that as it is.
    """

    avoid_nodes: tuple[str, ...] = ()
    failure: Failure | None = None
    policy: str = ""
    growth: MemoryGrowth | None = None


class RunLeased(_RunFact, frozen=True, kw_only=True):
    """A round granted a run of the job to a node.

    `priority` is the priority it was scheduled at; `tolerations`, `labels` (annotations of the lease overlay such as
    the gang's uniformity label and value) are added to the pod.
    """

    executor_id: str
    node_id: str
    node_name: str
    pool: str
    priority: int
    attempt: int = 0
    tolerations: tuple[Toleration, ...] = ()
    overlay: dict[str, str] = {}


class RunPending(_RunFact, frozen=True, kw_only=True):
    """The executor created the pod."""

    pod: PodIdentity = PodIdentity()


class RunStarted(_RunFact, frozen=True, kw_only=True):
    """The pod's containers run."""

    pod: PodIdentity = PodIdentity()


class RunAddressed(_RunFact, frozen=True, kw_only=True):
    """The pod can be reached: container port -> address."""

    addresses: dict[int, str]
    pod: PodIdentity = PodIdentity()


class RunUsageReported(_RunFact, frozen=True, kw_only=True):
    """Resource use of the pod since the last report: quantities by resource name."""

    peak: dict[str, str]
    average: dict[str, str] = {}
    cumulative: dict[str, str] = {}
    pod: PodIdentity = PodIdentity()


class RunSucceeded(_RunFact, frozen=True, kw_only=True):
    """All containers of the pod ended with exit code 0."""

    pod: PodIdentity = PodIdentity()


class RunFailed(_RunFact, frozen=True, kw_only=True):
    """The pod failed."""

    failure: Failure


class RunReturned(_RunFact, frozen=True, kw_only=True):
    """The executor gives the lease back; `attempted` is true when a pod reached a node."""

    failure: Failure
    attempted: bool = True


class RunLeaseExpired(_RunFact, frozen=True, kw_only=True):
    """The executor was silent for too long."""


class RunPreempted(_RunFact, frozen=True, kw_only=True):
    """The run was preempted.

    `kind` is fairshare, urgency, gang, api, reconciler or optimiser; `preempting_job_id` the job it made room for,
    where one is known.
    """

    kind: str
    reason: str
    preempting_job_id: str = ""
    requestor: str = ""


class RunsReleased(_Fact, frozen=True, kw_only=True):
    """The executor confirmed that these ended runs hold nothing any more; their room is free from here on."""

    run_ids: tuple[str, ...]


class QueueCreated(_Fact, frozen=True, kw_only=True):
    """A queue was created, or replaced by another of its name."""

    queue: Queue


class QueueUpdated(_Fact, frozen=True, kw_only=True):
    """A queue's settings were replaced."""

    queue: Queue


class QueueCordoned(_Fact, frozen=True, kw_only=True):
    """A queue's cordon was set or lifted."""

    name: str
    cordoned: bool


class QueueDeleted(_Fact, frozen=True, kw_only=True):
    """A queue was deleted."""

    name: str


class RetryPolicySet(_Fact, frozen=True, kw_only=True):
    """A retry policy was created, or replaced by another of its name."""

    policy: RetryPolicy


class RetryPolicyDeleted(_Fact, frozen=True, kw_only=True):
    """A retry policy was deleted; queues that named it do so no more."""

    name: str


class ExecutorReported(_Fact, frozen=True, kw_only=True):
    """What changed in an executor's fleet: nodes new or different, names of nodes gone. First contact may be empty."""

    executor_id: str
    pool: str
    nodes: tuple[Node, ...] = ()
    gone: tuple[str, ...] = ()


class ExecutorSettingsChanged(_Fact, frozen=True, kw_only=True):
    """An operator changed an executor's settings."""

    settings: ExecutorSettings


class ExecutorDeleted(_Fact, frozen=True, kw_only=True):
    """An operator removed an executor's record."""

    executor_id: str


class LeadershipClaimed(_Fact, frozen=True, kw_only=True):
    """A replica claims to lead; it counts only if `epoch` is the current one plus one."""

    epoch: int
    holder: str


Event = (
    JobsSubmitted
    | JobReprioritisationRequested
    | JobReprioritised
    | JobCancelRequested
    | JobCancelled
    | JobPreemptRequested
    | JobRejected
    | JobSucceeded
    | JobFailed
    | JobPreempted
    | JobRequeued
    | RunLeased
    | RunPending
    | RunStarted
    | RunAddressed
    | RunUsageReported
    | RunSucceeded
    | RunFailed
    | RunReturned
    | RunLeaseExpired
    | RunPreempted
    | RunsReleased
    | QueueCreated
    | QueueUpdated
    | QueueCordoned
    | QueueDeleted
    | RetryPolicySet
    | RetryPolicyDeleted
    | ExecutorReported
    | ExecutorSettingsChanged
    | ExecutorDeleted
    | LeadershipClaimed
)
"""The closed union of facts; `match` over it ends in `assert_never`."""

EVENT_KINDS: tuple[type[msgspec.Struct], ...] = get_args(Event)


class JobSetEvents(msgspec.Struct, frozen=True, array_like=True):
    """Facts of one job set in order; both names are empty for facts that belong to no job set."""

    queue: str
    job_set: str
    events: tuple[Event, ...]


Position = int
"""Place of an entry in the log; the first is 1, and 0 means before everything."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence as the log holds it. `epoch` is 0 for entries that no leader decided (submissions, reports).

    `ordinal` is the place of the sequence inside its batch, counted from 0: with it a reader tells the next
    sequence of a batch from a repeat of the batch.
    """

    position: Position
    batch_id: str
    time_ms: int
    epoch: int
    queue: str
    job_set: str
    events: tuple[Event, ...]
    ordinal: int = 0
