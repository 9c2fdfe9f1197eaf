"""What users submit: job templates, gangs, ids, and the shape that is all the scheduler sees of a job."""

from typing import Any, Final

import msgspec

JOB_ID_LENGTH: Final = 26
"""A job id is a ULID: 26 characters of Crockford's alphabet, in lower case."""

GANG_ID: Final = "armadaproject.io/gangId"
GANG_CARDINALITY: Final = "armadaproject.io/gangCardinality"
GANG_UNIFORMITY_LABEL: Final = "armadaproject.io/gangNodeUniformityLabel"
FAIL_FAST: Final = "armadaproject.io/failFast"
PRICE_BAND: Final = "armadaproject.io/priceBand"
EXTERNAL_JOB_URI: Final = "armadaproject.io/externalJobUri"
POOL: Final = "armadaproject.io/pool"
RESERVATION: Final = "armadaproject.io/reservation"
REQUEUE_PREEMPTED: Final = "armadaproject.io/requeuePreempted"
"""Annotation of a job or label of a queue: "true" lets what the scheduler preempts wait again instead of ending it."""

KubernetesObject = dict[str, Any]
"""A Kubernetes object, or a part of one, as in its JSON form: camelCase keys, quantities as strings."""


class Toleration(msgspec.Struct, frozen=True, order=True):
    """A pod's toleration. Empty `key` with `Exists` tolerates all; empty `effect` matches every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SelectorRequirement(msgspec.Struct, frozen=True):
    """One `matchExpressions` (or, with `on_field`, `matchFields`) line of a node affinity term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    on_field: bool = False


AffinityTerm = tuple[SelectorRequirement, ...]
"""One required node-selector term: all its requirements must hold; an empty term matches no node."""


class JobShape(msgspec.Struct, frozen=True):
    """The class of jobs that the scheduler can't tell apart (the reference's scheduling key).

    `requests` are Kubernetes quantities by resource name (sorted), already combined over the pod's containers
    by Kubernetes' rule; `node_selector` is sorted by key; `affinity` is an OR of terms, None when the pod has no
    required node affinity.
    """

    requests: tuple[tuple[str, str], ...]
    priority_class: str
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[AffinityTerm, ...] | None = None


class GangSpec(msgspec.Struct, frozen=True):
    """A gang as its members describe it. `cardinality` is at least 2; one is a plain job without a gang."""

    id: str
    cardinality: int
    uniformity_label: str = ""


class JobTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """All that jobs of one submission may have in common; one copy serves a whole `JobsSubmitted`.

    `pod_spec` is Kubernetes JSON (UTF-8 bytes) with all defaults applied. `labels`, `annotations`, `services` and
    `ingresses` are as converted at submission, but with `{JobId}` still in place in values: the job's id is put
    in wherever a job is shown or leased (`rendered`). `price_band` is 0 (none) or 1 (A) to 8 (H). `pools`
    restricts the job to these pools; None means all.
    """

    shape: JobShape
    pod_spec: bytes
    namespace: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    gang: GangSpec | None = None
    fail_fast: bool = False
    price_band: int = 0
    pools: tuple[str, ...] | None = None
    services: tuple[KubernetesObject, ...] = ()
    ingresses: tuple[KubernetesObject, ...] = ()
    external_job_uri: str = ""
    scheduler: str = ""


class NewJob(msgspec.Struct, frozen=True, array_like=True):
    """One job of a submission. `priority` orders jobs inside their queue, smaller first."""

    job_id: str
    priority: int
    client_id: str = ""


def rendered(text: str, job_id: str) -> str:
    """Put the job id where a user wrote `{JobId}`; `{{JobId}}` becomes the bare word (spec/api.md 4.3)."""
    return text.replace("{{JobId}}", "\0").replace("{JobId}", job_id).replace("\0", "JobId")
