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


SELDOM = st.integers(0, 9).map(lambda drawn: drawn == 9)
SWITCHES = (
    "experimentalProtectUncappedAdjustedFairShare",
    "disableFairshareScheduling",
    "disableUrgencyScheduling",
    "disableHomeScheduling",
    "disableAwayScheduling",
    "disableGangAwayScheduling",
)


@st.composite
def _pool(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A pool: mostly plain, sometimes with switches and limits of its own."""
    pool: dict[str, Any] = {"name": name}
    for switch in SWITCHES:
        if draw(SELDOM):
            pool[switch] = True
    if draw(SELDOM):
        pool["fairsharePreemptionRateLimit"] = {"maximumRate": 0.0, "maximumBurst": draw(st.integers(0, 4))}
    if draw(SELDOM):
        pool["shortJobPenaltyCutoff"] = "60s"
    if draw(SELDOM):
        pool["experimentalUnscheduledResources"] = ["gpu"]
    if draw(SELDOM):
        pool["jobDefaults"] = {"tolerations": [{"key": "team", "operator": "Exists"}]}
    if draw(SELDOM):
        pool["protectedFractionOfFairShare"] = 0.5
    return pool


@st.composite
def _config(draw: st.DrawFn, pools: tuple[str, ...], cpu_index: str) -> dict[str, Any]:
    """Settings: mostly plain, sometimes with limits."""
    config: dict[str, Any] = {
        "pools": [draw(_pool(name)) for name in pools],
        "priorityClasses": CLASSES,
        "defaultPriorityClassName": "mid200",
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
        "indexedNodeLabels": ["rack"],
        "indexedTaints": draw(st.sampled_from((["gpu"], [], ["gpu", "team"]))),
        "wellKnownNodeTypes": [{"name": "gpu", "taints": [GPU_TAINT]}],
        "protectedFractionOfFairShare": draw(st.sampled_from((0.0, 0.5, 1.0, 9.0))),
        "maxUnacknowledgedJobsPerExecutor": draw(st.sampled_from((1000, 1000, 0, 2))),
    }
    if draw(st.booleans()):
        config["dominantResourceFairnessResourcesToConsider"] = draw(
            st.sampled_from((["cpu"], ["cpu", "memory", "gpu"]))
        )
    else:
        weighted = [
            {"name": "cpu", "multiplier": 1.0},
            {"name": "memory", "multiplier": draw(st.sampled_from((0.5, 3.0)))},
        ]
        config["experimentalDominantResourceFairnessResourcesToConsider"] = weighted
    if draw(st.integers(0, 4)) == 4:
        key = draw(st.sampled_from(("maximumSchedulingBurst", "maximumPerQueueSchedulingBurst")))
        config[key] = draw(st.integers(1, 8))
        config[key.replace("Burst", "Rate")] = 1e-9
    if draw(SELDOM):
        config["maxQueueLookback"] = draw(st.integers(1, 6))
    if draw(SELDOM):
        config["maximumResourceFractionToSchedule"] = {"cpu": draw(st.sampled_from((0.1, 0.3, 0.5)))}
    if draw(SELDOM):
        config["enablePreferLargeJobOrdering"] = True
    if draw(SELDOM):
        config["respectNodePodLimits"] = True
    config["floatingResources"] = [
        {
            "name": "lic",
            "resolution": "1",
            "pools": [{"name": "default", "quantity": draw(st.sampled_from(("2", "5")))}],
        }
    ]
    return config


@st.composite
def _node(draw: st.DrawFn, number: int, pools: tuple[str, ...], *, plain: bool) -> dict[str, Any]:
    cpu = draw(st.sampled_from(("2", "4", "4500m", "8")))
    node: dict[str, Any] = {
        "id": f"n{number:02d}",
        "labels": {"kubernetes.io/hostname": f"n{number:02d}", "rack": draw(st.sampled_from(RACKS))},
        "pool": draw(st.sampled_from(pools)),
        "total": {"cpu": cpu, "memory": draw(st.sampled_from(("8Gi", "20Gi", "40Gi"))), "pods": "5"},
    }
    kind = 0 if plain else draw(st.integers(0, 7))
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
    elif special == 5:
        kind["request"]["lic"] = "1"
    elif special == 6:
        kind["request"]["gpu"] = "1"
        kind["tolerations"] = [{"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
    return kind


@st.composite
def _group(draw: st.DrawFn, rounds: int, queues: tuple[str, ...], nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some equal jobs of one queue: queued, running, or a gang."""
    arrives = draw(st.integers(0, rounds - 1))
    kind, queue = draw(_kind(early=arrives == 0)), draw(st.sampled_from(queues))
    size = draw(st.integers(1, 8))
    gang: dict[str, Any] | None = None
    if size > 1 and draw(st.integers(0, 3)) == 3:
        gang = {"id": "", "cardinality": size}
        if draw(st.integers(0, 2)) == 2:
            gang["uniformity"] = "rack"
    first = arrives == 0 and gang is None
    way = draw(st.sampled_from(("queued", "queued", "queued", "running", "running", "finished"))) if first else "queued"
    shared = {"queue": queue, **kind}
    if gang is not None:
        shared["gang"] = gang
    if arrives:
        shared["arrives"] = arrives
    pools = draw(st.sampled_from((None, None, ["default"], ["second"], ["default", "second"])))
    if pools is not None:
        shared["pools"] = pools
    return [{**shared, **draw(_life(way, rounds - 1 if not arrives else 0, nodes))} for _ in range(size)]


@st.composite
def _life(draw: st.DrawFn, way: str, last_round: int, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """How one job stands when the problem begins, and whether it leaves."""
    if way == "finished":
        return {"finished": {"pool": "default", "runningSecondsAgo": draw(st.integers(0, 90))}}
    life: dict[str, Any] = {}
    if last_round > 0 and draw(SELDOM):
        life["leaves"] = draw(st.integers(1, last_round))
    if way == "running":
        node = draw(st.sampled_from(nodes))
        life["run"] = {"node": node["id"], "pool": node["pool"], "leasedSecondsAgo": draw(st.integers(0, 5))}
        if draw(SELDOM):
            life["run"]["unacknowledged"] = True
    return life


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Crowded pools of up to 6 nodes and about 40 jobs over up to 4 rounds."""
    pools = ("default",) if draw(st.integers(0, 3)) else ("default", "second")
    # Where amounts are indexed coarsely, all nodes of a kind can be used alike (merge of kinds, spec section 9.4).
    cpu_index = draw(st.sampled_from(("50m", "50m", "100m", "250m", "1")))
    count = draw(st.integers(1, 6))
    nodes = [draw(_node(number, pools, plain=cpu_index != "50m")) for number in range(count)]
    rounds = draw(st.integers(1, 4))
    queues = QUEUES[: draw(st.integers(1, 4))]
    jobs: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 10))):
        group = draw(_group(rounds, queues, nodes))
        if "gang" in group[0]:
            group = [{**job, "gang": {**job["gang"], "id": f"g{number}"}} for job in group]
        jobs += group
    for number, job in enumerate(jobs):
        job.update(id=f"{job['queue']}-{number:03d}", submitted=number)
    cut = draw(st.integers(0, len(nodes)))
    executors: list[dict[str, Any]] = [{"id": "e0", "nodes": nodes[:cut]}, {"id": "e1", "nodes": nodes[cut:]}]
    if draw(SELDOM):
        executors[0].update(draw(st.sampled_from(({"cordoned": True}, {"heartbeatSecondsAgo": 601}))))
    return {
        "id": "drawn",
        "config": draw(_config(pools, cpu_index)),
        "executors": executors,
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
        "overrides": [{"pool": "default", "queue": "A", "priority": 0.25}] if draw(SELDOM) else [],
    }
