"""Policies: defaults that hold nobody back, contradictions refused with the setting's name."""

import msgspec
import pytest

from armada.model.errors import InvalidRequest
from armada.model.fleet import AwayCondition, AwayNodeType, AwayTypeRef, ClassLimit, PriorityClass, Queue, Taint
from armada.model.fleet import WellKnownNodeType as NodeType
from armada.model.policy import (
    FairnessResource,
    MarketPolicy,
    OptimiserPolicy,
    PoolPolicy,
    RateLimit,
    ResourceType,
    RetryEngine,
    SchedulingPolicy,
)

GPU = NodeType("gpu", (Taint("gpu", "true"),))


def flex(**changes: object) -> PriorityClass:
    kind = PriorityClass(
        name="flex",
        priority=1,
        preemptible=True,
        away_node_types=(AwayNodeType(0, (AwayTypeRef("gpu"),)),),
    )
    return msgspec.structs.replace(kind, **changes)


def policy_with(kind: PriorityClass) -> SchedulingPolicy:
    return SchedulingPolicy(priority_classes=(kind,), default_priority_class=kind.name, well_known_node_types=(GPU,))


def test_defaults_hold_nobody_back() -> None:
    policy = SchedulingPolicy()
    assert policy.rate.burst >= 1_000_000_000
    assert policy.rate_per_queue.per_second >= 1_000_000_000
    assert policy.round_fractions_of("default") == {}
    assert policy.indexed_taints is None
    assert not policy.pools_fail_together


def test_pods_are_counted_where_node_limits_are_respected() -> None:
    policy = SchedulingPolicy(respects_node_pod_limits=True)
    assert policy.kinds().names[-1] == "pods"
    assert policy.index()[-1] == ResourceType("pods", "1")
    assert "pods" not in SchedulingPolicy().kinds().names


def test_limits_override_each_other_per_resource() -> None:
    kind = PriorityClass(
        name="armada-default",
        priority=1000,
        limit=ClassLimit({"cpu": 0.5, "memory": 0.5}, {"p": {"cpu": 0.4}}),
    )
    queue = Queue(
        name="a",
        limits_by_class={"armada-default": ClassLimit({"memory": 0.3, "gpu": 0.1}, {"p": {"gpu": 0.2}})},
    )
    policy = SchedulingPolicy(priority_classes=(kind,))
    assert policy.queue_fractions(queue, kind, "p") == {"cpu": 0.4, "memory": 0.3, "gpu": 0.2}
    assert policy.queue_fractions(queue, kind, "q") == {"cpu": 0.5, "memory": 0.3, "gpu": 0.1}
    assert policy.queue_fractions(Queue(name="b"), kind, "q") == {"cpu": 0.5, "memory": 0.5}


def test_a_pool_overrides_what_it_names() -> None:
    own = PoolPolicy(name="p", protected_fraction=0.5, fairness_resources=(FairnessResource("cpu"),))
    policy = SchedulingPolicy(
        pools=(own, PoolPolicy(name="q")),
        max_round_fractions={"cpu": 0.9},
        max_round_fractions_by_pool={"p": {"memory": 0.1}},
    )
    other = policy.pool("q")
    assert other is not None
    assert policy.pool("nowhere") is None
    assert (policy.protected_fraction_of(own), policy.protected_fraction_of(other)) == (0.5, 1.0)
    assert policy.fairness_of(own) == (FairnessResource("cpu"),)
    assert policy.fairness_of(other) == policy.fairness_resources
    assert policy.round_fractions_of("p") == {"memory": 0.1}
    assert policy.round_fractions_of("q") == {"cpu": 0.9}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_round_ms": 0}, "maxSchedulingDuration must be greater than 0"),
        ({"max_new_jobs_ms": 5_000}, "maxNewJobSchedulingDuration must be 0"),
        ({"fairness_resources": ()}, "exactly one of dominantResource"),
        ({"fairness_resources": (FairnessResource("cpu", -1.0),)}, "multiplier of 'cpu'"),
        ({"indexed_resources": (ResourceType("fpga", "1"),)}, "'fpga' is no supported"),
        ({"indexed_resources": (ResourceType("cpu", "x"),)}, "no Kubernetes quantity"),
        ({"default_priority_class": "gold"}, "'gold' is not among"),
        ({"well_known_node_types": (GPU, GPU)}, "'gpu' is declared twice"),
        ({"pools": (PoolPolicy(name="p"), PoolPolicy(name="p"))}, "'p' is declared twice"),
        ({"pools": (PoolPolicy(name=""),)}, "has no name"),
        (
            {"pools": (PoolPolicy(name="p", preemption_limit=RateLimit(), market=MarketPolicy(pricing_timeout_ms=1)),)},
            "exclude each other",
        ),
        ({"pools": (PoolPolicy(name="p", optimiser=OptimiserPolicy(timeout_ms=0)),)}, "experimentalOptimiser.timeout"),
        ({"pools": (PoolPolicy(name="p", market=MarketPolicy(pricing_timeout_ms=0)),)}, "PricingTimeout"),
        ({"retries": RetryEngine(enabled=True)}, "nodeIdLabel 'kubernetes.io/hostname'"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        msgspec.structs.replace(SchedulingPolicy(), **changes)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (flex(preemptible=False), "need a preemptible class"),
        (flex(priority=-1), "priority -1 is negative"),
        (flex(away_node_types=(AwayNodeType(0, (AwayTypeRef("tpu"),)),)), "'tpu' is not among"),
        (
            flex(away_node_types=(AwayNodeType(0, (AwayTypeRef("gpu", (AwayCondition("cpu", "!=", "1"),)),)),)),
            "operator '!='",
        ),
    ],
)
def test_wrong_classes_are_refused(kind: PriorityClass, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        policy_with(kind)


def test_a_right_class_is_accepted() -> None:
    assert policy_with(flex()).priority_class("flex") == flex()
