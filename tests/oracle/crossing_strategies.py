"""Hypothesis draws problems of several pools whose jobs may use each other's nodes, out of those of `strategies`."""

from typing import Any

from hypothesis import strategies as st

from tests.oracle.strategies import SELDOM, problems

BORROWING: tuple[dict[str, tuple[str, ...]], ...] = (
    {"second": ("default",)},
    {"second": ("default",)},
    {"default": ("second",)},
    {"default": ("second",), "second": ("default",)},
    {"second": ("default",), "third": ("default",)},
    {"default": ("second", "third"), "second": ("third",)},
    {"default": ("default", "second"), "second": ("third",), "third": ("default",)},
)
"""Which pools' nodes each pool's jobs may use besides its own."""


@st.composite
def crossing_problems(draw: st.DrawFn) -> dict[str, Any]:
    """Two or three pools, some of which borrow from others, in any order; some jobs run as guests from the start."""
    problem: dict[str, Any] = draw(problems())
    borrowing = draw(st.sampled_from(BORROWING))
    names = sorted({"default", "second"}.union(borrowing, *borrowing.values()))
    drawn = {pool["name"]: pool for pool in problem["config"]["pools"]}
    pools = []
    for name in draw(st.permutations(names)):
        pool = {**drawn.get(name, {}), "name": name}
        if name in borrowing:
            pool["awayPools"] = [{"name": other} for other in borrowing[name]]
        if draw(SELDOM) or draw(SELDOM):
            pool["disablePreemptCrossPoolJobsFirst"] = True
        pools.append(pool)
    executors = [
        {**executor, "nodes": [{**node, "pool": draw(st.sampled_from(names))} for node in executor["nodes"]]}
        for executor in problem["executors"]
    ]
    pool_of = {node["id"]: node["pool"] for executor in executors for node in executor["nodes"]}
    choices = [None, *([name] for name in names), names[:2], names]
    allowed = {
        str(old): draw(st.sampled_from(choices)) for old in (None, ["default"], ["second"], ["default", "second"])
    }
    jobs = []
    for job in problem["jobs"]:
        moved = {key: value for key, value in job.items() if key != "pools"}
        if (own := allowed[str(job.get("pools"))]) is not None:
            moved["pools"] = own
        if "run" in job:
            home = pool_of[job["run"]["node"]]
            guests = [name for name in names if home in borrowing.get(name, ())]
            moved["run"] = {**job["run"], "pool": draw(st.sampled_from((home, *guests, *guests)))}
        jobs.append(moved)
    config = {**problem["config"], "pools": pools}
    if draw(SELDOM):
        config["floatingResources"] = [
            {**kind, "pools": [{"name": name, "quantity": "3"} for name in names]}
            for kind in config["floatingResources"]
        ]
    return {**problem, "config": config, "executors": executors, "jobs": jobs}
