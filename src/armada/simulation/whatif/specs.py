"""What a simulation is made of: clusters, and queues with templates of jobs. Times are virtual milliseconds."""

from random import Random
from typing import Final

import msgspec

from armada.model.fleet import Taint
from armada.model.jobs import AffinityTerm, Toleration

CLUSTER_LABEL: Final = "armadaproject.io/clusterName"
"""Every simulated node carries it; gangs agree in it unless their template names another label."""

MAX_NODES: Final = 200_000
MAX_JOBS: Final = 5_000_000
MAX_DELAY_MS: Final = 10 * 365 * 86_400_000


class Delay(msgspec.Struct, frozen=True):
    """A length of time: `minimum_ms`, plus an exponential tail of this mean (0: none)."""

    minimum_ms: int = 0
    tail_mean_ms: int = 0

    def drawn(self, stream: Random) -> int:
        """Draw a length. Takes nothing from the stream when there is no tail."""
        if not self.tail_mean_ms:
            return self.minimum_ms
        return min(self.minimum_ms + round(stream.expovariate(1.0 / self.tail_mean_ms)), MAX_DELAY_MS)


def stream(seed: int, purpose: str) -> Random:
    """Return a source of chance for one purpose, so that what is drawn for others does not shift it."""
    return Random(f"{seed}/{purpose}")  # noqa: S311 - chance for a simulation, which has to repeat


class NodeTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """Equal nodes. `total` holds Kubernetes quantities by resource name."""

    number: int
    total: dict[str, str]
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, all of whose nodes are in one pool."""

    name: str
    pool: str
    node_templates: tuple[NodeTemplate, ...]


class FleetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A file of clusters.

    `workflow_delay` passes before whoever watches the jobs submits again: preempted jobs, or those that depend on
    others. `pending_delay` passes between a lease and the start of its job.
    """

    name: str
    clusters: tuple[ClusterSpec, ...]
    workflow_delay: Delay = Delay()
    pending_delay: Delay = Delay()

    @property
    def node_count(self) -> int:
        """Nodes of all clusters."""
        return sum(template.number for cluster in self.clusters for template in cluster.node_templates)


class TemplateSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Equal jobs of one queue, submitted together `repeats` times, `period_ms` apart.

    They come at `earliest_ms`, and not before `after_dependencies_ms` have passed since all jobs of all `dependencies`
    succeeded. `place` is where in its file the template stands, for messages. An empty `priority_class` is the
    configuration's default. With a `gang_cardinality` above 1, every so many jobs are a gang.
    """

    id: str
    place: str
    number: int
    job_set: str
    runtime: Delay
    requests: tuple[tuple[str, str], ...]
    queue_priority: int = 0
    priority_class: str = ""
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[AffinityTerm, ...] | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    dependencies: tuple[str, ...] = ()
    earliest_ms: int = 0
    after_dependencies_ms: int = 0
    gang_cardinality: int = 1
    uniformity_label: str = CLUSTER_LABEL
    repeats: int = 1
    period_ms: int = 0

    @property
    def job_count(self) -> int:
        """Jobs of all repeats."""
        return self.number * self.repeats


class QueueSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A queue and its jobs; the weight is 1 / its priority factor."""

    name: str
    weight: float
    templates: tuple[TemplateSpec, ...]


class WorkloadSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A file of queues. A `seed` of 0 leaves the choice to the caller."""

    name: str
    queues: tuple[QueueSpec, ...]
    seed: int = 0

    @property
    def job_count(self) -> int:
        """All jobs, preempted ones that come again not counted."""
        return sum(template.job_count for queue in self.queues for template in queue.templates)
