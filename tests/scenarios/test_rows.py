"""Every row of rows.toml, decided by the product and by the plain oracle."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armada.cli.problems.answers import Answer, answer
from armada.cli.problems.comparison import differences
from armada.cli.problems.reading import read_problem
from armada.cli.problems.trial import rounds
from tests.oracle.drawing.rules import CLASSES
from tests.oracle.fleet import decide

ROWS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "rows.toml").read_text(encoding="utf-8"))

DECIDED = ("scheduled", "preempted", "waiting")


def problem_of(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row as a problem in the documented format."""
    config: dict[str, Any] = {
        "pools": [{"name": "default", **row.get("pool", {})}],
        "priorityClasses": CLASSES,
        "defaultPriorityClassName": "mid200",
        "supportedResourceTypes": [
            {"name": "memory", "resolution": "1"},
            {"name": "cpu", "resolution": "1m"},
            {"name": "gpu", "resolution": "1"},
        ],
        "indexedResources": [
            {"name": "gpu", "resolution": "1"},
            {"name": "cpu", "resolution": "100m"},
            {"name": "memory", "resolution": "1Gi"},
        ],
        "wellKnownNodeTypes": [{"name": "gpu", "taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]}],
        "dominantResourceFairnessResourcesToConsider": row.get("cost", ["cpu", "memory", "gpu"]),
        "protectedFractionOfFairShare": row.get("protected", 0.0),
        **row.get("config", {}),
    }
    jobs = [job for number, one in enumerate(row["rounds"]) for job in jobs_of(one, number)]
    numbers: dict[str, int] = {}
    for place, job in enumerate(jobs):
        number = numbers.get(job["queue"], 0)
        numbers[job["queue"]] = number + 1
        job.update(id=f"{job['queue']}{number}", submitted=place)
    factors = row.get("queues", {})
    if "bids" in row:
        market = {"enabled": True, "spotPriceCutoff": 0.9, "gangIndicativePricingTimeout": "1s"}
        config["pools"][0]["experimentalMarketScheduling"] = market
    return {
        "id": name,
        "config": config,
        "executors": [{"id": "e", "nodes": [node_of(node) for node in row.get("nodes", [{"name": "n", "cpu": 10}])]}],
        "queues": [
            {
                "name": queue,
                "priorityFactor": factors.get(queue, 1.0),
                "cordoned": queue in row.get("cordoned", ()),
                "resourceLimitsByPriorityClassName": row.get("limits", {}).get(queue, {}),
            }
            for queue in sorted(numbers)
        ],
        "jobs": jobs,
        "rounds": len(row["rounds"]),
        "secondsPerRound": row.get("seconds", 0),
        "bids": list(bids_of(row)),
        "resourceUnits": {"default": {"cpu": "1"}},
    }


def bids_of(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for queue, bands in row.get("bids", {}).items():
        for band, bid in enumerate(bands, 1):
            queued, running = bid if isinstance(bid, list) else (bid, bid)
            yield {"queue": queue, "pool": "default", "band": band, "queued": queued, "running": running}


def node_of(node: dict[str, Any]) -> dict[str, Any]:
    total = {"cpu": str(node["cpu"]), "memory": node.get("memory", f"{node['cpu'] * 10}Gi")}
    if "gpu" in node:
        total["gpu"] = str(node["gpu"])
    labels = {"kubernetes.io/hostname": node["name"], **node.get("labels", {})}
    others: dict[str, Any] = {key: node[key] for key in ("taints", "unschedulable", "unallocatable") if key in node}
    return {"id": node["name"], "labels": labels, "total": total, **others}


def jobs_of(one: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    for queue, count, *more in one.get("jobs", []):
        overrides = dict(more[0]) if more else {}
        request = {"cpu": overrides.pop("cpu", "1"), "memory": overrides.pop("memory", "1Gi")}
        request.update({name: overrides.pop(name) for name in ("gpu", "lic") if name in overrides})
        for _ in range(count):
            arrives = {"arrives": number} if number else {}
            usual = {"priorityClass": "mid200", "priceBand": 1}
            yield {"queue": queue, **usual, "request": request, **arrives, **overrides}


def named(ranges: str) -> list[str]:
    """`A0-2 B1` as A0, A1, A2, B1."""
    names = []
    for one in ranges.split():
        match = re.fullmatch(r"([A-Z])([0-9]+)(?:-([0-9]+))?", one)
        assert match, one
        last = int(match[3] or match[2])
        names += [f"{match[1]}{number}" for number in range(int(match[2]), last + 1)]
    return sorted(names)


def check_round(expected: dict[str, Any], decided: Answer, texts: dict[str, str]) -> None:
    assert sorted(decided["scheduled"]) == named(expected.get("in", ""))
    assert sorted(decided["preempted"]) == named(expected.get("out", ""))
    for job, node in expected.get("on", {}).items():
        assert decided["scheduled"][job]["node"] == node
    for job, priority in expected.get("at", {}).items():
        assert decided["scheduled"][job]["priority"] == priority
    for job, code in expected.get("waits", {}).items():
        assert decided["waiting"][job] == code
    for job, pattern in expected.get("says", {}).items():
        assert re.search(pattern, texts[job]), texts[job]
    for queue, shares in expected.get("shares", {}).items():
        figures = decided["queues"][queue]
        ours = [
            figures["fairShare"],
            figures["demandCappedAdjustedFairShare"],
            figures["uncappedAdjustedFairShare"],
        ]
        assert ours == pytest.approx(shares, abs=1e-9)


def together(pools: dict[str, Answer]) -> Answer:
    """What all pools decided in a round; figures are those of pool default."""
    first = pools["default"]
    return {
        **first,
        **{key: {job: one for pool in pools.values() for job, one in pool[key].items()} for key in DECIDED},
    }


def check_market(expected: dict[str, Any], decided: Answer) -> None:
    if "price" in expected:
        assert decided["spotPrice"] == expected["price"]
    for queue, cpu in expected.get("billed", {}).items():
        assert decided["queues"][queue]["billable"].get("cpu", "0") == str(cpu)
    if "instead" in expected:
        figures = decided["queues"].items()
        paid = {name: one["billablePriceOverride"] for name, one in figures if "billablePriceOverride" in one}
        assert paid == expected["instead"]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_decided_as_it_says(name: str) -> None:
    row = ROWS[name]
    problem = problem_of(name, row)
    decided: list[dict[str, Answer]] = [{} for _ in row["rounds"]]
    texts: list[dict[str, str]] = [{} for _ in row["rounds"]]
    for trial, pool, decisions in rounds(read_problem(json.dumps(problem).encode(), name)):
        decided[trial.number][pool] = answer(decisions, trial.policy, trial.job_id)
        refused = enumerate(decisions.each_refusal())
        texts[trial.number] |= {trial.job_id(job): decisions.reason_text(index) for index, (job, _) in refused}
    for number, expected in enumerate(row["rounds"]):
        check_round(expected, together(decided[number]), texts[number])
        check_market(expected, decided[number]["default"])
    assert differences(decided, decide(problem)) == []
