"""What callers ask of the control plane, and the limits on what they may ask.

The request values are what `wire` makes of messages and what `control` decides on. Identical parts of a request
are the same object: two items of equal content share one `SubmittedItem`, so that it is checked and converted once.
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


class ServiceRequest(msgspec.Struct, frozen=True):
    """Ports of a job's pod that get a service; `type` is `NodePort` or `Headless`."""

    type: str
    ports: tuple[int, ...] = ()
    name: str = ""


class IngressRequest(msgspec.Struct, frozen=True):
    """Ports of a job's pod that are to be reached from outside its cluster."""

    ports: tuple[int, ...] = ()
    annotations: dict[str, str] = {}
    tls_enabled: bool = False
    cert_name: str = ""
    use_cluster_ip: bool = False


class SubmittedPod(msgspec.Struct, frozen=True):
    """A pod spec as sent: Kubernetes JSON, shared and never changed, and the size of the serialised message."""

    spec: KubernetesObject
    size_bytes: int


class SubmittedItem(msgspec.Struct, frozen=True, kw_only=True):
    """All of a submitted job but what tells equal ones apart (priority, client id).

    `pods` are the entries of `pod_specs`, or else the one `pod_spec`; `both_pod_fields` is true when both were set.
    """

    pods: tuple[SubmittedPod, ...] = ()
    both_pod_fields: bool = False
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    services: tuple[ServiceRequest, ...] = ()
    ingresses: tuple[IngressRequest, ...] = ()
    scheduler: str = ""
    external_job_uri: str = ""


class SubmittedJob(msgspec.Struct, frozen=True):
    """One job that is asked for. `priority` is as sent: it may be negative, fractional, NaN or infinite."""

    item: SubmittedItem
    priority: float = 0.0
    client_id: str = ""


class Submission(msgspec.Struct, frozen=True):
    """Jobs for one job set of one queue, in order."""

    queue: str
    job_set: str
    jobs: tuple[SubmittedJob, ...] = ()


class CancelRequest(msgspec.Struct, frozen=True):
    """Cancel jobs by id; without any id, the whole job set."""

    queue: str
    job_set: str
    job_ids: tuple[str, ...] = ()
    reason: str = ""


class CancelSetRequest(msgspec.Struct, frozen=True):
    """Cancel a job set; `states` are API names of job states (empty: all that are not finished)."""

    queue: str
    job_set: str
    states: tuple[str, ...] = ()
    reason: str = ""


class ReprioritiseRequest(msgspec.Struct, frozen=True):
    """Give jobs another priority (as sent); without any id, the whole job set."""

    queue: str
    job_set: str
    job_ids: tuple[str, ...] = ()
    priority: float = 0.0


class PreemptRequest(msgspec.Struct, frozen=True):
    """Preempt jobs by id; without any id, none."""

    queue: str
    job_set: str
    job_ids: tuple[str, ...] = ()
    reason: str = ""


class QueueRequest(msgspec.Struct, frozen=True):
    """A queue to create or update; owners become one permission entry with all verbs."""

    queue: Queue
    user_owners: tuple[str, ...] = ()
    group_owners: tuple[str, ...] = ()


class QueueJobsRequest(msgspec.Struct, frozen=True):
    """Cancel or preempt the jobs of a queue. Empty `priority_classes` or `pools` mean all.

    `states` (cancel only) are API names of active states; empty selects nothing.
    """

    name: str
    priority_classes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
