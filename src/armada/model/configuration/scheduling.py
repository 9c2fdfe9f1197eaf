"""The keys under `scheduling.`, read into a `SchedulingPolicy`; one reader for each kind of section."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from armada.model.configuration.reading import (
    Section,
    boolean,
    closed,
    duration_ms,
    fractions,
    listed,
    mapped,
    number,
    quantities,
    quantity,
    taint,
    text,
    texts,
    toleration,
    whole,
)
from armada.model.errors import InvalidRequest
from armada.model.fleet import (
    AwayCondition,
    AwayNodeType,
    AwayTypeRef,
    ClassLimit,
    PriorityClass,
    WellKnownNodeType,
)
from armada.model.jobs import Toleration
from armada.model.policy import (
    FairnessResource,
    FloatingResource,
    MarketPolicy,
    OptimiserPolicy,
    PoolPolicy,
    PricedGang,
    RateLimit,
    ReconciliationPolicy,
    ResourceType,
    RetryEngine,
    SchedulingPolicy,
)


@closed
def _resource_type(section: Section) -> ResourceType:
    return ResourceType(section.need("name", text), section.get("resolution", quantity, "0"))


@closed
def _floating(section: Section) -> FloatingResource:
    @closed
    def pool(inner: Section) -> tuple[str, str]:
        return inner.need("name", text), inner.need("quantity", quantity)

    return FloatingResource(
        section.need("name", text),
        section.get("resolution", quantity, "0"),
        dict(section.get("pools", listed(pool), ())),
    )


@closed
def _multiplied(section: Section) -> FairnessResource:
    return FairnessResource(section.need("name", text), section.get("multiplier", number, 1.0) or 1.0)


def _plain_fairness(value: Any, path: str) -> FairnessResource:
    return FairnessResource(text(value, path))


@closed
def _condition(section: Section) -> AwayCondition:
    return AwayCondition(
        section.need("resource", text),
        section.need("operator", text),
        section.need("value", quantity),
    )


@closed
def _away_type(section: Section) -> AwayTypeRef:
    return AwayTypeRef(section.need("name", text), section.get("conditions", listed(_condition), ()))


@closed
def _away_entry(section: Section) -> AwayNodeType:
    legacy = section.get("wellKnownNodeTypeName", text, "")
    types = section.get("nodeTypes", listed(_away_type), ())
    return AwayNodeType(section.need("priority", whole), ((AwayTypeRef(legacy),) if legacy else ()) + types)


@closed
def _priority_class(section: Section) -> PriorityClass:
    return PriorityClass(
        name="",
        priority=section.need("priority", whole),
        preemptible=section.get("preemptible", boolean, False),
        limit=ClassLimit(
            section.get("maximumResourceFractionPerQueue", fractions, {}),
            section.get("maximumResourceFractionPerQueueByPool", mapped(fractions), {}),
        ),
        away_node_types=section.get("awayNodeTypes", listed(_away_entry), ()),
    )


def _priority_classes(values: Any, path: str) -> tuple[PriorityClass, ...]:
    classes = mapped(_priority_class)(values, path)
    return tuple(msgspec.structs.replace(kind, name=name) for name, kind in classes.items())


@closed
def _node_type(section: Section) -> WellKnownNodeType:
    return WellKnownNodeType(section.need("name", text), section.get("taints", listed(taint), ()))


@closed
def _optimiser(section: Section) -> OptimiserPolicy | None:
    enabled = section.get("enabled", boolean, False)
    policy = OptimiserPolicy(
        interval_ms=section.get("interval", duration_ms, 0),
        timeout_ms=section.need("timeout", duration_ms) if enabled else section.get("timeout", duration_ms, 0),
        max_jobs_per_round=section.get("maximumJobsPerRound", whole, 0),
        max_round_fractions=section.get("maximumResourceFractionToSchedule", fractions, {}),
        min_job_size=section.get("minimumJobSizeToSchedule", quantities, {}),
        max_victim_size=section.get("maximumJobSizeToPreempt", quantities, {}),
        min_improvement_percent=section.get("minimumFairnessImprovementPercentage", number, 0.0),
    )
    return policy if enabled else None


@closed
def _priced_gang(section: Section) -> PricedGang:
    resources = section.get("resources", _gang_resources, {})
    return PricedGang(
        name=section.get("name", text, ""),
        size=section.need("size", whole),
        priority_class=section.need("priorityClassName", text),
        uniformity_label=section.get("nodeUniformity", text, ""),
        node_selector=section.get("nodeSelector", mapped(text), {}),
        tolerations=section.get("tolerations", listed(toleration), ()),
        requests=resources,
    )


def _gang_resources(values: Any, path: str) -> dict[str, str]:
    nested = values.get("resources") if isinstance(values, Mapping) else None
    return quantities(nested if isinstance(nested, Mapping) else values, path)


def _priced_gangs(values: Any, path: str) -> tuple[PricedGang, ...]:
    if isinstance(values, Mapping):
        gangs = mapped(_priced_gang)(values, path)
        return tuple(msgspec.structs.replace(gang, name=name) for name, gang in gangs.items())
    return listed(_priced_gang)(values, path)


@closed
def _market(section: Section) -> MarketPolicy | None:
    enabled = section.get("enabled", boolean, False)
    key = "gangIndicativePricingTimeout"
    policy = MarketPolicy(
        spot_price_cutoff=section.get("spotPriceCutoff", number, 0.0),
        pricing_timeout_ms=section.need(key, duration_ms) if enabled else section.get(key, duration_ms, 0),
        priced_gangs=section.get("gangsToPrice", _priced_gangs, ()),
    )
    return policy if enabled else None


@closed
def _reconciliation(section: Section) -> ReconciliationPolicy | None:
    enabled = section.get("enabled", boolean, False)
    policy = ReconciliationPolicy(
        section.get("ensureReservationMatch", boolean, False),
        section.get("ensureReservationDoesNotMatch", boolean, False),
    )
    return policy if enabled else None


@closed
def _rate_limit(section: Section) -> RateLimit:
    return RateLimit(section.need("maximumRate", number), section.need("maximumBurst", whole))


@closed
def _job_defaults(section: Section) -> tuple[Toleration, ...]:
    return section.get("tolerations", listed(toleration), ())


def _away_pool(value: Any, path: str) -> str:
    if isinstance(value, str):
        return value

    @closed
    def named(section: Section) -> str:
        return section.need("name", text)

    return named(value, path)


@closed
def _pool(section: Section) -> PoolPolicy:
    def switched_off(key: str) -> bool:
        return section.get(key, boolean, False)

    return PoolPolicy(
        name=section.need("name", text),
        away_pools=section.get("awayPools", listed(_away_pool), ()),
        protected_fraction=section.get("protectedFractionOfFairShare", number, None),
        protects_uncapped_share=section.get("experimentalProtectUncappedAdjustedFairShare", boolean, False),
        fairness_resources=section.get("dominantResourceFairnessResourcesToConsider", listed(_multiplied), ()),
        short_job_penalty_ms=section.get("shortJobPenaltyCutoff", duration_ms, 0),
        submission_group=section.get("experimentalSubmissionGroup", text, ""),
        unscheduled_resources=section.get("experimentalUnscheduledResources", texts, ()),
        home_scheduling=not switched_off("disableHomeScheduling"),
        away_scheduling=not switched_off("disableAwayScheduling"),
        gang_away_scheduling=not switched_off("disableGangAwayScheduling"),
        fairshare_preemption=not switched_off("disableFairshareScheduling"),
        urgency_preemption=not switched_off("disableUrgencyScheduling"),
        cross_pool_preempted_first=not switched_off("disablePreemptCrossPoolJobsFirst"),
        preemption_limit=section.get("fairsharePreemptionRateLimit", _rate_limit, None),
        default_tolerations=section.get("jobDefaults", _job_defaults, ()),
        optimiser=section.get("experimentalOptimiser", _optimiser, None),
        market=section.get("experimentalMarketScheduling", _market, None),
        reconciliation=section.get("experimentalRunReconciliation", _reconciliation, None),
    )


@closed
def _retry_engine(section: Section) -> RetryEngine:
    return RetryEngine(
        section.get("enabled", boolean, False),
        section.get("globalMaxRetries", whole, 5),
        section.get("defaultPolicyName", text, ""),
        section.get("retryGangs", boolean, False),
    )


@closed
def _indicative_share(section: Section) -> tuple[int, ...]:
    # One answer for each, however often it is asked for: a series of the metrics page must not be there twice.
    return tuple(dict.fromkeys(section.get("basePriorities", listed(whole), ())))


def _fairness(section: Section) -> tuple[FairnessResource, ...]:
    plain_key = "dominantResourceFairnessResourcesToConsider"
    multiplied_key = "experimentalDominantResourceFairnessResourcesToConsider"
    plain = section.get(plain_key, listed(_plain_fairness), None)
    multiplied = section.get(multiplied_key, listed(_multiplied), None)
    if plain and multiplied:
        raise InvalidRequest(f"{section.path(plain_key)} and {multiplied_key} exclude each other: give exactly one")
    pools_own = any(pool.fairness_resources for pool in section.get("pools", listed(_pool), ()))
    if plain and pools_own:
        raise InvalidRequest(f"{section.path(plain_key)} excludes lists of the pools' own: use {multiplied_key}")
    if plain is None and multiplied is None:
        return DEFAULTS.fairness_resources
    return plain or multiplied or ()


DEFAULTS: Final = SchedulingPolicy()
"""Our own defaults, which stand for every key that a configuration leaves out."""


@closed
def _scheduling_policy(section: Section) -> SchedulingPolicy:
    get = section.get
    return SchedulingPolicy(
        disabled=get("disableScheduling", boolean, DEFAULTS.disabled),
        asynchronous=get("asyncSchedulingEnabled", boolean, DEFAULTS.asynchronous),
        pools_fail_together=get("disableIndependentPoolFailures", boolean, DEFAULTS.pools_fail_together),
        max_round_ms=get("maxSchedulingDuration", duration_ms, DEFAULTS.max_round_ms),
        max_new_jobs_ms=get("maxNewJobSchedulingDuration", duration_ms, 0),
        max_new_jobs_per_queue_ms=get("maxNewJobSchedulingDurationPerQueue", duration_ms, 0),
        assertions=get("enableAssertions", boolean, DEFAULTS.assertions),
        prefers_large_jobs=get("enablePreferLargeJobOrdering", boolean, DEFAULTS.prefers_large_jobs),
        hold_room_after_ms=get("holdRoomAfter", duration_ms, None),
        rotates_ties=get("rotateTiesBetweenQueues", boolean, DEFAULTS.rotates_ties),
        excess_margin=get("excessEvictionMargin", number, None),
        max_queue_lookback=get("maxQueueLookback", whole, DEFAULTS.max_queue_lookback),
        priority_classes=get("priorityClasses", _priority_classes, DEFAULTS.priority_classes),
        default_priority_class=get("defaultPriorityClassName", text, DEFAULTS.default_priority_class),
        priority_class_override=get("priorityClassNameOverride", text, None),
        max_retries=get("maxRetries", whole, DEFAULTS.max_retries),
        incomplete_gang_ms=get("incompleteGangTimeout", duration_ms, 0),
        retries=get("retryPolicy", _retry_engine, DEFAULTS.retries),
        resource_types=get("supportedResourceTypes", listed(_resource_type), DEFAULTS.resource_types),
        respects_node_pod_limits=get("respectNodePodLimits", boolean, DEFAULTS.respects_node_pod_limits),
        floating_resources=get("floatingResources", listed(_floating), ()),
        fairness_resources=_fairness(section),
        indexed_resources=get("indexedResources", listed(_resource_type), DEFAULTS.indexed_resources),
        indexed_node_labels=get("indexedNodeLabels", texts, ()),
        indexed_taints=get("indexedTaints", texts, None),
        well_known_node_types=get("wellKnownNodeTypes", listed(_node_type), ()),
        node_id_label=get("nodeIdLabel", text, DEFAULTS.node_id_label),
        max_round_fractions=get("maximumResourceFractionToSchedule", fractions, {}),
        max_round_fractions_by_pool=get("maximumResourceFractionToScheduleByPool", mapped(fractions), {}),
        rate=RateLimit(
            get("maximumSchedulingRate", number, DEFAULTS.rate.per_second),
            get("maximumSchedulingBurst", whole, DEFAULTS.rate.burst),
        ),
        rate_per_queue=RateLimit(
            get("maximumPerQueueSchedulingRate", number, DEFAULTS.rate_per_queue.per_second),
            get("maximumPerQueueSchedulingBurst", whole, DEFAULTS.rate_per_queue.burst),
        ),
        protected_fraction=get("protectedFractionOfFairShare", number, DEFAULTS.protected_fraction),
        stale_executor_ms=get("executorTimeout", duration_ms, DEFAULTS.stale_executor_ms),
        max_unacknowledged_leases=get("maxUnacknowledgedJobsPerExecutor", whole, DEFAULTS.max_unacknowledged_leases),
        fleet_refresh_ms=get("executorUpdateFrequency", duration_ms, DEFAULTS.fleet_refresh_ms),
        indicative_share_priorities=get("experimentalIndicativeShare", _indicative_share, ()),
        pools=get("pools", listed(_pool), DEFAULTS.pools),
    )


def scheduling_policy(values: Mapping[str, Any], path: str = "") -> SchedulingPolicy:
    """Read a whole policy; a key that is left out has our default. `path` is put before the paths of messages.

    Raises:
        InvalidRequest: an unknown key, a value of the wrong kind, or values that contradict each other.
    """
    return _scheduling_policy(values, path)
