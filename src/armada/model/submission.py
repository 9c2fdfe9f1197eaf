"""What callers ask of the control plane, and the limits on what they may ask.

The request values are what `wire` makes of messages and what `control` decides on. Identical parts of a request
are the same object: two items of equal content share one `ItemBody`, so that it is checked and converted once.
"""

import msgspec

from armada.model.fleet import Queue
from armada.model.jobs import KubernetesObject

EVERYONE = "everyone"
"""The group that every caller is in."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls: name, groups, and the global permissions that these carry."""

    name: str
    groups: tuple[str, ...] = (EVERYONE,)
    permissions: frozenset[str] = frozenset()


class IngressRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ports of a job's pod that are to be reached from outside its cluster."""

    ports: tuple[int, ...] = ()
    annotations: dict[str, str] = {}
    tls_enabled: bool = False
    cert_name: str = ""
    use_cluster_ip: bool = False


class ServiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ports of a job's pod that get a service; `headless` or else a node port."""

    headless: bool = False
    ports: tuple[int, ...] = ()
    name: str = ""


class ItemBody(msgspec.Struct, frozen=True, kw_only=True):
    """All of a submitted item but what tells equal items apart (priority, client id).

    `pod_spec` and `pod_specs` are Kubernetes JSON as sent; `pod_spec_size_bytes` is the size of the serialised
    message of the one that counts.
    """

    namespace: str = ""
    pod_spec: KubernetesObject | None = None
    pod_specs: tuple[KubernetesObject, ...] = ()
    pod_spec_size_bytes: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    ingresses: tuple[IngressRequest, ...] = ()
    services: tuple[ServiceRequest, ...] = ()
    scheduler: str = ""
    external_job_uri: str = ""


class SubmitItem(msgspec.Struct, frozen=True):
    """One job that is asked for. `priority` is as sent: it may be negative, fractional, NaN or infinite."""

    body: ItemBody
    priority: float = 0.0
    client_id: str = ""


class SubmitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs for one job set of one queue, in order."""

    queue: str
    job_set: str
    items: tuple[SubmitItem, ...] = ()


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cancel jobs by id; without any id, the whole job set."""

    queue: str
    job_set: str
    job_ids: tuple[str, ...] = ()
    reason: str = ""


class CancelSetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cancel a job set; `states` are API names of job states (empty: all that are not finished)."""

    queue: str
    job_set: str
    states: tuple[str, ...] = ()
    reason: str = ""


class ReprioritiseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Give jobs another priority (as sent); without any id, the whole job set."""

    queue: str
    job_set: str
    job_ids: tuple[str, ...] = ()
    priority: float = 0.0


class PreemptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Preempt jobs by id; without any id, none."""

    queue: str
    job_set: str
    job_ids: tuple[str, ...] = ()
    reason: str = ""


class QueueRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A queue to create or update; owners become one permission entry with all verbs."""

    queue: Queue
    user_owners: tuple[str, ...] = ()
    group_owners: tuple[str, ...] = ()


class QueueJobsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cancel or preempt the jobs of a queue. Empty `priority_classes` or `pools` mean all.

    `states` (cancel only) are API names of active states; empty selects nothing.
    """

    name: str
    priority_classes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
