"""What each fact does to the ledger's tables, and which facts are void.

Every method takes one fact and returns False when it does not fit what is known: then it has changed nothing. Nothing
here raises for what an entry says: the log may hold anything that was true for its author and is late for us.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from armada.model import events as facts
from armada.model.events import Entry, Position
from armada.model.jobs import JobTemplate, NewJob
from armada.model.lifecycle import RUN_TRANSITIONS, TRANSITIONS, JobState, RunState
from armada.model.policy import RetryPolicy, SchedulingPolicy
from armada.model.resources import saturated
from armada.state.holdings.fleet import Fleet
from armada.state.holdings.jobs import CANCEL_REQUESTED, PREEMPT_REQUESTED, JobOrigin, Jobs, Submission
from armada.state.holdings.runs import Runs
from armada.state.holdings.short_jobs import ShortJobs
from armada.state.holdings.witness import Witness
from armada.state.memory import WHOLE_ENTRY, Remembered, Voids, fingerprint
from armada.state.table import NONE

CLIENT_IDS_KEPT_MS: Final = 7 * 24 * 3_600_000
"""How long a client id stands for the job that it named first, whether or not that has ended."""
CLIENT_IDS_LIMIT: Final = 20_000_000

BATCH_IDS_LIMIT: Final = 262_144
"""Batches whose ids are remembered, so that a repeat is void."""

_JOB_MASKS: Final[Mapping[str, int]] = {
    kind: sum(1 << state for state in meets) for kind, (meets, _) in TRANSITIONS.items()
}
_RUN_MASKS: Final[Mapping[str, int]] = {
    kind: sum(1 << state for state in meets) for kind, (meets, _) in RUN_TRANSITIONS.items()
}
_LIVE_RUN: Final = 1 << RunState.LEASED | 1 << RunState.PENDING | 1 << RunState.RUNNING
_ACTIVE_JOB: Final = 1 << JobState.LEASED | 1 << JobState.PENDING | 1 << JobState.RUNNING

_INT32_MAX: Final = 2**31 - 1
_QUEUED: Final = int(JobState.QUEUED)
_LEASED: Final = int(JobState.LEASED)


class Fold:
    """The tables, and the facts that change them."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self.jobs = Jobs()
        self.runs = Runs()
        self.fleet = Fleet()
        self.short_jobs = ShortJobs(policy)
        self.retry_policies: dict[str, RetryPolicy] = {}
        self.clients = Remembered(CLIENT_IDS_LIMIT, text_bytes=26)
        self.batches = Remembered(BATCH_IDS_LIMIT)
        self.last_batch = ("", 0)
        """Id of the last batch that counted, and ordinal of its last sequence so far."""
        self.voids = Voids()
        self.position: Position = 0
        self.time_ms = 0
        self.epoch = 0
        self.holder = ""
        self.node_id_label = policy.node_id_label
        self.witness: Witness | None = None
        self._class_priorities = {kind.name: min(kind.priority, _INT32_MAX) for kind in policy.priority_classes}
        self._default_priority = self._class_priorities[policy.default_priority_class]
        self._queue = self._job_set = ""
        self._set = NONE
        self._index = self._entry_epoch = 0
        self._changes: Mapping[type[msgspec.Struct], Callable[[Any], bool]] = {
            facts.JobsSubmitted: self._jobs_submitted,
            facts.JobReprioritisationRequested: self._job_noted,
            facts.JobReprioritised: self._job_reprioritised,
            facts.JobCancelRequested: self._job_cancel_requested,
            facts.JobCancelled: self._job_cancelled,
            facts.JobPreemptRequested: self._job_preempt_requested,
            facts.JobRejected: self._job_rejected,
            facts.JobSucceeded: self._job_succeeded,
            facts.JobFailed: self._job_failed,
            facts.JobPreempted: self._job_preempted,
            facts.JobRequeued: self._job_requeued,
            facts.RunLeased: self._run_leased,
            facts.RunPending: self._run_pending,
            facts.RunStarted: self._run_started,
            facts.RunAddressed: self._run_noted,
            facts.RunUsageReported: self._run_noted,
            facts.RunSucceeded: self._run_succeeded,
            facts.RunFailed: self._run_failed,
            facts.RunReturned: self._run_returned,
            facts.RunLeaseExpired: self._run_lease_expired,
            facts.RunPreempted: self._run_preempted,
            facts.RunsReleased: self._runs_released,
            facts.QueueCreated: self._queue_set,
            facts.QueueUpdated: self._queue_set,
            facts.QueueCordoned: self._queue_cordoned,
            facts.QueueDeleted: self._queue_deleted,
            facts.RetryPolicySet: self._retry_policy_set,
            facts.RetryPolicyDeleted: self._retry_policy_deleted,
            facts.ExecutorReported: self._executor_reported,
            facts.ExecutorSettingsChanged: self._executor_settings_changed,
            facts.ExecutorDeleted: self._executor_deleted,
            facts.LeadershipClaimed: self._leadership_claimed,
        }

    def apply(self, entry: Entry) -> None:
        """Apply an entry, remembering what of it is void; one at or below `position` is known already."""
        if entry.position <= self.position:
            return
        self.position = entry.position
        if not self._admits_entry(entry):
            self.voids.add(entry.position, *WHOLE_ENTRY)
            return
        if entry.time_ms > self.time_ms:
            self.time_ms = entry.time_ms
            self.clients.forget_before(self.time_ms - CLIENT_IDS_KEPT_MS)
        self._entry_epoch = entry.epoch
        self._queue, self._job_set = entry.queue, entry.job_set
        self._set = self.jobs.sets.find((entry.queue, entry.job_set))
        changes, witness = self._changes, self.witness
        for index, event in enumerate(entry.events):
            self._index = index
            noted = witness.before(self.jobs, self.runs, event) if witness is not None else None
            if not changes[type(event)](event):
                self.voids.add(entry.position, index, NONE)
            elif witness is not None and noted is not None:
                witness.after(self.jobs, noted)

    def _admits_entry(self, entry: Entry) -> bool:
        """Say if an entry counts: it repeats no batch, and its epoch is the current one, or none."""
        if entry.batch_id:
            if self.last_batch != (entry.batch_id, entry.ordinal - 1):
                key = fingerprint(entry.batch_id)
                if key in self.batches:
                    return False
                self.batches.add(key, entry.time_ms)
            self.last_batch = (entry.batch_id, entry.ordinal)
        if entry.epoch in (0, self.epoch):
            return True
        return entry.epoch == self.epoch + 1 and any(
            isinstance(event, facts.LeadershipClaimed) and event.epoch == entry.epoch for event in entry.events
        )

    def class_priority(self, priority_class: str) -> int:
        """Return the priority of a class; one that the policy no longer knows counts as the default class."""
        return self._class_priorities.get(priority_class, self._default_priority)

    # -- submission ---------------------------------------------------------------------------------------------------

    def _jobs_submitted(self, event: facts.JobsSubmitted) -> bool:
        if not self._queue:
            return False
        jobs, template = self.jobs, event.template
        queue = jobs.hold_queue(self._queue)
        kind = jobs.hold_kind(template)
        shape = jobs.kinds[kind].shape
        jobs.shapes.hold_number(shape)
        priority_class = template.shape.priority_class
        shared = Submission(
            queue=queue,
            job_set=jobs.sets.hold((self._queue, self._job_set)),
            kind=kind,
            shape=shape,
            origin=jobs.origins.hold(
                JobOrigin(event.owner, event.groups, template.namespace, template.external_job_uri),
            ),
            gang=jobs.gangs.hold(queue, template.gang, priority_class) if template.gang else NONE,
            class_priority=self.class_priority(priority_class),
            at_ms=saturated(event.at_ms),
            position=self.position,
            index=self._index,
        )
        self._set = shared.job_set
        accepted = 0
        for row, job in enumerate(event.jobs):
            if self._admits(job, shared, template):
                jobs.submit(job, shared)
                accepted += 1
            else:
                self.voids.add(self.position, self._index, row)
        jobs.hold_shared(shared, accepted)
        jobs.release_shared(shared)
        if not accepted:
            self._set = jobs.sets.find((self._queue, self._job_set))
        return True

    def _admits(self, job: NewJob, shared: Submission, template: JobTemplate) -> bool:
        """Say if a new job fits, and remember its client id."""
        if self.jobs.ids.find(job.job_id) != NONE:
            return False
        key = fingerprint(self._queue, job.client_id) if job.client_id else b""
        if key and key in self.clients:
            return False
        if shared.gang != NONE:
            gang = self.jobs.gangs[shared.gang]
            same = gang.spec == template.gang and gang.priority_class == template.shape.priority_class
            if not same or gang.submitted >= gang.spec.cardinality:
                return False
        if key:
            self.clients.add(key, self.time_ms, job.job_id)
        return True

    # -- facts about jobs ---------------------------------------------------------------------------------------------

    def _find_job(self, job_id: str, mask: int) -> int:
        """Return the row of a job of the entry's job set whose state is in the mask, or NONE."""
        row = self.jobs.ids.find(job_id)
        if row == NONE or self.jobs.job_set[row] != self._set or not mask >> self.jobs.state[row] & 1:
            return NONE
        return row

    def _job_noted(self, event: facts.JobReprioritisationRequested) -> bool:
        return self._find_job(event.job_id, _JOB_MASKS["JobReprioritisationRequested"]) != NONE

    def _job_reprioritised(self, event: facts.JobReprioritised) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobReprioritised"])
        if row == NONE:
            return False
        self.jobs.reprioritise(row, saturated(event.priority))
        return True

    def _job_cancel_requested(self, event: facts.JobCancelRequested) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobCancelRequested"])
        if row == NONE:
            return False
        self.jobs.flags[row] |= CANCEL_REQUESTED
        return True

    def _job_preempt_requested(self, event: facts.JobPreemptRequested) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobPreemptRequested"])
        if row == NONE:
            return False
        self.jobs.flags[row] |= PREEMPT_REQUESTED
        return True

    def _job_cancelled(self, event: facts.JobCancelled) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobCancelled"])
        if row == NONE:
            return False
        self._end_live_run(row, RunState.CANCELLED, event.at_ms)
        return self._ended(row, JobState.CANCELLED)

    def _job_rejected(self, event: facts.JobRejected) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobRejected"])
        return row != NONE and self._ended(row, JobState.REJECTED)

    def _job_succeeded(self, event: facts.JobSucceeded) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobSucceeded"])
        if row == NONE or self.runs.state[self.jobs.run[row]] != RunState.SUCCEEDED:
            return False
        return self._ended(row, JobState.SUCCEEDED)

    def _job_failed(self, event: facts.JobFailed) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobFailed"])
        if row == NONE:
            return False
        self._end_live_run(row, RunState.FAILED, event.at_ms)
        # Nobody ends early for the gain of it because a node changed under the job.
        return self._ended(row, JobState.FAILED, at_fault=event.failure.kind != "reconciliation")

    def _job_preempted(self, event: facts.JobPreempted) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobPreempted"])
        if row == NONE or not (_LIVE_RUN | 1 << RunState.PREEMPTED) >> self.runs.state[self.jobs.run[row]] & 1:
            return False
        self._end_live_run(row, RunState.PREEMPTED, event.at_ms)
        return self._ended(row, JobState.PREEMPTED)

    def _job_requeued(self, event: facts.JobRequeued) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["JobRequeued"])
        if row == NONE or (_LIVE_RUN | 1 << RunState.SUCCEEDED) >> self.runs.state[self.jobs.run[row]] & 1:
            return False
        self.jobs.flags[row] &= ~PREEMPT_REQUESTED
        self.jobs.change(row, event.avoid_nodes, event.growth, self.node_id_label)
        self.jobs.move(row, _QUEUED)
        self.jobs.queued_ms[row] = max(saturated(event.at_ms), self.jobs.submitted_ms[row])
        self._settle(row)
        return True

    def _end_live_run(self, job: int, state: RunState, at_ms: int) -> None:
        """End a job's current run when it has a live one."""
        if _ACTIVE_JOB >> self.jobs.state[job] & 1:
            run = self.jobs.run[job]
            if _LIVE_RUN >> self.runs.state[run] & 1:
                self._end_run(run, state, at_ms)

    def _ended(self, job: int, state: JobState, *, at_fault: bool = True) -> bool:
        if at_fault and state != JobState.PREEMPTED:
            self.short_jobs.ended(self.jobs, self.runs, job, self.time_ms)
        self.jobs.move(job, state)
        self._settle(job)
        self._drop_if_done(job)
        return True

    # -- facts about runs ---------------------------------------------------------------------------------------------

    def _run_leased(self, event: facts.RunLeased) -> bool:
        row = self._find_job(event.job_id, _JOB_MASKS["RunLeased"])
        if row == NONE or event.run_id in self.runs.rows:
            return False
        jobs = self.jobs
        jobs.run[row] = self.runs.lease(event, row, jobs.run[row])
        jobs.runs_leased[row] += 1
        jobs.runs_held[row] += 1
        jobs.move(row, _LEASED)
        return True

    def _find_run(self, job_id: str, run_id: str, kind: str) -> int:
        """Return the row of a job's current run, when run and job may meet a fact of this kind, or NONE."""
        run = self.runs.rows.get(run_id)
        if run is None or not _RUN_MASKS[kind] >> self.runs.state[run] & 1:
            return NONE
        job, jobs = self.runs.job[run], self.jobs
        if jobs.run[job] != run or jobs.job_set[job] != self._set or jobs.ids.id(job) != job_id:
            return NONE
        return run if _JOB_MASKS[kind] >> jobs.state[job] & 1 else NONE

    def _run_noted(self, event: facts.RunAddressed | facts.RunUsageReported) -> bool:
        return self._find_run(event.job_id, event.run_id, type(event).__name__) != NONE

    def _run_pending(self, event: facts.RunPending) -> bool:
        run = self._find_run(event.job_id, event.run_id, "RunPending")
        if run == NONE:
            return False
        self.runs.confirm(run, RunState.PENDING)
        self.runs.pending_ms[run] = max(saturated(event.at_ms), self.runs.leased_ms[run])
        self.jobs.move(self.runs.job[run], JobState.PENDING)
        return True

    def _run_started(self, event: facts.RunStarted) -> bool:
        run = self._find_run(event.job_id, event.run_id, "RunStarted")
        if run == NONE:
            return False
        self.runs.confirm(run, RunState.RUNNING)
        self.runs.started_ms[run] = max(saturated(event.at_ms), self.runs.leased_ms[run], self.runs.pending_ms[run])
        self.jobs.move(self.runs.job[run], JobState.RUNNING)
        return True

    def _run_succeeded(self, event: facts.RunSucceeded) -> bool:
        run = self._find_run(event.job_id, event.run_id, "RunSucceeded")
        return run != NONE and self._end_run(run, RunState.SUCCEEDED, event.at_ms)

    def _run_failed(self, event: facts.RunFailed) -> bool:
        run = self._find_run(event.job_id, event.run_id, "RunFailed")
        if run == NONE:
            return False
        self._count_attempt(self.runs.job[run], failed=True)
        return self._end_run(run, RunState.FAILED, event.at_ms)

    def _run_returned(self, event: facts.RunReturned) -> bool:
        run = self._find_run(event.job_id, event.run_id, "RunReturned")
        if run == NONE:
            return False
        if event.attempted:
            self._count_attempt(self.runs.job[run], failed=False)
        return self._end_run(run, RunState.LEASE_RETURNED, event.at_ms)

    def _run_lease_expired(self, event: facts.RunLeaseExpired) -> bool:
        run = self._find_run(event.job_id, event.run_id, "RunLeaseExpired")
        if run == NONE:
            return False
        self._count_attempt(self.runs.job[run], failed=True)
        return self._end_run(run, RunState.LEASE_EXPIRED, event.at_ms)

    def _run_preempted(self, event: facts.RunPreempted) -> bool:
        run = self._find_run(event.job_id, event.run_id, "RunPreempted")
        return run != NONE and self._end_run(run, RunState.PREEMPTED, event.at_ms)

    def _count_attempt(self, job: int, *, failed: bool) -> None:
        self.jobs.runs_attempted[job] += 1
        self.jobs.runs_failed[job] += failed

    def _end_run(self, run: int, state: RunState, at_ms: int) -> bool:
        runs = self.runs
        runs.end(run, state, max(saturated(at_ms), runs.leased_ms[run], runs.pending_ms[run], runs.started_ms[run]))
        return True

    # -- room ---------------------------------------------------------------------------------------------------------

    def _runs_released(self, event: facts.RunsReleased) -> bool:
        released = False
        for run_id in event.run_ids:
            run = self.runs.rows.get(run_id)
            released |= run is not None and self._release(run)
        return released

    def _release(self, run: int) -> bool:
        """Free an ended run's room; False for a live run and for one whose end still has to move its job."""
        runs, jobs = self.runs, self.jobs
        if _LIVE_RUN >> runs.state[run] & 1:
            return False
        job = runs.job[run]
        newest = jobs.run[job]
        if newest == run:
            if _ACTIVE_JOB >> jobs.state[job] & 1:
                return False
            jobs.run[job] = runs.older[run]
        else:
            while runs.older[newest] != run:
                newest = runs.older[newest]
            runs.older[newest] = runs.older[run]
        runs.release(run)
        jobs.runs_held[job] -= 1
        self._drop_if_done(job)
        return True

    def _settle(self, job: int) -> None:
        """Free the room of a job's ended runs on nodes that nobody reports: no executor will ever release them."""
        run = self.jobs.run[job]
        while run != NONE:
            older = self.runs.older[run]
            if self.fleet.node(self.runs.nodes[self.runs.node[run]]) is None:
                self._release(run)
            run = older

    def _drop_if_done(self, job: int) -> None:
        if self.jobs.state[job] >= JobState.SUCCEEDED and not self.jobs.runs_held[job]:
            self.jobs.drop(job)

    def _release_nodes(self, node_ids: tuple[str, ...]) -> None:
        """Free the room of ended runs on nodes that are gone."""
        for node_id in node_ids:
            for run in self.runs.rows_where("node", self.runs.nodes.find(node_id)):
                self._release(run)

    # -- queues, executors, leadership --------------------------------------------------------------------------------

    def _queue_set(self, event: facts.QueueCreated | facts.QueueUpdated) -> bool:
        name = event.queue.name
        known = name in self.fleet.queues
        if not name or not (known or isinstance(event, facts.QueueCreated)):
            return False
        self.fleet.queues[name] = event.queue
        if not known:
            self.jobs.hold_queue(name)
        return True

    def _queue_cordoned(self, event: facts.QueueCordoned) -> bool:
        queue = self.fleet.queues.get(event.name)
        if queue is None:
            return False
        self.fleet.queues[event.name] = msgspec.structs.replace(queue, cordoned=event.cordoned)
        return True

    def _queue_deleted(self, event: facts.QueueDeleted) -> bool:
        if self.fleet.queues.pop(event.name, None) is None:
            return False
        self.jobs.queues.release(self.jobs.queues.find(event.name))
        self.short_jobs.forget_queue(event.name)
        return True

    def _retry_policy_set(self, event: facts.RetryPolicySet) -> bool:
        if not event.policy.name:
            return False
        self.retry_policies[event.policy.name] = event.policy
        return True

    def _retry_policy_deleted(self, event: facts.RetryPolicyDeleted) -> bool:
        if self.retry_policies.pop(event.name, None) is None:
            return False
        for name, queue in self.fleet.queues.items():
            if event.name in queue.retry_policies:
                left = tuple(policy for policy in queue.retry_policies if policy != event.name)
                self.fleet.queues[name] = msgspec.structs.replace(queue, retry_policies=left)
        return True

    def _executor_reported(self, event: facts.ExecutorReported) -> bool:
        if not event.executor_id:
            return False
        self._release_nodes(self.fleet.report(event))
        return True

    def _executor_settings_changed(self, event: facts.ExecutorSettingsChanged) -> bool:
        if not event.settings.executor_id:
            return False
        self.fleet.change_settings(event.settings, event.at_ms)
        return True

    def _executor_deleted(self, event: facts.ExecutorDeleted) -> bool:
        if not self.fleet.has_executor(event.executor_id):
            return False
        node_ids = tuple(node.node_id for node in self.fleet.nodes_of(event.executor_id))
        self.fleet.delete_executor(event.executor_id)
        self._release_nodes(node_ids)
        return True

    def _leadership_claimed(self, event: facts.LeadershipClaimed) -> bool:
        if event.epoch != self.epoch + 1 or event.epoch != self._entry_epoch:
            return False
        self.epoch = event.epoch
        self.holder = event.holder
        return True
