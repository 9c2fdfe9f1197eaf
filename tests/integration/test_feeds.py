# ruff: noqa: N802, ARG002 - names and arguments of the servicers are those of the API
"""A running control plane beside an override service and a bid service on sockets of their own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from armada.control.explaining import Explaining
from armada.model.errors import StartupRefused
from armada.model.fleet import Bid, BidTable, PoolBids
from armada.runtime.settings import load_settings
from armada.wire import services
from armada.wire.feeds.bids import bid_message
from armada.wire.feeds.overrides import WeightOverrides, override_message
from tests.integration.plane import Executor, Plane, item, plane


class Prices(services.PriorityOverrideServicer, services.BidServicer):
    """Both services; an answer that is None is an error."""

    def __init__(self) -> None:
        self.overrides: WeightOverrides | None = None
        self.bids: BidTable | None = None
        self.asked_for: list[list[str]] = []
        self.times = 0

    async def GetPriorityOverrides(self, request: Any, context: Any) -> Any:
        self.times += 1
        if self.overrides is None:
            await context.abort(grpc.StatusCode.INTERNAL, "no overrides yet")
        return override_message(self.overrides or {})

    async def RetrieveBids(self, request: Any, context: Any) -> Any:
        self.asked_for.append(list(request.queues))
        if self.bids is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "no bids yet")
        return bid_message(self.bids or BidTable())


@contextlib.asynccontextmanager
async def serving_prices(prices: Prices) -> AsyncIterator[str]:
    """Serve prices on a free port; gives its address."""
    server = grpc.aio.server()
    services.register(server, prices)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def section(address: str) -> dict[str, Any]:
    return {"enabled": True, "serviceUrl": address, "updateFrequency": "100ms", "forceNoTls": True}


def explained(here: Plane) -> str:
    control_plane = here.running.control_plane
    return Explaining(control_plane._leader).pools(control_plane.replica.ledger)


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for has no bell
            await asyncio.sleep(0.02)


async def test_rounds_wait_for_overrides_and_then_go_by_them(tmp_path: Path) -> None:
    prices = Prices()
    async with serving_prices(prices) as address, plane(tmp_path, priority_override=section(address)) as here:
        executor = Executor(here.running, cpu="8")
        await executor.exchange()
        await here.client.create_queue("qb")
        await here.client.send(*[item(priority_class="armada-preemptible")] * 8)
        await here.client.send(*[item(priority_class="armada-preemptible")] * 8, queue="qb")
        leader = here.running.control_plane._leader
        await eventually(lambda: "default" in leader.failures)
        assert "no priority overrides have been received yet" in leader.failures["default"].reason
        assert "no overrides yet" in leader.failures["default"].reason
        assert "Pool default can't be decided" in explained(here)
        assert (await executor.exchange()).leases == ()
        prices.overrides = {"default": {"qb": 3.0, "qa": -1.0}}
        taken = await executor.take(8)
        assert sorted(lease.queue for lease in taken) == ["qa"] * 6 + ["qb"] * 2
        assert leader.failures == {}
        prices.overrides = None
        before = prices.times
        await eventually(lambda: prices.times > before + 1)
        assert leader.feeds.overrides == {"default": {"qb": 3.0}}


async def test_bids_are_asked_for_all_queues_and_reach_the_leader(tmp_path: Path) -> None:
    prices = Prices()
    market = {"enabled": True, "spotPriceCutoff": 0.9, "gangIndicativePricingTimeout": "1s"}
    scheduling = {"pools": [{"name": "default", "experimentalMarketScheduling": market}]}
    async with (
        serving_prices(prices) as address,
        plane(tmp_path, pricing_api=section(address), scheduling=scheduling) as here,
    ):
        leader = here.running.control_plane._leader
        await here.client.create_queue("qb")
        await eventually(lambda: ["qa", "qb"] in [sorted(names) for names in prices.asked_for])
        assert leader.feeds.bids is None
        assert "no bids yet" in leader.feeds.bid_trouble
        prices.bids = BidTable(queues={"qa": {"default": PoolBids({1: Bid(2.0, 3.0)}, Bid(1.0, 1.0))}})
        await eventually(lambda: leader.feeds.bids is not None)
        table = leader.feeds.bids
        assert table is not None
        assert table.bid("qa", "default", 1, running=True) == 3.0
        asked = len(prices.asked_for)
        await eventually(lambda: len(prices.asked_for) > asked + 1)
        assert leader.feeds.bids is table
        prices.bids = BidTable(queues={"qb": {"default": PoolBids({1: Bid(5.0, 5.0)})}})
        await eventually(lambda: leader.feeds.bids is not table)
        assert leader.feeds.bids.bid("qa", "default", 1, running=True) == 0.0


async def test_a_file_in_place_of_a_service(tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    file.write_text("default: {qa: 2}\n")
    told = {"enabled": True, "serviceUrl": f"file:{file}", "updateFrequency": "100ms"}
    async with plane(tmp_path / "plane", priority_override=told) as here:
        leader = here.running.control_plane._leader
        await eventually(lambda: leader.feeds.overrides == {"default": {"qa": 2.0}})
        file.write_text("default: {qa: 4}\n")
        await eventually(lambda: leader.feeds.overrides == {"default": {"qa": 4.0}})


async def test_settings_that_make_no_sense_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match=r"priorityOverride\.serviceUrl"):
        async with plane(tmp_path, priority_override={"enabled": True}):
            raise AssertionError("it must not start")


def test_sections_may_have_the_references_names(tmp_path: Path) -> None:
    file = tmp_path / "armada.yaml"
    file.write_text("priorityOverride: {enabled: true, serviceUrl: 'h:1'}\npricingApi: {enabled: false}\n")
    settings = load_settings(files=[file])
    assert settings.priority_override == {"enabled": True, "serviceUrl": "h:1"}
    assert settings.pricing_api == {"enabled": False}


async def test_a_service_without_encryption_is_not_spoken_to_where_it_must_be_encrypted(tmp_path: Path) -> None:
    prices = Prices()
    prices.overrides = {}
    async with serving_prices(prices) as address:
        told = {name: value for name, value in section(address).items() if name != "forceNoTls"}
        async with plane(tmp_path, priority_override=told) as here:
            leader = here.running.control_plane._leader
            await eventually(lambda: leader.feeds.override_trouble)
            assert "UNAVAILABLE" in leader.feeds.override_trouble
            assert leader.feeds.overrides is None
            assert prices.times == 0


async def test_a_market_goes_by_the_bids_of_the_service(tmp_path: Path) -> None:
    prices = Prices()
    prices.bids = BidTable(
        queues={
            "qa": {"default": PoolBids({1: Bid(1.0, 1.0)})},
            "qb": {"default": PoolBids({1: Bid(5.0, 5.0)})},
        },
        resource_units={"default": {"cpu": "1"}},
    )
    market = {"enabled": True, "spotPriceCutoff": 0.9, "gangIndicativePricingTimeout": "1s"}
    scheduling = {"pools": [{"name": "default", "experimentalMarketScheduling": market}]}
    async with (
        serving_prices(prices) as address,
        plane(tmp_path, pricing_api=section(address), scheduling=scheduling) as here,
    ):
        await here.client.create_queue("qb")
        for queue in ("qa", "qb"):
            items = [item(priority_class="armada-preemptible", **{"armadaproject.io/priceBand": "A"}) for _ in range(4)]
            await here.client.send(*items, queue=queue)
        executor = Executor(here.running, cpu="4")
        await executor.exchange()
        assert [lease.queue for lease in await executor.take(4)] == ["qb"] * 4
