"""A job as clients see it: the whole of what was submitted, with defaults, objects and its id in place."""

from collections.abc import Mapping
from typing import Any

from armada_client.armada import submit_pb2 as api
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.api.networking.v1 import generated_pb2 as networking

from armada.model.events import JobsSubmitted
from armada.model.jobs import JobTemplate, NewJob, rendered
from armada.wire.podspec import from_json, pod_spec_message
from armada.wire.times import stamp


class JobMessages:
    """Makes the messages of jobs that share one template; what they have in common is made once."""

    def __init__(self, queue: str, job_set: str, submitted: JobsSubmitted) -> None:
        template = submitted.template
        self._template = template
        self._common = api.Job(
            queue=queue,
            job_set_id=job_set,
            namespace=template.namespace,
            owner=submitted.owner,
            labels=template.labels,
            annotations=template.annotations,
            pod_spec=pod_spec_message(template.pod_spec),
        )
        stamp(self._common.created, submitted.at_ms)
        resources = self._common.scheduling_resource_requirements
        resources.SetInParent()
        for name, quantity in template.shape.requests:
            resources.requests[name].string = quantity
            resources.limits[name].string = quantity
        self._labels = _with_place(template.labels)
        self._annotations = _with_place(template.annotations)

    def fill(self, message: api.Job, job: NewJob) -> None:
        """Write one job into an empty message."""
        message.CopyFrom(self._common)
        message.id = job.job_id
        message.client_id = job.client_id
        message.priority = job.priority
        for key, value in self._labels:
            message.labels[key] = rendered(value, job.job_id)
        for key, value in self._annotations:
            message.annotations[key] = rendered(value, job.job_id)
        for service in services(self._template, job.job_id):
            message.k8s_service.append(service)
        for ingress in ingresses(self._template, job.job_id):
            message.k8s_ingress.append(ingress)


def services(template: JobTemplate, job_id: str) -> list[core.Service]:
    """The services of one job."""
    return [from_json(with_job_id(service, job_id), core.Service, path="service") for service in template.services]


def ingresses(template: JobTemplate, job_id: str) -> list[networking.Ingress]:
    """The ingresses of one job."""
    return [
        from_json(with_job_id(ingress, job_id), networking.Ingress, path="ingress") for ingress in template.ingresses
    ]


def with_job_id(value: Any, job_id: str) -> Any:
    """The same JSON value with the job's id in all of its texts; keys stay."""
    if isinstance(value, str):
        return rendered(value, job_id)
    if isinstance(value, dict):
        return {key: with_job_id(member, job_id) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [with_job_id(member, job_id) for member in value]
    return value


def _with_place(pairs: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in pairs.items() if "JobId}" in value]
