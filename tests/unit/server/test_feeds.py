"""Feeds: asked again and again, the last good answer kept; files and inventions in place of services."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from armada.model.errors import InvalidRequest, Unavailable
from armada.model.fleet import Bid, PoolBids
from armada.runtime.telemetry import make_log
from armada.server.feeds import polling
from armada.server.feeds.polling import BIDS, Feed, FeedMetrics
from armada.server.feeds.sources import BidFile, InventedBids, OverrideFile

LOG = make_log("error", "json")


class Scripted:
    """Answers as told, one after the other, and says when nothing is left to say."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.done = asyncio.Event()

    async def ask(self) -> Any:
        if not self.answers:
            self.done.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def heard(source: Scripted, registry: CollectorRegistry | None = None) -> tuple[list[Any], list[str]]:
    """Let a feed ask a source to its end; return what it told."""
    answers: list[Any] = []
    failures: list[str] = []
    feed: Feed[Any] = Feed(
        BIDS,
        source,
        period_s=0.0,
        on_answer=answers.append,
        on_failure=failures.append,
        metrics=FeedMetrics(registry or CollectorRegistry()),
        log=LOG,
    )
    asking = asyncio.create_task(feed.run())
    async with asyncio.timeout(5):
        await source.done.wait()
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    return answers, failures


async def test_only_what_is_new_is_told() -> None:
    assert await heard(Scripted(1, 1, 2, 2, 1)) == ([1, 2, 1], [])


async def test_a_failure_changes_nothing_and_is_told() -> None:
    registry = CollectorRegistry()
    answers, failures = await heard(Scripted(Unavailable("down"), 1, InvalidRequest("odd"), 1, 2), registry)
    assert (answers, failures) == ([1, 2], ["down", "odd"])
    assert registry.get_sample_value("armada_feed_failures_total", {"feed": BIDS}) == 2
    for name, labels in (
        ("armada_feed_last_answer_timestamp_seconds", {"feed": BIDS}),
        ("armada_scheduler_bid_price_cache_last_refresh_timestamp_seconds", {}),
    ):
        last = registry.get_sample_value(name, labels)
        assert last is not None
        assert last > 1_700_000_000


async def test_a_source_that_never_answers_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "ANSWER_LIMIT_S", 0.01)

    class Silent(Scripted):
        async def ask(self) -> Any:
            if self.answers:
                self.answers.pop()
                await asyncio.Event().wait()
            return await super().ask()

    _, failures = await heard(Silent(1))
    assert len(failures) >= 1
    assert "no answer within" in failures[0]


async def test_after_failures_the_waits_grow_to_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def noted(seconds: float) -> None:
        waits.append(seconds)

    source = Scripted(*[Unavailable("down")] * 20, 1, Unavailable("down"))
    monkeypatch.setattr("armada.server.feeds.polling.asyncio.sleep", noted)
    feed: Feed[Any] = Feed(
        BIDS,
        source,
        period_s=4.0,
        on_answer=lambda _: None,
        on_failure=lambda _: None,
        metrics=FeedMetrics(CollectorRegistry()),
        log=LOG,
    )
    asking = asyncio.create_task(feed.run())
    await source.done.wait()
    asking.cancel()
    assert 0.25 <= waits[0] <= 0.5
    assert waits[19] == 4.0
    assert waits[20] == 4.0
    assert 0.25 <= waits[21] <= 0.5


async def test_overrides_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "overrides.yaml"
    source = OverrideFile(path)
    with pytest.raises(InvalidRequest, match=r"overrides.yaml can't be read"):
        await source.ask()
    path.write_text("default: {qa: 2, qb: 0}\n")
    assert await source.ask() == {"default": {"qa": 2.0}}
    path.write_text("default: {qa: 0.5}\ngpu: {qa: 4}\n")
    assert await source.ask() == {"default": {"qa": 0.5}, "gpu": {"qa": 4.0}}
    path.write_text("")
    assert await source.ask() == {}


@pytest.mark.parametrize("text", ["- qa\n", "default: 3\n", "default: {qa: much}\n", "default: {qa: [\n"])
async def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "overrides.yaml"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=r"overrides\.yaml"):
        await OverrideFile(path).ask()


async def test_bids_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bids.yaml"
    path.write_text(
        """
        bids:
          - {queue: qa, pool: default, band: A, queued: 2, running: 3}
          - {queue: qa, pool: default, band: C, queued: 4}
          - {queue: qa, pool: default, queued: 1, running: 1}
        resourceUnits:
          default: {cpu: 1, memory: 4Gi}
        """
    )
    table = await BidFile(path).ask()
    assert table.queues == {"qa": {"default": PoolBids({1: Bid(2.0, 3.0), 3: Bid(4.0, 0.0)}, Bid(1.0, 1.0))}}
    assert table.resource_units == {"default": {"cpu": "1", "memory": "4Gi"}}
    path.write_text("bids: [{queue: qa, pool: default, band: Z, queued: 2}]")
    with pytest.raises(InvalidRequest, match=r"bids\[0\]\.band: 'Z' is none of the bands"):
        await BidFile(path).ask()


async def test_invented_bids_go_by_the_band() -> None:
    queues = ["qb", "qa"]
    source = InventedBids(lambda: queues, ["m"])
    table = await source.ask()
    assert list(table.queues) == ["qa", "qb"]
    assert [table.bid("qa", "m", band, running=True) for band in range(9)] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert table.bid("qa", "other", 1, running=True) == 0.0
    assert (await source.ask()).snapshot_id == table.snapshot_id
    queues.append("qc")
    assert (await source.ask()).snapshot_id != table.snapshot_id


@pytest.mark.parametrize("text", ["default: {qa: 2020-13-45}\n", f"default: {{qa: {'9' * 400}}}\n", "[" * 5000])
async def test_no_text_in_a_file_ends_a_feed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "overrides.yaml"
    path.write_text(text)
    for source in (OverrideFile(path), BidFile(path)):
        with pytest.raises(InvalidRequest, match=r"overrides\.yaml"):
            await source.ask()


async def test_factors_and_bids_that_no_share_could_be_worked_out_with(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("default: {qa: 5.0e-324, qb: 1.0e+308, qc: 1.0e-9}\n")
    assert await OverrideFile(path).ask() == {"default": {"qc": 1e-9}}
    path.write_text("bids: [{queue: qa, pool: default, queued: 1.0e+308}]\n")
    with pytest.raises(InvalidRequest, match=r"values\.yaml.*a bid must be a number from 0 to 1e\+100, found 1e\+308"):
        await BidFile(path).ask()
