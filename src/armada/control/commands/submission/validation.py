"""The rules that every submitted job must meet (spec/api.md 4.2), and what is said where one does not.

Each rule looks at one item and yields what is wrong in words that name the field; the first fault of an item counts.
"""

from collections.abc import Callable, Iterator
from typing import Final

from armada.control.commands.submission.affinity import affinity_fault
from armada.control.commands.submission.requests import combined_requests, containers, quantities_of
from armada.control.commands.texts import shortened, text_fault
from armada.model.errors import InvalidRequest
from armada.model.fleet import PRICE_BANDS
from armada.model.jobs import PRICE_BAND, KubernetesObject
from armada.model.resources import (
    INT64_MAX,
    NANO_PER_MILLI,
    NANO_PER_UNIT,
    InvalidQuantity,
    parse_quantity,
)
from armada.model.submission import SubmissionPolicy, SubmittedItem

_MAX_NANO: Final = INT64_MAX * NANO_PER_UNIT
_MAX_PORT: Final = 65_535

Faults = Iterator[str]


def item_fault(item: SubmittedItem, policy: SubmissionPolicy) -> str:
    """Say the first thing that is wrong with an item; empty when nothing is."""
    try:
        return next((fault for rule in _RULES for fault in rule(item, policy)), "")
    except (AttributeError, TypeError, ValueError) as error:
        # The spec is foreign JSON: a member of another type than Kubernetes gives it ends up here.
        return f"the pod spec can't be read: {error}"


def _namespace(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    yield from filter(None, [text_fault("namespace", item.namespace, policy.max_namespace_bytes, required=True)])


def _pod_count(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    del policy
    if item.both_pod_fields:
        yield "both pod_spec and pod_specs are set: give exactly one"
    elif not item.pods:
        yield "there is no pod spec: set pod_spec"
    elif len(item.pods) > 1:
        yield f"pod_specs has {len(item.pods)} entries: a job is exactly one pod"


def _size(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    if (size_bytes := item.pods[0].size_bytes) > policy.max_pod_spec_size_bytes:
        yield f"the pod spec has {size_bytes} bytes, at most {policy.max_pod_spec_size_bytes} are allowed"


def _affinity(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    del policy
    yield from filter(None, [affinity_fault(item.pods[0].spec)])


def _resources(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    pod = item.pods[0].spec
    for name, container in containers(pod):
        for fault in _container_resources(container, policy):
            yield f"{name}: {fault}"
    for kind in ("requests", "limits"):
        for resource, total in combined_requests(pod, kind):
            if parse_quantity(total) > _MAX_NANO:
                yield f"the containers' {kind} of {resource} add up to more than {INT64_MAX}"


def _container_resources(container: KubernetesObject, policy: SubmissionPolicy) -> Faults:
    requests, limits = quantities_of(container, "requests"), quantities_of(container, "limits")
    if not requests and not limits:
        yield "no resources are given: set requests and limits"
    amounts: dict[str, dict[str, int]] = {"requests": {}, "limits": {}}
    for kind, quantities in (("requests", requests), ("limits", limits)):
        for resource, text in quantities.items():
            amount, fault = _amount(resource, text)
            amounts[kind][resource] = amount
            if fault:
                yield f"{kind}.{resource[:64]}: {fault}"
    asked, allowed = amounts["requests"], amounts["limits"]
    yield from (f"requests.{name} is set, but limits.{name} is not" for name in asked if name not in allowed)
    yield from (f"limits.{name} is set, but requests.{name} is not" for name in allowed if name not in asked)
    for resource, request in asked.items():
        limit, factor = allowed[resource], policy.max_oversubscription_by_resource_request.get(resource, 1.0)
        ask_milli, limit_milli = -(-request // NANO_PER_MILLI), -(-limit // NANO_PER_MILLI)
        written = f"limits.{resource} ({limits[resource]})"
        if limit_milli < ask_milli:
            yield f"{written} is below requests.{resource} ({requests[resource]})"
        if limit_milli > (ask_milli if factor == 1.0 else ask_milli * factor):
            yield f"{written} is above {factor:g} x requests.{resource} ({requests[resource]})"
        least = policy.min_job_resources.get(resource)
        if least is not None and -(-request // NANO_PER_UNIT) < parse_quantity(least) // NANO_PER_UNIT:
            yield f"requests.{resource} ({requests[resource]}) is below the minimum ({least})"


def _amount(resource: str, text: str) -> tuple[int, str]:
    try:
        nano = parse_quantity(text)
    except InvalidQuantity as error:
        return 0, str(error)
    if nano < 0:
        return nano, f"{shortened(text)} is negative"
    if nano > _MAX_NANO:
        return nano, f"{shortened(text)} is above the largest possible amount ({INT64_MAX})"
    if "/" in resource and nano % NANO_PER_UNIT:
        return nano, f"{shortened(text)} must be a whole number: Kubernetes counts such resources in pieces"
    return nano, ""


def _init_cpu(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    if not policy.assert_init_containers_request_fractional_cpu:
        return
    for container in item.pods[0].spec.get("initContainers") or ():
        for kind in ("requests", "limits"):
            text = quantities_of(container, kind).get("cpu", "0")
            if (nano := parse_quantity(text)) and nano % NANO_PER_UNIT == 0:
                name = container.get("name") or ""
                yield f"init container {name}: {kind}.cpu ({text}) must be a fraction of a core, such as 900m"


def _priority_class(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    name = item.pods[0].spec.get("priorityClassName") or ""
    if name and name not in policy.allowed_priority_class_names:
        allowed = ", ".join(policy.allowed_priority_class_names)
        yield f"priorityClassName {shortened(name)} is not one of {allowed}"


def _grace_period(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    seconds = int(item.pods[0].spec.get("terminationGracePeriodSeconds") or 0)
    least, most = policy.min_termination_grace_period_s, policy.max_termination_grace_period_s
    if seconds and not least <= seconds <= most:
        yield f"terminationGracePeriodSeconds ({seconds}) must be from {least} to {most}, or left out"


def _active_deadline(item: SubmittedItem, _: SubmissionPolicy) -> Faults:
    seconds = int(item.pods[0].spec.get("activeDeadlineSeconds") or 0)
    if seconds < 0:
        yield f"activeDeadlineSeconds ({seconds}) must not be negative; 0 means no deadline"


def _ingresses(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    del policy
    seen: dict[int, int] = {}
    for index, ingress in enumerate(item.ingresses):
        if not ingress.ports:
            yield f"ingress {index} has no ports"
        for port in ingress.ports:
            if port in seen:
                yield f"port {port} is in ingress {seen[port]} and again in ingress {index}"
            seen[port] = index


def _container_ports(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    del policy
    seen: dict[int, str] = {}
    for name, container in containers(item.pods[0].spec):
        for entry in container.get("ports") or ():
            port = int(entry.get("containerPort") or 0)
            if port in seen:
                yield f"container port {port} is exposed by {seen[port]} and again by {name}"
            if not 0 <= port <= _MAX_PORT:
                yield f"{name}: container port {port} does not exist"
            seen[port] = name


def _tolerations(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    for toleration in item.pods[0].spec.get("tolerations") or ():
        key = toleration.get("key") or ""
        if key in policy.restricted_toleration_keys:
            yield f"toleration of key {shortened(key)} is not open to jobs"


def _price_band(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    del policy
    band = item.annotations.get(PRICE_BAND)
    if band is not None and (len(band) != 1 or band.upper() not in PRICE_BANDS):
        yield f"annotation {PRICE_BAND} ({shortened(band)}) must be a letter from A to H"


def _metadata(item: SubmittedItem, policy: SubmissionPolicy) -> Faults:
    size = 0
    for what, entries in (("label", item.labels), ("annotation", item.annotations)):
        for key, value in entries.items():
            named = f"{what} {shortened(key)}"
            yield from filter(None, [text_fault(f"the key of {named}", key, policy.max_metadata_bytes)])
            yield from filter(None, [text_fault(named, value, policy.max_metadata_bytes)])
            size += len(key) + len(value)
    if size > policy.max_metadata_bytes:
        yield f"labels and annotations have {size} characters, at most {policy.max_metadata_bytes} are allowed"
    uri = text_fault("external_job_uri", item.external_job_uri, policy.max_metadata_bytes)
    yield from filter(None, [uri, text_fault("scheduler", item.scheduler, policy.max_namespace_bytes)])


_RULES: Final[tuple[Callable[[SubmittedItem, SubmissionPolicy], Faults], ...]] = (
    _namespace,
    _pod_count,
    _size,
    _affinity,
    _resources,
    _init_cpu,
    _priority_class,
    _grace_period,
    _active_deadline,
    _ingresses,
    _container_ports,
    _tolerations,
    _price_band,
    _metadata,
)


def refusal(faults: dict[int, str], item_count: int, policy: SubmissionPolicy) -> InvalidRequest:
    """Make the error of a request with bad items: every one by its index (from 0), with the cause."""
    listed = [f"item {index}: {faults[index]}" for index in sorted(faults)]
    shown = listed[: policy.max_errors_listed]
    more = f"; and {len(listed) - len(shown)} more" if len(listed) > len(shown) else ""
    return InvalidRequest(f"{len(listed)} of {item_count} jobs refused, nothing is stored: {'; '.join(shown)}{more}")
