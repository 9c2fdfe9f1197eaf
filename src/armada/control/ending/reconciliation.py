"""Run reconciliation: runs whose node is not what it was when they came to it.

A node may go to another pool, get or lose a reservation, or vanish from its cluster while jobs run on it. Pools that
ask for it (`experimentalRunReconciliation`) lose such runs before their next round; a run on a vanished node is given
up in every pool once that node has been gone for the time that settings allow.

A run is looked at when it begins and when its node changes, never without a reason: a fleet where nothing changes
costs nothing, however many jobs it runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from armada.control.commands.texts import shortened
from armada.control.retries import CanRun, Retries, stopped_to_wait, waits_when_preempted
from armada.control.sequences import merged_sequences
from armada.model.events import (
    Entry,
    ExecutorDeleted,
    ExecutorReported,
    Failure,
    JobFailed,
    JobPreempted,
    JobSetEvents,
    RunFailed,
    RunLeased,
    RunPreempted,
)
from armada.model.fleet import Node
from armada.model.jobs import RESERVATION, JobShape
from armada.model.policy import PoolPolicy, SchedulingPolicy
from armada.state.ledger import Ledger
from armada.state.records import JobRecord, RunRecord

KIND: Final = "reconciliation"
"""The `kind` of failures that say that a node changed under a job."""

_CULPRITS_LISTED: Final = 10

UNRESERVED: Final = "none"
UNNAMED_RESERVATION: Final = "unspecified"


class Standing(msgspec.Struct, frozen=True):
    """What of a node decides about the runs on it."""

    node_id: str
    pool: str
    reservation: str


class Reconciled(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be appended, and what an operator should read."""

    sequences: tuple[JobSetEvents, ...] = ()
    warnings: tuple[str, ...] = ()


class _Culprit(msgspec.Struct, frozen=True):
    """A run that can't stay, and why."""

    run: RunRecord
    job: JobRecord
    reason: str


def reservation_of(node: Node) -> str:
    """Return the name of a node's reservation: its taint's value, `unspecified` for an empty one, `none` without."""
    values = [taint.value for taint in node.taints if taint.key == RESERVATION]
    return (values[0] or UNNAMED_RESERVATION) if values else UNRESERVED


def is_meant_for(shape: JobShape, reservation: str, *, in_doubt: bool) -> bool:
    """Say if a job is meant for a reservation: it tolerates it by name.

    A job that tolerates any reservation (operator Exists) may be meant for this one: then the answer is `in_doubt`.
    """
    found = False
    for toleration in shape.tolerations:
        if toleration.key == RESERVATION and toleration.operator == "Exists":
            found |= in_doubt and reservation != UNRESERVED
        elif toleration.key == RESERVATION:
            found |= (toleration.value or UNNAMED_RESERVATION) == reservation
    return found


class Reconciliation:
    """Which runs have to be looked at, and what becomes of them."""

    def __init__(self, policy: SchedulingPolicy, node_timeout_ms: int, retry_ms: int) -> None:
        """Begin with all runs to be looked at.

        `node_timeout_ms` is how long a node may be gone before runs on it are given up; 0 means for ever. Where looking
        at a pool's runs failed, it is tried again after `retry_ms`.
        """
        self._policy = policy
        self._node_timeout_ms = node_timeout_ms
        self._retry_ms = retry_ms
        self._strict = frozenset(pool.name for pool in policy.pools if pool.reconciliation is not None)
        self._looks_at_all = True
        self._standings: dict[str, dict[str, Standing]] = {}
        self._changed_nodes: dict[str, None] = {}
        self._fresh_runs: dict[str, None] = {}
        self._gone_since_ms: dict[str, int] = {}
        self._returned: dict[str, None] = {}
        self._tries_again_ms = 0
        self.errors: dict[str, str] = {}
        """Pools whose runs could not be looked at the last time, with why."""

    # -- what happens -------------------------------------------------------------------------------------------------

    def begin_again(self) -> None:
        """Look at all runs the next time: leadership is new or lost, or what was decided could not be appended."""
        self._looks_at_all = True
        for noted in (self._standings, self._changed_nodes, self._fresh_runs, self._returned):
            noted.clear()

    def forgive(self, now_ms: int) -> None:
        """Let all waits count anew: the clock has jumped."""
        self._gone_since_ms = dict.fromkeys(self._gone_since_ms, now_ms)
        self._tries_again_ms = min(self._tries_again_ms, now_ms)

    def notice(self, entry: Entry) -> None:
        """Remember what an entry that was just folded gives reason to look at: nothing while all is to be looked at."""
        if self._looks_at_all:
            return
        for event in entry.events:
            if isinstance(event, RunLeased):
                if event.pool in self._strict:
                    self._fresh_runs[event.run_id] = None
            elif isinstance(event, ExecutorReported):
                self._reported(event)
            elif isinstance(event, ExecutorDeleted):
                # It may come back with its next word; what it leaves behind for good expires with it.
                self._standings.pop(event.executor_id, None)

    def _reported(self, event: ExecutorReported) -> None:
        known = self._standings.get(event.executor_id)
        if known is None:
            # New, or back after it was deleted: then some of its nodes may not have come back with it.
            known = self._standings[event.executor_id] = {}
            self._returned[event.executor_id] = None
        for name in event.gone:
            before = known.pop(name, None)
            if before is not None:
                self._changed_nodes[before.node_id] = None
        for node in event.nodes:
            standing = Standing(node.node_id, node.pool, reservation_of(node))
            if known.get(node.name) != standing:
                known[node.name] = standing
                self._changed_nodes[node.node_id] = None

    # -- what is due --------------------------------------------------------------------------------------------------

    def due_ms(self) -> int | None:
        """Return when to look again though nothing happened; None when nothing is awaited."""
        times = [self._tries_again_ms] if self.errors else []
        if self._node_timeout_ms and self._gone_since_ms:
            times.append(min(self._gone_since_ms.values()) + self._node_timeout_ms)
        return min(times) if times else None

    def decide(self, ledger: Ledger, can_run: CanRun, now_ms: int) -> Reconciled:
        """Look at what there is reason to look at, and say what ends. An error stays with its pool: see `errors`."""
        due_ms = self.due_ms()
        waits = due_ms is None or due_ms > now_ms
        if waits and not (self._looks_at_all or self._changed_nodes or self._fresh_runs or self._returned):
            return Reconciled()
        if self._looks_at_all:
            self._take_stock(ledger)
        for executor_id in self._returned:
            self._changed_nodes.update(dict.fromkeys(ledger.nodes_in_use(executor_id)))
        self._returned = {}
        changed, self._changed_nodes = self._changed_nodes, {}
        warnings = self._note_gone_nodes(ledger, changed, now_ms)
        overdue = self._overdue_nodes(now_ms)
        named = _by_pool(ledger, [*self._fresh_runs, *(ledger.live_runs_on(overdue) if overdue else ())])
        self._fresh_runs = {}
        sequences: list[JobSetEvents] = []
        for pool in sorted({*named, *(self._strict if changed else ()), *self._tried_again(now_ms)}):
            nodes = changed if pool not in self.errors else dict.fromkeys(ledger.nodes_in_use())
            try:
                verdicts = _Verdicts(ledger, self._policy, pool, overdue, now_ms)
                suspects = verdicts.suspects(nodes) if pool in self._strict else ()
                sequences += verdicts.of([*named.get(pool, ()), *suspects], can_run)
                self.errors.pop(pool, None)
            except Exception as error:  # noqa: BLE001 - its pool fails with it and is tried again; the others go on
                self.errors[pool] = f"its runs could not be reconciled with their nodes: {error!r}"
                warnings += (f"pool {pool} can't be decided: {self.errors[pool]}",)
                self._tries_again_ms = now_ms + self._retry_ms
                self._gone_since_ms.update(dict.fromkeys(overdue, now_ms))
        return Reconciled(sequences=merged_sequences(sequences), warnings=warnings)

    def _tried_again(self, now_ms: int) -> Iterable[str]:
        """Return the pools where looking failed, once it is time to try again."""
        return self.errors if self._tries_again_ms <= now_ms else ()

    def _take_stock(self, ledger: Ledger) -> None:
        """Take the fleet as it is, and every node on which something runs as changed."""
        self._looks_at_all = False
        self._standings = {
            executor_id: {node.name: Standing(node.node_id, node.pool, reservation_of(node)) for node in record.nodes}
            for executor_id, record in ledger.executors.items()
        }
        self._changed_nodes = dict.fromkeys(ledger.nodes_in_use())

    def _note_gone_nodes(self, ledger: Ledger, changed: Iterable[str], now_ms: int) -> tuple[str, ...]:
        """Remember since when nodes with runs on them are gone; return a warning for each that has just gone."""
        before = self._gone_since_ms
        missing = [node for node in (*before, *changed) if ledger.node(node) is None]
        self._gone_since_ms = {}
        warnings = []
        for run_id in ledger.live_runs_on(missing) if missing else ():
            run = ledger.run(run_id)
            # Runs of an executor that is not known, or was deleted, expire with it.
            if run is None or run.node_id in self._gone_since_ms or ledger.executor(run.executor_id) is None:
                continue
            self._gone_since_ms[run.node_id] = before.get(run.node_id, now_ms)
            if run.node_id not in before:
                warnings.append(
                    f"node {run.node_name} of executor {run.executor_id} is not reported any more, and jobs run on it"
                )
        return tuple(warnings)

    def _overdue_nodes(self, now_ms: int) -> dict[str, None]:
        """Return the nodes whose time is up."""
        if not self._node_timeout_ms:
            return {}
        limit_ms = now_ms - self._node_timeout_ms
        return {node: None for node, since_ms in self._gone_since_ms.items() if since_ms <= limit_ms}


def _by_pool(ledger: Ledger, run_ids: Iterable[str]) -> dict[str, list[RunRecord]]:
    """Return the live ones among these runs by pool, each once."""
    found: dict[str, list[RunRecord]] = {}
    for run_id in dict.fromkeys(run_ids):
        run = ledger.run(run_id)
        if run is not None and not run.state.is_terminal:
            found.setdefault(run.pool, []).append(run)
    return found


class _Verdicts:
    """What becomes of a pool's runs whose nodes have changed."""

    def __init__(
        self, ledger: Ledger, policy: SchedulingPolicy, pool: str, overdue: Mapping[str, None], now_ms: int
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._pool = policy.pool(pool) or PoolPolicy(name=pool)
        self._overdue = overdue
        self._now_ms = now_ms

    def suspects(self, node_ids: Iterable[str]) -> list[RunRecord]:
        """Return the pool's runs on nodes that at least one of them can't be on, asked for by kinds of jobs."""
        nodes: dict[str, None] = {}
        for node_id, shape in self._ledger.live_shapes_on(node_ids, self._pool.name):
            node = self._ledger.node(node_id)
            if node is None or self._objection(node, shape):
                nodes[node_id] = None
        run_ids = self._ledger.live_runs_on(nodes, (self._pool.name,)) if nodes else ()
        return [run for run_id in run_ids if (run := self._ledger.run(run_id)) is not None]

    def of(self, runs: Iterable[RunRecord], can_run: CanRun) -> list[JobSetEvents]:
        """Return what ends these runs, gangs as a whole."""
        sequences: list[JobSetEvents] = []
        preempted: dict[tuple[str, ...], list[_Culprit]] = {}
        stopped: dict[str, None] = {}
        retries = Retries(self._policy, can_run)
        for run in {run.run_id: run for run in runs}.values():
            job = self._ledger.job(run.job_id)
            if job is None:
                continue
            node = self._ledger.node(run.node_id)
            reason = self._vanished(run, job) if node is None else self._objection(node, job.shape)
            if not reason:
                continue
            culprit = _Culprit(run, job, reason)
            if self._is_preemptible(job) and (node is not None or job.gang is not None):
                key = ("gang", job.gang.id) if job.gang is not None else ("job", job.job_id)
                preempted.setdefault((job.queue, *key), []).append(culprit)
            elif node is None and not (self._pool.reconciliation is not None and job.gang is not None):
                if run.run_id not in stopped:
                    follows = self._given_up(culprit, retries)
                    sequences += follows
                    ended = (each for part in follows for each in part.events if isinstance(each, RunPreempted))
                    stopped.update(dict.fromkeys(each.run_id for each in ended))
            else:
                sequences.append(self._failed(culprit))
        for culprits in preempted.values():
            sequences += self._preempted(culprits)
        return sequences

    def _is_preemptible(self, job: JobRecord) -> bool:
        kind = self._policy.priority_class(job.shape.priority_class)
        return kind is not None and kind.preemptible

    def _vanished(self, run: RunRecord, job: JobRecord) -> str:
        """Say why a run on a node that is gone ends now; empty when it may go on, or expires with its executor."""
        at_once = self._pool.reconciliation is not None and job.gang is not None
        if not (at_once or run.node_id in self._overdue) or self._ledger.executor(run.executor_id) is None:
            return ""
        return f"its node {run.node_name} is gone: executor {run.executor_id} does not report it any more"

    def _objection(self, node: Node, shape: JobShape) -> str:
        """Say why a job of this shape can't stay on a node; empty when it can."""
        rules = self._pool.reconciliation
        if rules is None:
            return ""
        own = self._pool
        if node.pool != own.name and node.pool not in own.away_pools:
            return f"its node {node.name} is in pool {node.pool} now, and not open to jobs of pool {own.name}"
        reservation = reservation_of(node)
        if rules.reservation_must_match and not is_meant_for(shape, reservation, in_doubt=True):
            return f"the reservation of its node {node.name} is {reservation!r} now, which is not the job's"
        if rules.reservation_must_not_match and is_meant_for(shape, reservation, in_doubt=False):
            return f"its node {node.name} has the job's reservation {reservation!r}: the job belongs elsewhere"
        return ""

    def _given_up(self, culprit: _Culprit, retries: Retries) -> tuple[JobSetEvents, ...]:
        """End a run of a vanished node; a retry policy may let its job wait again."""
        run = culprit.run
        failure = _failure(culprit.reason, "node-gone")
        fact = RunFailed(at_ms=self._now_ms, job_id=run.job_id, run_id=run.run_id, failure=failure)
        return (JobSetEvents(run.queue, run.job_set, (fact,)), *retries.after(self._ledger, fact))

    def _failed(self, culprit: _Culprit) -> JobSetEvents:
        """End a job that can't be preempted."""
        run = culprit.run
        failure = _failure(f"The job can't go on: {culprit.reason}", "reconciliation-error")
        ended = RunFailed(at_ms=self._now_ms, job_id=run.job_id, run_id=run.run_id, failure=failure)
        return JobSetEvents(
            run.queue, run.job_set, (ended, JobFailed(at_ms=self._now_ms, job_id=run.job_id, failure=failure))
        )

    def _preempted(self, culprits: Sequence[_Culprit]) -> Iterable[JobSetEvents]:
        """Preempt a job, or all active members of its gang because of those that can't stay."""
        first = culprits[0].job
        if first.gang is None:
            yield self._preemption(first, f"Preempted by run reconciliation: {culprits[0].reason}")
            return
        listed = "; ".join(f"job {culprit.job.job_id}: {culprit.reason}" for culprit in culprits[:_CULPRITS_LISTED])
        more = f"; and {len(culprits) - _CULPRITS_LISTED} more" if len(culprits) > _CULPRITS_LISTED else ""
        reason = f"Preempted by run reconciliation with gang {shortened(first.gang.id)}: {listed}{more}"
        for job_id in self._ledger.gang_members(first.queue, first.gang.id):
            member = self._ledger.job(job_id)
            if member is not None and member.state.is_active:
                yield self._preemption(member, reason)

    def _preemption(self, job: JobRecord, reason: str) -> JobSetEvents:
        if waits_when_preempted(self._ledger, job):
            return JobSetEvents(job.queue, job.job_set, stopped_to_wait(job, reason, "reconciler", self._now_ms))
        ended = RunPreempted(at_ms=self._now_ms, job_id=job.job_id, run_id=job.run_id, kind="reconciler", reason=reason)
        failure = Failure(reason=reason, kind="preempted")
        failed = JobPreempted(at_ms=self._now_ms, job_id=job.job_id, failure=failure)
        return JobSetEvents(job.queue, job.job_set, (ended, failed))


def _failure(reason: str, subcategory: str) -> Failure:
    return Failure(reason=reason, kind=KIND, category="internal", subcategory=subcategory)
