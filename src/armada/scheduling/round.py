"""`schedule`: one round of one pool, from snapshot to decisions.

The steps: (1) shares; (2) evict; (3) order; (4) place gang by gang; (5) evict where nodes gave out too much; (6) place the
evicted again; (7) compare with the start to get leases and preemptions; (8) explain the rest.
"""

import numpy as np

from armada.model.fleet import Node, Queue
from armada.model.jobs import JobShape
from armada.model.policy import SchedulingPolicy
from armada.scheduling.decisions import (
    Decisions,
    Leases,
    PreemptionKind,
    Preemptions,
    Refusals,
    Termination,
)
from armada.scheduling.eviction import evict_by_fairness, evict_oversubscribed
from armada.scheduling.fairness import open_books, protected_queues, queue_figures, work_out_shares
from armada.scheduling.intake import build_snapshot
from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import Books
from armada.scheduling.kernels.draw import draw
from armada.scheduling.kernels.eviction import bind_running
from armada.scheduling.kernels.jobs import Gangs, Jobs, Shapes
from armada.scheduling.kernels.nodes.room import Nodes
from armada.scheduling.ordering import expected_order, open_streams
from armada.scheduling.placement import (
    FEW_NODES,
    lay_out_gangs,
    lay_out_nodes,
    lay_out_shapes,
    line_up_victims,
    placing_for,
)
from armada.scheduling.snapshot import PoolSnapshot, Rows
from armada.scheduling.tables import FleetTable, GangRows, QueuedJobs, QueueLine, RunningJobs, ShapeTable


def schedule(snapshot: PoolSnapshot, seed: int = 0, *, few_nodes: int = FEW_NODES) -> Decisions:
    """Decide one round of one pool. Equal snapshots and seeds give equal decisions, on any machine.

    Args:
        snapshot: the pool; it is not changed.
        seed: noted in the decisions. Nothing is left to chance yet: ties go by queue name, node id and row.
        few_nodes: rules with at most so many nodes are searched without the index; the decisions do not depend on it.
    """
    jobs = lay_out_jobs(snapshot)
    shapes = lay_out_shapes(snapshot, few_nodes)
    nodes = lay_out_nodes(snapshot, shapes)
    gangs = lay_out_gangs(snapshot)
    bind_running(jobs, shapes, nodes)
    # 1. shares
    books = open_books(snapshot, jobs, shapes)
    shares = work_out_shares(snapshot, jobs, shapes, books)
    termination = codes.COMPLETED
    if len(snapshot.nodes.ids):
        # 2. evict
        evicted = np.zeros(0, np.int32)
        if snapshot.rules.fairshare_preemption:
            protected = protected_queues(snapshot, books, shares)
            evicted = evict_by_fairness(snapshot, jobs, shapes, nodes, books, protected)
        # 3. order, 4. place gang by gang
        termination = _draw(snapshot, jobs, shapes, nodes, gangs, books, evicted, second_pass=False)
        # 5. evict where nodes gave out too much, 6. place the evicted again
        evicted = evict_oversubscribed(snapshot, jobs, shapes, nodes, books)
        if len(evicted):
            _draw(snapshot, jobs, shapes, nodes, gangs, books, evicted, second_pass=True)
    # 7. compare, 8. explain
    return Decisions(
        snapshot=snapshot,
        seed=seed,
        leases=_leases(snapshot, jobs),
        preemptions=_preemptions(snapshot, jobs, shapes),
        refusals=_refusals(snapshot, jobs),
        queues=queue_figures(snapshot, books, shares),
        termination=Termination(termination),
    )


def warm_up() -> None:
    """Compile every kernel (or load it from the cache) by deciding a tiny round that uses them all."""
    policy = SchedulingPolicy()
    names = tuple(kind.name for kind in policy.priority_classes)
    preemptible = next(kind.name for kind in policy.priority_classes if kind.preemptible)
    nodes = tuple(
        Node(node_id=name, name=name, executor_id="warm", pool="default", total={"cpu": "2", "memory": "2Gi"})
        for name in ("a", "b")
    )
    shapes = ShapeTable(policy)
    shapes.extend(JobShape(requests=(("cpu", "1"),), priority_class=name) for name in (preemptible, names[-1]))
    columns = {"row": 0, "shape": 0, "queue": 0, "gang": -1, "node": 0, "kind": 0}
    held = {"priority": policy.priority_classes[names.index(preemptible)].priority}
    many = {name: np.full(2, value, np.int32) for name, value in columns.items()}
    wide = {name: np.full(2, held.get(name, 0), np.int64) for name in ("priority", "job_priority", "leased_ms")}
    snapshot = build_snapshot(
        policy,
        "default",
        fleet=FleetTable(policy, "default", nodes),
        shapes=shapes,
        queues=[QueueLine(queue=Queue(name="a")), QueueLine(queue=Queue(name="b"))],
        queued=QueuedJobs(
            offsets=np.array([0, 1, 4], np.int64),
            row=np.arange(2, 6, dtype=np.int32),
            shape=np.array([0, 0, 0, 1], np.int32),
            gang=np.array([-1, 0, 0, -1], np.int32),
        ),
        running=RunningJobs(
            **(many | {"row": np.arange(2, dtype=np.int32), "kind": np.zeros(2, np.uint8)}),
            **wide,
            submitted=np.arange(2, dtype=np.int64),
        ),
        gangs=GangRows(cardinality=np.array([2], np.int32), label=np.array([-1], np.int32)),
    )
    for few in (FEW_NODES, 0):
        schedule(snapshot, few_nodes=few)


def lay_out_jobs(snapshot: PoolSnapshot) -> Jobs:
    """Return running and queued jobs as one table, running ones first."""
    running, queued = snapshot.running, snapshot.queued
    count, waiting = len(running.row), len(queued.row)
    every = count + waiting
    queues = np.arange(len(snapshot.queues.names), dtype=np.int32)
    bucket = np.zeros(every, np.int32)
    priorities = np.array(snapshot.rules.priorities, np.int64)
    bucket[:count] = np.searchsorted(priorities, running.priority)
    nowhere = np.full(waiting, -1, np.int32)
    return Jobs(
        shape=np.concatenate((running.shape, queued.shape)),
        gang=np.concatenate((running.gang, queued.gang)),
        queue=np.concatenate((np.repeat(queues, np.diff(running.offsets)), np.repeat(queues, np.diff(queued.offsets)))),
        node=np.concatenate((running.node, nowhere)),
        bucket=bucket,
        state=np.zeros(every, np.uint8),
        method=np.zeros(every, np.uint8),
        reason=np.zeros(every, np.uint8),
        saved=np.full(every, -1, np.int32),
        away_entry=np.full(every, -1, np.int32),
        label=np.full(every, -1, np.int32),
        value=np.full(every, -1, np.int32),
        running=count,
    )


def _draw(
    snapshot: PoolSnapshot,
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    books: Books,
    evicted: Rows,
    *,
    second_pass: bool,
) -> int:
    """Run one pass; what was evicted and did not return has lost its place after it."""
    job_at = expected_order(snapshot, jobs, shapes, books, evicted, second_pass=second_pass)
    victims = line_up_victims(jobs, job_at, len(nodes.type), nodes.free.shape[2], len(gangs.cardinality))
    streams = open_streams(snapshot, jobs, evicted, second_pass=second_pass)
    placing = placing_for(snapshot, len(jobs.node), len(evicted))
    floating = np.array(snapshot.rules.floating, np.uint8)
    ended = draw(jobs, shapes, nodes, gangs, victims, books, streams, placing, floating, second_pass)
    back = jobs.state[evicted] == codes.RUNS
    if second_pass:
        jobs.method[evicted[back]] = codes.RESCHEDULED
    jobs.state[evicted[~back]] = codes.LOST
    return int(ended)


def _leases(snapshot: PoolSnapshot, jobs: Jobs) -> Leases:
    new = jobs.running + np.flatnonzero(
        (jobs.node[jobs.running :] >= 0) & (jobs.state[jobs.running :] == codes.RUNS),
    )
    return Leases(
        row=snapshot.queued.row[new - jobs.running],
        node=jobs.node[new],
        priority=np.array(snapshot.rules.priorities, np.int64)[jobs.bucket[new]],
        method=jobs.method[new],
        away_entry=jobs.away_entry[new],
        label=jobs.label[new],
        value=jobs.value[new],
    )


def _preemptions(snapshot: PoolSnapshot, jobs: Jobs, shapes: Shapes) -> Preemptions:
    lost = np.flatnonzero(jobs.state[: jobs.running] == codes.LOST)
    rows = np.concatenate((snapshot.running.row, snapshot.queued.row))
    kind = np.full(len(lost), PreemptionKind.DISPLACED, np.uint8)
    saved = jobs.saved[lost]
    kind[saved >= 0] = PreemptionKind.FAIR_SHARE
    return Preemptions(
        row=snapshot.running.row[lost],
        node=jobs.node[lost],
        kind=kind,
        for_row=np.where(saved >= 0, rows[saved] if len(rows) else -1, -1).astype(np.int32),
    )


def _refusals(snapshot: PoolSnapshot, jobs: Jobs) -> Refusals:
    waiting = slice(jobs.running, None)
    reason = jobs.reason[waiting].copy()
    lost = (jobs.node[waiting] >= 0) & (jobs.state[waiting] == codes.LOST)
    reason[lost] = np.where(jobs.gang[waiting][lost] >= 0, codes.GANG_LOST_AGAIN, codes.LOST_AGAIN)
    refused = np.flatnonzero(reason)
    return Refusals(
        row=snapshot.queued.row[refused],
        shape=snapshot.queued.shape[refused],
        reason=reason[refused],
    )
