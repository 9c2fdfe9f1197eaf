"""Values that tests of the wire start from."""

from typing import Any

import msgspec
from armada_client.armada import submit_pb2 as api
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core

from armada.model import events as facts
from armada.model.jobs import JobShape, JobTemplate, KubernetesObject

POD: KubernetesObject = {
    "containers": [
        {
            "name": "main",
            "image": "registry.example/nap:1",
            "args": ["sleep", "1"],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
        },
    ],
    "priorityClassName": "armada-default",
}


def pod_message() -> core.PodSpec:
    """The pod spec of `POD`, as a client would send it."""
    spec = core.PodSpec(priorityClassName="armada-default")
    container = spec.containers.add(name="main", image="registry.example/nap:1", args=["sleep", "1"])
    for resources in (container.resources.limits, container.resources.requests):
        resources["cpu"].string = "1"
        resources["memory"].string = "1Gi"
    return spec


def submit_request(count: int = 1) -> api.JobSubmitRequest:
    """A request for `count` equal jobs with client ids c0, c1..."""
    request = api.JobSubmitRequest(queue="vision", job_set_id="nightly")
    for index in range(count):
        row = request.job_request_items.add(namespace="lab", client_id=f"c{index}", priority=index)
        row.pod_spec.CopyFrom(pod_message())
        row.labels["team"] = "imaging"
    return request


def template(**changes: Any) -> JobTemplate:
    """A template around `POD`."""
    values: dict[str, Any] = {
        "shape": JobShape((("cpu", "1"), ("memory", "1Gi")), "armada-default"),
        "pod_spec": msgspec.json.encode(POD),
        "namespace": "lab",
    }
    return JobTemplate(**(values | changes))


def entry(*events: facts.Event, position: int = 7) -> facts.Entry:
    """An entry of the job set vision/nightly."""
    return facts.Entry(
        position=position, batch_id="", time_ms=1, epoch=0, queue="vision", job_set="nightly", events=events
    )
