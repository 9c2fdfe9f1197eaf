"""What reaches the agent, what it asks for, and its limits: plain values. Pure."""

import msgspec

from armada.executor.cluster import Changes, Creation, Listing, PodDeletion
from armada.executor.holding.retention import RetentionLimits
from armada.executor.holding.runs import Mark
from armada.executor.pods import PodOrder, StuckLimits
from armada.model.events import JobSetEvents
from armada.model.leases import LeaseReply, LeaseRequest


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who the agent is, and its limits.

    `max_unstarted` bounds leases whose pods have not been seen; `hold_ms` is how long the server may hold an exchange
    open, 0 for a server that answers at once; `exchange_interval_ms` is the heartbeat when there is nothing to say.
    """

    executor_id: str
    pool: str
    max_unstarted: int = 1000
    hold_ms: int = 10_000
    exchange_interval_ms: int = 5_000
    exchange_gap_ms: int = 5
    repeat_gap_ms: int = 250
    abandon_after_ms: int = 20
    create_batch: int = 500
    create_tries: int = 6
    report_batch: int = 2_000
    retry_first_ms: int = 500
    retry_last_ms: int = 30_000
    sweep_ms: int = 5_000
    repeat_end_ms: int = 60_000
    unseen_ms: int = 900_000
    keeps_journal: bool = True
    stuck: StuckLimits = StuckLimits()
    retention: RetentionLimits = RetentionLimits()

    def delay_ms(self, tries: int) -> int:
        """How long to wait after so many failures in a row: doubling, up to a limit."""
        return min(self.retry_first_ms << min(tries - 1, 16), self.retry_last_ms)


class Listed(msgspec.Struct, frozen=True):
    """The cluster was listed; the agent does nothing before the first of these."""

    listing: Listing


class Changed(msgspec.Struct, frozen=True):
    """The cluster changed."""

    changes: Changes


class Replied(msgspec.Struct, frozen=True):
    """The exchange under way was answered."""

    reply: LeaseReply


class ExchangeFailed(msgspec.Struct, frozen=True):
    """The exchange under way failed, or (`was_abandoned`) was given up as asked."""

    was_abandoned: bool = False


class Created(msgspec.Struct, frozen=True):
    """The orders under way were answered, one by one."""

    creations: tuple[Creation, ...]


class DeletionFailed(msgspec.Struct, frozen=True):
    """The cluster could not be asked for these deletions."""

    deletions: tuple[PodDeletion, ...]


class Acknowledged(msgspec.Struct, frozen=True):
    """The report under way is durable."""


class ReportFailed(msgspec.Struct, frozen=True):
    """The report under way did not get through; `was_refused` when the same report would be refused again."""

    was_refused: bool = False


class Draining(msgspec.Struct, frozen=True):
    """Take no more leases."""


ClusterStimulus = Listed | Changed | Created | DeletionFailed
ControlStimulus = Replied | ExchangeFailed | Acknowledged | ReportFailed | Draining
Stimulus = ClusterStimulus | ControlStimulus


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now, in this order. `abandon`: give up the exchange under way. `wake_at_ms`: step again then.

    `proceed`: pods from before may go on, once `delete` is done.
    """

    marks: tuple[Mark, ...] = ()
    delete: tuple[PodDeletion, ...] = ()
    proceed: bool = False
    create: tuple[PodOrder, ...] = ()
    report: tuple[JobSetEvents, ...] = ()
    exchange: LeaseRequest | None = None
    abandon: bool = False
    wake_at_ms: int
    warnings: tuple[str, ...] = ()


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Counts for metrics: runs held by stage, facts not delivered, finished pods kept, facts given up."""

    held: dict[str, int]
    facts_waiting: int
    pods_kept: int
    facts_dropped: int
    nodes: int
