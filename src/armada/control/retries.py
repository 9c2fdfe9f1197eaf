"""A run ended badly: try the job again, and how, or let it fail.

Without a retry policy only a lease that its executor gave back is tried again: the job's own failures are its owner's
to look at. A policy of the job's queue (`control.retry_rules`) decides about failed and expired runs; it is not asked
about jobs marked as fail-fast, as all members of gangs are. With `retryPolicy.retryGangs` a gang is tried again as a
whole, while none of its members has ended: the mark that submission sets on all of them then says nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from armada.control.retry_rules import Answer, Ruling, ruling
from armada.model.events import (
    Event,
    Failure,
    JobFailed,
    JobRequeued,
    JobSetEvents,
    RunFailed,
    RunLeaseExpired,
    RunPreempted,
    RunReturned,
)
from armada.model.growth import grown_further
from armada.model.jobs import REQUEUE_PREEMPTED
from armada.model.lifecycle import RunState
from armada.model.policy import RetryMutation, RetryPolicy, SchedulingPolicy
from armada.state.ledger import Ledger
from armada.state.records import JobRecord, RunRecord

CanRun = Callable[[JobRecord, tuple[str, ...]], bool]
"""Says if a job, its memory as grown, can ever run on a node other than the ones named (values of the node label)."""

BadEnd = RunFailed | RunReturned | RunLeaseExpired
"""The ways in which a run ends badly by itself."""

_LIVE: Final = (RunState.LEASED, RunState.PENDING, RunState.RUNNING)

_EXPIRED: Final = Failure(
    reason="Lease expired: its executor has been silent for too long",
    kind="lease_expired",
    category="internal",
    subcategory="lease-expired",
)


class Retries:
    """Decides what the end of a run means for its job, and for the gang that the job is a member of."""

    def __init__(self, policy: SchedulingPolicy, can_run: CanRun) -> None:
        self._policy = policy
        self._can_run = can_run

    def after(self, ledger: Ledger, fact: BadEnd) -> tuple[JobSetEvents, ...]:
        """Return the facts that follow from one that the ledger has not seen yet, that job's own first."""
        job, run = ledger.job(fact.job_id), ledger.run(fact.run_id)
        if job is None or run is None:
            return ()
        follows: Event | None = None
        if isinstance(fact, RunReturned):
            judged = msgspec.structs.replace(job, fail_fast=self._fails_fast(ledger, job))
            follows = after_return(judged, fact, self._label(ledger, run), self._policy, self._can_run)
        else:
            failure = fact.failure if isinstance(fact, RunFailed) else _EXPIRED
            policy = self._asked(ledger, job)
            if policy is None:
                follows = self._unasked(ledger, job, failure, fact.at_ms)
            else:
                may_change = isinstance(fact, RunFailed)
                follows = self._by_policy(ledger, policy, (job, run), (failure, fact.at_ms), may_change=may_change)
        own = JobSetEvents(job.queue, job.job_set, (follows,))
        if isinstance(follows, JobRequeued) and self._takes_gangs:
            return (own, *_others_again(job, whole_gang(ledger, job), fact.at_ms))
        return (own,)

    @property
    def _takes_gangs(self) -> bool:
        return self._policy.retries.enabled and self._policy.retries.retries_gangs

    def _fails_fast(self, ledger: Ledger, job: JobRecord) -> bool:
        if job.gang is not None and self._takes_gangs:
            return not whole_gang(ledger, job)
        return job.fail_fast

    def _asked(self, ledger: Ledger, job: JobRecord) -> RetryPolicy | None:
        """Return the policy that decides about a job; None when none does."""
        if self._fails_fast(ledger, job) or (job.gang is not None and not self._takes_gangs):
            return None
        return self._named(ledger, job)

    def _named(self, ledger: Ledger, job: JobRecord) -> RetryPolicy | None:
        """Return the policy of a job's queue, else the default one; None while policies are off."""
        engine, queue = self._policy.retries, ledger.queues.get(job.queue)
        if not engine.enabled:
            return None
        named = queue.retry_policies if queue is not None else ()
        return ledger.retry_policies.get(named[0] if named else engine.default_policy)

    def _unasked(self, ledger: Ledger, job: JobRecord, failure: Failure, at_ms: int) -> JobFailed:
        """The end of a job that no policy decided about; where there is one that leaves gangs alone, it says so."""
        policy = self._named(ledger, job) if job.gang is not None and not self._takes_gangs else None
        if policy is None:
            return JobFailed(at_ms=at_ms, job_id=job.job_id, failure=failure)
        return JobFailed(
            at_ms=at_ms, job_id=job.job_id, failure=failure, policy=policy.name, decision=Answer.GANG_SKIPPED.value
        )

    def _by_policy(
        self,
        ledger: Ledger,
        policy: RetryPolicy,
        ended: tuple[JobRecord, RunRecord],
        what: tuple[Failure, int],
        *,
        may_change: bool,
    ) -> JobRequeued | JobFailed:
        (job, run), (failure, at_ms) = ended, what
        # Failures before this one: the first is no retry. A gang fails as one, so its members' failures add up.
        used = sum(member.runs_failed for member in whole_gang(ledger, job)) if job.gang else job.runs_failed
        decided = ruling(self._policy.retries, policy, failure, used)
        if decided.answer is Answer.RETRY:
            mutation = decided.mutation if decided.mutation is not None and may_change else RetryMutation()
            avoid = self._attempted(ledger, job, run) if mutation.avoid_same_node else ()
            growth = grown_further(job.growth, mutation)
            changed = msgspec.structs.replace(job, growth=growth)
            is_changed = bool(avoid) or growth != job.growth
            if not is_changed or self._can_run(changed, (*job.avoid_nodes, *avoid)):
                return JobRequeued(
                    at_ms=at_ms,
                    job_id=job.job_id,
                    failure=failure,
                    policy=policy.name,
                    avoid_nodes=avoid,
                    growth=growth if growth != job.growth else None,
                )
            why = "with what the retry changes about it, the job fits no node any more"
            decided = Ruling(Answer.UNSCHEDULABLE, why)
        refused = _refused(policy, decided, failure)
        return JobFailed(
            at_ms=at_ms, job_id=job.job_id, failure=refused, policy=policy.name, decision=decided.answer.value
        )

    def _label(self, ledger: Ledger, run: RunRecord) -> str:
        """Return the name by which jobs can be told to avoid the node of a run."""
        node = ledger.node(run.node_id)
        return node.labels.get(self._policy.node_id_label, node.name) if node is not None else run.node_name

    def _attempted(self, ledger: Ledger, job: JobRecord, run: RunRecord) -> tuple[str, ...]:
        """Return the nodes on which a job failed and that it does not avoid yet, as far back as runs are known."""
        failed = [each for each in ledger.runs_of_job(job.job_id) if each.state is RunState.FAILED]
        labels = [self._label(ledger, each) for each in (*failed, run)]
        return tuple(dict.fromkeys(label for label in labels if label not in job.avoid_nodes))


def _refused(policy: RetryPolicy, decided: Ruling, failure: Failure) -> Failure:
    """The end of a job that its policy does not try again: the last failure's category, and its text inside."""
    return Failure(
        reason=f"Retry policy {policy.name}: {decided.reason}\n\nThe last run ended with:\n{failure.reason}",
        kind="max_runs_exceeded",
        category=failure.category,
        subcategory=failure.subcategory,
    )


def after_return(
    job: JobRecord, fact: RunReturned, node_label: str, policy: SchedulingPolicy, can_run: CanRun
) -> JobRequeued | JobFailed:
    """Return what a lease given back means for its job.

    The job waits again, away from the nodes it was tried on, unless it is marked as fail-fast, has no attempt left,
    or has been tried on every node that it could run on. A lease that never reached a node costs no attempt.
    """
    attempts = job.runs_attempted + int(fact.attempted)
    tried = (node_label,) if fact.attempted and node_label not in job.avoid_nodes else ()
    refused = ""
    if job.fail_fast:
        refused = "The job is marked as fail-fast"
    elif attempts > policy.max_retries:
        refused = f"The job was attempted {attempts} times, the most that is allowed"
    elif tried and not can_run(job, (*job.avoid_nodes, *tried)):
        refused = f"The job was attempted {attempts} times, once on every node that it can run on"
    if not refused:
        return JobRequeued(at_ms=fact.at_ms, job_id=fact.job_id, avoid_nodes=tried)
    failure = Failure(
        reason=f"{refused}: it is not retried any more\n\nThe last run ended with:\n{fact.failure.reason}",
        kind="max_runs_exceeded",
        category="internal",
        subcategory="max-runs-exceeded",
    )
    return JobFailed(at_ms=fact.at_ms, job_id=fact.job_id, failure=failure)


def whole_gang(ledger: Ledger, job: JobRecord) -> tuple[JobRecord, ...]:
    """Return all members of a job's gang in submit order (the job alone where it is in none).

    Empty when one has ended already: then the gang can never start again as a whole.
    """
    if job.gang is None:
        return (job,)
    ids = ledger.gang_members(job.queue, job.gang.id)
    members = tuple(
        found for job_id in ids if (found := ledger.job(job_id)) is not None and not found.state.is_terminal
    )
    return members if len(members) == job.gang.cardinality else ()


def _others_again(job: JobRecord, members: Sequence[JobRecord], at_ms: int) -> list[JobSetEvents]:
    """Stop the other members of a gang and let them wait again beside the one that is tried again."""
    reason = f"Stopped because job {job.job_id} of its gang is tried again"
    return [
        JobSetEvents(member.queue, member.job_set, stopped_to_wait(member, reason, "gang", at_ms))
        for member in members
        if member.job_id != job.job_id and member.state.is_active
    ]


def stopped_to_wait(
    job: JobRecord, reason: str, kind: str, at_ms: int, preempting_job_id: str = ""
) -> tuple[RunPreempted, JobRequeued]:
    """Return the facts that end a job's run and let the job wait again. `kind` is one of `RunPreempted`."""
    ended = RunPreempted(
        at_ms=at_ms,
        job_id=job.job_id,
        run_id=job.run_id,
        kind=kind,
        reason=reason,
        preempting_job_id=preempting_job_id,
    )
    failure = Failure(reason=reason, kind="preempted")
    return ended, JobRequeued(at_ms=at_ms, job_id=job.job_id, failure=failure)


def waits_when_preempted(ledger: Ledger, job: JobRecord) -> bool:
    """Say if a job that the scheduler preempts waits again, by its own annotation, else its queue's label.

    A gang does so only as a whole: when none has ended and every member says yes.
    """
    queue = ledger.queues.get(job.queue)
    default = queue is not None and queue.labels.get(REQUEUE_PREEMPTED) == "true"
    members = whole_gang(ledger, job)
    return bool(members) and all(
        default if member.requeues_preempted is None else member.requeues_preempted for member in members
    )
