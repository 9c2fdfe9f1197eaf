"""Recorded event streams: the order of each job's events, and what they say."""

import asyncio
from typing import Any

import pytest

from tests.vectors.api import stories
from tests.vectors.api.fake_executor import FakeExecutor
from tests.vectors.api.playing import Player, recorded, verdict
from tests.vectors.api.served import played

STORIES: list[dict[str, Any]] = recorded("events.json")["stories"]
SORTED_FAILURES = frozenset({"la", "rpq", "rpq2"})
"""Queues of stories in which the executor sorted failures into categories."""


async def _play(player: Player) -> None:
    executor = asyncio.create_task(FakeExecutor(player.api.channel, categories=SORTED_FAILURES).run())
    await asyncio.sleep(0.3)
    for story in STORIES:
        player.differences[story["id"]] = await stories.play(player.api, story)
        player.codes[story["id"]] = "OK"
    executor.cancel()


@pytest.fixture(scope="module")
def player() -> Player:
    return played(_play)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", STORIES, ids=[story["id"] for story in STORIES])
def test_story(player: Player, story: dict[str, Any]) -> None:
    assert verdict(player, "events", story) == ""
