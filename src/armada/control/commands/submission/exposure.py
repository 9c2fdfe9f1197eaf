"""Services and ingresses that a job asks for, as the Kubernetes objects that its executor will create.

`{JobId}` stands in names and labels until a job is shown or leased (`model.jobs.rendered`).
"""

from typing import Any

import msgspec

from armada.control.commands.submission.requests import is_sidecar
from armada.model.jobs import KubernetesObject
from armada.model.submission import IngressRequest, SubmissionPolicy, SubmittedItem

_POD: str = "armada-{JobId}-0"


class Owner(msgspec.Struct, frozen=True):
    """Whose job it is: what labels and annotations of its objects say."""

    queue: str
    job_set: str
    name: str


class _Port(msgspec.Struct, frozen=True):
    name: str
    number: int
    protocol: str


def _exposable(pod: KubernetesObject) -> list[_Port]:
    """Ports of main containers and sidecars, without those that are ports of the host already."""
    running = [*(pod.get("containers") or ()), *filter(is_sidecar, pod.get("initContainers") or ())]
    return [
        _Port(
            f"{container.get('name') or ''}-{port['containerPort']}",
            port["containerPort"],
            port.get("protocol") or "TCP",
        )
        for container in running
        for port in container.get("ports") or ()
        if not port.get("hostPort") and port.get("containerPort")
    ]


def _metadata(name: str, namespace: str, owner: Owner, annotations: dict[str, str]) -> KubernetesObject:
    return {
        "name": name,
        "namespace": namespace,
        "labels": {"armada_job_id": "{JobId}", "armada_queue_id": owner.queue},
        "annotations": {**annotations, "armada_jobset_id": owner.job_set, "armada_owner": owner.name},
    }


def _service(metadata: KubernetesObject, ports: list[_Port], *, node_port: bool, headless: bool) -> KubernetesObject:
    spec: KubernetesObject = {
        "type": "NodePort" if node_port else "ClusterIP",
        "ports": [{"name": port.name, "protocol": port.protocol, "port": port.number} for port in ports],
        "selector": {"armada_job_id": "{JobId}"},
    }
    if headless:
        spec["clusterIP"] = "None"
    return {"metadata": metadata, "spec": spec}


def _ingress(
    metadata: KubernetesObject, ports: list[_Port], service: str, request: IngressRequest, namespace: str
) -> KubernetesObject:
    hosts = {port.number: f"{port.name}-{_POD}.{namespace}." for port in ports}
    backend: dict[int, Any] = {
        port.number: {"service": {"name": service, "port": {"number": port.number}}} for port in ports
    }
    rules = [
        {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend[number]}]}}
        for number, host in hosts.items()
    ]
    spec: KubernetesObject = {"rules": rules}
    if request.tls_enabled:
        spec["tls"] = [{"hosts": list(hosts.values()), "secretName": request.cert_name or f"{namespace}-"}]
    return {"metadata": metadata, "spec": spec}


def exposed(
    item: SubmittedItem, owner: Owner, policy: SubmissionPolicy
) -> tuple[tuple[KubernetesObject, ...], tuple[KubernetesObject, ...]]:
    """Return the services and the ingresses of a job.

    Requested ports that no container exposes are left out, and a request without any port left makes nothing. An
    ingress reuses the first service that has all its ports, else it gets one of its own.
    """
    if not item.services and not item.ingresses:
        return (), ()
    exposable = _exposable(item.pods[0].spec)
    services: list[KubernetesObject] = []
    ingresses: list[KubernetesObject] = []

    def add_service(ports: list[_Port], name: str, *, node_port: bool, headless: bool) -> str:
        named = name if name and policy.allow_custom_service_names else f"{_POD}-service-{len(services)}"
        metadata = _metadata(named, item.namespace, owner, {})
        services.append(_service(metadata, ports, node_port=node_port, headless=headless))
        return named

    for request in item.services:
        if ports := [port for port in exposable if port.number in request.ports]:
            headless = request.type == "Headless"
            add_service(ports, request.name, node_port=not headless, headless=headless)
    for wanted in item.ingresses:
        if not (ports := [port for port in exposable if port.number in wanted.ports]):
            continue
        service = _covering(services, ports)
        if service is None:
            service = add_service(ports, "", node_port=False, headless=not wanted.use_cluster_ip)
        metadata = _metadata(f"{_POD}-ingress-{len(ingresses)}", item.namespace, owner, wanted.annotations)
        ingresses.append(_ingress(metadata, ports, service, wanted, item.namespace))
    return tuple(services), tuple(ingresses)


def _covering(services: list[KubernetesObject], ports: list[_Port]) -> str | None:
    for service in services:
        offered = [port["port"] for port in service["spec"]["ports"]]
        if all(port.number in offered for port in ports):
            return str(service["metadata"]["name"])
    return None
