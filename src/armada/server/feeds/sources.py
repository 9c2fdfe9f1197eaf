"""Where priority overrides and bids come from: services, or local files and inventions in their place."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import grpc.aio

from armada.model.configuration.reading import Section, closed, listed, mapped, number, quantity, text
from armada.model.errors import InvalidRequest
from armada.model.fleet import Bid, BidTable, PoolBids
from armada.runtime.yaml_values import yaml_values
from armada.wire.feeds.bids import bid_request, bid_table, identified
from armada.wire.feeds.overrides import WeightOverrides, effective, override_request, weight_overrides
from armada.wire.services import BidStub, PriorityOverrideStub, error_from

MAX_FILE_BYTES: Final = 64 * 2**20

BANDS: Final = "ABCDEFGH"
_FIRST_INVENTED: Final = 2

Queues = Callable[[], Iterable[str]]
"""Names of all queues, as they are when asked."""


class OverrideService:
    """Overrides of `PriorityOverrideService` on a channel that it does not own."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = PriorityOverrideStub(channel)

    async def ask(self) -> WeightOverrides:
        """Return all overrides. Raises errors of model.errors."""
        try:
            return weight_overrides(await self._stub.GetPriorityOverrides(override_request()))
        except grpc.aio.AioRpcError as error:
            raise error_from(error) from error


class BidService:
    """Bids of `BidRetrieverService` for all queues, on a channel that it does not own."""

    def __init__(self, channel: grpc.aio.Channel, queues: Queues) -> None:
        self._stub = BidStub(channel)
        self._queues = queues

    async def ask(self) -> BidTable:
        """Return all bids. Raises errors of model.errors."""
        try:
            return bid_table(await self._stub.RetrieveBids(bid_request(self._queues())))
        except grpc.aio.AioRpcError as error:
            raise error_from(error) from error


class OverrideFile:
    """Overrides of a YAML file in place of a service: pool -> queue -> priority factor."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def ask(self) -> WeightOverrides:
        """Return what the file says now. Raises InvalidRequest."""
        values = await asyncio.to_thread(_content, self._path)
        return effective(mapped(mapped(number))(values, str(self._path)))


class BidFile:
    """Bids of a YAML file in place of a service.

    `bids` is a list of `queue`, `pool`, `band` (A to H; left out: for jobs that name none), `queued` and `running`;
    `resourceUnits` is pool -> resource -> quantity.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def ask(self) -> BidTable:
        """Return what the file says now. Raises InvalidRequest."""
        values = await asyncio.to_thread(_content, self._path)
        return _bids(values, str(self._path))


class InventedBids:
    """Bids for trying a market out: every queue offers 2 in band A, 3 in band B and so on, and 1 without a band."""

    def __init__(self, queues: Queues, pools: Iterable[str]) -> None:
        self._queues = queues
        self._pools = tuple(pools)

    async def ask(self) -> BidTable:
        """Return the bids of all queues as they are now."""
        bands = {band: Bid(price, price) for band, price in enumerate(range(_FIRST_INVENTED, len(BANDS) + 2), start=1)}
        bids = PoolBids(bands, Bid(1.0, 1.0))
        return identified(
            {queue: dict.fromkeys(self._pools, bids) for queue in sorted(self._queues())},
            {pool: {"cpu": "1"} for pool in self._pools},
        )


def _content(path: Path) -> Mapping[str, Any]:
    try:
        size = path.stat().st_size
        content = path.read_text(encoding="utf-8") if size <= MAX_FILE_BYTES else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} can't be read: {error}") from error
    if size > MAX_FILE_BYTES:
        raise InvalidRequest(f"{path} is longer than {MAX_FILE_BYTES:,} bytes")
    try:
        values = yaml_values(content)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidRequest(f"{path}: it must hold values by name")
    return values


@closed
def _bid(section: Section) -> tuple[str, str, int, Bid]:
    queued, running = section.get("queued", number, 0.0), section.get("running", number, 0.0)
    try:
        bid = Bid(queued, running)
    except InvalidRequest as error:
        raise InvalidRequest(f"{section.path('queued')} and running: {error}") from error
    return section.need("queue", text), section.need("pool", text), section.get("band", _band, 0), bid


def _band(value: Any, path: str) -> int:
    if not (isinstance(value, str) and len(value) == 1 and value in BANDS):
        raise InvalidRequest(f"{path}: {value!r} is none of the bands {', '.join(BANDS)}")
    return BANDS.index(value) + 1


@closed
def _bids(section: Section) -> BidTable:
    queues: dict[str, dict[str, PoolBids]] = {}
    for queue, pool, band, bid in section.get("bids", listed(_bid), ()):
        pools = queues.setdefault(queue, {})
        held = pools.get(pool, PoolBids())
        pools[pool] = PoolBids({**held.bands, band: bid}, held.fallback) if band else PoolBids(held.bands, bid)
    return identified(queues, section.get("resourceUnits", mapped(mapped(quantity)), {}))
