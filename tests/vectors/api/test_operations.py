"""Recorded operations on executors and nodes, and reports."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.vectors.api.calls import told
from tests.vectors.api.fake_executor import FakeExecutor
from tests.vectors.api.playing import Case, Player, playable, recorded, verdict
from tests.vectors.api.served import played

SETUPS: Final = ("setup.running", "setup.while-cordoned", "setup.pre", "setup.node")
PATIENCE_S: Final = 10.0


def _is_ours(case: Case) -> bool:
    return case["id"] in SETUPS or case["call"].startswith(("api.Executor.", "api.Node."))


CASES = [case for case in playable(recorded("jobs-events-ops.json")["cases"]) if _is_ours(case)]
REPORTS = [
    case
    for case in playable(recorded("jobs-events-ops.json")["cases"])
    if case["call"].startswith("schedulerobjects.") and "<job" not in str(case["request"])
]


def _plain(case: Case) -> Case:
    """The case without what it leads to: that is about the job set of the last submission, not of the request."""
    return {key: value for key, value in case.items() if key not in {"job_set_events_after", "submitted_jobs"}}


async def _play(player: Player) -> None:
    for name in ("ev", "evc"):
        await player.api.call("api.Submit.CreateQueue", {"name": name, "priorityFactor": 1.0})
    executor = asyncio.create_task(FakeExecutor(player.api.channel).run())
    await asyncio.sleep(0.3)
    place: dict[str, Any] = {}
    for case in CASES:
        await player.play([_plain(case)])
        if case["id"] in SETUPS:
            place = case["request"]
            if case["id"] in {"setup.pre", "setup.node"}:
                await _settled(player, place, len(place["jobRequestItems"]) * ["running"])
        elif case.get("job_set_events_after"):
            player.differences[case["id"]] += await _settled(player, place, case["job_set_events_after"])
    for case in REPORTS:
        answer = await player.api.call(case["call"], case["request"])
        player.codes[case["id"]] = answer.code
        player.differences[case["id"]] = list(_report_faults(case, answer.code, answer.messages))
    executor.cancel()


async def _settled(player: Player, place: dict[str, Any], wanted: list[str]) -> list[str]:
    """Wait until a job set has told of these things; the order among jobs is incidental."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    seen: list[str] = []
    while loop.time() < deadline:
        seen = [line.split()[0] for line in told(await player.api.events(place["queue"], place["jobSetId"]))]
        if all(seen.count(kind) >= wanted.count(kind) for kind in wanted):
            break
        await asyncio.sleep(0.05)
    more = {kind: seen.count(kind) - wanted.count(kind) for kind in sorted({*seen, *wanted})}
    is_whole = "submitted" in wanted
    return [f"{kind}: {count:+}" for kind, count in more.items() if count and is_whole]


def _report_faults(case: Case, code: str, messages: tuple[dict[str, Any], ...]) -> Iterator[str]:
    if code != case["code"]:
        yield f"code: {code}, recorded {case['code']}"
    elif code == "OK" and not messages[0].get("report"):
        yield "the report is empty"


@pytest.fixture(scope="module")
def player() -> Player:
    return played(_play)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", [*CASES, *REPORTS], ids=[case["id"] for case in [*CASES, *REPORTS]])
def test_case(player: Player, case: Case) -> None:
    assert verdict(player, "jobs-events-ops", case) == ""
