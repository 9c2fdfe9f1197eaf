"""Recorded exchanges of an executor with the control plane."""

import asyncio
from typing import Any

import pytest

from tests.vectors.api.calls import told
from tests.vectors.api.matching import events_by_job
from tests.vectors.api.playing import Case, Player, recorded, verdict
from tests.vectors.api.served import played

RECORDING = recorded("executorapi.json")
CASES: list[Case] = RECORDING["cases"]

ANNOTATED: dict[str, Any] = {"labels": {"l": "v"}, "annotations": {"a": "b"}}


def _job(**more: Any) -> dict[str, Any]:
    amounts = {"cpu": {"string": "1"}, "memory": {"string": "1Gi"}}
    container = {
        "name": "main",
        "image": "registry.local/nap:1",
        "args": ["sleep $(( (RANDOM % 1) + 1 ))"],
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {"namespace": "ns1", "podSpec": {"containers": [container]}} | more


async def _play(player: Player) -> None:
    api = player.api
    await api.call("api.Submit.CreateQueue", {"name": "xq", "priorityFactor": 1.0})
    gang = {"armadaproject.io/gangId": "pg", "armadaproject.io/gangCardinality": "2"}
    preemptible = _job(**ANNOTATED)
    preemptible["podSpec"] |= {"priorityClassName": "armada-preemptible"}
    for case in CASES:
        if case["id"] == "poll-1":
            request = {
                "queue": "xq",
                "jobSetId": "xs3",
                "jobRequestItems": [preemptible, _job(annotations=gang), _job(annotations=gang)],
            }
            await api.call("api.Submit.SubmitJobs", request)
            await asyncio.sleep(1.0)
        if case["id"] == "after-cancel":
            await api.call("api.Submit.CancelJobSet", {"queue": "xq", "jobSetId": "xs3"})
        await player.play([case])
    player.differences["job set"] = told(await api.events("xq", "xs3"))


@pytest.fixture(scope="module")
def player() -> Player:
    return played(_play)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(player: Player, case: Case) -> None:
    assert verdict(player, "executorapi", case) == ""


def test_the_job_set_shows_what_happened(player: Player) -> None:
    """What was reported about a job that never was (the recording's fourth) is not shown."""
    lines = [player.matcher.filled(line) for line in RECORDING["job_set_events"]]
    known = {line.partition(" ")[2] for line in lines if line.startswith("submitted ")}
    expected = events_by_job(line for line in lines if line.partition(" ")[2] in known)
    assert events_by_job(player.differences["job set"]) == expected
