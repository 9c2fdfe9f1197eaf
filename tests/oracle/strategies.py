"""Hypothesis draws small scheduling problems with every feature that a round knows, in the documented format."""

from typing import Any

from hypothesis import strategies as st

QUEUES = ("A", "B", "C", "D")
RACKS = ("r0", "r1", "r2")
CLASSES = {
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
GPU_TAINT = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
TEAM_TAINT = {"key": "team", "value": "x", "effect": "NoExecute"}


@st.composite
def _config(draw: st.DrawFn) -> dict[str, Any]:
    """Settings: mostly plain, sometimes with limits and switches."""
    pool: dict[str, Any] = {"name": "default"}
    for switch in (
        "experimentalProtectUncappedAdjustedFairShare",
        "disableFairshareScheduling",
        "disableUrgencyScheduling",
        "disableAwayScheduling",
        "disableGangAwayScheduling",
    ):
        if draw(st.integers(0, 9)) == 9:
            pool[switch] = True
    if draw(st.integers(0, 9)) == 9:
        burst = draw(st.integers(0, 4))
        pool["fairsharePreemptionRateLimit"] = {"maximumRate": 0.0, "maximumBurst": burst}
    config: dict[str, Any] = {
        "pools": [pool],
        "priorityClasses": CLASSES,
        "defaultPriorityClassName": "mid200",
        "supportedResourceTypes": [
            {"name": "memory", "resolution": "1"},
            {"name": "cpu", "resolution": "1m"},
            {"name": "gpu", "resolution": "1"},
        ],
        "indexedResources": [
            {"name": "gpu", "resolution": "1"},
            {"name": "cpu", "resolution": draw(st.sampled_from(("100m", "250m", "1")))},
            {"name": "memory", "resolution": "1Gi"},
        ],
        "indexedNodeLabels": ["rack"],
        "indexedTaints": draw(st.sampled_from((["gpu"], [], ["gpu", "team"]))),
        "wellKnownNodeTypes": [{"name": "gpu", "taints": [GPU_TAINT]}],
        "dominantResourceFairnessResourcesToConsider": draw(st.sampled_from((["cpu"], ["cpu", "memory", "gpu"]))),
        "protectedFractionOfFairShare": draw(st.sampled_from((0.0, 0.5, 1.0, 9.0))),
    }
    if draw(st.integers(0, 4)) == 4:
        key = draw(st.sampled_from(("maximumSchedulingBurst", "maximumPerQueueSchedulingBurst")))
        config[key] = draw(st.integers(1, 8))
        config[key.replace("Burst", "Rate")] = 1e-9
    if draw(st.integers(0, 9)) == 9:
        config["maxQueueLookback"] = draw(st.integers(1, 6))
    if draw(st.integers(0, 9)) == 9:
        config["maximumResourceFractionToSchedule"] = {"cpu": draw(st.sampled_from((0.1, 0.3, 0.5)))}
    if draw(st.integers(0, 9)) == 9:
        config["enablePreferLargeJobOrdering"] = True
    return config


@st.composite
def _node(draw: st.DrawFn, number: int) -> dict[str, Any]:
    cpu = draw(st.sampled_from(("2", "4", "4500m", "8")))
    node: dict[str, Any] = {
        "id": f"n{number:02d}",
        "labels": {"kubernetes.io/hostname": f"n{number:02d}", "rack": draw(st.sampled_from(RACKS))},
        "total": {"cpu": cpu, "memory": draw(st.sampled_from(("8Gi", "20Gi", "40Gi")))},
    }
    kind = draw(st.integers(0, 7))
    if kind == 7:
        node["taints"] = [GPU_TAINT]
        node["total"]["gpu"] = "4"
    elif kind == 6:
        node["taints"] = [TEAM_TAINT]
    elif kind == 5:
        node["unallocatable"] = {"0": {"cpu": "500m", "memory": "1Gi"}}
    elif kind == 4 and draw(st.booleans()):
        node["unschedulable"] = True
    return node


@st.composite
def _kind(draw: st.DrawFn, *, early: bool) -> dict[str, Any]:
    """What jobs of one group have in common. Early ones are less important, so that later ones displace them."""
    classes = ("mid200", "mid200", "low100", "low100", "flex200", "solid200") if early else tuple(CLASSES)
    kind: dict[str, Any] = {
        "priorityClass": draw(st.sampled_from(classes)),
        "request": {
            "cpu": draw(st.sampled_from(("250m", "550m", "1", "2", "3"))),
            "memory": draw(st.sampled_from(("1Gi", "2Gi", "6Gi"))),
        },
        "priority": draw(st.sampled_from((0, 0, 1, 3))),
    }
    special = draw(st.integers(0, 9))
    if special == 9:
        kind["nodeSelector"] = {"rack": draw(st.sampled_from(RACKS))}
    elif special == 8:
        kind["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    elif special == 7:
        expression = {
            "key": "rack",
            "operator": draw(st.sampled_from(("In", "NotIn"))),
            "values": [draw(st.sampled_from(RACKS))],
        }
        kind["nodeAffinity"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    elif special == 6:
        kind["request"]["gpu"] = "1"
        kind["tolerations"] = [{"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
    return kind


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """A crowded pool of up to 6 nodes and about 40 jobs over up to 4 rounds."""
    nodes = [draw(_node(number)) for number in range(draw(st.integers(1, 6)))]
    rounds = draw(st.integers(1, 4))
    queues = QUEUES[: draw(st.integers(1, 4))]
    jobs: list[dict[str, Any]] = []
    for group in range(draw(st.integers(1, 10))):
        arrives = draw(st.integers(0, rounds - 1))
        kind, queue = draw(_kind(early=arrives == 0)), draw(st.sampled_from(queues))
        size = draw(st.integers(1, 8))
        gang: dict[str, Any] | None = None
        if size > 1 and draw(st.integers(0, 3)) == 3:
            gang = {"id": f"g{group}", "cardinality": size}
            if draw(st.integers(0, 2)) == 2:
                gang["uniformity"] = "rack"
        runs = arrives == 0 and gang is None and draw(st.integers(0, 2)) == 2
        for _ in range(size):
            job = {"id": f"{queue}-{len(jobs):03d}", "queue": queue, "submitted": len(jobs), **kind}
            if gang is not None:
                job["gang"] = gang
            if arrives:
                job["arrives"] = arrives
            if runs:
                node = draw(st.sampled_from(nodes))["id"]
                job["run"] = {"node": node, "pool": "default", "leasedSecondsAgo": draw(st.integers(0, 5))}
            if draw(st.integers(0, 9)) == 9 and rounds > 1 and not arrives:
                job["leaves"] = draw(st.integers(1, rounds - 1))
            jobs.append(job)
    return {
        "id": "drawn",
        "config": draw(_config()),
        "executors": [{"id": "e", "nodes": nodes}],
        "queues": [
            {
                "name": name,
                "priorityFactor": draw(st.sampled_from((1.0, 1.0, 0.5, 3.0))),
                "cordoned": draw(st.integers(0, 19)) == 19,
            }
            for name in queues
        ],
        "jobs": jobs,
        "rounds": rounds,
    }
