"""What is filled in where a submitted job says nothing (spec/api.md 4.3), and the template that comes out."""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from armada.control.commands.submission.affinity import affinity_terms
from armada.control.commands.submission.exposure import Owner, exposed
from armada.control.commands.submission.gangs import GangClaim
from armada.control.commands.submission.requests import combined_requests
from armada.model.fleet import PRICE_BANDS
from armada.model.jobs import (
    EXTERNAL_JOB_URI,
    FAIL_FAST,
    GANG_ID,
    GANG_UNIFORMITY_LABEL,
    PRICE_BAND,
    JobShape,
    JobTemplate,
    KubernetesObject,
    Toleration,
)
from armada.model.resources import parse_quantity
from armada.model.submission import SubmissionPolicy, SubmittedItem

MAX_PRIORITY: Final = 2**32 - 1


def clamped_priority(asked: float) -> int:
    """Return a priority as the queue orders by it: rounded half away from zero, from 0 to 2**32 - 1; NaN is 0."""
    if not asked > 0:
        return 0
    return MAX_PRIORITY if asked >= MAX_PRIORITY else math.floor(asked + 0.5)


def template_of(item: SubmittedItem, claim: GangClaim | None, owner: Owner, policy: SubmissionPolicy) -> JobTemplate:
    """Make the template of a valid item."""
    pod: KubernetesObject = msgspec.json.decode(msgspec.json.encode(item.pods[0].spec))
    _fill_containers(pod, policy)
    pod["priorityClassName"] = pod.get("priorityClassName") or policy.default_priority_class_name
    pod["terminationGracePeriodSeconds"] = (
        pod.get("terminationGracePeriodSeconds") or policy.min_termination_grace_period_s
    )
    if pod.get("activeDeadlineSeconds") is None:
        pod["activeDeadlineSeconds"] = _active_deadline_s(pod, policy)
    requests = combined_requests(pod)
    pod["tolerations"] = [*(pod.get("tolerations") or ()), *_default_tolerations(pod, dict(requests), policy)]
    services, ingresses = exposed(item, owner, policy)
    labels, annotations = _metadata(item, claim, policy)
    return JobTemplate(
        shape=_shape(pod, requests),
        pod_spec=msgspec.json.encode(pod),
        namespace=item.namespace,
        labels=labels,
        annotations=annotations,
        gang=claim.spec if claim else None,
        fail_fast=annotations.get(FAIL_FAST) == "true",
        price_band=PRICE_BANDS.find(annotations.get(PRICE_BAND, "?").upper()) + 1,
        services=services,
        ingresses=ingresses,
        external_job_uri=item.external_job_uri or item.annotations.get(EXTERNAL_JOB_URI, ""),
        scheduler=item.scheduler,
    )


def _fill_containers(pod: KubernetesObject, policy: SubmissionPolicy) -> None:
    for container in [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]:
        resources: dict[str, Any] = container.setdefault("resources", {})
        requests: dict[str, str] = resources.setdefault("requests", {})
        limits: dict[str, str] = resources.setdefault("limits", {})
        for name, quantity in policy.default_job_limits.items():
            if name not in requests and name not in limits:
                requests[name] = limits[name] = quantity


def _active_deadline_s(pod: KubernetesObject, policy: SubmissionPolicy) -> int:
    found = [
        deadline_s
        for resource, deadline_s in policy.default_active_deadline_by_resource_request_s.items()
        for container in pod.get("containers") or ()
        if parse_quantity(container["resources"]["requests"].get(resource, "0")) > 0
    ]
    return max(found, default=policy.default_active_deadline_s)


def _default_tolerations(
    pod: KubernetesObject, requests: Mapping[str, str], policy: SubmissionPolicy
) -> list[KubernetesObject]:
    by_class = policy.default_job_tolerations_by_priority_class.get(pod["priorityClassName"], ())
    by_resource = [
        toleration
        for resource, tolerations in policy.default_job_tolerations_by_resource_request.items()
        if parse_quantity(requests.get(resource, "0")) > 0
        for toleration in tolerations
    ]
    return [
        {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
        for each in (*policy.default_job_tolerations, *by_class, *by_resource)
    ]


def _metadata(
    item: SubmittedItem, claim: GangClaim | None, policy: SubmissionPolicy
) -> tuple[dict[str, str], dict[str, str]]:
    labels, annotations = dict(item.labels), dict(item.annotations)
    if claim is not None:
        annotations.setdefault(GANG_UNIFORMITY_LABEL, policy.default_gang_node_uniformity_label)
        annotations.setdefault(FAIL_FAST, "true")
        if policy.add_gang_id_label:
            labels[GANG_ID] = claim.spec.id
    return labels, annotations


def _shape(pod: KubernetesObject, requests: tuple[tuple[str, str], ...]) -> JobShape:
    tolerations = {
        Toleration(
            key=each.get("key") or "",
            operator=each.get("operator") or "Equal",
            value=each.get("value") or "",
            effect=each.get("effect") or "",
        )
        for each in pod["tolerations"]
    }
    selector = pod.get("nodeSelector") or {}
    return JobShape(
        requests=requests,
        priority_class=pod["priorityClassName"],
        node_selector=tuple(sorted((key, str(value)) for key, value in selector.items())),
        tolerations=tuple(sorted(tolerations)),
        affinity=affinity_terms(pod),
    )
