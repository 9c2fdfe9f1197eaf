"""Recorded calls on queues and retry policies."""

import pytest

from tests.vectors.api.playing import Case, Player, playable, recorded, verdict
from tests.vectors.api.served import played

CASES = playable(recorded("queues.json")["cases"])

FROM_BEFORE = ("act", "bobs", "bobsact", "run", "vec", "vec2")
"""Queues that were there when the recording began."""


async def _play(player: Player) -> None:
    for name in FROM_BEFORE:
        queue = {"name": name, "priorityFactor": 1.0, "cordoned": True}
        if name == "bobs":
            subject = {"kind": "User", "name": "bob"}
            queue |= {"permissions": [{"subjects": [subject], "verbs": ["submit"]}]}
        await player.api.call("api.Submit.CreateQueue", queue)
    await player.play(CASES)


@pytest.fixture(scope="module")
def player() -> Player:
    return played(_play)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(player: Player, case: Case) -> None:
    assert verdict(player, "queues", case) == ""
