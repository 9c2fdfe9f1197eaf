"""Lease exchanges between executors and the control plane, in both directions.

A server reads requests (`ReportedFleet.request`) and writes replies (`lease_reply_messages`), an executor writes
requests (`lease_request_message`) and reads replies (`LeaseReplyReader`); either side may be the reference's. Reports
about runs are in `wire.reports`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from armada_client.armada import submit_pb2 as api
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core

from armada._proto import executor_pb2 as executorapi
from armada.model.errors import InvalidRequest
from armada.model.fleet import Node, Taint
from armada.model.jobs import (
    FAIL_FAST,
    GANG_CARDINALITY,
    GANG_ID,
    GANG_UNIFORMITY_LABEL,
    POOL,
    RESERVATION,
    GangSpec,
    JobShape,
    JobTemplate,
    rendered,
)
from armada.model.leases import HeldRun, LeaseReply, LeaseRequest, NodeReport, NodeUsage, RunLease
from armada.model.resources import NANO_PER_UNIT, canonical_quantity, parse_quantity
from armada.wire.podspec import ByteCache, pod_spec_json, pod_spec_message, to_json
from armada.wire.submitted import ingresses, services

HOLD_METADATA: Final = "armada-hold-ms"
"""Metadata key of a lease exchange: for how long the server may hold it open until it has something to say."""

NODE_ID_LABEL: Final = "kubernetes.io/hostname"
PREEMPTIBLE_LABEL: Final = "armada_preemptible"
NODE_CACHE_BYTES: Final = 16 * 1024 * 1024

_PHASES: Final[Mapping[Any, str]] = {
    api.JobState.PENDING: "pending",
    api.JobState.RUNNING: "running",
    api.JobState.SUCCEEDED: "succeeded",
    api.JobState.FAILED: "failed",
}
_STATES: Final[Mapping[str, Any]] = {phase: state for state, phase in _PHASES.items()}


class LeaseRules(msgspec.Struct, frozen=True, kw_only=True):
    """How leases are fitted to a cluster.

    `node_id_label` pins a pod to its node; resources outside `known_resources` (None: all are known) are taken out of
    the pod; `priority_class_override` replaces the pod's priority class unless it is empty.
    """

    node_id_label: str = NODE_ID_LABEL
    known_resources: frozenset[str] | None = None
    priority_class_override: str = "armada-default"


DEFAULT_RULES: Final = LeaseRules()


class ReportedFleet:
    """Reads lease requests; a node or a node's report that has not changed is the very same object again."""

    def __init__(self, cache_bytes: int = NODE_CACHE_BYTES) -> None:
        self._nodes: ByteCache[Node] = ByteCache(cache_bytes)
        self._reports: ByteCache[NodeReport] = ByteCache(cache_bytes)

    def request(self, message: executorapi.LeaseRequest) -> LeaseRequest:
        """Return what an executor reports. The message is taken apart on the way.

        Raises:
            InvalidRequest: a bad quantity or text in a node; the message names the node.
        """
        owner = f"{message.executor_id}\0{message.pool}\0".encode()
        usage = tuple(each for reported in message.nodes for each in _usage(reported))
        return LeaseRequest(
            executor_id=message.executor_id,
            pool=message.pool,
            nodes=tuple(self._report(owner, message, reported) for reported in message.nodes),
            unassigned_run_ids=tuple(message.unassigned_job_run_ids),
            max_leases=message.max_jobs_to_lease,
            usage=usage,
        )

    def _report(self, owner: bytes, message: executorapi.LeaseRequest, reported: executorapi.NodeInfo) -> NodeReport:
        for unused in ("allocatable_resources", "available_resources", "resource_usage_by_queue_and_pool"):
            reported.ClearField(unused)
        key = owner + reported.SerializeToString(deterministic=True)
        report = self._reports.get(key)
        if report is not None:
            return report
        runs = tuple(
            HeldRun(run_id, _PHASES.get(reported.run_ids_by_state[run_id], "unknown"))
            for run_id in sorted(reported.run_ids_by_state)
        )
        reported.ClearField("run_ids_by_state")
        node_key = owner + reported.SerializeToString(deterministic=True)
        node = self._nodes.get(node_key)
        if node is None:
            try:
                node = self._nodes.put(node_key, _node(message, reported))
            except InvalidRequest as error:
                raise InvalidRequest(f"node {reported.name!r}: {error}") from error
        return self._reports.put(key, NodeReport(node, runs))


def _usage(reported: executorapi.NodeInfo) -> Iterator[NodeUsage]:
    """Give what jobs use on a node by pool and queue; what is no quantity is left out: nothing is decided by it."""
    for each in reported.resource_usage_by_queue_and_pool:
        amounts: list[tuple[str, float]] = []
        for name, quantity in sorted(each.resources.items()):
            try:
                amounts.append((name, parse_quantity(quantity.string) / NANO_PER_UNIT))
            except InvalidRequest:
                continue
        yield NodeUsage(reported.name, each.pool, each.queue, tuple(amounts))


def node_id_of(executor_id: str, node_name: str) -> str:
    """The id of a node, unique over all executors."""
    return f"{executor_id}-{node_name}"


def lease_request_message(request: LeaseRequest) -> executorapi.LeaseRequest:
    """Return the message for an executor's report."""
    message = executorapi.LeaseRequest(
        executor_id=request.executor_id,
        pool=request.pool,
        max_jobs_to_lease=request.max_leases,
        unassigned_job_run_ids=request.unassigned_run_ids,
    )
    for report in request.nodes:
        node = report.node
        reported = message.nodes.add(
            name=node.name,
            labels=node.labels,
            unschedulable=node.unschedulable,
            node_type=node.node_type,
            pool=node.pool,
        )
        for taint in node.taints:
            reported.taints.add(key=taint.key, value=taint.value, effect=taint.effect)
        for name, quantity in node.total.items():
            reported.total_resources[name].string = quantity
            reported.allocatable_resources[name].string = quantity
        for priority, quantities in node.unallocatable.items():
            resources = reported.non_armada_allocated_resources[priority].resources
            for name, quantity in quantities.items():
                resources[name].string = quantity
        for run in report.runs:
            reported.run_ids_by_state[run.run_id] = _STATES.get(run.phase, api.JobState.UNKNOWN)
    return message


def lease_reply_messages(
    reply: LeaseReply, rules: LeaseRules = DEFAULT_RULES
) -> Iterator[executorapi.LeaseStreamMessage]:
    """Yield a reply's messages in protocol order: runs to cancel (if any), leases, the end."""
    if reply.cancel_run_ids:
        yield executorapi.LeaseStreamMessage(
            cancel_runs=executorapi.CancelRuns(job_run_ids_to_cancel=reply.cancel_run_ids)
        )
    pods: dict[int, core.PodSpec] = {}
    for lease in reply.leases:
        pod = pods.get(id(lease.template))
        if pod is None:
            pod = pods[id(lease.template)] = _leased_pod(lease.template, rules)
        message = executorapi.LeaseStreamMessage()
        _write_lease(message.lease, lease, pod, rules)
        yield message
    yield executorapi.LeaseStreamMessage(end=executorapi.EndMarker())


class RefusedLease(msgspec.Struct, frozen=True):
    """A lease that can't be read: as much of its identity as there is, and why."""

    run_id: str
    job_id: str
    queue: str
    job_set: str
    reason: str


class LeaseReplyReader:
    """Puts the messages of one exchange together. `refused` holds leases that can't be carried out."""

    def __init__(self, node_id_label: str = NODE_ID_LABEL) -> None:
        self._node_id_label = node_id_label
        self._cancelled: list[str] = []
        self._leases: list[RunLease] = []
        self.refused: list[RefusedLease] = []

    def feed(self, message: executorapi.LeaseStreamMessage) -> LeaseReply | None:
        """Take the next message; return the whole reply once its end has come.

        Runs to preempt end like runs to cancel: the control plane has decided already.
        """
        kind = message.WhichOneof("event")
        if kind == "cancel_runs":
            self._cancelled.extend(message.cancel_runs.job_run_ids_to_cancel)
        elif kind == "preempt_runs":
            self._cancelled.extend(message.preempt_runs.job_run_ids_to_preempt)
        elif kind == "lease":
            self._lease(message.lease)
        elif kind == "end":
            return LeaseReply(cancel_run_ids=tuple(self._cancelled), leases=tuple(self._leases))
        return None

    def _lease(self, lease: executorapi.JobRunLease) -> None:
        job_id = lease.job.job_id
        try:
            self._leases.append(_read_lease(lease, self._node_id_label))
        except InvalidRequest as error:
            refused = RefusedLease(lease.job_run_id, job_id, lease.queue, lease.jobset, str(error))
            self.refused.append(refused)


def _quantities(resources: Mapping[str, Any]) -> dict[str, str]:
    return {name: canonical_quantity(resources[name].string) for name in sorted(resources)}


def _node(message: executorapi.LeaseRequest, reported: executorapi.NodeInfo) -> Node:
    values = to_json(reported)  # checks all texts
    taints = tuple(Taint(taint.key, taint.value, taint.effect) for taint in reported.taints)
    reservations = [taint.value or "unspecified" for taint in taints if taint.key == RESERVATION]
    return Node(
        node_id=node_id_of(message.executor_id, reported.name),
        name=reported.name,
        executor_id=message.executor_id,
        pool=reported.pool or message.pool,
        labels=values.get("labels", {}),
        taints=taints,
        total=values.get("totalResources", {}),
        unallocatable={
            priority: _quantities(reported.non_armada_allocated_resources[priority].resources)
            for priority in sorted(reported.non_armada_allocated_resources)
        },
        unschedulable=reported.unschedulable,
        node_type=reported.node_type,
        reservation=reservations[0] if reservations else "",
    )


def _leased_pod(template: JobTemplate, rules: LeaseRules) -> core.PodSpec:
    """The pod of all leases of one template: without what the cluster does not know."""
    spec = core.PodSpec()
    spec.CopyFrom(pod_spec_message(template.pod_spec))
    if rules.priority_class_override:
        spec.priorityClassName = rules.priority_class_override
    if rules.known_resources is not None:
        for container in (*spec.initContainers, *spec.containers):
            for resources in (container.resources.requests, container.resources.limits):
                for name in [name for name in resources if name not in rules.known_resources]:
                    del resources[name]
    return spec


def _write_lease(message: executorapi.JobRunLease, lease: RunLease, pod: core.PodSpec, rules: LeaseRules) -> None:
    template = lease.template
    message.queue = lease.queue
    message.jobset = lease.job_set
    message.user = lease.owner
    message.groups.extend(lease.groups)
    message.job_run_id = lease.run_id
    job = message.job
    job.job_id = lease.job_id
    job.external_job_uri = template.external_job_uri
    job.scheduler = template.scheduler
    metadata = job.objectMeta
    metadata.namespace = template.namespace
    for key, value in template.labels.items():
        metadata.labels[key] = rendered(value, lease.job_id)
    for key, value in template.annotations.items():
        metadata.annotations[key] = rendered(value, lease.job_id)
    metadata.annotations.update(lease.overlay)
    metadata.annotations[POOL] = lease.pool
    metadata.labels[PREEMPTIBLE_LABEL] = "true" if lease.preemptible else "false"
    spec = job.mainObject.pod_spec.pod_spec
    spec.CopyFrom(pod)
    if lease.node_name:
        spec.nodeSelector[rules.node_id_label] = lease.node_name
    for toleration in lease.tolerations:
        spec.tolerations.add(
            key=toleration.key, operator=toleration.operator, value=toleration.value, effect=toleration.effect
        )
    if template.services or template.ingresses:
        _write_objects(job, lease)


def _write_objects(job: Any, lease: RunLease) -> None:
    for service in services(lease.template, lease.job_id):
        written = job.objects.add()
        written.service.CopyFrom(service.spec)
        _write_metadata(written.objectMeta, service.metadata)
    for ingress in ingresses(lease.template, lease.job_id):
        written = job.objects.add()
        written.ingress.CopyFrom(ingress.spec)
        _write_metadata(written.objectMeta, ingress.metadata)


def _write_metadata(target: Any, metadata: Any) -> None:
    target.name = metadata.name
    target.namespace = metadata.namespace
    target.labels.update(metadata.labels)
    target.annotations.update(metadata.annotations)


def _read_lease(message: executorapi.JobRunLease, node_id_label: str) -> RunLease:
    job = message.job
    if not (job.job_id and message.job_run_id and message.queue and message.jobset):
        raise InvalidRequest("a lease needs job id, run id, queue and job set")
    if not job.mainObject.HasField("pod_spec"):
        raise InvalidRequest("a lease needs a pod spec")
    spec = job.mainObject.pod_spec.pod_spec
    node_name = spec.nodeSelector.pop(node_id_label, "")
    metadata = job.objectMeta
    labels = {key: metadata.labels[key] for key in sorted(metadata.labels)}
    annotations = {key: metadata.annotations[key] for key in sorted(metadata.annotations)}
    preemptible = labels.pop(PREEMPTIBLE_LABEL, "") == "true"
    pool = annotations.pop(POOL, "")
    template = JobTemplate(
        shape=JobShape((), spec.priorityClassName),
        pod_spec=pod_spec_json(spec),
        namespace=metadata.namespace,
        labels=labels,
        annotations=annotations,
        gang=_gang(annotations),
        fail_fast=annotations.get(FAIL_FAST) == "true",
        services=tuple(_read_object(item, "service") for item in job.objects if item.HasField("service")),
        ingresses=tuple(_read_object(item, "ingress") for item in job.objects if item.HasField("ingress")),
        external_job_uri=job.external_job_uri,
        scheduler=job.scheduler,
    )
    return RunLease(
        run_id=message.job_run_id,
        job_id=job.job_id,
        queue=message.queue,
        job_set=message.jobset,
        owner=message.user,
        groups=tuple(message.groups),
        template=template,
        node_name=node_name,
        pool=pool,
        preemptible=preemptible,
    )


def _gang(annotations: Mapping[str, str]) -> GangSpec | None:
    cardinality = annotations.get(GANG_CARDINALITY, "")
    if not annotations.get(GANG_ID) or not cardinality.isascii() or not cardinality.isdigit() or int(cardinality) < 2:
        return None
    return GangSpec(annotations[GANG_ID], int(cardinality), annotations.get(GANG_UNIFORMITY_LABEL, ""))


def _read_object(item: Any, field: str) -> dict[str, Any]:
    metadata = to_json(item.objectMeta)
    metadata.pop("executorId", None)
    metadata.pop("kubernetesId", None)
    return {"metadata": metadata, "spec": to_json(getattr(item, field))}
