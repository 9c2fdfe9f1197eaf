"""What services of others say about rounds: priorities of queues, and what queues bid."""

from collections.abc import Mapping

import msgspec

from armada.model.fleet import BidTable
from armada.model.policy import PoolPolicy


class Feeds(msgspec.Struct, frozen=True, kw_only=True):
    """The last good answers, and why there is none yet.

    `overrides` is pool -> queue -> the priority factor in place of the queue's own. An answer that is awaited and has
    not come is None; `override_trouble` and `bid_trouble` then say what keeps it.
    """

    awaits_overrides: bool = False
    awaits_bids: bool = False
    overrides: Mapping[str, Mapping[str, float]] | None = None
    bids: BidTable | None = None
    override_trouble: str = ""
    bid_trouble: str = ""

    def of_pool(self, pool: str) -> dict[str, float]:
        """Return the overrides in a pool."""
        return dict((self.overrides or {}).get(pool, {}))

    def obstacle(self, pool: PoolPolicy) -> str:
        """Say why a pool can't be decided before a first answer has come; empty when it can."""
        if self.awaits_overrides and self.overrides is None:
            return _awaited("priority overrides", self.override_trouble)
        if self.awaits_bids and self.bids is None and pool.market is not None:
            return _awaited("bids", self.bid_trouble)
        return ""


def _awaited(what: str, trouble: str) -> str:
    return f"no {what} have been received yet" + (f": {trouble}" if trouble else "")
