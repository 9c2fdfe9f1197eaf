"""Drawn settings: priority classes, limits, pools with their switches."""

from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle.drawing.features import Features, often, one_of

POOLS: Final = ("default", "second", "third")
GPU_TAINT: Final = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
FAST_TAINT: Final = {"key": "fast", "value": "v2", "effect": "NoExecute"}
TEAM_TAINT: Final = {"key": "team", "value": "x", "effect": "NoExecute"}
SOFT_TAINT: Final = {"key": "soft", "value": "", "effect": "PreferNoSchedule"}

CLASSES: Final[dict[str, dict[str, Any]]] = {
    "low100": {"priority": 100, "preemptible": True},
    "mid200": {"priority": 200, "preemptible": True},
    "high300": {"priority": 300, "preemptible": True},
    "solid200": {"priority": 200, "preemptible": False},
    "top400": {"priority": 400, "preemptible": False},
    "flex200": {
        "priority": 200,
        "preemptible": True,
        "awayNodeTypes": [{"priority": 50, "wellKnownNodeTypeName": "gpu"}],
    },
}
SOLID: Final = ("solid200", "top400")
CLASS_NAMES: Final = (*CLASSES, "roam200")

CONDITIONS: Final = (
    {"resource": "gpu", "operator": ">", "value": "0"},
    {"resource": "gpu", "operator": "==", "value": "0"},
    {"resource": "cpu", "operator": "<", "value": "1"},
    {"resource": "cpu", "operator": ">", "value": "500m"},
    {"resource": "memory", "operator": "<", "value": "2Gi"},
    {"resource": "nothing", "operator": "<", "value": "1"},
)

SWITCHES: Final = (
    "disableFairshareScheduling",
    "disableUrgencyScheduling",
    "disableHomeScheduling",
    "disableAwayScheduling",
    "disableGangAwayScheduling",
)


def _classes(draw: st.DrawFn, on: Features) -> dict[str, Any]:
    classes = {name: dict(kind) for name, kind in CLASSES.items()}
    classes["roam200"] = {"priority": 200, "preemptible": True}
    del classes["flex200"]["awayNodeTypes"]
    if "away" in on:
        classes["flex200"]["awayNodeTypes"] = [{"priority": one_of(draw, 50, 150), "wellKnownNodeTypeName": "gpu"}]
        classes["roam200"]["awayNodeTypes"] = [
            {"priority": priority, "nodeTypes": draw(st.lists(_away_type(), min_size=1, max_size=2))}
            for priority in draw(st.permutations((50, 100)))
        ]
    for kind in classes.values():
        if often(draw, "class limits" in on, 3):
            kind["maximumResourceFractionPerQueue"] = {"cpu": one_of(draw, 0.5, 0.25, 0.1)}
        if often(draw, "class limits" in on, 5):
            kind["maximumResourceFractionPerQueueByPool"] = {
                one_of(draw, *POOLS): {one_of(draw, "cpu", "memory"): one_of(draw, 1.0, 0.4, 0.15)}
            }
    return classes


@st.composite
def _away_type(draw: st.DrawFn) -> dict[str, Any]:
    kind: dict[str, Any] = {"name": one_of(draw, "gpu", "fast", "any")}
    conditions = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2))
    if conditions:
        kind["conditions"] = conditions
    return kind


def _pool(draw: st.DrawFn, on: Features, name: str) -> dict[str, Any]:
    pool: dict[str, Any] = {"name": name}
    for switch in SWITCHES:
        if often(draw, "switches" in on, 5):
            pool[switch] = True
    if often(draw, "uncapped protection" in on):
        pool["experimentalProtectUncappedAdjustedFairShare"] = True
    if often(draw, "budget" in on):
        pool["fairsharePreemptionRateLimit"] = {
            "maximumRate": one_of(draw, 0.0, 0.5),
            "maximumBurst": draw(st.integers(0, 4)),
        }
    if often(draw, "penalties" in on):
        pool["shortJobPenaltyCutoff"] = one_of(draw, "60s", "20s")
    if often(draw, "unscheduled resources" in on):
        pool["experimentalUnscheduledResources"] = [one_of(draw, "gpu", "lic")]
    if often(draw, "default tolerations" in on):
        pool["jobDefaults"] = {"tolerations": [{"key": one_of(draw, "team", "gpu"), "operator": "Exists"}]}
    if often(draw, "own protection" in on):
        pool["protectedFractionOfFairShare"] = one_of(draw, 0.5, 1.0, 0.0)
    if often(draw, "multipliers" in on, 3):
        pool["dominantResourceFairnessResourcesToConsider"] = [
            {"name": "memory", "multiplier": one_of(draw, 1.0, 2.0)},
            {"name": "cpu", "multiplier": one_of(draw, 1.0, 0.25)},
        ]
    return pool


def _limits(draw: st.DrawFn, on: Features) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for kind in ("maximumScheduling", "maximumPerQueueScheduling"):
        if often(draw, "rates" in on):
            limits[f"{kind}Burst"] = draw(st.integers(0, 12))
            limits[f"{kind}Rate"] = one_of(draw, 1e-9, 0.5, 2.0)
    if often(draw, "lookback" in on):
        limits["maxQueueLookback"] = draw(st.integers(1, 8))
    if often(draw, "round limits" in on):
        limits["maximumResourceFractionToSchedule"] = {one_of(draw, "cpu", "memory"): one_of(draw, 0.5, 0.3, 0.1)}
    if often(draw, "round limits" in on, 3):
        limits["maximumResourceFractionToScheduleByPool"] = {one_of(draw, *POOLS): {"cpu": one_of(draw, 0.5, 0.2)}}
    if "sick fleet" in on:
        limits["maxUnacknowledgedJobsPerExecutor"] = one_of(draw, 1000, 0, 2)
    return limits


def _costs(draw: st.DrawFn, on: Features) -> dict[str, Any]:
    if "multipliers" not in on:
        counted = (["cpu", "memory", "gpu"], ["cpu"], ["cpu", "lic"])
        return {"dominantResourceFairnessResourcesToConsider": one_of(draw, *counted)}
    return {
        "experimentalDominantResourceFairnessResourcesToConsider": [
            {"name": "cpu", "multiplier": 1.0},
            {"name": "memory", "multiplier": one_of(draw, 0.5, 3.0)},
        ]
    }


def rules(draw: st.DrawFn, on: Features, pools: tuple[str, ...], cpu_index: str) -> dict[str, Any]:
    """Draw the configuration of a problem with these pools."""
    labels = ["rack", "zone"] if "uniformity" in on else ["rack"]
    config: dict[str, Any] = {
        "pools": [_pool(draw, on, name) for name in pools],
        "priorityClasses": _classes(draw, on),
        "defaultPriorityClassName": one_of(draw, "mid200", "low100"),
        "supportedResourceTypes": [
            {"name": "memory", "resolution": "1"},
            {"name": "cpu", "resolution": "1m"},
            {"name": "gpu", "resolution": "1"},
        ],
        "indexedResources": [
            {"name": "gpu", "resolution": "1"},
            {"name": "cpu", "resolution": cpu_index},
            {"name": "memory", "resolution": "1Gi"},
        ],
        "indexedNodeLabels": labels,
        "indexedTaints": one_of(draw, ["gpu", "fast"], [], ["gpu", "fast", "team", "soft"]),
        "wellKnownNodeTypes": [
            {"name": "gpu", "taints": [GPU_TAINT]},
            {"name": "fast", "taints": [FAST_TAINT]},
            {"name": "any", "taints": [{**GPU_TAINT, "value": "*"}, {**FAST_TAINT, "value": "*"}]},
        ],
        "protectedFractionOfFairShare": one_of(draw, 0.0, 0.5, 1.0, 0.0, 0.5, 1.0, 9.0),
        **_costs(draw, on),
        **_limits(draw, on),
    }
    if "prefers large" in on:
        config["enablePreferLargeJobOrdering"] = True
    if "pods" in on:
        config["respectNodePodLimits"] = True
    config["floatingResources"] = [
        {
            "name": "lic",
            "resolution": "1",
            "pools": [{"name": name, "quantity": one_of(draw, "2", "5", "0")} for name in pools[:2]],
        }
    ]
    return config
