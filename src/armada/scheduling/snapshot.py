"""One pool as read-only arrays: all that a round may look at.

A snapshot is made by `tables.build_snapshot` and handed to `round.schedule`. Units: amounts are int64 in the column
unit of each resource kind (`RoundRules.resources`), priorities are plain int64, rows are int32 positions in the table
that the field's text names. Arrays are never written after the snapshot is made.

Letters in shapes: R resource kinds, N nodes, T node types, S shapes, D placement rules, C priority classes, Q queues
(sorted by name), J queued jobs, M running jobs, G gangs, L uniformity labels.
"""

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.errors import CorruptEntry

Amounts = NDArray[np.int64]
Rows = NDArray[np.int32]
Flags = NDArray[np.uint8]
Floats = NDArray[np.float64]

UNLIMITED: Final = 2**63 - 1
"""An amount, or a number of tokens, that nothing reaches."""

EVICTED: Final = -2
"""The priority of the bucket that counts everything, evicted jobs too."""
CROSS_POOL: Final = -1
"""The priority at which jobs of other pools are bound when they are preempted first."""

HOME: Final = 0
"""`RunningColumns.kind`: the run belongs to this pool."""
AWAY: Final = 1
"""`RunningColumns.kind`: a guest on a node of this pool; its run's pool lists this one among its away pools."""
FOREIGN: Final = 2
"""`RunningColumns.kind`: a run of any other pool; it takes room and is never touched."""
ELSEWHERE: Final = 3
"""`RunningColumns.kind`: on no node of the round, but in a gang of which other members are guests here."""
GUEST_SUFFIX: Final = "-away"
"""What follows a queue's name in that of its line of guests."""

CAPSULE_VERSION: Final = 2
_ARRAY: Final = 1


class RoundRules(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Settings of the pool as plain numbers.

    `multipliers` weigh a resource's use as cost (0: does not count). `indexed` are (column, resolution) pairs in the
    order by which nodes are sorted. `priorities` are the buckets' priorities, ascending, first EVICTED and CROSS_POOL.
    `total` is the pool: what all kept nodes and the floating resources offer. `floating` marks columns that no node
    holds. `unscheduled` marks columns that a job may not ask for. Tokens are those at the round's time. A limit of time
    that is 0 is none. With an
    `excess_margin` fairness takes from a queue what it holds beyond its protected share, and this fraction of its
    share; without one it draws everything again that the queue may lose.
    """

    pool: str
    resources: tuple[str, ...]
    exponents: tuple[int, ...]
    multipliers: tuple[float, ...]
    indexed: tuple[tuple[int, int], ...]
    priorities: tuple[int, ...]
    total: tuple[int, ...]
    round_limit: tuple[int, ...]
    floating: tuple[bool, ...]
    unscheduled: tuple[bool, ...]
    protected_fraction: float = 1.0
    protects_uncapped_share: bool = False
    excess_margin: float | None = None
    global_tokens: float = UNLIMITED
    global_burst: int = UNLIMITED
    preemption_tokens: float | None = None
    lookback: int = 100_000
    max_round_ms: int = 0
    max_new_jobs_ms: int = 0
    max_new_jobs_per_queue_ms: int = 0
    rotates_ties: bool = False
    indicative_priorities: tuple[int, ...] = ()
    prefers_large_jobs: bool = False
    home_scheduling: bool = True
    away_scheduling: bool = True
    gang_away_scheduling: bool = True
    fairshare_preemption: bool = True
    urgency_preemption: bool = True
    cross_pool_preempted_first: bool = True


class NodeColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The nodes of the round, in index order.

    `allocatable` is what our jobs may use, before any of them. `rank` is the place of the id among all ids, sorted.
    `lane`: nodes with equal indexed taints and labels; inside one they are sorted by rounded free amounts, lanes merge
    by exact ones. `type`: nodes that no shape of this round can tell apart. `overfull`: its jobs took more than it
    offers when the round began, so its jobs may always return and nothing else may come.
    """

    ids: tuple[str, ...]
    total: Amounts
    allocatable: Amounts
    rank: Rows
    lane: Rows
    type: Rows
    overfull: Flags


class ClassColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Priority classes (C)."""

    names: tuple[str, ...]
    priority: Amounts
    preemptible: Flags


class ShapeColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Shapes (S) and which of them may ever run on which node types.

    `request` holds all resources. `verdict[rule, type]` is -1 where a shape of this rule may run, else the row of
    `texts` that says why not. Away entries of shape s are `away_offsets[s]` to `away_offsets[s + 1]`, in the order in
    which they are tried; `away_entry` is the entry's place in the class's list.
    """

    request: Amounts
    class_row: Rows
    rule: Rows
    verdict: Rows
    texts: tuple[str, ...]
    away_offsets: Rows
    away_rule: Rows
    away_priority: Amounts
    away_entry: Rows


class QueueColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Queues with work in the pool (Q), sorted by name. `limit[q, c]` bounds what q may hold in class c.

    `holds` marks queues whose first queued job has waited so long that free room is held for it.

    A queue that has guests here has a line of its own for them (`guest`), named with GUEST_SUFFIX. It has the queue's
    weight and holds what the guests hold; it wants nothing and no job waits in it.
    """

    names: tuple[str, ...]
    guest: Flags
    weight: Floats
    raw_weight: Floats
    cordoned: Flags
    tokens: Floats
    burst: Amounts
    penalty: Amounts
    limit: Amounts
    holds: Flags


class QueuedColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Queued jobs (J): queue q has `offsets[q]` to `offsets[q + 1]`, next one first.

    `row` is the caller's name for the job. `gang` is -1 for a job of its own.
    """

    offsets: Amounts
    row: Rows
    shape: Rows
    gang: Rows


class RunningColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Running jobs (M), queue by queue as `QueuedColumns`, in the order in which they would be served.

    `node` is -1 where the node is not in the round. `priority` is the one it was scheduled at. `kind` is HOME, AWAY or
    ELSEWHERE; guests and their gangs' other members are in the lines of guests. FOREIGN ones have left their mark on
    `NodeColumns.allocatable` and are not here.
    """

    offsets: Amounts
    row: Rows
    shape: Rows
    gang: Rows
    node: Rows
    priority: Amounts
    leased_ms: Amounts
    kind: Flags


class GangColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Gangs (G) and uniformity labels (L).

    `label` is -1 for a gang that may spread, else a row of `labels`. `values[label]` are the label's values, sorted;
    `domain[label, type]` is the value that nodes of this type carry, or -1.
    """

    cardinality: Rows
    label: Rows
    labels: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    domain: Rows


class PricedGangColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Gangs (P) that are not there, whose price is asked for: `size` equal members of `request` [P, R] each.

    `domain[p, n]` is the value of the gang's uniformity label on node n (a number, 0 for all when it asks for none), or
    -1 where no member may run.
    """

    names: tuple[str, ...]
    size: Amounts
    request: Amounts
    domain: Rows


class MarketColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What a pool with a market needs besides. In such a pool queued and running jobs come in market order.

    Market order inside a queue: class priority, bid (both descending), running before queued, older lease, submit
    order. `bids[q, band, phase]` is what queue q bids for a job of the band that waits (phase 0) or runs (1).
    `queued_band` [J] and `running_band` [M] are band numbers. `unit` [R] is how much of each resource one bid is for,
    in column units (0: the resource does not count).
    """

    cutoff: float
    bids: Floats
    queued_band: Flags
    running_band: Flags
    unit: Floats
    gangs_to_price: PricedGangColumns
    pricing_steps: int


class OptimiserColumns(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the fairness optimiser goes by in a round in which it takes part.

    It places at most `most_jobs` jobs, together of `most` [R] at most, that each ask for `smallest` [R] at least. Jobs
    that ask for more than `largest` [R] (0: any amount) of something never make room. What a gang is worth must exceed
    the price of its places by `improvement_percent`. `submitted` orders running jobs [M], then queued ones [J], by
    submission. `now_ms` is on the clock of `leased_ms`. It stops after `timeout_ms` (0: never).
    """

    most_jobs: int
    most: tuple[int, ...]
    smallest: tuple[int, ...]
    largest: tuple[int, ...]
    improvement_percent: float
    now_ms: int
    submitted: Amounts
    timeout_ms: int = 0


class PoolSnapshot(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Everything a round of one pool depends on, besides its seed.

    `market` is there in pools with a market, `optimiser` in rounds in which the fairness optimiser takes part.
    """

    rules: RoundRules
    nodes: NodeColumns
    classes: ClassColumns
    shapes: ShapeColumns
    queues: QueueColumns
    queued: QueuedColumns
    running: RunningColumns
    gangs: GangColumns
    market: MarketColumns | None = None
    optimiser: OptimiserColumns | None = None

    def to_bytes(self) -> bytes:
        """Return the snapshot as a capsule: the same round can be decided from it anywhere."""
        return msgspec.msgpack.encode((CAPSULE_VERSION, self), enc_hook=_packed)

    @classmethod
    def from_bytes(cls, capsule: bytes) -> "PoolSnapshot":
        """Read a capsule.

        Raises:
            CorruptEntry: the bytes are no capsule, or one of another version.
        """
        try:
            version, rest = msgspec.msgpack.decode(capsule, type=tuple[int, msgspec.Raw])
            if version != CAPSULE_VERSION:
                raise CorruptEntry(f"a capsule of version {version} can't be read, only {CAPSULE_VERSION}")
            return msgspec.msgpack.decode(rest, type=cls, dec_hook=_unpacked)
        except (msgspec.DecodeError, ValueError) as error:
            raise CorruptEntry(f"these bytes are no round capsule: {error}") from error


def _packed(value: Any) -> msgspec.msgpack.Ext:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a snapshot can't hold {type(value)}")
    head = (value.dtype.str, value.shape, np.ascontiguousarray(value).data.cast("B") if value.size else b"")
    return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(head))


def _unpacked(_: type, value: Any) -> NDArray[Any]:
    if not isinstance(value, msgspec.msgpack.Ext) or value.code != _ARRAY:
        raise ValueError("an array was expected")
    kind, shape, raw = msgspec.msgpack.decode(value.data, type=tuple[str, tuple[int, ...], bytes])
    # Copied, because kernels are compiled for arrays that may be written to.
    return np.frombuffer(raw, dtype=np.dtype(kind)).reshape(shape).copy()
