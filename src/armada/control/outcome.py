"""What a round's decisions come to, checked against a ledger that has moved on while the round ran.

A job that was cancelled in the meantime, or whose node is gone, takes its whole gang out of the decisions. Where all
leases that a node's preemptions made room for have fallen away, those preemptions fall away too.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from armada.control.retries import stopped_to_wait, waits_when_preempted
from armada.control.sequences import merged_sequences
from armada.model.events import Failure, JobPreempted, JobSetEvents, RunLeased, RunPreempted
from armada.model.fleet import Node
from armada.model.growth import grown
from armada.model.jobs import JobShape, Toleration
from armada.model.lifecycle import JobState
from armada.model.policy import PoolPolicy, SchedulingPolicy
from armada.scheduling.decisions import Decisions, LeaseDecision, Method, PreemptionDecision, PreemptionKind
from armada.scheduling.market.bidding import bids_by_row
from armada.scheduling.snapshot import PoolSnapshot
from armada.scheduling.tables import away_tolerations
from armada.state.ledger import Ledger
from armada.state.records import JobRecord

UNIFORMITY_NAME: Final = "ARMADA_GANG_NODE_UNIFORMITY_LABEL_NAME"
UNIFORMITY_VALUE: Final = "ARMADA_GANG_NODE_UNIFORMITY_LABEL_VALUE"

_KINDS: Final = {
    PreemptionKind.FAIR_SHARE: ("fairshare", "by fair share"),
    PreemptionKind.URGENCY: ("urgency", "by urgency"),
    PreemptionKind.OPTIMISER: ("optimiser", "by the fairness optimiser"),
    PreemptionKind.GANG: ("gang", "with another member of its gang"),
    PreemptionKind.DISPLACED: ("fairshare", "for jobs that go first"),
}


class RoundOrder(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A round to run: `as_of` is needed to find its jobs again in a ledger that has moved on."""

    pool: str
    snapshot: PoolSnapshot
    seed: int
    as_of: int
    started_ms: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Facts to append of a pool's round, and their figures. Only preemptions by fair share count for the limiter.

    `leased_by_kind` counts leases by queue, priority class and name of the method.
    """

    pool: str
    sequences: tuple[JobSetEvents, ...] = ()
    leased_by_queue: dict[str, int] = {}
    leased_by_kind: dict[tuple[str, str, str], int] = {}
    preempted: int = 0
    preempted_for_share: int = 0
    dropped: int = 0


class _Lease(msgspec.Struct, frozen=True):
    decision: LeaseDecision
    job: JobRecord
    node: Node


def outcome_of(
    ledger: Ledger, policy: SchedulingPolicy, order: RoundOrder, decisions: Decisions, now_ms: int
) -> Outcome:
    """Return what to append of a round's decisions."""
    as_of = order.as_of
    wanted = list(decisions.each_lease())
    leases = _still_right(ledger, as_of, wanted)
    preemptions = _still_needed(ledger, as_of, (wanted, leases), list(decisions.each_preemption()))
    sequences: list[JobSetEvents] = []
    preempted = 0
    winners = _winners(wanted)
    explained = [_explained(preemption, winners) for preemption in preemptions]
    bids = bids_by_row(order.snapshot, [row for lost in explained for row in (lost.row, lost.for_row)])
    for preemption in explained:
        facts = _preempted(ledger, order, preemption, bids, now_ms)
        if facts is not None:
            sequences.append(facts)
            preempted += 1
    leased: dict[str, int] = {}
    by_kind: dict[tuple[str, str, str], int] = {}
    tolerations = _Tolerations(policy, order.pool)
    for lease in leases:
        leased[lease.job.queue] = leased.get(lease.job.queue, 0) + 1
        key = (lease.job.queue, lease.job.shape.priority_class, lease.decision.method.name.lower())
        by_kind[key] = by_kind.get(key, 0) + 1
        fact = _leased(lease, order.pool, tolerations.of(lease), now_ms)
        sequences.append(JobSetEvents(lease.job.queue, lease.job.job_set, (fact,)))
    return Outcome(
        pool=order.pool,
        sequences=merged_sequences(sequences),
        leased_by_queue=leased,
        leased_by_kind=by_kind,
        preempted=preempted,
        preempted_for_share=min(decisions.gave_way, preempted),
        dropped=len(wanted) - len(leases),
    )


def _still_right(ledger: Ledger, as_of: int, wanted: Sequence[LeaseDecision]) -> list[_Lease]:
    """Leases whose job still waits and whose node is still there, without gangs of which one member is not."""
    found: list[_Lease] = []
    broken: dict[tuple[str, str], None] = {}
    members: dict[tuple[str, str], int] = {}
    for decision in wanted:
        job_id = ledger.job_at(decision.row, as_of)
        job = ledger.job(job_id) if job_id is not None else None
        if job is None:
            # A job that has left can't name its gang any more; its siblings are counted below.
            continue
        gang = (job.queue, job.gang.id) if job.gang is not None else None
        node = ledger.node(decision.node_id)
        if gang is not None:
            members[gang] = members.get(gang, 0) + 1
        if node is None or job.state is not JobState.QUEUED or job.cancel_requested:
            if gang is not None:
                broken[gang] = None
            continue
        found.append(_Lease(decision, job, node))
    return [
        lease
        for lease in found
        if lease.job.gang is None
        or ((key := (lease.job.queue, lease.job.gang.id)) not in broken and members[key] == lease.job.gang.cardinality)
    ]


def _still_needed(
    ledger: Ledger,
    as_of: int,
    placed: tuple[Sequence[LeaseDecision], Sequence[_Lease]],
    preemptions: Sequence[PreemptionDecision],
) -> list[PreemptionDecision]:
    """Preemptions for leases that stand, or on nodes that still get one; gangs with a member among them go whole."""
    wanted, leases = placed
    if len(wanted) == len(leases):
        return list(preemptions)
    kept_rows = {lease.decision.row: None for lease in leases}
    kept_nodes = {lease.decision.node_id: None for lease in leases}
    dropped_nodes = {decision.node_id: None for decision in wanted if decision.node_id not in kept_nodes}

    def is_needed(preemption: PreemptionDecision) -> bool:
        if preemption.node_id in kept_nodes or preemption.for_row in kept_rows:
            return True
        return preemption.for_row < 0 and preemption.node_id not in dropped_nodes

    gangs = [_gang_at(ledger, as_of, preemption.row) for preemption in preemptions]
    needed = [is_needed(preemption) for preemption in preemptions]
    going = {gang: None for gang, goes in zip(gangs, needed, strict=True) if goes and gang is not None}
    return [
        preemption for preemption, goes, gang in zip(preemptions, needed, gangs, strict=True) if goes or gang in going
    ]


def _gang_at(ledger: Ledger, as_of: int, row: int) -> tuple[str, str] | None:
    job_id = ledger.job_at(row, as_of)
    job = ledger.job(job_id) if job_id is not None else None
    return (job.queue, job.gang.id) if job is not None and job.gang is not None else None


def _winners(wanted: Sequence[LeaseDecision]) -> dict[str, LeaseDecision]:
    """For each node the lease that most likely pushed others out: by urgency if any, else the most important one."""
    found: dict[str, LeaseDecision] = {}
    for decision in wanted:
        known = found.get(decision.node_id)
        if known is None or _push(decision) > _push(known):
            found[decision.node_id] = decision
    return found


def _push(decision: LeaseDecision) -> tuple[bool, int]:
    return decision.method is Method.URGENCY, decision.priority


def _explained(preemption: PreemptionDecision, winners: dict[str, LeaseDecision]) -> PreemptionDecision:
    """Name the winner of a displacement, which the round leaves open, where a new job came to the node."""
    winner = winners.get(preemption.node_id)
    if preemption.kind is not PreemptionKind.DISPLACED or winner is None:
        return preemption
    kind = PreemptionKind.URGENCY if winner.method is Method.URGENCY else PreemptionKind.FAIR_SHARE
    return msgspec.structs.replace(preemption, kind=kind, for_row=winner.row)


def _preempted(
    ledger: Ledger, order: RoundOrder, preemption: PreemptionDecision, bids: dict[int, float], now_ms: int
) -> JobSetEvents | None:
    as_of = order.as_of
    job_id = ledger.job_at(preemption.row, as_of)
    job = ledger.job(job_id) if job_id is not None else None
    if job is None or not job.state.is_active:
        return None
    kind, how = _KINDS[preemption.kind]
    if bids and kind == "fairshare":
        how = "by bid"
    winner = ledger.job_at(preemption.for_row, as_of) if preemption.for_row >= 0 else None
    winning = ledger.job(winner) if winner is not None else None
    for_whom = f" - preempting job {winner} of queue {winning.queue}" if winner and winning is not None else ""
    run = ledger.run(job.run_id)
    is_guest = run is not None and run.pool != order.pool
    whose = f" on a node of pool {order.pool}, whose own jobs go first" if is_guest else ""
    reason = f"Preempted by the scheduler {how}{whose}{for_whom}{_compared(preemption, bids)}"
    if waits_when_preempted(ledger, job):
        return JobSetEvents(job.queue, job.job_set, stopped_to_wait(job, reason, kind, now_ms, winner or ""))
    ended = RunPreempted(
        at_ms=now_ms,
        job_id=job.job_id,
        run_id=job.run_id,
        kind=kind,
        reason=reason,
        preempting_job_id=winner or "",
    )
    failed = JobPreempted(at_ms=now_ms, job_id=job.job_id, failure=Failure(reason=reason, kind="preempted"))
    return JobSetEvents(job.queue, job.job_set, (ended, failed))


def _compared(preemption: PreemptionDecision, bids: dict[int, float]) -> str:
    """Say what both sides of a preemption bid, where there is a market."""
    if preemption.row not in bids:
        return ""
    own = f"{bids[preemption.row]:g}"
    if preemption.for_row not in bids:
        return f" - bidding {own}"
    return f", which bids {bids[preemption.for_row]:g} where this one bids {own}"


class _Tolerations:
    """What leases of a pool add to their pods: the pool's defaults, and those of node types that jobs go away to."""

    def __init__(self, policy: SchedulingPolicy, pool: str) -> None:
        self._policy = policy
        self._defaults = (policy.pool(pool) or PoolPolicy(name=pool)).default_tolerations
        self._taints = {kind.name: kind.taints for kind in policy.well_known_node_types}
        self._known: dict[tuple[JobShape, int], tuple[Toleration, ...]] = {}

    def of(self, lease: _Lease) -> tuple[Toleration, ...]:
        """Return what one lease adds."""
        job, entry = lease.job, lease.decision.away_entry
        kind = self._policy.priority_class(job.shape.priority_class) if entry >= 0 else None
        if kind is None:
            return self._defaults
        shape = grown(job.shape, job.growth)
        known = self._known.get((shape, entry))
        if known is None:
            added = away_tolerations(kind.away_node_types[entry], dict(shape.requests), self._taints)
            known = self._known[shape, entry] = tuple(dict.fromkeys((*self._defaults, *added)))
        return known


def _leased(lease: _Lease, pool: str, tolerations: tuple[Toleration, ...], now_ms: int) -> RunLeased:
    job, decision = lease.job, lease.decision
    overlay = {}
    if decision.uniformity is not None:
        overlay = {UNIFORMITY_NAME: decision.uniformity[0], UNIFORMITY_VALUE: decision.uniformity[1]}
    return RunLeased(
        at_ms=now_ms,
        job_id=job.job_id,
        run_id=run_id_of(job.job_id, job.runs_leased),
        executor_id=lease.node.executor_id,
        node_id=decision.node_id,
        node_name=lease.node.name,
        pool=pool,
        priority=decision.priority,
        attempt=job.runs_leased,
        tolerations=tolerations,
        overlay=overlay,
    )


def run_id_of(job_id: str, attempt: int) -> str:
    """Return the id of a job's attempt (counted from 0), shaped like a UUID.

    It follows from job and attempt, so that no chance is needed to lease.
    """
    digest = blake2b(f"{job_id}/{attempt}".encode(), digest_size=16, person=b"armada run").hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"
