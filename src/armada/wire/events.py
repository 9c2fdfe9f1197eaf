"""Facts of the log as messages of a job set's event stream.

One entry of the log becomes a run of messages with ids `<position>:0:<sub>:<last>`: the place of the entry, the place
of the message inside it, and 1 on the entry's last message. What users don't see (releases, requeues without a retry
policy, results that the job's own fact repeats) takes no place.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from armada_client.armada import event_pb2 as api

from armada.model import events as facts
from armada.model.errors import InvalidRequest
from armada.wire.submitted import JobMessages
from armada.wire.times import stamp

WHOLE: Final = 1 << 62
"""As the `sub` of a cursor: the whole entry has been seen. No position is larger either, and all storage takes it."""

_MESSAGE_ID: Final = re.compile(r"([0-9]{1,20}):([0-9]{1,20}):([0-9]{1,20}):([01])")
_OLD_MESSAGE_ID: Final = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")

_CAUSES: Final[Mapping[str, Any]] = {
    "error": api.Cause.Error,
    "evicted": api.Cause.Evicted,
    "oom": api.Cause.OOM,
    "deadline_exceeded": api.Cause.DeadlineExceeded,
    "rejected": api.Cause.Rejected,
}


class EventCursor(msgspec.Struct, frozen=True, order=True):
    """How far a reader has come: it has seen messages 0 to `sub` of the entry at `position`, and all before it."""

    position: int = 0
    sub: int = WHOLE

    @property
    def read_after(self) -> int:
        """The position after which to read the log so as to miss nothing."""
        return self.position if self.sub == WHOLE else self.position - 1


START: Final = EventCursor()
"""The cursor of a reader who has seen nothing."""


def parse_message_id(text: str) -> EventCursor:
    """Return the cursor that a message id stands for; an empty text is the beginning.

    `time:seq:sub:last` resumes after that message, or after its entry when `last` is 1; the old form `time-seq` after
    that whole entry. The message need not exist. An entry of ours has `seq` 0, so any other says that all of it has
    been seen.

    Raises:
        InvalidRequest: a text in neither form.
    """
    if not text:
        return START
    match = _MESSAGE_ID.fullmatch(text)
    if match is not None:
        position, sequence, sub, last = (min(int(part), WHOLE) for part in match.groups())
        whole = last == 1 or sequence > 0 or sub >= WHOLE
        return EventCursor(position, WHOLE if whole else sub)
    match = _OLD_MESSAGE_ID.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"{text[:100]!r} is no message id: one looks like 7:0:1:1 and comes with a message")
    return EventCursor(min(int(match.group(1)), WHOLE), WHOLE)


def stream_messages(entry: facts.Entry, cursor: EventCursor = START) -> list[api.EventStreamMessage]:
    """Return the messages of an entry that a reader at `cursor` has not seen.

    `entry` must be without its void parts. Order, count and ids depend on the entry alone.
    """
    if entry.position < cursor.position:
        return []
    seen = cursor.sub if entry.position == cursor.position else -1
    total = sum(_count(event) for event in entry.events)
    if seen >= total - 1:
        return []
    writer = _Writer(entry, seen, total)
    for event in entry.events:
        writer.add(event)
    return writer.messages


def _count(event: facts.Event) -> int:
    if isinstance(event, facts.JobsSubmitted):
        return 2 * len(event.jobs)
    if isinstance(event, facts.JobRequeued):
        return int(event.failure is not None)
    return int(type(event) not in _SILENT)


class _Writer:
    """Writes the messages of one entry, counting them and leaving out the first ones that were seen."""

    def __init__(self, entry: facts.Entry, seen: int, total: int) -> None:
        self._entry = entry
        self._seen = seen
        self._total = total
        self._sub = 0
        self.messages: list[api.EventStreamMessage] = []

    def add(self, event: facts.Event) -> None:
        if isinstance(event, facts.JobsSubmitted):
            self._submitted(event)
            return
        if _count(event) == 0:
            return
        name, fill = _FIELDS[type(event)]
        fact: Any = event  # every kind in _FIELDS is about one job
        target = self._next(name, fact.job_id, event.at_ms)
        if target is not None and fill is not None:
            fill(target, fact)

    def _submitted(self, event: facts.JobsSubmitted) -> None:
        jobs = JobMessages(self._entry.queue, self._entry.job_set, event)
        for job in event.jobs:
            target = self._next("submitted", job.job_id, event.at_ms)
            if target is not None:
                jobs.fill(target.job, job)
            self._next("queued", job.job_id, event.at_ms)

    def _next(self, name: str, job_id: str, at_ms: int) -> Any:
        """The next message's part called `name`, with what all parts have; None when the reader has seen it."""
        sub = self._sub
        self._sub += 1
        if sub <= self._seen:
            return None
        message = api.EventStreamMessage(id=f"{self._entry.position}:0:{sub}:{int(self._sub == self._total)}")
        target = getattr(message.message, name)
        target.job_id = job_id
        target.job_set_id = self._entry.job_set
        target.queue = self._entry.queue
        stamp(target.created, at_ms)
        self.messages.append(message)
        return target


def _leased(target: api.JobLeasedEvent, event: facts.RunLeased) -> None:
    target.cluster_id = event.executor_id
    target.pool = event.pool


def _pending(target: api.JobPendingEvent, event: facts.RunPending) -> None:
    pod = event.pod
    target.cluster_id = pod.cluster
    target.kubernetes_id = pod.uid
    target.pod_number = pod.number
    target.pod_name = pod.name
    target.pod_namespace = pod.namespace
    target.pool = pod.pool


def _identify(target: Any, pod: facts.PodIdentity) -> None:
    target.cluster_id = pod.cluster
    target.kubernetes_id = pod.uid
    target.node_name = pod.node_name
    target.pod_number = pod.number
    target.pod_name = pod.name
    target.pod_namespace = pod.namespace


def _running(target: api.JobRunningEvent, event: facts.RunStarted) -> None:
    _identify(target, event.pod)
    target.pool = event.pod.pool


def _ingress_info(target: api.JobIngressInfoEvent, event: facts.RunAddressed) -> None:
    _identify(target, event.pod)
    target.ingress_addresses.update(event.addresses)


def _utilisation(target: api.JobUtilisationEvent, event: facts.RunUsageReported) -> None:
    _identify(target, event.pod)
    for name, quantity in event.peak.items():
        target.MaxResourcesForPeriod[name].string = quantity
    for name, quantity in event.average.items():
        target.AvgResourcesForPeriod[name].string = quantity
    for name, quantity in event.cumulative.items():
        target.total_cumulative_usage[name].string = quantity


def _lease_returned(target: api.JobLeaseReturnedEvent, event: facts.RunReturned) -> None:
    pod = event.failure.pod
    target.reason = event.failure.reason
    target.run_attempted = event.attempted
    if pod is not None:
        target.cluster_id = pod.cluster
        target.kubernetes_id = pod.uid
        target.pod_number = pod.number


def _fail(target: api.JobFailedEvent, failure: facts.Failure) -> None:
    target.reason = failure.reason
    target.cause = _CAUSES.get(failure.cause, api.Cause.Error)
    target.failure_category = failure.category
    target.failure_subcategory = failure.subcategory
    if failure.pod is not None:
        _identify(target, failure.pod)
    for container in failure.containers:
        target.container_statuses.add(
            name=container.name,
            exitCode=container.exit_code,
            message=container.message,
            reason=container.reason,
            cause=api.Cause.OOM if container.reason == "OOMKilled" else api.Cause.Error,
        )


def _failed(target: api.JobFailedEvent, event: facts.JobFailed | facts.JobPreempted) -> None:
    _fail(target, event.failure)


def _retried(target: api.JobFailedEvent, event: facts.JobRequeued) -> None:
    if event.failure is not None:
        _fail(target, event.failure)
    target.retryable = True


def _rejected(target: api.JobFailedEvent, event: facts.JobRejected) -> None:
    target.reason = event.reason
    target.cause = api.Cause.Rejected
    target.failure_category = "internal"
    target.failure_subcategory = "job-rejected"


def _preempted(target: api.JobPreemptedEvent, event: facts.RunPreempted) -> None:
    target.run_id = event.run_id
    target.reason = event.reason
    target.requestor = event.requestor
    if event.kind != "urgency":
        target.preempting_job_id = event.preempting_job_id


def _preempting(target: api.JobPreemptingEvent, event: facts.JobPreemptRequested) -> None:
    target.requestor = event.requestor
    target.reason = event.reason


def _requested(target: Any, event: facts.JobCancelRequested | facts.JobCancelled) -> None:
    target.requestor = event.requestor


def _reprioritised(target: Any, event: facts.JobReprioritised | facts.JobReprioritisationRequested) -> None:
    target.requestor = event.requestor
    target.new_priority = event.priority


_FIELDS: Final[Mapping[type, tuple[str, Callable[[Any, Any], None] | None]]] = {
    facts.JobReprioritisationRequested: ("reprioritizing", _reprioritised),
    facts.JobReprioritised: ("reprioritized", _reprioritised),
    facts.JobCancelRequested: ("cancelling", _requested),
    facts.JobCancelled: ("cancelled", _requested),
    facts.JobPreemptRequested: ("preempting", _preempting),
    facts.JobRejected: ("failed", _rejected),
    facts.JobSucceeded: ("succeeded", None),
    facts.JobFailed: ("failed", _failed),
    facts.JobPreempted: ("failed", _failed),
    facts.JobRequeued: ("failed", _retried),
    facts.RunLeased: ("leased", _leased),
    facts.RunPending: ("pending", _pending),
    facts.RunStarted: ("running", _running),
    facts.RunAddressed: ("ingress_info", _ingress_info),
    facts.RunUsageReported: ("utilisation", _utilisation),
    facts.RunReturned: ("lease_returned", _lease_returned),
    facts.RunLeaseExpired: ("lease_expired", None),
    facts.RunPreempted: ("preempted", _preempted),
}

_SILENT: Final = frozenset(
    {
        facts.RunSucceeded,
        facts.RunFailed,
        facts.RunsReleased,
        facts.QueueCreated,
        facts.QueueUpdated,
        facts.QueueCordoned,
        facts.QueueDeleted,
        facts.RetryPolicySet,
        facts.RetryPolicyDeleted,
        facts.ExecutorReported,
        facts.ExecutorSettingsChanged,
        facts.ExecutorDeleted,
        facts.LeadershipClaimed,
    },
)
"""Kinds that no client sees: the end of a run is told by what it means for the job."""
