"""Hypothesis draws problems of several pools whose jobs may use each other's nodes, out of those of `strategies`."""

from typing import Any

from hypothesis import strategies as st

from tests.oracle.drawing.features import SELDOM
from tests.oracle.strategies import problems

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
    pools = _pools(draw, problem, borrowing)
    names = sorted(pool["name"] for pool in pools)
    executors = [
        {**executor, "nodes": [{**node, "pool": draw(st.sampled_from(names))} for node in executor["nodes"]]}
        for executor in problem["executors"]
    ]
    pool_of = {node["id"]: node["pool"] for executor in executors for node in executor["nodes"]}
    choices: tuple[list[str] | None, ...] = (None, *([name] for name in names), names[:2], names)
    restricted = {str(job.get("pools")): draw(st.sampled_from(choices)) for job in problem["jobs"]}
    run_pools: dict[str, str] = {}
    jobs = []
    for job in problem["jobs"]:
        moved = {key: value for key, value in job.items() if key != "pools"}
        if (own := restricted[str(job.get("pools"))]) is not None:
            moved["pools"] = own
        if "run" in job:
            home = pool_of.get(job["run"]["node"], "default")
            guests = [name for name in names if home in borrowing.get(name, ())]
            drawn = draw(st.sampled_from((home, *guests, *guests)))
            # The members of a gang are leased by one pool, wherever each of them stands.
            gang = job["id"] if "gang" not in job else f"{job['queue']} {job['gang']['id']}"
            moved["run"] = {**job["run"], "pool": run_pools.setdefault(gang, drawn)}
        jobs.append(moved)
    return {**problem, "config": {**problem["config"], "pools": pools}, "executors": executors, "jobs": jobs}


def _pools(draw: st.DrawFn, problem: dict[str, Any], borrowing: dict[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """The problem's pools and more, in some order."""
    drawn = {pool["name"]: pool for pool in problem["config"]["pools"]}
    names = sorted(set(drawn).union({"default", "second"}, borrowing, *borrowing.values()))
    pools = []
    for name in draw(st.permutations(names)):
        pool = {**drawn.get(name, {}), "name": name}
        if name in borrowing:
            pool["awayPools"] = [{"name": other} for other in borrowing[name]]
        if draw(SELDOM) or draw(SELDOM):
            pool["disablePreemptCrossPoolJobsFirst"] = True
        pools.append(pool)
    return pools
