"""Recorded event streams: the order of each job's events, and what they say."""

import asyncio
from typing import Any

import pytest

from armada.model.policy import RetryEngine, SchedulingPolicy
from tests.vectors.api import stories
from tests.vectors.api.fake_executor import FakeExecutor
from tests.vectors.api.playing import Player, recorded, verdict
from tests.vectors.api.served import played

STORIES: list[dict[str, Any]] = recorded("events.json")["stories"]
LOSSES = frozenset({"executor-lost", "submitted-while-executor-lost"})
"""Stories in which the executor goes away, played on a server that gives it up soon."""

SORTED_FAILURES = frozenset({"la", "rpq", "rpq2"})
"""Queues of stories in which the executor sorted failures into categories."""

RETRYING = SchedulingPolicy(retries=RetryEngine(enabled=True), indexed_node_labels=("kubernetes.io/hostname",))


async def _play(player: Player) -> None:
    executor = asyncio.create_task(FakeExecutor(player.api.channel, categories=SORTED_FAILURES).run())
    await asyncio.sleep(0.3)
    for story in STORIES:
        if story["id"] not in LOSSES:
            _note(player, story, await stories.play(player.api, story))
    executor.cancel()


async def _play_losses(player: Player) -> None:
    executor = asyncio.create_task(FakeExecutor(player.api.channel).run())
    await asyncio.sleep(0.3)

    async def lose(stage: stories.Stage) -> None:
        for number in range(len(stage.streams)):
            await stage.until(number, "running")
        executor.cancel()

    async def come_back(stage: stories.Stage) -> None:
        del stage
        await asyncio.sleep(0.5)
        returned.append(asyncio.create_task(FakeExecutor(player.api.channel).run()))

    returned: list[asyncio.Task[None]] = []
    by_name = {story["id"]: story for story in STORIES}
    lost = by_name["executor-lost"]
    _note(player, lost, await stories.play(player.api, lost, lose))
    waiting = by_name["submitted-while-executor-lost"]
    _note(player, waiting, await stories.play(player.api, waiting, come_back))
    returned[0].cancel()


def _note(player: Player, story: dict[str, Any], found: list[str]) -> None:
    player.differences[story["id"]] = found
    player.codes[story["id"]] = "OK"


@pytest.fixture(scope="module")
def player() -> Player:
    return played(_play, policy=RETRYING)


@pytest.fixture(scope="module")
def losing_player() -> Player:
    return played(_play_losses, policy=SchedulingPolicy(stale_executor_ms=1_000), executor_timeout_ms=1_500)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", STORIES, ids=[story["id"] for story in STORIES])
def test_story(request: pytest.FixtureRequest, story: dict[str, Any]) -> None:
    player = request.getfixturevalue("losing_player" if story["id"] in LOSSES else "player")
    assert verdict(player, "events", story) == ""
