"""Recorded submissions: codes, answers, and jobs as they are converted."""

import pytest

from tests.vectors.api.playing import Case, Player, playable, recorded, verdict
from tests.vectors.api.served import played

CASES = playable(recorded("submit.json")["cases"])
QUEUES = sorted(
    {case["request"]["queue"] for case in CASES if case["code"] == "OK" and "queue" in case["request"]} | {"vec"}
)


async def _play(player: Player) -> None:
    for name in QUEUES:
        await player.api.call("api.Submit.CreateQueue", {"name": name, "priorityFactor": 1.0, "cordoned": True})
    await player.play(CASES)


@pytest.fixture(scope="module")
def player() -> Player:
    return played(_play)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(player: Player, case: Case) -> None:
    assert verdict(player, "submit", case) == ""
