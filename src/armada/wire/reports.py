"""What executors report about runs: the reference's event sequences <-> facts of the log.

An executor may say how its runs fare and nothing else: whatever is not such a fact is dropped and counted. Texts from
executors are cleaned and cut here, before anything stores them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from armada._proto import events_pb2 as armadaevents
from armada._proto import executor_pb2 as executorapi
from armada.model import events as facts
from armada.model.events import ContainerStatus, Failure, JobSetEvents, PodIdentity
from armada.wire.times import stamp, unix_ms

EXECUTOR_METADATA: Final = "armada-executor-id"
"""Metadata key of a report: the executor that sends it (the reference's executors don't)."""

MAX_REASON_CHARS: Final = 4_096
MAX_DEBUG_CHARS: Final = 16_384
MAX_LIST_BYTES: Final = 3 * 1024 * 1024

_REASONS: Final[Mapping[int, str]] = {
    armadaevents.AppError: "error",
    armadaevents.Evicted: "evicted",
    armadaevents.OOM: "oom",
    armadaevents.DeadlineExceeded: "deadline_exceeded",
}
_KUBERNETES_REASONS: Final[Mapping[str, Any]] = {cause: number for number, cause in _REASONS.items()}


class ExecutorReport(msgspec.Struct, frozen=True):
    """Facts about runs as an executor reports them; `dropped` counts what it may not say.

    `executor_id` is the one that the events name, or "" when none does.
    """

    executor_id: str
    sequences: tuple[JobSetEvents, ...]
    dropped: int = 0


def executor_report(message: executorapi.EventList, now_ms: int) -> ExecutorReport:
    """Return the facts of a report; `now_ms` stands in for times that it does not give."""
    reader = _ReportReader(now_ms)
    sequences = [
        JobSetEvents(sequence.queue, sequence.job_set_name, events)
        for sequence in message.events
        if (events := reader.read(sequence.events))
    ]
    return ExecutorReport(reader.executor_id, tuple(sequences), reader.dropped)


def report_messages(sequences: Iterable[JobSetEvents], max_bytes: int = MAX_LIST_BYTES) -> list[executorapi.EventList]:
    """Return messages for facts about runs, in order, each under `max_bytes` (unless one fact alone is larger).

    Raises:
        TypeError: a fact that is no report about a run.
    """
    messages: list[executorapi.EventList] = []
    size_bytes = max_bytes
    for sequence in sequences:
        target: Any = None
        for event in sequence.events:
            written = _written(event)
            needed_bytes = written.ByteSize() + 8
            if size_bytes + needed_bytes > max_bytes:
                messages.append(executorapi.EventList())
                size_bytes = 0
                target = None
            if target is None:
                target = messages[-1].events.add(queue=sequence.queue, job_set_name=sequence.job_set)
                size_bytes += len(sequence.queue) + len(sequence.job_set) + 24
            target.events.append(written)
            size_bytes += needed_bytes
    return messages


class _ReportReader:
    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self.executor_id = ""
        self.dropped = 0

    def read(self, events: Iterable[armadaevents.EventSequence.Event]) -> tuple[facts.Event, ...]:
        read = []
        for event in events:
            kind = event.WhichOneof("event")
            reader = _READERS.get(kind or "")
            at_ms = unix_ms(event.created) if event.HasField("created") else self._now_ms
            fact = reader(getattr(event, kind), at_ms) if reader is not None and kind else None
            if fact is None:
                self.dropped += 1
            else:
                self._remember(fact)
                read.append(fact)
        return tuple(read)

    def _remember(self, fact: Any) -> None:
        if not self.executor_id:
            pod = fact.failure.pod if isinstance(fact, facts.RunFailed | facts.RunReturned) else fact.pod
            self.executor_id = pod.cluster if pod is not None else ""


def clean(text: str, limit_chars: int = MAX_REASON_CHARS) -> str:
    """A text from elsewhere, without NUL bytes and not longer than the limit."""
    text = text.replace("\0", "")
    return text if len(text) <= limit_chars else text[: limit_chars - 1] + "…"


def _identity(metadata: armadaevents.ObjectMeta, node_name: str, number: int, pool: str = "") -> PodIdentity:
    return PodIdentity(
        cluster=clean(metadata.executor_id, 512),
        namespace=clean(metadata.namespace, 512),
        name=clean(metadata.name, 512),
        uid=clean(metadata.kubernetes_id, 512),
        node_name=clean(node_name, 512),
        number=number,
        pool=clean(pool, 512),
    )


def _first_pod(resources: Any, pool: str = "") -> PodIdentity:
    if not resources:
        return PodIdentity(pool=clean(pool, 512))
    return _pod_of(resources[0], pool)


def _pod_of(described: armadaevents.KubernetesResourceInfo, pool: str = "") -> PodIdentity:
    return _identity(described.objectMeta, described.podInfo.node_name, described.podInfo.pod_number, pool)


def _assigned(event: armadaevents.JobRunAssigned, at_ms: int) -> facts.RunPending:
    pod = _first_pod(event.resourceInfos, event.pool)
    return facts.RunPending(at_ms=at_ms, job_id=event.job_id, run_id=event.run_id, pod=pod)


def _running(event: armadaevents.JobRunRunning, at_ms: int) -> facts.RunStarted:
    pod = _first_pod(event.resourceInfos, event.pool)
    return facts.RunStarted(at_ms=at_ms, job_id=event.job_id, run_id=event.run_id, pod=pod)


def _succeeded(event: armadaevents.JobRunSucceeded, at_ms: int) -> facts.RunSucceeded:
    pod = _first_pod(event.resourceInfos)
    return facts.RunSucceeded(at_ms=at_ms, job_id=event.job_id, run_id=event.run_id, pod=pod)


def _addressed(event: armadaevents.StandaloneIngressInfo, at_ms: int) -> facts.RunAddressed:
    pod = _identity(event.objectMeta, event.node_name, event.pod_number)
    pod = msgspec.structs.replace(
        pod, name=clean(event.pod_name, 512) or pod.name, namespace=clean(event.pod_namespace, 512) or pod.namespace
    )
    addresses = {port: clean(event.ingress_addresses[port], 2_048) for port in sorted(event.ingress_addresses)}
    return facts.RunAddressed(at_ms=at_ms, job_id=event.job_id, run_id=event.run_id, addresses=addresses, pod=pod)


def _used(event: armadaevents.ResourceUtilisation, at_ms: int) -> facts.RunUsageReported:
    return facts.RunUsageReported(
        at_ms=at_ms,
        job_id=event.job_id,
        run_id=event.run_id,
        peak=_amounts(event.max_resources_for_period),
        average=_amounts(event.avg_resources_for_period),
        cumulative=_amounts(event.total_cumulative_usage),
        pod=_pod_of(event.resource_info),
    )


def _amounts(resources: Mapping[str, Any]) -> dict[str, str]:
    return {clean(name, 256): clean(resources[name].string, 64) for name in sorted(resources)}


def _failed(event: armadaevents.JobRunErrors, at_ms: int) -> facts.RunFailed | facts.RunReturned | None:
    """The first error that ends the run decides; expiry and preemption are not for an executor to say."""
    for error in event.errors:
        reason = error.WhichOneof("reason")
        if not error.terminal or reason in {"leaseExpired", "jobRunPreemptedError", None}:
            continue
        failure = _failure(error, reason)
        if reason == "podLeaseReturned":
            attempted = error.podLeaseReturned.run_attempted
            return facts.RunReturned(
                at_ms=at_ms, job_id=event.job_id, run_id=event.run_id, failure=failure, attempted=attempted
            )
        return facts.RunFailed(at_ms=at_ms, job_id=event.job_id, run_id=event.run_id, failure=failure)
    return None


def _failure(error: armadaevents.Error, reason: str) -> Failure:
    category, subcategory = clean(error.failure_category, 128), clean(error.failure_subcategory, 128)
    if reason == "podLeaseReturned":
        returned = error.podLeaseReturned
        return Failure(
            reason=clean(returned.message),
            kind="lease_returned",
            category=category,
            subcategory=subcategory,
            debug=clean(returned.debugMessage, MAX_DEBUG_CHARS),
            pod=_identity(returned.objectMeta, "", returned.pod_number),
        )
    if reason == "podError":
        pod = error.podError
        return Failure(
            reason=clean(pod.message),
            cause=_REASONS.get(pod.kubernetes_reason, "error"),
            category=category,
            subcategory=subcategory,
            debug=clean(pod.debugMessage, MAX_DEBUG_CHARS),
            pod=_identity(pod.objectMeta, pod.node_name, pod.pod_number),
            containers=tuple(_container(container) for container in pod.containerErrors),
        )
    details = getattr(error, reason)
    text = getattr(details, "message", "") or f"the executor reported {reason}"
    return Failure(reason=clean(text), kind="executor", category=category, subcategory=subcategory)


def _container(error: armadaevents.ContainerError) -> ContainerStatus:
    return ContainerStatus(
        name=clean(error.objectMeta.name, 256),
        exit_code=error.exit_code,
        reason=clean(error.reason, 256),
        message=clean(error.message),
    )


_READERS: Final[Mapping[str, Callable[[Any, int], facts.Event | None]]] = {
    "jobRunAssigned": _assigned,
    "jobRunRunning": _running,
    "jobRunSucceeded": _succeeded,
    "jobRunErrors": _failed,
    "standaloneIngressInfo": _addressed,
    "resourceUtilisation": _used,
}


def _written(event: facts.Event) -> armadaevents.EventSequence.Event:
    writer = _WRITERS.get(type(event))
    if writer is None:
        raise TypeError(f"{type(event).__name__} is no report about a run")
    message = armadaevents.EventSequence.Event()
    stamp(message.created, event.at_ms)
    writer(message, event)
    return message


def _write_metadata(target: armadaevents.ObjectMeta, pod: PodIdentity) -> None:
    target.executor_id = pod.cluster
    target.namespace = pod.namespace
    target.name = pod.name
    target.kubernetes_id = pod.uid


def _write_pod(target: armadaevents.KubernetesResourceInfo, pod: PodIdentity) -> None:
    _write_metadata(target.objectMeta, pod)
    target.podInfo.node_name = pod.node_name
    target.podInfo.pod_number = pod.number


def _write_run(target: Any, event: Any) -> None:
    target.job_id = event.job_id
    target.run_id = event.run_id


def _write_pending(message: armadaevents.EventSequence.Event, event: facts.RunPending) -> None:
    _write_run(message.jobRunAssigned, event)
    message.jobRunAssigned.pool = event.pod.pool
    _write_pod(message.jobRunAssigned.resourceInfos.add(), event.pod)


def _write_started(message: armadaevents.EventSequence.Event, event: facts.RunStarted) -> None:
    _write_run(message.jobRunRunning, event)
    message.jobRunRunning.pool = event.pod.pool
    _write_pod(message.jobRunRunning.resourceInfos.add(), event.pod)


def _write_succeeded(message: armadaevents.EventSequence.Event, event: facts.RunSucceeded) -> None:
    _write_run(message.jobRunSucceeded, event)
    _write_pod(message.jobRunSucceeded.resourceInfos.add(), event.pod)


def _write_addressed(message: armadaevents.EventSequence.Event, event: facts.RunAddressed) -> None:
    target = message.standaloneIngressInfo
    _write_run(target, event)
    _write_metadata(target.objectMeta, event.pod)
    target.node_name = event.pod.node_name
    target.pod_number = event.pod.number
    target.pod_name = event.pod.name
    target.pod_namespace = event.pod.namespace
    target.ingress_addresses.update(event.addresses)


def _write_used(message: armadaevents.EventSequence.Event, event: facts.RunUsageReported) -> None:
    target = message.resourceUtilisation
    _write_run(target, event)
    _write_pod(target.resource_info, event.pod)
    for resources, amounts in (
        (target.max_resources_for_period, event.peak),
        (target.avg_resources_for_period, event.average),
        (target.total_cumulative_usage, event.cumulative),
    ):
        for name, quantity in amounts.items():
            resources[name].string = quantity


def _write_returned(message: armadaevents.EventSequence.Event, event: facts.RunReturned) -> None:
    _write_run(message.jobRunErrors, event)
    error = _write_error(message.jobRunErrors, event.failure)
    error.podLeaseReturned.message = event.failure.reason
    error.podLeaseReturned.debugMessage = event.failure.debug
    error.podLeaseReturned.run_attempted = event.attempted
    if event.failure.pod is not None:
        _write_metadata(error.podLeaseReturned.objectMeta, event.failure.pod)
        error.podLeaseReturned.pod_number = event.failure.pod.number


def _write_failed(message: armadaevents.EventSequence.Event, event: facts.RunFailed) -> None:
    _write_run(message.jobRunErrors, event)
    failure = event.failure
    target = _write_error(message.jobRunErrors, failure).podError
    target.message = failure.reason
    target.debugMessage = failure.debug
    target.kubernetes_reason = _KUBERNETES_REASONS.get(failure.cause, armadaevents.AppError)
    if failure.pod is not None:
        _write_metadata(target.objectMeta, failure.pod)
        target.node_name = failure.pod.node_name
        target.pod_number = failure.pod.number
    for container in failure.containers:
        status = target.containerErrors.add(
            exit_code=container.exit_code, message=container.message, reason=container.reason
        )
        status.objectMeta.name = container.name
        if container.reason == "OOMKilled":
            status.kubernetes_reason = armadaevents.OOM


def _write_error(target: armadaevents.JobRunErrors, failure: Failure) -> armadaevents.Error:
    return target.errors.add(terminal=True, failure_category=failure.category, failure_subcategory=failure.subcategory)


_WRITERS: Final[Mapping[type, Callable[[Any, Any], None]]] = {
    facts.RunPending: _write_pending,
    facts.RunStarted: _write_started,
    facts.RunSucceeded: _write_succeeded,
    facts.RunAddressed: _write_addressed,
    facts.RunUsageReported: _write_used,
    facts.RunReturned: _write_returned,
    facts.RunFailed: _write_failed,
}
