"""Capacity and who shares it: queues and what they bid, pools' nodes, executors, priority classes, taints."""

from typing import Final

import msgspec

from armada.model.errors import InvalidRequest

PRICE_BANDS: Final = "ABCDEFGH"
"""The bands that a job can name; band number 1 is A, 0 is a job without one."""


class Taint(msgspec.Struct, frozen=True, order=True):
    """A node's taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Subject(msgspec.Struct, frozen=True):
    """A user or group; `kind` is `User` or `Group`."""

    kind: str
    name: str


class QueuePermission(msgspec.Struct, frozen=True):
    """What some subjects may do with a queue's jobs (submit, cancel, preempt, reprioritize, watch)."""

    subjects: tuple[Subject, ...] = ()
    verbs: tuple[str, ...] = ()


class ClassLimit(msgspec.Struct, frozen=True):
    """Limits of a queue in one priority class: resource -> fraction of a pool, and pool -> (resource -> fraction)."""

    fractions: dict[str, float] = {}
    fractions_by_pool: dict[str, dict[str, float]] = {}


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """One owner's line of jobs. Its weight is 1 / `priority_factor` (finite, at least 1 at the API)."""

    name: str
    priority_factor: float = 1.0
    permissions: tuple[QueuePermission, ...] = ()
    limits_by_class: dict[str, ClassLimit] = {}
    cordoned: bool = False
    labels: dict[str, str] = {}
    retry_policies: tuple[str, ...] = ()


class AwayCondition(msgspec.Struct, frozen=True):
    """A test of a job's request of one resource (`operator` is `>`, `<` or `==`; `value` a quantity)."""

    resource: str
    operator: str
    value: str


class AwayTypeRef(msgspec.Struct, frozen=True):
    """A well-known node type that is open to away jobs whose requests meet all conditions."""

    name: str
    conditions: tuple[AwayCondition, ...] = ()


class AwayNodeType(msgspec.Struct, frozen=True):
    """One fall-back of a priority class: which node types, and the priority that its jobs have there."""

    priority: int
    node_types: tuple[AwayTypeRef, ...]


class PriorityClass(msgspec.Struct, frozen=True, kw_only=True):
    """Preemption rank of jobs. A larger `priority` is more important; only preemptible jobs may be evicted."""

    name: str
    priority: int
    preemptible: bool = False
    limit: ClassLimit = ClassLimit()
    away_node_types: tuple[AwayNodeType, ...] = ()


class WellKnownNodeType(msgspec.Struct, frozen=True):
    """A name for a set of taints that mark special hardware; a taint value of `*` is a wildcard."""

    name: str
    taints: tuple[Taint, ...]


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A machine as its executor reports it, without the runs it holds.

    `total` and the values of `unallocatable` (by pod priority: space of pods that are not ours) are Kubernetes
    quantities by resource name. `node_id` is unique over all executors.
    """

    node_id: str
    name: str
    executor_id: str
    pool: str
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    total: dict[str, str] = {}
    unallocatable: dict[int, dict[str, str]] = {}
    unschedulable: bool = False
    node_type: str = ""
    reservation: str = ""


class ExecutorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator set for one executor."""

    executor_id: str
    cordoned: bool = False
    cordon_reason: str = ""
    set_by: str = ""
    set_at_ms: int = 0


MIN_FACTOR: Final = 1e-9
MAX_FACTOR: Final = 1e300
"""Priority factors beyond these give no weight with which shares can be worked out."""

MAX_BID: Final = 1e100
"""Bids are multiplied and added up; a larger one would leave the finite numbers."""


class Bid(msgspec.Struct, frozen=True):
    """What a queue offers for a job of one band, by what the job does: wait, or run (and might have to leave).

    Raises (when made):
        InvalidRequest: an amount that is negative, beyond MAX_BID or no number.
    """

    queued: float = 0.0
    running: float = 0.0

    def __post_init__(self) -> None:
        for amount in (self.queued, self.running):
            if not 0 <= amount <= MAX_BID:
                raise InvalidRequest(f"a bid must be a number from 0 to {MAX_BID:g}, found {amount}")


NO_BID: Final = Bid()


class PoolBids(msgspec.Struct, frozen=True):
    """One queue's bids in one pool, by band number; `fallback` is for jobs that name no band."""

    bands: dict[int, Bid] = {}
    fallback: Bid = NO_BID

    def of(self, band: int) -> Bid:
        """Return the bid for a band number; a band that the queue offers nothing for bids nothing."""
        return self.fallback if band == 0 else self.bands.get(band, NO_BID)


class BidTable(msgspec.Struct, frozen=True, kw_only=True):
    """All that queues bid at one time: queue -> pool -> bids, and each pool's resource unit (quantities).

    A bid is for one resource unit. `snapshot_id` tells tables apart: equal ids, equal tables. A key that is not in
    here bids nothing, whatever an earlier table said.
    """

    snapshot_id: str = ""
    queues: dict[str, dict[str, PoolBids]] = {}
    resource_units: dict[str, dict[str, str]] = {}

    def of(self, queue: str, pool: str) -> PoolBids:
        """Return what a queue bids in a pool."""
        return self.queues.get(queue, {}).get(pool, _NO_BIDS)

    def bid(self, queue: str, pool: str, band: int, *, running: bool) -> float:
        """Return one bid."""
        bid = self.of(queue, pool).of(band)
        return bid.running if running else bid.queued


_NO_BIDS: Final = PoolBids()
