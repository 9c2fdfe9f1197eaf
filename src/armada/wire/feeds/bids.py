"""Bids: the answer of the bid service as a table."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from armada._proto import prices_pb2 as api
from armada.model.errors import InvalidRequest
from armada.model.fleet import Bid, BidTable, PoolBids
from armada.model.resources import parse_quantity


def bid_request(queues: Iterable[str]) -> Any:
    """The question for the bids of these queues."""
    return api.RetrieveBidsRequest(queues=queues)


def bid_table(message: api.RetrieveBidsResponse) -> BidTable:
    """Return the table that a bid service answered.

    Raises:
        InvalidRequest: a bid is no number that it may be, or a resource unit no quantity above 0; the text says whose.
    """
    queues = {
        queue: {pool: _pool_bids(bids, f"queue {queue}, pool {pool}") for pool, bids in held.pool_bids.items()}
        for queue, held in message.queue_bids.items()
    }
    units = {
        pool: {name: unit.string for name, unit in held.resources.items()}
        for pool, held in message.pool_resource_units.items()
    }
    return identified(queues, units)


def identified(queues: dict[str, dict[str, PoolBids]], resource_units: dict[str, dict[str, str]]) -> BidTable:
    """Return a table whose id follows from its content, so that an answer that says nothing new is known as such.

    Raises:
        InvalidRequest: a resource unit is no quantity above 0; the text says whose.
    """
    for pool, units in resource_units.items():
        for name, unit in units.items():
            if parse_quantity(unit) <= 0:
                raise InvalidRequest(f"pool {pool}: a unit of {unit!r} of {name} is not above 0")
    queues = {
        queue: {pool: PoolBids(dict(sorted(bids.bands.items())), bids.fallback) for pool, bids in sorted(pools.items())}
        for queue, pools in sorted(queues.items())
    }
    resource_units = {pool: dict(sorted(units.items())) for pool, units in sorted(resource_units.items())}
    digest = blake2b(msgspec.json.encode((queues, resource_units)), digest_size=16).hexdigest()
    return BidTable(snapshot_id=digest, queues=queues, resource_units=resource_units)


def _pool_bids(message: api.PoolBids, whose: str) -> PoolBids:
    bands = {
        int(entry.price_band): _bid(entry.price_band_bids, whose)
        for entry in message.price_band_bids
        if entry.price_band != api.PRICE_BAND_UNSPECIFIED
    }
    return PoolBids(bands, _bid(message.fallback_bids, whose))


def _bid(message: api.PriceBandBids, whose: str) -> Bid:
    amounts = {entry.pricing_phase: entry.bid.amount for entry in message.pricing_phase_bids}
    try:
        return Bid(amounts.get(api.PRICING_PHASE_QUEUEING, 0.0), amounts.get(api.PRICING_PHASE_RUNNING, 0.0))
    except InvalidRequest as error:
        raise InvalidRequest(f"{whose}: {error}") from error


def bid_message(table: BidTable) -> api.RetrieveBidsResponse:
    """Return the answer of a service that knows this table."""
    message = api.RetrieveBidsResponse()
    for queue, pools in table.queues.items():
        for pool, bids in pools.items():
            held = message.queue_bids[queue].pool_bids[pool]
            for band, bid in bids.bands.items():
                _write(held.price_band_bids.add(price_band=band).price_band_bids, bid)
            _write(held.fallback_bids, bids.fallback)
    for pool, units in table.resource_units.items():
        for name, quantity in units.items():
            message.pool_resource_units[pool].resources[name].string = quantity
    return message


def _write(message: Any, bid: Bid) -> None:
    message.pricing_phase_bids.add(pricing_phase=api.PRICING_PHASE_QUEUEING).bid.amount = bid.queued
    message.pricing_phase_bids.add(pricing_phase=api.PRICING_PHASE_RUNNING).bid.amount = bid.running
