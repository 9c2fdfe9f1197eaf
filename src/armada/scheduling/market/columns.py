"""What a pool with a market adds to its snapshot: bids, bands, resource units, and jobs in market order."""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.fleet import PRICE_BANDS, BidTable
from armada.model.policy import PODS, MarketPolicy, PoolPolicy, PricedGang, SchedulingPolicy
from armada.model.resources import parse_quantity
from armada.scheduling.market.bidding import Bids
from armada.scheduling.matching import FITS, PlacementRule, Verdicts, label_keys, match
from armada.scheduling.snapshot import (
    GUEST_SUFFIX,
    Amounts,
    Flags,
    Floats,
    MarketColumns,
    PoolSnapshot,
    PricedGangColumns,
    QueuedColumns,
    Rows,
    RunningColumns,
)
from armada.scheduling.tables import FleetTable

PHASES: Final = 2
STEPS_PER_MS: Final = 50_000
"""How much work of `pricing.price_gangs` a millisecond of the setting's time limit stands for. A round has no clock."""

_SMALL_RANKS: Final = 2**16


class Offers(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What queues bid, and each job's price band and submit order, by the caller's rows."""

    bids: BidTable
    band: Flags
    submitted: Amounts


class Ground(msgspec.Struct, frozen=True, eq=False):
    """The fleet that a snapshot was made of: which of its nodes take part, and which are overfull."""

    fleet: FleetTable
    takes_part: NDArray[np.bool_]
    overfull: Flags


def with_market(
    snapshot: PoolSnapshot, policy: SchedulingPolicy, pool: PoolPolicy, ground: Ground, offers: Offers
) -> PoolSnapshot:
    """Return the snapshot with its market, and its jobs in market order; unchanged where the pool has none.

    A market leaves nothing for the fairness optimiser to do.
    """
    if pool.market is None:
        return snapshot
    classes, shapes = snapshot.classes, snapshot.shapes
    table = _bid_table(snapshot, offers.bids)
    bids = Bids(classes, table)

    def ranks(columns: QueuedColumns | RunningColumns, runs: int) -> tuple[Flags, Amounts]:
        queue = np.repeat(np.arange(len(columns.offsets) - 1, dtype=np.int32), np.diff(columns.offsets))
        band = offers.band[columns.row]
        _, rank = bids.of(queue, shapes.class_row[columns.shape], band, np.full(len(band), runs, np.uint8))
        return band, rank

    queued, running = snapshot.queued, snapshot.running
    queued_band, queued_rank = ranks(queued, 0)
    by_age = np.argsort(offers.submitted[queued.row], kind="stable")
    waiting = by_age[np.argsort(_small(queued_rank)[by_age], kind="stable")]
    running_band, running_rank = ranks(running, 1)
    held = np.lexsort((offers.submitted[running.row], running.leased_ms, running_rank))
    return msgspec.structs.replace(
        snapshot,
        queued=msgspec.structs.replace(
            queued, row=queued.row[waiting], shape=queued.shape[waiting], gang=queued.gang[waiting]
        ),
        running=msgspec.structs.replace(
            running,
            row=running.row[held],
            shape=running.shape[held],
            gang=running.gang[held],
            node=running.node[held],
            priority=running.priority[held],
            leased_ms=running.leased_ms[held],
            kind=running.kind[held],
        ),
        market=MarketColumns(
            cutoff=pool.market.spot_price_cutoff,
            bids=table,
            queued_band=queued_band[waiting],
            running_band=running_band[held],
            unit=_resource_unit(snapshot, policy, offers.bids),
            gangs_to_price=_priced_gangs(policy, pool, pool.market, ground),
            pricing_steps=pool.market.pricing_timeout_ms * STEPS_PER_MS,
        ),
        optimiser=None,
    )


def _small(rank: Amounts) -> NDArray[np.uint16] | Amounts:
    """Return ranks in a type that sorts faster, where they fit."""
    return rank.astype(np.uint16) if rank.max(initial=0) < _SMALL_RANKS else rank


def _bid_table(snapshot: PoolSnapshot, bids: BidTable) -> Floats:
    table = np.zeros((len(snapshot.queues.names), len(PRICE_BANDS) + 1, PHASES), np.float64)
    for row, queue in enumerate(snapshot.queues.names):
        name = queue.removesuffix(GUEST_SUFFIX) if snapshot.queues.guest[row] else queue
        own = bids.of(name, snapshot.rules.pool)
        for band in range(len(PRICE_BANDS) + 1):
            bid = own.of(band)
            table[row, band] = bid.queued, bid.running
    return table


def _resource_unit(snapshot: PoolSnapshot, policy: SchedulingPolicy, bids: BidTable) -> Floats:
    unit = np.zeros(len(snapshot.rules.resources), np.float64)
    kinds = policy.kinds()
    for name, quantity in bids.resource_units.get(snapshot.rules.pool, {}).items():
        column = kinds.index(name)
        if column is not None:
            unit[column] = parse_quantity(quantity) / 10 ** kinds.exponents[column]
    return unit


def _priced_gangs(
    policy: SchedulingPolicy, pool: PoolPolicy, market: MarketPolicy, ground: Ground
) -> PricedGangColumns:
    """Return the gangs whose price is asked for; where their members may run is worked out once a fleet."""
    kinds, gangs = policy.kinds(), market.priced_gangs
    request = np.zeros((len(gangs), len(kinds)), np.int64)
    for index, gang in enumerate(gangs):
        request[index] = kinds.vector_up(gang.requests)
        if policy.respects_node_pod_limits:
            request[index, kinds.names.index(PODS)] = 1
    fleet = ground.fleet
    key = ("priced gangs", pool.default_tolerations, ground.overfull.tobytes())
    domain = fleet.verdicts.get(key)
    if domain is None:
        domain = fleet.verdicts[key] = np.array(
            [_domain(policy, pool, gang, ground) for gang in gangs], np.int32
        ).reshape(len(gangs), len(fleet))
    return PricedGangColumns(
        names=tuple(gang.name for gang in gangs),
        size=np.array([gang.size for gang in gangs], np.int64),
        request=request,
        domain=domain[:, ground.takes_part],
    )


def _domain(policy: SchedulingPolicy, pool: PoolPolicy, gang: PricedGang, ground: Ground) -> Rows:
    """Return for every node of the fleet the value of the gang's label, or -1 where no member may run."""
    fleet = ground.fleet
    unknown = policy.kinds().unknown(gang.requests)
    rule = PlacementRule(
        tolerations=tuple(sorted({*gang.tolerations, *pool.default_tolerations})),
        node_selector=tuple(sorted(gang.node_selector.items())),
        impossible=f"there is no resource {', '.join(unknown)}" if unknown else "",
    )
    sets, taint_set = fleet.taint_sets_with(ground.overfull)
    found: Verdicts = match([rule], sets, taint_set, {key: fleet.label(key) for key in label_keys(rule)})
    fits = found.verdict[0][found.type] == FITS
    value = fleet.label(gang.uniformity_label).code if gang.uniformity_label else np.zeros(len(fleet), np.int32)
    return np.where(fits, value, -1).astype(np.int32)
