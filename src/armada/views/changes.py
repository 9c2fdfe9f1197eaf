"""Facts of the log, folded into as few row changes as they come to.

A batch of entries touches most of its jobs several times; a `Changes` merges all that happens to one job or run, so
that the store writes each row once. Entries come without their void parts, so every fact fits the state it meets.
"""

from typing import Final, TypeVar, assert_never

from msgspec import json

from armada.model.events import (
    Entry,
    Event,
    ExecutorDeleted,
    ExecutorReported,
    ExecutorSettingsChanged,
    Failure,
    JobCancelled,
    JobCancelRequested,
    JobFailed,
    JobPreempted,
    JobPreemptRequested,
    JobRejected,
    JobReprioritisationRequested,
    JobReprioritised,
    JobRequeued,
    JobsSubmitted,
    JobSucceeded,
    LeadershipClaimed,
    QueueCordoned,
    QueueCreated,
    QueueDeleted,
    QueueUpdated,
    RetryPolicyDeleted,
    RetryPolicySet,
    RunAddressed,
    RunFailed,
    RunLeased,
    RunLeaseExpired,
    RunPending,
    RunPreempted,
    RunReturned,
    RunsReleased,
    RunStarted,
    RunSucceeded,
    RunUsageReported,
)
from armada.model.lifecycle import JobState, RunState
from armada.views.records import Preemption, pack

Value = int | str | bytes | None
Row = dict[str, Value]
"""A row, or some of its columns, by column name (`views.schema`)."""

_JOB_ENDS: Final = frozenset(int(state) for state in JobState if state.is_terminal)
_RUN_ENDS: Final = frozenset(int(state) for state in RunState if state.is_terminal)


class Changes:
    """Rows to insert and columns to set, gathered over entries in their order.

    `job_sets` holds (queue, job set) by job id of new jobs: the store replaces them by numbers. `ended` are jobs whose
    live run, if any, ends with them: (job id, when), by the state that such a run takes.
    """

    def __init__(self) -> None:
        self.position = 0
        self.batch_id = ""
        self.specs: list[Row] = []
        self.new_jobs: dict[str, Row] = {}
        self.job_sets: dict[str, tuple[str, str]] = {}
        self.jobs: dict[str, Row] = {}
        self.new_runs: dict[tuple[str, str], Row] = {}
        self.runs: dict[tuple[str, str], Row] = {}
        self.ended: dict[RunState, list[tuple[str, int]]] = {}

    def add(self, entry: Entry) -> None:
        """Take in an entry. Its events stand where the log has them: specs are numbered by that place."""
        for number, event in enumerate(entry.events):
            if isinstance(event, JobsSubmitted):
                if event.jobs:
                    self._submit(entry, event, number)
            else:
                self._fold(event)
        self.position = entry.position
        self.batch_id = entry.batch_id

    def _submit(self, entry: Entry, event: JobsSubmitted, number: int) -> None:
        template = event.template
        self.specs.append(
            {
                "position": entry.position,
                "spec_index": number,
                "template": pack(template),
                "owner": event.owner,
                "groups": json.encode(event.groups).decode(),
                "namespace": template.namespace,
                "priority_class": template.shape.priority_class,
                "jobs": len(event.jobs),
            },
        )
        names = (entry.queue, entry.job_set)
        uri = template.external_job_uri or None
        for new in event.jobs:
            if new.job_id in self.new_jobs:
                continue  # an id that was used before: the first job keeps it
            self.job_sets[new.job_id] = names
            self.new_jobs[new.job_id] = {
                "job_id": new.job_id,
                "set_id": 0,
                "spec_position": entry.position,
                "spec_index": number,
                "state": int(JobState.QUEUED),
                "priority": new.priority,
                "submitted_ms": event.at_ms,
                "changed_ms": event.at_ms,
                "external_job_uri": uri,
            }

    def _fold(self, event: Event) -> None:  # noqa: C901, PLR0912 - one flat arm a kind of fact, frequent ones first
        match event:
            case RunLeased():
                self._lease(event)
            case RunPending(job_id=job_id, run_id=run_id, at_ms=at_ms):
                self._run(job_id, run_id, RunState.PENDING, {"pending_ms": at_ms})
                self._job(job_id, at_ms, JobState.PENDING)
            case RunStarted(job_id=job_id, run_id=run_id, at_ms=at_ms):
                self._run(job_id, run_id, RunState.RUNNING, {"started_ms": at_ms})
                self._job(job_id, at_ms, JobState.RUNNING)
            case RunSucceeded(job_id=job_id, run_id=run_id, at_ms=at_ms):
                self._run(job_id, run_id, RunState.SUCCEEDED, {"finished_ms": at_ms, "exit_code": 0})
            case JobSucceeded():
                self._job(event.job_id, event.at_ms, JobState.SUCCEEDED)
            case RunFailed():
                self._end_run(event, RunState.FAILED)
            case RunReturned():
                self._end_run(event, RunState.LEASE_RETURNED)
            case RunLeaseExpired(job_id=job_id, run_id=run_id, at_ms=at_ms):
                self._run(job_id, run_id, RunState.LEASE_EXPIRED, {"finished_ms": at_ms})
            case RunPreempted():
                self._preempt(event)
            case RunAddressed(job_id=job_id, run_id=run_id):
                _row(self.new_runs, self.runs, (job_id, run_id))["addresses"] = pack(event.addresses)
            case JobFailed():
                self._fail(event, JobState.FAILED, RunState.FAILED)
            case JobPreempted():
                self._fail(event, JobState.PREEMPTED, RunState.PREEMPTED)
            case JobRejected():
                self._job(event.job_id, event.at_ms, JobState.REJECTED, rejection=event.reason)
            case JobRequeued():
                self._job(event.job_id, event.at_ms, JobState.QUEUED)
            case JobCancelRequested():
                self._asked(event.job_id, "cancel", event.reason, event.requestor)
            case JobCancelled(job_id=job_id, at_ms=at_ms):
                self._asked(job_id, "cancel", event.reason, event.requestor)
                self._job(job_id, at_ms, JobState.CANCELLED, cancelled_ms=at_ms)
                self._end_with_job(job_id, at_ms, RunState.CANCELLED)
            case JobPreemptRequested():
                self._asked(event.job_id, "preempt", event.reason, event.requestor)
            case JobReprioritised():
                _row(self.new_jobs, self.jobs, event.job_id)["priority"] = event.priority
            case JobsSubmitted() | JobReprioritisationRequested() | RunUsageReported() | RunsReleased():
                pass  # submissions are taken in by `add`; the others leave no trace here
            case (
                QueueCreated()
                | QueueUpdated()
                | QueueCordoned()
                | QueueDeleted()
                | RetryPolicySet()
                | RetryPolicyDeleted()
            ):
                pass  # queues and fleet are the ledger's
            case ExecutorReported() | ExecutorSettingsChanged() | ExecutorDeleted() | LeadershipClaimed():
                pass
            case _:
                assert_never(event)

    def _lease(self, event: RunLeased) -> None:
        row: Row = {
            "job_id": event.job_id,
            "run_id": event.run_id,
            "attempt": event.attempt,
            "state": int(RunState.LEASED),
            "executor_id": event.executor_id,
            "node_id": event.node_id,
            "node_name": event.node_name,
            "pool": event.pool,
            "leased_ms": event.at_ms,
        }
        self.new_runs.setdefault((event.job_id, event.run_id), row)
        self._job(event.job_id, event.at_ms, JobState.LEASED, latest_run_id=event.run_id)

    def _preempt(self, event: RunPreempted) -> None:
        preemption = Preemption(
            kind=event.kind,
            reason=event.reason,
            preempting_job_id=event.preempting_job_id,
            requestor=event.requestor,
        )
        end: Row = {"finished_ms": event.at_ms, "preemption": pack(preemption)}
        self._run(event.job_id, event.run_id, RunState.PREEMPTED, end)

    def _end_run(self, event: RunFailed | RunReturned, state: RunState) -> None:
        end: Row = {"finished_ms": event.at_ms, "failure": pack(event.failure)}
        code = exit_code(event.failure)
        if code is not None:
            end["exit_code"] = code
        self._run(event.job_id, event.run_id, state, end)

    def _fail(self, event: JobFailed | JobPreempted, state: JobState, run_state: RunState) -> None:
        self._job(event.job_id, event.at_ms, state, failure=pack(event.failure))
        self._end_with_job(event.job_id, event.at_ms, run_state)

    def _end_with_job(self, job_id: str, at_ms: int, state: RunState) -> None:
        """The job's end is the end of a run that has not ended before it."""
        self.ended.setdefault(state, []).append((job_id, at_ms))

    def _asked(self, job_id: str, verb: str, reason: str, requestor: str) -> None:
        """Note who asked and why; what is empty doesn't replace what an earlier fact said."""
        row = _row(self.new_jobs, self.jobs, job_id)
        if reason:
            row[f"{verb}_reason"] = reason
        if requestor:
            row[f"{verb}_requestor"] = requestor

    def _job(self, job_id: str, at_ms: int, state: JobState, **columns: Value) -> None:
        """Move a job on; one that has ended stays as it ended."""
        row = _row(self.new_jobs, self.jobs, job_id)
        if row.get("state", 0) not in _JOB_ENDS:
            row["state"] = int(state)
            row["changed_ms"] = at_ms
            row.update(columns)

    def _run(self, job_id: str, run_id: str, state: RunState, columns: Row) -> None:
        """The same for a run."""
        row = _row(self.new_runs, self.runs, (job_id, run_id))
        if row.get("state", 0) not in _RUN_ENDS:
            row["state"] = int(state)
            row.update(columns)


def exit_code(failure: Failure) -> int | None:
    """The exit code to show for a pod: of its first container that ended badly; None when no container's is known."""
    codes = [container.exit_code for container in failure.containers]
    return next((code for code in codes if code != 0), codes[0] if codes else None)


Key = TypeVar("Key")


def _row(new: dict[Key, Row], changed: dict[Key, Row], key: Key) -> Row:
    """The row that a fact changes: one that this batch inserts, else the columns to set in one that is stored."""
    row = new.get(key)
    if row is None:
        row = changed.get(key)
        if row is None:
            row = changed[key] = {}
    return row
