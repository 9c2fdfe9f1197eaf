"""Which services are listened to, and the leader that hears them."""

from collections.abc import Callable
from pathlib import Path

import grpc
import grpc.aio
import msgspec
from prometheus_client import CollectorRegistry

from armada.control.cycle import Leader
from armada.control.rounds.feeds import Feeds
from armada.model.configuration import ServiceFeed
from armada.model.fleet import BidTable
from armada.model.policy import SchedulingPolicy
from armada.runtime.supervision import Supervisor
from armada.runtime.telemetry import Log
from armada.server.feeds.polling import BIDS, OVERRIDES, Answer, Feed, FeedMetrics, Source
from armada.server.feeds.sources import BidFile, BidService, InventedBids, OverrideFile, OverrideService
from armada.server.replica import Replica
from armada.wire.feeds.overrides import WeightOverrides
from armada.wire.services import channel_options


class Listening:
    """The feeds of a control plane. What they say reaches the leader at once, and wakes its loop."""

    def __init__(  # noqa: PLR0913 - the parts it works with are handed in, never looked up
        self,
        replica: Replica,
        leader: Leader,
        policy: SchedulingPolicy,
        *,
        wake: Callable[[], None],
        registry: CollectorRegistry,
        log: Log,
    ) -> None:
        self._replica = replica
        self._leader = leader
        self._policy = policy
        self._wake = wake
        self._metrics = FeedMetrics(registry)
        self._log = log

    def start(self, supervisor: Supervisor, overrides: ServiceFeed | None, bids: ServiceFeed | None) -> None:
        """Listen to the services that are configured, until the supervisor stops."""
        self._hear(awaits_overrides=overrides is not None, awaits_bids=bids is not None)
        if overrides is not None:
            feed = self._feed(OVERRIDES, self._overrides_of(supervisor, overrides), overrides, self._heard_overrides)
            supervisor.start(OVERRIDES, feed.run)
        if bids is not None:
            supervisor.start(BIDS, self._feed(BIDS, self._bids_of(supervisor, bids), bids, self._heard_bids).run)

    def _feed(
        self, name: str, source: Source[Answer], settings: ServiceFeed, heard: Callable[[Answer], None]
    ) -> Feed[Answer]:
        return Feed(
            name,
            source,
            period_s=settings.period_ms / 1_000,
            on_answer=heard,
            on_failure=lambda reason: self._missed(name, reason),
            metrics=self._metrics,
            log=self._log,
        )

    def _overrides_of(self, supervisor: Supervisor, settings: ServiceFeed) -> Source[WeightOverrides]:
        if settings.file:
            return OverrideFile(Path(settings.file))
        return OverrideService(_channel(supervisor, OVERRIDES, settings))

    def _bids_of(self, supervisor: Supervisor, settings: ServiceFeed) -> Source[BidTable]:
        if settings.invents:
            return InventedBids(self._queues, [pool.name for pool in self._policy.pools if pool.market is not None])
        if settings.file:
            return BidFile(Path(settings.file))
        return BidService(_channel(supervisor, BIDS, settings), self._queues)

    def _queues(self) -> tuple[str, ...]:
        return tuple(self._replica.ledger.queues)

    def _heard_overrides(self, overrides: WeightOverrides) -> None:
        self._hear(overrides=overrides, override_trouble="")

    def _heard_bids(self, bids: BidTable) -> None:
        self._hear(bids=bids, bid_trouble="")

    def _missed(self, name: str, reason: str) -> None:
        if name == OVERRIDES:
            self._hear(override_trouble=reason)
        else:
            self._hear(bid_trouble=reason)

    def _hear(self, **changes: object) -> None:
        feeds: Feeds = msgspec.structs.replace(self._leader.feeds, **changes)
        self._leader.hear(feeds, self._replica.now_ms())
        self._wake()


def _channel(supervisor: Supervisor, name: str, settings: ServiceFeed) -> grpc.aio.Channel:
    """Open a channel that is closed when the process stops."""
    if settings.encrypted:
        channel = grpc.aio.secure_channel(
            settings.service_url, grpc.ssl_channel_credentials(), options=channel_options()
        )
    else:
        channel = grpc.aio.insecure_channel(settings.service_url, options=channel_options())

    async def close() -> None:
        await channel.close()

    supervisor.at_stop(f"channel for {name}", close)
    return channel
