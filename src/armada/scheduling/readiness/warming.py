"""`warm_up`: every kernel compiled, or taken from the cache, before the first real round asks for it."""

import numpy as np

from armada.model.fleet import BidTable, Node, Queue
from armada.model.jobs import JobShape
from armada.model.policy import MarketPolicy, OptimiserPolicy, PoolPolicy, PricedGang, SchedulingPolicy
from armada.scheduling.intake import build_snapshot
from armada.scheduling.kernels.columns.rows import keep, merge, renumber, take
from armada.scheduling.market.columns import Offers
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from armada.scheduling.tables import (
    FleetTable,
    GangRows,
    OptimiserTurn,
    QueuedJobs,
    QueueLine,
    RunningJobs,
    ShapeTable,
)


def warm_up() -> None:
    """Compile every kernel, or load it from the cache: tiny rounds call all but those that keep the ledger's rows."""
    optimiser = OptimiserPolicy(timeout_ms=1, max_jobs_per_round=1)
    gang = PricedGang(name="one", size=1, priority_class="armada-preemptible", requests={"cpu": "1"})
    market = MarketPolicy(pricing_timeout_ms=1, priced_gangs=(gang,))
    pools = PoolPolicy(name="default", optimiser=optimiser), PoolPolicy(name="default", market=market)
    for policy in (SchedulingPolicy(excess_margin=0.0), *(SchedulingPolicy(pools=(pool,)) for pool in pools)):
        schedule(_tiny_pool(policy))
    rows = np.zeros(1, np.int32)
    take(rows, rows, rows.copy())
    keep(rows, rows, 0, rows.copy())
    merge(rows, rows, np.zeros(1, np.int64), np.zeros(2, np.int32))
    renumber(rows.copy(), rows)


def _tiny_pool(policy: SchedulingPolicy) -> PoolSnapshot:
    shapes = ShapeTable(policy)
    shapes.extend([JobShape(requests=(("cpu", "1"),), priority_class="armada-preemptible")])
    node = Node(node_id="n", name="n", executor_id="e", pool="default", total={"cpu": "2"})
    rows, amounts = np.zeros(1, np.int32), np.zeros(1, np.int64)
    return build_snapshot(
        policy,
        "default",
        fleet=FleetTable(policy, "default", [node]),
        shapes=shapes,
        queues=[QueueLine(queue=Queue(name="q"), holds=True)],
        queued=QueuedJobs(offsets=np.array([0, 1], np.int64), row=rows, shape=rows, gang=rows - 1),
        running=RunningJobs(
            row=rows,
            shape=rows,
            queue=rows,
            gang=rows - 1,
            node=rows,
            priority=amounts,
            job_priority=amounts,
            leased_ms=amounts,
            submitted=amounts,
            kind=np.zeros(1, np.uint8),
        ),
        gangs=GangRows(cardinality=rows, label=rows - 1),
        optimiser=OptimiserTurn(now_ms=0, submitted=amounts),
        offers=Offers(bids=BidTable(), band=np.zeros(1, np.uint8), submitted=amounts),
    )
