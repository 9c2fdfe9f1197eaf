"""Pods as values: the manifest of a leased run, a pod as a cluster shows it, and the facts that follow from it.

Pure. A manifest is Kubernetes JSON and is rendered only where something needs all of it; a `PodOrder` is enough
for a cluster that doesn't. Times are Unix milliseconds; 0 means "not yet".
"""

from typing import Any, Final

import msgspec

from armada.model.events import (
    ContainerStatus,
    Event,
    Failure,
    PodIdentity,
    RunFailed,
    RunPending,
    RunStarted,
    RunSucceeded,
)
from armada.model.jobs import (
    GANG_CARDINALITY,
    GANG_ID,
    GANG_UNIFORMITY_LABEL,
    POOL,
    KubernetesObject,
    Toleration,
    rendered,
)
from armada.model.leases import RunLease

JOB_ID_LABEL: Final = "armada_job_id"
RUN_ID_LABEL: Final = "armada_job_run_id"
QUEUE_LABEL: Final = "armada_queue_id"
POD_NUMBER_LABEL: Final = "armada_pod_number"
POD_COUNT_LABEL: Final = "armada_pod_count"
PREEMPTIBLE_LABEL: Final = "armada_preemptible"
JOB_SET_ANNOTATION: Final = "armada_jobset_id"
OWNER_ANNOTATION: Final = "armada_owner"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"

UNIFORMITY_NAME_VARIABLE: Final = "ARMADA_GANG_NODE_UNIFORMITY_LABEL_NAME"
UNIFORMITY_VALUE_VARIABLE: Final = "ARMADA_GANG_NODE_UNIFORMITY_LABEL_VALUE"
UNIFORMITY_VALUE_ANNOTATION: Final = "armadaproject.io/gangNodeUniformityLabelValue"

PENDING: Final = "pending"
RUNNING: Final = "running"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"

MESSAGE_LIMIT_BYTES: Final = 4096
"""No text from a cluster that enters a fact is longer than this, in UTF-8 bytes."""
CUT_MARK: Final = " [cut]"
DEFAULT_GRACE_SECONDS: Final = 30
"""Kubernetes' own default of `terminationGracePeriodSeconds`."""

OOM_REASON: Final = "OOMKilled"
EVICTED_REASON: Final = "Evicted"
DEADLINE_REASON: Final = "DeadlineExceeded"

CATEGORY_INTERNAL: Final = "internal"


class PodOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A pod to create. What every cluster needs stands in fields of its own; `manifest(order.lease)` has the rest."""

    run_id: str
    name: str
    namespace: str
    lease: RunLease


class ContainerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container of a pod: waiting (no start), running (no finish) or ended."""

    name: str
    is_init: bool = False
    started_ms: int = 0
    finished_ms: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class Pod(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod of ours as its cluster shows it. `phase` is pending, running, succeeded, failed or unknown.

    `changed_ms` is the time of the last change of status; `deletion_due_ms` is when a requested deletion should be
    done (request plus grace), 0 when none was requested. `deadline_ms` is the pod's active deadline as a length.
    """

    run_id: str
    job_id: str
    queue: str
    job_set: str
    name: str
    namespace: str
    uid: str
    phase: str
    changed_ms: int
    created_ms: int
    node_name: str = ""
    pool: str = ""
    started_ms: int = 0
    finished_ms: int = 0
    deletion_due_ms: int = 0
    deadline_ms: int = 0
    grace_ms: int = DEFAULT_GRACE_SECONDS * 1000
    reason: str = ""
    message: str = ""
    containers: tuple[ContainerState, ...] = ()

    @property
    def has_ended(self) -> bool:
        """True when the pod's phase is final."""
        return self.phase in (SUCCEEDED, FAILED)


class StuckLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a pod may stay where it makes no progress. Reasons are those of waiting containers."""

    unassigned_ms: int = 300_000
    starting_ms: int = 300_000
    terminating_ms: int = 30_000
    past_deadline_ms: int = 30_000
    pulling_ms: int = 900_000
    fatal_reasons: tuple[str, ...] = ("InvalidImageName",)
    patient_reasons: tuple[str, ...] = ("ImagePullBackOff", "ErrImagePull")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod should be given up. A retryable problem gives the lease back; `attempted`: a node had the pod."""

    message: str
    retryable: bool
    subcategory: str
    attempted: bool = True
    cause: str = "error"


def pod_name(job_id: str, number: int = 0) -> str:
    """Name of a job's pod; the same for every attempt."""
    return f"armada-{job_id}-{number}"


def order_for(lease: RunLease) -> PodOrder:
    """The pod that a lease asks for."""
    return PodOrder(
        run_id=lease.run_id, name=pod_name(lease.job_id), namespace=lease.template.namespace or "default", lease=lease
    )


def manifest(lease: RunLease) -> KubernetesObject:
    """The whole pod as Kubernetes JSON (spec/executor.md 1.6). Every call makes a new object.

    System labels and annotations win over the user's, the user's environment wins over ours. Raises ValueError
    (msgspec.DecodeError) for a pod spec that isn't a JSON object.
    """
    template = lease.template
    spec: KubernetesObject = msgspec.json.decode(template.pod_spec, type=dict[str, Any])
    annotations = {key: rendered(value, lease.job_id) for key, value in template.annotations.items()}
    gang = template.gang
    if gang is not None:
        annotations.setdefault(GANG_ID, gang.id)
        annotations.setdefault(GANG_CARDINALITY, str(gang.cardinality))
        annotations.setdefault(GANG_UNIFORMITY_LABEL, gang.uniformity_label)
    annotations.update(lease.overlay)
    annotations[JOB_SET_ANNOTATION] = lease.job_set
    annotations[OWNER_ANNOTATION] = lease.owner
    annotations[POOL] = lease.pool
    labels = {key: rendered(value, lease.job_id) for key, value in template.labels.items()}
    labels[JOB_ID_LABEL] = lease.job_id
    labels[RUN_ID_LABEL] = lease.run_id
    labels[QUEUE_LABEL] = lease.queue
    labels[POD_NUMBER_LABEL] = "0"
    labels[POD_COUNT_LABEL] = "1"
    labels[PREEMPTIBLE_LABEL] = "true" if lease.preemptible else "false"
    spec["restartPolicy"] = "Never"
    if lease.node_name:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), HOSTNAME_LABEL: lease.node_name}
    if lease.tolerations:
        spec["tolerations"] = _with_tolerations(spec.get("tolerations") or [], lease.tolerations)
    variables = environment(lease, annotations)
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_with_variables(container, variables) for container in spec[field]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(lease.job_id),
            "namespace": template.namespace or "default",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }


def environment(lease: RunLease, annotations: dict[str, str]) -> dict[str, str]:
    """The variables that every container of the run gets unless it sets them itself."""
    variables = {
        "ARMADA_JOB_ID": lease.job_id,
        "ARMADA_JOB_RUN_ID": lease.run_id,
        "ARMADA_QUEUE": lease.queue,
        "ARMADA_JOB_SET_ID": lease.job_set,
    }
    gang_id = annotations.get(GANG_ID, "")
    if gang_id:
        variables["ARMADA_GANG_ID"] = gang_id
        variables["ARMADA_GANG_CARDINALITY"] = annotations.get(GANG_CARDINALITY, "")
        variables[UNIFORMITY_NAME_VARIABLE] = annotations.get(
            UNIFORMITY_NAME_VARIABLE, annotations.get(GANG_UNIFORMITY_LABEL, "")
        )
        variables[UNIFORMITY_VALUE_VARIABLE] = annotations.get(
            UNIFORMITY_VALUE_VARIABLE, annotations.get(UNIFORMITY_VALUE_ANNOTATION, "")
        )
    return variables


def _with_variables(container: KubernetesObject, variables: dict[str, str]) -> KubernetesObject:
    own: list[KubernetesObject] = container.get("env") or []
    named = {variable.get("name") for variable in own}
    added = [{"name": name, "value": value} for name, value in variables.items() if name not in named]
    # In front, so that the user's own values may refer to them.
    return {**container, "env": [*added, *own]}


def _with_tolerations(own: list[KubernetesObject], added: tuple[Toleration, ...]) -> list[KubernetesObject]:
    result = list(own)
    for toleration in added:
        entry = {
            field: value
            for field, value in zip(
                ("key", "operator", "value", "effect"),
                (toleration.key, toleration.operator, toleration.value, toleration.effect),
                strict=True,
            )
            if value
        }
        if entry not in result:
            result.append(entry)
    return result


def cut(text: str, limit_bytes: int = MESSAGE_LIMIT_BYTES) -> str:
    """Text that is safe to store: no NUL, no lone surrogate, at most `limit_bytes` of UTF-8, cut with a mark."""
    if text.isascii() and len(text) <= limit_bytes and "\0" not in text:
        return text
    encoded = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    if len(encoded) <= limit_bytes:
        return encoded.decode("utf-8")
    room = limit_bytes - len(CUT_MARK)
    return encoded[:room].decode("utf-8", "ignore") + CUT_MARK


def identity(pod: Pod, executor_id: str) -> PodIdentity:
    """Which pod, for a fact about it."""
    return PodIdentity(
        cluster=executor_id,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node_name=pod.node_name,
        pool=pod.pool,
    )


def pending_fact(pod: Pod, who: PodIdentity) -> Event:
    """The pod exists."""
    return RunPending(at_ms=pod.created_ms, job_id=pod.job_id, run_id=pod.run_id, pod=who)


def started_fact(pod: Pod, who: PodIdentity) -> Event:
    """The pod's containers run; also for a pod that has ended since."""
    return RunStarted(at_ms=pod.started_ms or pod.changed_ms, job_id=pod.job_id, run_id=pod.run_id, pod=who)


def ended_fact(pod: Pod, who: PodIdentity) -> Event:
    """How a pod ended; `pod.phase` must be final."""
    at_ms = pod.finished_ms or pod.changed_ms
    if pod.phase == SUCCEEDED:
        return RunSucceeded(at_ms=at_ms, job_id=pod.job_id, run_id=pod.run_id, pod=who)
    return RunFailed(at_ms=at_ms, job_id=pod.job_id, run_id=pod.run_id, failure=failure_of(pod, who))


def problem_failure(problem: Problem, who: PodIdentity | None, containers: tuple[ContainerStatus, ...] = ()) -> Failure:
    """A failure for a pod that is given up."""
    return Failure(
        reason=cut(problem.message),
        kind="lease_returned" if problem.retryable else "pod",
        cause=problem.cause,
        category=CATEGORY_INTERNAL,
        subcategory=problem.subcategory,
        pod=who,
        containers=containers,
    )


def failure_of(pod: Pod, who: PodIdentity) -> Failure:
    """Why a failed pod failed: its own words, else one line for each container that ended with another code than 0."""
    ended = [c for c in pod.containers if c.exit_code != 0 or c.reason == OOM_REASON]
    message = pod.message or "\n".join(_container_line(container) for container in ended)
    if not message:
        message = f"pod failed: {pod.reason}" if pod.reason else "pod failed without saying why"
    if pod.reason == EVICTED_REASON:
        cause = "evicted"
    elif pod.reason == DEADLINE_REASON:
        cause = "deadline_exceeded"
    elif any(container.reason == OOM_REASON for container in pod.containers):
        cause = "oom"
    else:
        cause = "error"
    return Failure(reason=cut(message), kind="pod", cause=cause, pod=who, containers=container_statuses(pod))


def container_statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    """How each ended container ended, for a fact."""
    return tuple(
        ContainerStatus(
            name=container.name,
            exit_code=container.exit_code,
            reason=container.reason,
            message=cut(container.message),
        )
        for container in pod.containers
        if container.finished_ms
    )


def _container_line(container: ContainerState) -> str:
    line = f"Container {container.name} ended with exit code {container.exit_code}"
    if container.reason and container.reason != "Error":
        line += f" ({container.reason})"
    return f"{line}: {container.message}" if container.message else line


def problem_of(pod: Pod, now_ms: int, limits: StuckLimits, *, is_ours: bool) -> Problem | None:
    """What is wrong with a pod that has not ended, or None. `is_ours`: this agent asked for its deletion."""
    if pod.has_ended:
        return None
    if pod.deletion_due_ms:
        if not is_ours and now_ms > pod.deletion_due_ms + limits.terminating_ms:
            return Problem(
                message="pod does not go away: its deletion was asked from outside and is overdue",
                retryable=False,
                subcategory="stuck-terminating",
            )
        return None
    if pod.deadline_ms and pod.started_ms:
        overdue_ms = now_ms - (pod.started_ms + pod.deadline_ms + pod.grace_ms + limits.past_deadline_ms)
        if overdue_ms > 0:
            return Problem(
                message=f"pod ran longer than its active deadline of {pod.deadline_ms // 1000} s and was not ended",
                retryable=False,
                subcategory="active-deadline",
                cause="deadline_exceeded",
            )
    if pod.phase == PENDING:
        return _pending_problem(pod, now_ms, limits)
    return None


def _pending_problem(pod: Pod, now_ms: int, limits: StuckLimits) -> Problem | None:
    if any(container.started_ms and not container.finished_ms for container in pod.containers):
        return None  # an init container is at work, for as long as it takes
    waited_ms = now_ms - max(pod.changed_ms, pod.created_ms)
    for container in pod.containers:
        if container.reason and not container.started_ms:
            return _waiting_problem(container, waited_ms, limits)
    if not pod.node_name:
        message = f"no node took the pod within {limits.unassigned_ms // 1000} s"
        is_late = waited_ms > limits.unassigned_ms
        unassigned = Problem(message=message, retryable=True, subcategory="unschedulable", attempted=False)
        return unassigned if is_late else None
    if waited_ms > limits.starting_ms:
        message = f"pod did not start on node {pod.node_name} within {limits.starting_ms // 1000} s"
        return Problem(message=message, retryable=True, subcategory="stuck-starting")
    return None


def _waiting_problem(container: ContainerState, waited_ms: int, limits: StuckLimits) -> Problem | None:
    text = f"container {container.name} can't start: {container.reason}"
    if container.message:
        text += f": {container.message}"
    if container.reason in limits.fatal_reasons:
        return Problem(message=text, retryable=False, subcategory="stuck-starting")
    patience_ms = limits.pulling_ms if container.reason in limits.patient_reasons else limits.starting_ms
    if waited_ms > patience_ms:
        return Problem(message=text, retryable=True, subcategory="stuck-starting")
    return None
