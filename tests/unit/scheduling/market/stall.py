"""Small markets made by hand: pool `p` as `builders.Setting` makes it, with bids by queue and band."""

from typing import Any

import numpy as np

from armada.model.fleet import Bid, BidTable, PoolBids
from armada.model.policy import MarketPolicy, PricedGang
from armada.scheduling.decisions import Decisions, MarketFigures
from armada.scheduling.market.columns import Offers
from tests.unit.scheduling.builders import Named, Setting, policy

UNIT = {"cpu": "1"}


def market(*gangs: PricedGang, cutoff: float = 0.9, **settings: Any) -> Setting:
    """A pool with a market and no nodes yet."""
    terms = MarketPolicy(spot_price_cutoff=cutoff, pricing_timeout_ms=1_000, priced_gangs=gangs)
    return Setting(policy(pool={"market": terms}, **settings))


def offers(setting: Setting, bids: dict[str, list[float]], bands: dict[str, int] | None = None) -> None:
    """Let queues bid by band, from band 1 (A) on; jobs are of band 1 unless `bands` says otherwise, by name."""
    table = {
        queue: {"p": PoolBids({band: Bid(bid, bid) for band, bid in enumerate(own, 1)})} for queue, own in bids.items()
    }
    band = [(bands or {}).get(job.name, 1) for job in setting.jobs]
    setting.numbers["offers"] = Offers(
        bids=BidTable(queues=table, resource_units={"p": UNIT}),
        band=np.array(band, np.uint8),
        submitted=np.arange(len(band), dtype=np.int64),
    )


def decided(setting: Setting, bids: dict[str, list[float]], bands: dict[str, int] | None = None) -> Named:
    """Decide one round of it."""
    offers(setting, bids, bands)
    return setting.decide()


def figures(found: Decisions) -> MarketFigures:
    """What the round says of the market."""
    assert found.market is not None
    return found.market
