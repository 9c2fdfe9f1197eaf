"""Everything a round, a retry or a submission is decided by, resolved once and frozen before anyone decides.

`SchedulingPolicy()` alone is a working policy: our defaults. `model.configuration.scheduling_policy` reads one from
the reference's keys. Every value is checked when a policy is made, so that no round has to doubt one.

Where our defaults differ from the reference's, it is so that a healthy system is never held back by a number:

- No limit on the rate of scheduling (the reference: 100 jobs a second, bursts of 1,000; 50 a second per queue), none
  on the share of a pool that one round may fill, and 1,000,000 leases an executor need not have confirmed (2,500). A
  limit protects something only where an operator chose it for a reason; as a default it only adds waiting.
- Unset indexed taints mean that every taint is indexed, as the reference's documentation promises.
- Pools fail on their own: one that can't be decided does not stop the others.
- Pools that refused a job are asked again ten seconds after the fleet has changed (60 s).
- A third class, `armada-urgent`, stands above the reference's two, so that there is something to put first.
"""

from typing import Final

import msgspec

from armada.model.errors import InvalidRequest
from armada.model.fleet import ClassLimit, PriorityClass, Queue, WellKnownNodeType
from armada.model.jobs import Toleration
from armada.model.resources import ResourceKinds, parse_quantity

PODS: Final = "pods"
"""The resource kind that counts pods, where node pod limits are respected."""

OPERATORS: Final = (">", "<", "==")
NO_LIMIT: Final = 1_000_000_000


class RateLimit(msgspec.Struct, frozen=True):
    """A token bucket: it holds `burst` tokens at first and at most, and gains `per_second`."""

    per_second: float = NO_LIMIT
    burst: int = NO_LIMIT


class FairnessResource(msgspec.Struct, frozen=True):
    """A resource whose use counts as cost, times `multiplier` (greater than 0)."""

    name: str
    multiplier: float = 1.0


class ResourceType(msgspec.Struct, frozen=True):
    """A resource kind and the resolution (a quantity) that it is counted or indexed in."""

    name: str
    resolution: str


class FloatingResource(msgspec.Struct, frozen=True):
    """A resource that no node holds, such as licences: how much of it each pool has (quantities by pool)."""

    name: str
    resolution: str
    quantities: dict[str, str] = {}


OPTIMISER_RESERVE_MS: Final = 500
"""The fairness optimiser ends so long before its time is over, so that the deal at hand can be finished."""


class OptimiserPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The fairness optimiser of a pool: places after the second pass that make it fairer than what they cost.

    It takes part in a round when `interval_ms` have gone by since it last did, and stops OPTIMISER_RESERVE_MS before
    its `timeout_ms`. It places at most `max_jobs_per_round` jobs (a last gang may go beyond), and no more than these
    fractions of the pool. Jobs that ask for less than `min_job_size` of something are not placed, those that ask for
    more than `max_victim_size` (0: any amount) do not have to go.
    """

    interval_ms: int = 0
    timeout_ms: int
    max_jobs_per_round: int = 0
    max_round_fractions: dict[str, float] = {}
    min_job_size: dict[str, str] = {}
    max_victim_size: dict[str, str] = {}
    min_improvement_percent: float = 0.0


class PricedGang(msgspec.Struct, frozen=True, kw_only=True):
    """A gang whose indicative price a market pool reports."""

    name: str
    size: int
    priority_class: str
    uniformity_label: str = ""
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    requests: dict[str, str] = {}


class MarketPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A market-driven pool: bids order jobs, and one price is found a round."""

    spot_price_cutoff: float = 0.0
    pricing_timeout_ms: int
    priced_gangs: tuple[PricedGang, ...] = ()


class ReconciliationPolicy(msgspec.Struct, frozen=True):
    """Which runs a pool calls invalid when their node has changed under them."""

    reservation_must_match: bool = False
    reservation_must_not_match: bool = False


class PoolPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One pool's settings and switches.

    `away_pools` are pools whose nodes this pool's jobs may also use. `protected_fraction` and `fairness_resources`
    override the policy's own when given. An empty `submission_group` is the pool's own name.
    """

    name: str
    away_pools: tuple[str, ...] = ()
    protected_fraction: float | None = None
    protects_uncapped_share: bool = False
    fairness_resources: tuple[FairnessResource, ...] = ()
    short_job_penalty_ms: int = 0
    submission_group: str = ""
    unscheduled_resources: tuple[str, ...] = ()
    home_scheduling: bool = True
    away_scheduling: bool = True
    gang_away_scheduling: bool = True
    fairshare_preemption: bool = True
    urgency_preemption: bool = True
    cross_pool_preempted_first: bool = True
    preemption_limit: RateLimit | None = None
    default_tolerations: tuple[Toleration, ...] = ()
    optimiser: OptimiserPolicy | None = None
    market: MarketPolicy | None = None
    reconciliation: ReconciliationPolicy | None = None


class RetryMutation(msgspec.Struct, frozen=True):
    """What a retry changes about the job; memory grows by a factor or by a fixed quantity, never both."""

    memory_factor: float = 0.0
    memory_added: str = ""
    avoid_same_node: bool = False


class RetryRule(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a retry policy. Empty `on_category` matches any failure; `retries` False means fail for good."""

    retries: bool
    on_category: str = ""
    on_subcategory: str = ""
    mutation: RetryMutation | None = None


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A named answer to failures: the first rule that matches decides, else `retries_by_default`."""

    name: str
    retry_limit: int
    retries_by_default: bool = False
    rules: tuple[RetryRule, ...] = ()


class RetryEngine(msgspec.Struct, frozen=True):
    """The retry policies' switch and its bounds over all policies.

    With `retries_gangs` a gang is tried again as a whole when one of its members is; otherwise policies leave gangs
    alone, as the reference's do.
    """

    enabled: bool = False
    global_max_retries: int = 5
    default_policy: str = ""
    retries_gangs: bool = False


class MetricsPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics page shows, and how often that is worked out anew.

    `tracked_resources` are those whose use is summed up over time. A job queued for several pools counts as primary in
    the first of `primary_pools` among them. A preempted run is taken to have saved its work at multiples of each of
    `checkpoint_intervals_ms`. Nodes name their scalable unit by `scalable_unit_label`, where there is one. `max_labels`
    bounds the label values of each series that grows with events.
    """

    refresh_ms: int = 30_000
    state_reset_ms: int = 12 * 3_600_000
    tracked_resources: tuple[str, ...] = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu")
    primary_pools: tuple[str, ...] = ()
    checkpoint_intervals_ms: tuple[int, ...] = ()
    scalable_unit_label: str = ""
    shows_nodes: bool = True
    max_labels: int = 100_000
    port: int | None = None


DEFAULT_CLASSES: Final = (
    PriorityClass(name="armada-default", priority=1000, preemptible=False),
    PriorityClass(name="armada-preemptible", priority=1000, preemptible=True),
    PriorityClass(name="armada-urgent", priority=2000, preemptible=False),
)
DEFAULT_RESOURCES: Final = (
    ResourceType("memory", "1"),
    ResourceType("cpu", "1m"),
    ResourceType("ephemeral-storage", "1"),
    ResourceType("nvidia.com/gpu", "1"),
)
DEFAULT_INDEX: Final = (
    ResourceType("nvidia.com/gpu", "1"),
    ResourceType("cpu", "100m"),
    ResourceType("memory", "100Mi"),
    ResourceType("ephemeral-storage", "1Gi"),
)
DEFAULT_FAIRNESS: Final = tuple(
    FairnessResource(name) for name in ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")
)


class SchedulingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """All settings that decisions depend on; see the module for how our defaults were chosen.

    `excess_margin` None means that fairness evicts whole queues; else it evicts what a queue holds beyond its protected
    share, and this fraction of its share. Free room is held for a queue's first job once it has waited
    `hold_room_after_ms` (None: never). `max_round_fractions` (resource -> fraction of the pool) bounds what one
    round places; an entry of `max_round_fractions_by_pool` replaces it for that pool. `indexed_taints` None means every
    taint.

    Raises (when made):
        InvalidRequest: values that contradict each other; the text names the setting.
    """

    # round control
    disabled: bool = False
    asynchronous: bool = False
    pools_fail_together: bool = False
    max_round_ms: int = 5_000
    max_new_jobs_ms: int = 0
    max_new_jobs_per_queue_ms: int = 0
    assertions: bool = False
    prefers_large_jobs: bool = False
    rotates_ties: bool = False
    excess_margin: float | None = None
    hold_room_after_ms: int | None = None
    max_queue_lookback: int = 100_000
    # jobs and classes
    priority_classes: tuple[PriorityClass, ...] = DEFAULT_CLASSES
    default_priority_class: str = "armada-default"
    priority_class_override: str | None = None
    max_retries: int = 3
    incomplete_gang_ms: int = 0
    retries: RetryEngine = RetryEngine()
    # resources
    resource_types: tuple[ResourceType, ...] = DEFAULT_RESOURCES
    respects_node_pod_limits: bool = False
    floating_resources: tuple[FloatingResource, ...] = ()
    fairness_resources: tuple[FairnessResource, ...] = DEFAULT_FAIRNESS
    indexed_resources: tuple[ResourceType, ...] = DEFAULT_INDEX
    indexed_node_labels: tuple[str, ...] = ()
    indexed_taints: tuple[str, ...] | None = None
    well_known_node_types: tuple[WellKnownNodeType, ...] = ()
    node_id_label: str = "kubernetes.io/hostname"
    # limits
    max_round_fractions: dict[str, float] = {}
    max_round_fractions_by_pool: dict[str, dict[str, float]] = {}
    rate: RateLimit = RateLimit()
    rate_per_queue: RateLimit = RateLimit()
    protected_fraction: float = 1.0
    stale_executor_ms: int = 600_000
    max_unacknowledged_leases: int = 1_000_000
    fleet_refresh_ms: int = 10_000
    indicative_share_priorities: tuple[int, ...] = ()
    # pools
    pools: tuple[PoolPolicy, ...] = (PoolPolicy(name="default"),)

    def __post_init__(self) -> None:
        _check_durations(self)
        _check_resources(self)
        _check_classes(self)
        _check_pools(self)
        if self.retries.enabled and self.node_id_label not in self.indexed_node_labels:
            raise InvalidRequest(
                f"retryPolicy.enabled needs nodeIdLabel {self.node_id_label!r} among indexedNodeLabels:"
                " a retry that avoids a node has to find it by that label",
            )

    def kinds(self) -> ResourceKinds:
        """Return the resource kinds as columns: supported ones, floating ones, then pods where they count."""
        pairs = [(kind.name, kind.resolution) for kind in self.resource_types]
        pairs += [(kind.name, kind.resolution) for kind in self.floating_resources]
        if self.respects_node_pod_limits and all(name != PODS for name, _ in pairs):
            pairs.append((PODS, "1"))
        return ResourceKinds.from_resolutions(pairs)

    def index(self) -> tuple[ResourceType, ...]:
        """Return the resources that nodes are sorted by inside a type, most significant first."""
        if self.respects_node_pod_limits and all(kind.name != PODS for kind in self.indexed_resources):
            return (*self.indexed_resources, ResourceType(PODS, "1"))
        return self.indexed_resources

    def priority_class(self, name: str) -> PriorityClass | None:
        """Return the class of that name, or None."""
        return next((kind for kind in self.priority_classes if kind.name == name), None)

    def pool(self, name: str) -> PoolPolicy | None:
        """Return the settings of the pool of that name, or None where none are configured."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def fairness_of(self, pool: PoolPolicy) -> tuple[FairnessResource, ...]:
        """Return the resources whose use counts as cost in this pool."""
        return pool.fairness_resources or self.fairness_resources

    def protected_fraction_of(self, pool: PoolPolicy) -> float:
        """Return the fraction of its fair share up to which a queue is safe from fair-share eviction."""
        return self.protected_fraction if pool.protected_fraction is None else pool.protected_fraction

    def round_fractions_of(self, pool: str) -> dict[str, float]:
        """Return which fraction of each resource of the pool one round may place; what is missing is unlimited."""
        return self.max_round_fractions_by_pool.get(pool, self.max_round_fractions)

    def queue_fractions(self, queue: Queue, priority_class: PriorityClass, pool: str) -> dict[str, float]:
        """Return which fraction of each resource of the pool the queue may hold in this class (spec section 1.5)."""
        own = queue.limits_by_class.get(priority_class.name, ClassLimit())
        limit = priority_class.limit
        return {
            **limit.fractions,
            **limit.fractions_by_pool.get(pool, {}),
            **own.fractions,
            **own.fractions_by_pool.get(pool, {}),
        }


def _check_durations(policy: SchedulingPolicy) -> None:
    for priority in policy.indicative_share_priorities:
        if priority <= 0:
            raise InvalidRequest(f"experimentalIndicativeShare.basePriorities: {priority} is not greater than 0")
    if policy.max_round_ms <= 0:
        raise InvalidRequest("maxSchedulingDuration must be greater than 0: it is a round's hard time limit")
    for key, value in (
        ("maxNewJobSchedulingDuration", policy.max_new_jobs_ms),
        ("maxNewJobSchedulingDurationPerQueue", policy.max_new_jobs_per_queue_ms),
    ):
        if not 0 <= value < policy.max_round_ms:
            raise InvalidRequest(f"{key} must be 0 (off) or less than maxSchedulingDuration")


def _check_resources(policy: SchedulingPolicy) -> None:
    kinds = policy.kinds()
    for kind in policy.indexed_resources:
        parse_quantity(kind.resolution)
        if kind.name not in kinds.names:
            raise InvalidRequest(f"indexedResources: {kind.name!r} is no supported resource type")
    if not policy.fairness_resources:
        raise InvalidRequest(
            "give exactly one of dominantResourceFairnessResourcesToConsider and"
            " experimentalDominantResourceFairnessResourcesToConsider: without one no queue has a cost",
        )
    for resource in policy.fairness_resources:
        if resource.multiplier <= 0:
            raise InvalidRequest(f"the fairness multiplier of {resource.name!r} must not be negative")


def _check_classes(policy: SchedulingPolicy) -> None:
    types = [kind.name for kind in policy.well_known_node_types]
    _refuse_repeats("wellKnownNodeTypes", types)
    _refuse_repeats("priorityClasses", [kind.name for kind in policy.priority_classes])
    if policy.priority_class(policy.default_priority_class) is None:
        raise InvalidRequest(f"defaultPriorityClassName {policy.default_priority_class!r} is not among priorityClasses")
    for kind in policy.priority_classes:
        if kind.priority < 0:
            raise InvalidRequest(f"priorityClasses.{kind.name}: priority {kind.priority} is negative")
        if kind.away_node_types and not kind.preemptible:
            raise InvalidRequest(f"priorityClasses.{kind.name}: awayNodeTypes need a preemptible class")
        for entry in kind.away_node_types:
            for reference in entry.node_types:
                if reference.name not in types:
                    raise InvalidRequest(
                        f"priorityClasses.{kind.name}: {reference.name!r} is not among wellKnownNodeTypes",
                    )
                for condition in reference.conditions:
                    parse_quantity(condition.value)
                    if condition.operator not in OPERATORS:
                        raise InvalidRequest(
                            f"priorityClasses.{kind.name}: operator {condition.operator!r} is none of > < ==",
                        )


def _check_pools(policy: SchedulingPolicy) -> None:
    _refuse_repeats("pools", [pool.name for pool in policy.pools])
    for pool in policy.pools:
        if not pool.name:
            raise InvalidRequest("pools: a pool has no name")
        for resource in pool.fairness_resources:
            if resource.multiplier <= 0:
                raise InvalidRequest(f"pools.{pool.name}: the multiplier of {resource.name!r} must not be negative")
        if pool.preemption_limit is not None and pool.market is not None:
            raise InvalidRequest(
                f"pools.{pool.name}: fairsharePreemptionRateLimit and experimentalMarketScheduling exclude each other",
            )
        if pool.optimiser is not None and pool.optimiser.timeout_ms <= 0:
            raise InvalidRequest(f"pools.{pool.name}: experimentalOptimiser.timeout must be greater than 0")
        if pool.optimiser is not None:
            _check_optimiser(pool.name, pool.optimiser)
        if pool.market is not None and pool.market.pricing_timeout_ms <= 0:
            raise InvalidRequest(
                f"pools.{pool.name}: experimentalMarketScheduling.gangIndicativePricingTimeout must be greater than 0",
            )
        if pool.market is not None:
            _check_priced_gangs(policy, f"pools.{pool.name}.experimentalMarketScheduling.gangsToPrice", pool.market)


def _check_priced_gangs(policy: SchedulingPolicy, place: str, market: MarketPolicy) -> None:
    _refuse_repeats(place, [gang.name for gang in market.priced_gangs])
    for gang in market.priced_gangs:
        if gang.size < 1:
            raise InvalidRequest(f"{place}.{gang.name}: a gang of size {gang.size} has no price")
        if policy.priority_class(gang.priority_class) is None:
            raise InvalidRequest(f"{place}.{gang.name}: {gang.priority_class!r} is not among priorityClasses")


def _check_optimiser(pool: str, optimiser: OptimiserPolicy) -> None:
    place = f"pools.{pool}.experimentalOptimiser"
    if optimiser.max_jobs_per_round < 0:
        raise InvalidRequest(f"{place}.maximumJobsPerRound must not be negative")
    if optimiser.min_improvement_percent < 0:
        raise InvalidRequest(
            f"{place}.minimumFairnessImprovementPercentage must not be negative: that would make the pool less fair"
        )


def _refuse_repeats(key: str, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InvalidRequest(f"{key}: {name!r} is declared twice")
