"""Recorded cancellations, reprioritisations and preemptions."""

import asyncio

import pytest

from tests.vectors.api.fake_executor import FakeExecutor
from tests.vectors.api.playing import Case, Player, playable, recorded, verdict
from tests.vectors.api.served import played

CASES = playable(recorded("submit-actions.json")["cases"])


async def _play(player: Player) -> None:
    for name, cordoned in (("act", True), ("run", False), ("bobsact", True)):
        await player.api.call("api.Submit.CreateQueue", {"name": name, "priorityFactor": 1.0, "cordoned": cordoned})
    executor = asyncio.create_task(FakeExecutor(player.api.channel).run())
    for case in CASES:
        await player.play([case])
        if case["id"] == "setup.preempt":
            await _running(player, "run", "p1", 2)
    executor.cancel()


async def _running(player: Player, queue: str, job_set: str, count: int) -> None:
    """Wait until so many jobs run."""
    for _ in range(200):
        events = await player.api.events(queue, job_set)
        if sum("running" in event["message"] for event in events) >= count:
            return
        await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def player() -> Player:
    return played(_play)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(player: Player, case: Case) -> None:
    assert verdict(player, "submit-actions", case) == ""
