"""Configurations in the reference's keys become policies; mistakes are told with their path."""

from typing import Any

import pytest

from armada.model.configuration import retry_policy, scheduling_policy
from armada.model.configuration.reading import duration_ms
from armada.model.errors import InvalidRequest
from armada.model.fleet import AwayCondition, AwayNodeType, AwayTypeRef, Taint
from armada.model.jobs import Toleration
from armada.model.policy import FairnessResource, RateLimit, RetryMutation, SchedulingPolicy

FULL: dict[str, Any] = {
    "disableScheduling": True,
    "asyncSchedulingEnabled": True,
    "disableIndependentPoolFailures": True,
    "maxSchedulingDuration": "1m",
    "maxNewJobSchedulingDuration": 10,
    "maxQueueLookback": 7,
    "enablePreferLargeJobOrdering": True,
    "priorityMultiplier": 3,
    "priorityClasses": {
        "low": {
            "priority": 1,
            "preemptible": True,
            "maximumResourceFractionPerQueue": {"cpu": 0.5},
            "maximumResourceFractionPerQueueByPool": {"p": {"cpu": 0.25}},
            "awayNodeTypes": [
                {"priority": 0, "wellKnownNodeTypeName": "gpu"},
                {
                    "priority": 0,
                    "nodeTypes": [
                        {"name": "gpu", "conditions": [{"resource": "gpu", "operator": ">", "value": 0}]},
                    ],
                },
            ],
        },
    },
    "defaultPriorityClassName": "low",
    "supportedResourceTypes": [{"name": "cpu", "resolution": "1m"}, {"name": "gpu", "resolution": "1"}],
    "indexedResources": [{"name": "cpu", "resolution": "100m"}],
    "floatingResources": [{"name": "lic", "resolution": 1, "pools": [{"name": "p", "quantity": 5}]}],
    "experimentalDominantResourceFairnessResourcesToConsider": [{"name": "cpu", "multiplier": 0}],
    "indexedTaints": ["gpu"],
    "wellKnownNodeTypes": [{"name": "gpu", "taints": [{"key": "gpu", "value": "*", "effect": "NoSchedule"}]}],
    "maximumSchedulingRate": 5,
    "maximumSchedulingBurst": 6,
    "executorTimeout": "1h30m",
    "pools": [
        {
            "name": "p",
            "awayPools": ["q", {"name": "r"}],
            "protectedFractionOfFairShare": 0.5,
            "disableUrgencyScheduling": True,
            "fairsharePreemptionRateLimit": {"maximumRate": 1.5, "maximumBurst": 2},
            "jobDefaults": {"tolerations": [{"key": "x", "operator": "Exists"}]},
            "dominantResourceFairnessResourcesToConsider": [{"name": "gpu", "multiplier": 2}],
            "experimentalOptimiser": {"enabled": True, "interval": "1m", "timeout": "500ms"},
            "experimentalRunReconciliation": {"enabled": True, "ensureReservationMatch": True},
        },
        {"name": "m", "experimentalMarketScheduling": {"enabled": True, "gangIndicativePricingTimeout": "1s"}},
        {"name": "n", "experimentalMarketScheduling": {"enabled": False}, "experimentalOptimiser": {}},
    ],
}


def test_a_full_configuration_is_read() -> None:
    policy = scheduling_policy(FULL)
    low = policy.priority_classes[0]
    assert (low.name, low.priority, low.preemptible) == ("low", 1, True)
    assert low.limit.fractions_by_pool == {"p": {"cpu": 0.25}}
    assert low.away_node_types == (
        AwayNodeType(0, (AwayTypeRef("gpu"),)),
        AwayNodeType(0, (AwayTypeRef("gpu", (AwayCondition("gpu", ">", "0"),)),)),
    )
    assert policy.well_known_node_types[0].taints == (Taint("gpu", "*", "NoSchedule"),)
    assert policy.kinds().names == ("cpu", "gpu", "lic")
    assert policy.fairness_resources == (FairnessResource("cpu", 1.0),)
    assert policy.rate == RateLimit(5.0, 6)
    assert policy.rate_per_queue == SchedulingPolicy().rate_per_queue
    assert (policy.max_round_ms, policy.max_new_jobs_ms, policy.stale_executor_ms) == (60_000, 10_000, 5_400_000)
    pool = policy.pools[0]
    assert pool.away_pools == ("q", "r")
    assert pool.preemption_limit == RateLimit(1.5, 2)
    assert not pool.urgency_preemption
    assert pool.fairshare_preemption
    assert pool.default_tolerations == (Toleration("x", "Exists"),)
    assert pool.optimiser is not None
    assert (pool.optimiser.interval_ms, pool.optimiser.timeout_ms) == (60_000, 500)
    assert pool.reconciliation is not None
    assert policy.pools[1].market is not None
    assert (policy.pools[2].market, policy.pools[2].optimiser) == (None, None)


def test_an_empty_configuration_is_our_defaults() -> None:
    assert scheduling_policy({}) == SchedulingPolicy()


def test_an_indicative_share_is_told_once() -> None:
    policy = scheduling_policy({"experimentalIndicativeShare": {"basePriorities": [2, 1, 2]}})
    assert policy.indicative_share_priorities == (2, 1)


def priced(gangs: Any) -> dict[str, Any]:
    market = {"enabled": True, "gangIndicativePricingTimeout": "1s", "gangsToPrice": gangs}
    return {"pools": [{"name": "p", "experimentalMarketScheduling": market}]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"maximumSchedulingRates": 5},
            r"unknown key config\.maximumSchedulingRates; known here: .*maximumSchedulingR",
        ),
        ({"pools": [{"name": "p", "color": "red"}]}, r"unknown key config\.pools\[0\]\.color"),
        ({"pools": [{}]}, r"config\.pools\[0\]\.name is missing"),
        ({"pools": {"p": {}}}, r"config\.pools: expected a list"),
        ({"pools": [7]}, r"config\.pools\[0\]: expected a mapping"),
        ({"priorityClasses": {"a": {"priority": 1.5}}}, r"config\.priorityClasses\.a\.priority: expected a whole"),
        ({"priorityClasses": {"a": {"priority": "high"}}}, r"expected a number"),
        ({"disableScheduling": 1}, r"config\.disableScheduling: expected true or false"),
        ({"executorTimeout": "soon"}, r"config\.executorTimeout: 'soon' is no duration"),
        ({"executorTimeout": "-5s"}, r"is no duration"),
        ({"executorTimeout": -5}, r"negative or longer"),
        ({"executorTimeout": True}, r"is no duration"),
        ({"maximumSchedulingRate": float("nan")}, r"expected a number of at least 0"),
        ({"maximumSchedulingRate": 10**400}, r"expected a number of at least 0, found 1000.*\.\.\.$"),
        ({"maximumSchedulingRate": 16**5000}, r"expected a number of at least 0, found a number of very many digits"),
        ({"maxQueueLookback": 2**63}, r"config\.maxQueueLookback: 9223372036854775808 is beyond the largest whole"),
        ({"priorityClasses": {"a": {"priority": 2**63}}}, r"a\.priority: 9223372036854775808 is beyond"),
        ({"maximumSchedulingBurst": 1e30}, r"config\.maximumSchedulingBurst: 1e\+30 is beyond"),
        ({"maxSchedulingDuration": 10**400}, r"config\.maxSchedulingDuration: .* negative or longer than ten years"),
        ({"supportedResourceTypes": [{"name": "cpu", "resolution": "x"}]}, r"\.resolution: 'x' is no Kubernetes"),
        (
            {
                "dominantResourceFairnessResourcesToConsider": ["cpu"],
                "experimentalDominantResourceFairnessResourcesToConsider": [{"name": "cpu"}],
            },
            "exclude each other",
        ),
        ({"dominantResourceFairnessResourcesToConsider": []}, "exactly one"),
        (
            {
                "dominantResourceFairnessResourcesToConsider": ["cpu"],
                "pools": [{"name": "p", "dominantResourceFairnessResourcesToConsider": [{"name": "cpu"}]}],
            },
            "excludes lists of the pools' own",
        ),
        ({"pools": [{"name": "p", "experimentalOptimiser": {"enabled": True}}]}, r"timeout is missing"),
        (priced({"g": {"size": 0, "priorityClassName": "armada-default"}}), r"gangsToPrice\.g: a gang of size 0"),
        (priced({"g": {"size": 1, "priorityClassName": "z"}}), r"gangsToPrice\.g: 'z' is not among priorityClasses"),
        (
            priced([{"name": "g", "size": 1, "priorityClassName": "armada-default"}] * 2),
            r"gangsToPrice: 'g' is declared",
        ),
    ],
)
def test_mistakes_are_told_with_their_path(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        scheduling_policy(changes, "config")


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [("10m", 600_000), ("1h30m", 5_400_000), ("500ms", 500), ("1.5s", 1500), ("0", 0), (2, 2000), (0.25, 250)],
)
def test_durations(value: object, milliseconds: int) -> None:
    assert duration_ms(value, "key") == milliseconds


def test_a_retry_policy_is_read() -> None:
    policy = retry_policy(
        {
            "name": "patient",
            "retryLimit": 3,
            "defaultAction": "Fail",
            "rules": [
                {"action": "Retry", "onCategory": "oom", "mutate": {"memory": {"factor": 1.5}, "avoidSameNode": True}},
                {"action": "Retry", "onCategory": "node", "onSubcategory": "disk"},
            ],
        },
    )
    assert (policy.name, policy.retry_limit, policy.retries_by_default) == ("patient", 3, False)
    assert policy.rules[0].mutation == RetryMutation(1.5, "", avoid_same_node=True)
    assert policy.rules[1].on_subcategory == "disk"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": "Bad_Name"}, "must be 1 to 63"),
        ({"name": "x" * 64}, "must be 1 to 63"),
        ({"name": "a", "rules": [{"action": "Maybe"}]}, r"rules\[0\]\.action: expected Retry or Fail"),
        ({"name": "a", "rules": [{"action": "Fail", "onSubcategory": "x"}]}, "needs onCategory"),
        ({"name": "a", "rules": [{"action": "Retry", "mutate": {"memory": {"factor": 1}}}]}, "greater than 1"),
        ({"name": "a", "rules": [{"action": "Retry", "mutate": {"memory": {"static": "0"}}}]}, "greater than 0"),
        ({"name": "a", "rules": [{"action": "Retry", "mutate": {"memory": {}}}]}, "exactly one of factor and static"),
    ],
)
def test_wrong_retry_policies_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        retry_policy(values)
