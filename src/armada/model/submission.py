"""What callers ask of the control plane, and the limits on what they may ask.

The request values are what `wire` makes of messages and what `control` decides on. Identical parts of a request
are the same object: two items of equal content share one `SubmittedItem`, so that it is checked and converted once.
"""

from collections.abc import Mapping

import msgspec

from armada.model.errors import StartupRefused
from armada.model.fleet import Queue
from armada.model.jobs import KubernetesObject, Toleration

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


class PlaceJobsRequest(msgspec.Struct, frozen=True):
    """Cancel or preempt what runs on an executor, or on one node of it (None: on all).

    Without queues it names no job at all; empty `priority_classes` or `pools` mean all.
    """

    executor_id: str
    node_name: str | None = None
    queues: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()


class QueueJobsRequest(msgspec.Struct, frozen=True):
    """Cancel or preempt the jobs of a queue. Empty `priority_classes` or `pools` mean all.

    `states` (cancel only) are API names of active states; empty selects nothing.
    """

    name: str
    priority_classes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


def _tolerate(key: str) -> Toleration:
    return Toleration(key=key, value="true", effect="NoSchedule")


class SubmissionPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Limits on what may be submitted, and what is filled in where a job says nothing.

    The camel-cased names of the fields are the keys of the settings file's `submission` section. Quantities are
    Kubernetes quantities, sizes are bytes of UTF-8, durations seconds.
    """

    allowed_priority_class_names: tuple[str, ...] = (
        "armada-default",
        "armada-preemptible",
        "armada-resilient",
        "armada-urgent",
    )
    default_priority_class_name: str = "armada-default"
    max_queue_name_bytes: int = 1_023
    max_job_set_bytes: int = 1_023
    max_client_id_bytes: int = 100
    max_namespace_bytes: int = 253
    max_reason_bytes: int = 50
    max_pod_spec_size_bytes: int = 65_535
    max_metadata_bytes: int = 262_144
    max_errors_listed: int = 20
    min_job_resources: dict[str, str] = msgspec.field(default_factory=lambda: {"memory": "1Mi"})
    max_oversubscription_by_resource_request: dict[str, float] = {}
    assert_init_containers_request_fractional_cpu: bool = True
    restricted_toleration_keys: tuple[str, ...] = ()
    min_termination_grace_period_s: int = 1
    max_termination_grace_period_s: int = 300
    default_active_deadline_s: int = 259_200
    default_active_deadline_by_resource_request_s: dict[str, int] = msgspec.field(
        default_factory=lambda: {"nvidia.com/gpu": 1_209_600}
    )
    default_job_limits: dict[str, str] = msgspec.field(
        default_factory=lambda: {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "8Gi"}
    )
    default_job_tolerations: tuple[Toleration, ...] = (_tolerate("armadaproject.io/armada"),)
    default_job_tolerations_by_priority_class: dict[str, tuple[Toleration, ...]] = msgspec.field(
        default_factory=lambda: {
            "armada-default": (_tolerate("armadaproject.io/pc-armada-default"),),
            "armada-preemptible": (_tolerate("armadaproject.io/pc-armada-preemptible"),),
        }
    )
    default_job_tolerations_by_resource_request: dict[str, tuple[Toleration, ...]] = msgspec.field(
        default_factory=lambda: {"nvidia.com/gpu": (_tolerate("armadaproject.io/gpu"),)}
    )
    allow_custom_service_names: bool = False
    default_gang_node_uniformity_label: str = ""
    add_gang_id_label: bool = False

    def __post_init__(self) -> None:
        """Refuse a default class that is not allowed (as a ValueError, which parsing turns into StartupRefused)."""
        if self.default_priority_class_name not in self.allowed_priority_class_names:
            message = f"defaultPriorityClassName {self.default_priority_class_name!r} is not among the allowed classes"
            raise ValueError(message)


def parse_submission_policy(section: Mapping[str, object]) -> SubmissionPolicy:
    """Make the policy of a settings section; raises StartupRefused that names the key for what is wrong."""
    try:
        return msgspec.convert(dict(section), SubmissionPolicy, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise StartupRefused(f"settings, section submission: {error}") from error
