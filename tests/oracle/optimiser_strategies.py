"""Hypothesis draws problems in which the fairness optimiser has something to do: full nodes, poor queues' jobs."""

from typing import Any

from hypothesis import strategies as st

from tests.oracle.strategies import CLASSES, RACKS, SELDOM, problems

QUEUES = "ABCDE"
RICH, POOR = "AABC", "DDEC"


@st.composite
def _optimiser(draw: st.DrawFn) -> dict[str, Any]:
    """Settings of one pool's optimiser; most bounds are left out."""
    settings: dict[str, Any] = {
        "enabled": True,
        "interval": draw(st.sampled_from(("0s", "0s", "1s", "2s"))),
        "timeout": "5s",
        "maximumJobsPerRound": draw(st.sampled_from((100, 100, 3, 1))),
        "minimumFairnessImprovementPercentage": draw(st.sampled_from((0.0, 0.0, 10.0, 50.0, 150.0))),
    }
    if draw(SELDOM):
        settings["maximumResourceFractionToSchedule"] = {"cpu": draw(st.sampled_from((0.1, 0.3)))}
    if draw(SELDOM):
        settings["minimumJobSizeToSchedule"] = {"cpu": draw(st.sampled_from(("1", "2500m")))}
    if draw(SELDOM):
        settings["maximumJobSizeToPreempt"] = draw(st.sampled_from(({"cpu": "1"}, {"cpu": "2", "memory": "2Gi"})))
    return settings


@st.composite
def _big_jobs(draw: st.DrawFn, number: int, last_round: int) -> list[dict[str, Any]]:
    """Jobs that find no free node: singles or a gang."""
    size = draw(st.integers(1, 3))
    job: dict[str, Any] = {
        "queue": draw(st.sampled_from(POOR)),
        "priorityClass": draw(st.sampled_from(("mid200", "mid200", "mid200", "high300", "low100", "solid200"))),
        "request": {"cpu": draw(st.sampled_from(("2", "3", "1", "3500m"))), "memory": "1Gi"},
        "arrives": draw(st.integers(0, last_round)),
    }
    if draw(SELDOM):
        job["nodeSelector"] = {"rack": draw(st.sampled_from(RACKS))}
    if size > 1 and draw(st.booleans()):
        job["gang"] = {"id": f"big{number}", "cardinality": size}
        if draw(st.booleans()):
            job["gang"]["uniformity"] = "rack"
    return [dict(job) for _ in range(size)]


@st.composite
def _runner(draw: st.DrawFn, node: dict[str, Any], cpu: str) -> dict[str, Any]:
    """A running job of a rich queue."""
    return {
        "queue": draw(st.sampled_from(RICH)),
        "priorityClass": draw(st.sampled_from(("mid200", "mid200", "mid200", "mid200", "low100", "solid200"))),
        "priority": draw(st.sampled_from((0, 0, 2))),
        "request": {"cpu": cpu, "memory": "1Gi"},
        "run": {
            "node": node["id"],
            "pool": node["pool"],
            "leasedSecondsAgo": draw(st.sampled_from((0, 0, 1, 9, 100))),
        },
    }


@st.composite
def _full_pool(draw: st.DrawFn) -> dict[str, Any]:
    """Nodes full of small jobs that run, and jobs that wait."""
    rounds = draw(st.integers(1, 3))
    nodes = [
        {
            "id": f"n{number:02d}",
            "labels": {"rack": draw(st.sampled_from(RACKS))},
            "pool": "default",
            "total": {"cpu": "8", "memory": draw(st.sampled_from(("80Gi", "80Gi", "9Gi"))), "pods": "99"},
        }
        for number in range(draw(st.integers(1, 4)))
    ]
    jobs: list[dict[str, Any]] = []
    for node in nodes:
        sizes = draw(st.sampled_from((("1",) * 8, ("1",) * 7, ("2", "1", "1", "2", "1", "1"), ("500m",) * 10 + ("3",))))
        jobs += [draw(_runner(node, cpu)) for cpu in sizes]
    for number in range(draw(st.integers(1, 4))):
        jobs += draw(_big_jobs(number, rounds - 1))
    fairness = draw(st.sampled_from((["cpu"], ["cpu", "memory"])))
    config: dict[str, Any] = {
        "pools": [{"name": "default"}],
        "priorityClasses": CLASSES,
        "defaultPriorityClassName": "mid200",
        "supportedResourceTypes": [{"name": "memory", "resolution": "1"}, {"name": "cpu", "resolution": "1m"}],
        "indexedResources": [{"name": "cpu", "resolution": "50m"}, {"name": "memory", "resolution": "1Gi"}],
        "indexedNodeLabels": ["rack"],
        "wellKnownNodeTypes": [{"name": "gpu", "taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]}],
        "dominantResourceFairnessResourcesToConsider": fairness,
    }
    if draw(SELDOM):
        config["maximumResourceFractionToSchedule"] = {"cpu": 0.2}
    if draw(SELDOM):
        config["maximumPerQueueSchedulingBurst"] = draw(st.integers(1, 3))
        config["maximumPerQueueSchedulingRate"] = 1e-9
    if draw(SELDOM):
        config["maxQueueLookback"] = draw(st.integers(1, 4))
    return {
        "id": "drawn",
        "config": config,
        "executors": [{"id": "e", "nodes": nodes}],
        "queues": [],
        "jobs": jobs,
        "rounds": rounds,
    }


@st.composite
def optimised_problems(draw: st.DrawFn) -> dict[str, Any]:
    """Pools with an optimiser: mostly full and protected, so that fairness alone takes little; some of any kind."""
    problem = draw(problems() if draw(SELDOM) else _full_pool())
    for pool in problem["config"]["pools"]:
        if not draw(SELDOM):
            pool["experimentalOptimiser"] = draw(_optimiser())
        if not draw(SELDOM):
            pool["protectedFractionOfFairShare"] = 9.0
        if draw(SELDOM):
            pool["shortJobPenaltyCutoff"] = "60s"
    problem["secondsPerRound"] = draw(st.sampled_from((0, 1)))
    names = {queue["name"] for queue in problem["queues"]}
    problem["queues"] += [
        {"name": name, "priorityFactor": draw(st.sampled_from((1.0, 1.0, 0.5, 3.0)))}
        for name in QUEUES
        if name not in names
    ]
    for number, job in enumerate(problem["jobs"]):
        job.update(id=f"{job['queue']}-{number:03d}", submitted=number)
    return problem
