# ruff: noqa: D102 - the members of the two protocols are explained by their names
"""Answers about jobs and runs, scheduling reports and logs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from armada_client.armada import binoculars_pb2 as logs
from armada_client.armada import job_pb2 as api
from armada_client.armada import submit_pb2

from armada._proto import reports_pb2
from armada.model.events import JobsSubmitted
from armada.model.jobs import JobTemplate, NewJob
from armada.model.lifecycle import JobState, RunState
from armada.wire.submitted import JobMessages
from armada.wire.times import stamp

_JOB_STATES: Final[Mapping[JobState, Any]] = {
    JobState.QUEUED: submit_pb2.JobState.QUEUED,
    JobState.LEASED: submit_pb2.JobState.LEASED,
    JobState.PENDING: submit_pb2.JobState.PENDING,
    JobState.RUNNING: submit_pb2.JobState.RUNNING,
    JobState.SUCCEEDED: submit_pb2.JobState.SUCCEEDED,
    JobState.FAILED: submit_pb2.JobState.FAILED,
    JobState.PREEMPTED: submit_pb2.JobState.PREEMPTED,
    JobState.CANCELLED: submit_pb2.JobState.CANCELLED,
    JobState.REJECTED: submit_pb2.JobState.REJECTED,
}
_RUN_STATES: Final[Mapping[RunState, Any]] = {
    RunState.LEASED: api.RUN_STATE_LEASED,
    RunState.PENDING: api.RUN_STATE_PENDING,
    RunState.RUNNING: api.RUN_STATE_RUNNING,
    RunState.SUCCEEDED: api.RUN_STATE_SUCCEEDED,
    RunState.FAILED: api.RUN_STATE_FAILED,
    RunState.PREEMPTED: api.RUN_STATE_PREEMPTED,
    RunState.CANCELLED: api.RUN_STATE_CANCELLED,
    RunState.LEASE_EXPIRED: api.RUN_STATE_LEASE_EXPIRED,
    RunState.LEASE_RETURNED: api.RUNS_STATE_LEASE_RETURNED,
}


class RunShown(Protocol):
    """What is shown of a run (`views.records.RunDetails`); a time that was not reached is None."""

    @property
    def run_id(self) -> str: ...
    @property
    def job_id(self) -> str: ...
    @property
    def state(self) -> RunState: ...
    @property
    def executor_id(self) -> str: ...
    @property
    def node_name(self) -> str: ...
    @property
    def leased_ms(self) -> int: ...
    @property
    def pending_ms(self) -> int | None: ...
    @property
    def started_ms(self) -> int | None: ...
    @property
    def finished_ms(self) -> int | None: ...
    @property
    def addresses(self) -> dict[int, str]: ...


class JobShown(Protocol):
    """What is shown of a job (`views.records.JobDetails`)."""

    @property
    def job_id(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def job_set(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def state(self) -> JobState: ...
    @property
    def submitted_ms(self) -> int: ...
    @property
    def last_transition_ms(self) -> int: ...
    @property
    def latest_run_id(self) -> str: ...
    @property
    def cancelled_ms(self) -> int | None: ...
    @property
    def cancel_reason(self) -> str: ...
    @property
    def cancel_requestor(self) -> str: ...
    @property
    def runs(self) -> Sequence[RunShown]: ...
    @property
    def template(self) -> JobTemplate | None: ...


def asked_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The ids of a request, each once, in order."""
    return tuple(dict.fromkeys(ids))


def status_response(states: Mapping[str, JobState | None]) -> api.JobStatusResponse:
    """The states of jobs; None stands for a job that is not known."""
    response = api.JobStatusResponse()
    for job_id, state in states.items():
        response.job_states[job_id] = submit_pb2.JobState.UNKNOWN if state is None else _JOB_STATES[state]
    return response


def errors_response(errors: Mapping[str, str]) -> api.JobErrorsResponse:
    """The error texts of jobs that were found."""
    return api.JobErrorsResponse(job_errors=errors)


def details_response(jobs: Iterable[JobShown]) -> api.JobDetailsResponse:
    """Jobs that were found; runs and template are shown where they are filled."""
    response = api.JobDetailsResponse()
    for job in jobs:
        _show_job(response.job_details[job.job_id], job)
    return response


def run_details_response(runs: Iterable[RunShown]) -> api.JobRunDetailsResponse:
    """Runs that were found."""
    response = api.JobRunDetailsResponse()
    for run in runs:
        _show_run(response.job_run_details[run.run_id], run)
    return response


def active_queues_response(queues_by_pool: Mapping[str, Iterable[str]]) -> api.GetActiveQueuesResponse:
    """Per pool the queues that have a leased, pending or running job."""
    response = api.GetActiveQueuesResponse()
    for pool, queues in queues_by_pool.items():
        response.active_queues_by_pool[pool].queues.extend(sorted(queues))
    return response


def scheduling_report(text: str) -> reports_pb2.SchedulingReport:
    """A report about the latest rounds."""
    return reports_pb2.SchedulingReport(report=text)


def queue_report(text: str) -> reports_pb2.QueueReport:
    """A report about one queue."""
    return reports_pb2.QueueReport(report=text)


def job_report(text: str) -> reports_pb2.JobReport:
    """A report about one job."""
    return reports_pb2.JobReport(report=text)


def job_report_request(job_id: str) -> reports_pb2.JobReportRequest:
    """The question why a job is, or is not, scheduled."""
    return reports_pb2.JobReportRequest(job_id=job_id)


def queue_report_request(queue: str, verbosity: int) -> reports_pb2.QueueReportRequest:
    """The question what the latest rounds decided for a queue."""
    return reports_pb2.QueueReportRequest(queue_name=queue, verbosity=verbosity)


def scheduling_report_request(queue: str, job_id: str, verbosity: int) -> reports_pb2.SchedulingReportRequest:
    """The question what the latest rounds decided, or the latest one that touched a queue or a job."""
    request = reports_pb2.SchedulingReportRequest(verbosity=verbosity)
    if queue:
        request.most_recent_for_queue.queue_name = queue
    elif job_id:
        request.most_recent_for_job.job_id = job_id
    return request


def log_response(lines: Iterable[tuple[str, str]]) -> logs.LogResponse:
    """Lines of a log as (time in RFC 3339, text)."""
    response = logs.LogResponse()
    for timestamp, line in lines:
        response.log.add(timestamp=timestamp, line=line)
    return response


def _show_job(message: api.JobDetails, job: JobShown) -> None:
    message.job_id = job.job_id
    message.queue = job.queue
    message.jobset = job.job_set
    message.namespace = job.namespace
    message.state = _JOB_STATES[job.state]
    message.latest_run_id = job.latest_run_id
    message.cancel_reason = job.cancel_reason
    message.cancel_user = job.cancel_requestor
    stamp(message.submitted_ts, job.submitted_ms)
    stamp(message.last_transition_ts, job.last_transition_ms)
    if job.cancelled_ms is not None:
        stamp(message.cancel_ts, job.cancelled_ms)
    if job.template is not None:
        submitted = JobsSubmitted(at_ms=job.submitted_ms, template=job.template, jobs=(), owner=job.owner)
        JobMessages(job.queue, job.job_set, submitted).fill(message.job_spec, NewJob(job.job_id, job.priority))
    for run in job.runs:
        _show_run(message.job_runs.add(), run)


def _show_run(message: api.JobRunDetails, run: RunShown) -> None:
    message.run_id = run.run_id
    message.job_id = run.job_id
    message.state = _RUN_STATES[run.state]
    message.cluster = run.executor_id
    message.node = run.node_name
    message.ingress_addresses.update(run.addresses)
    for timestamp, at_ms in (
        (message.leased_ts, run.leased_ms),
        (message.pending_ts, run.pending_ms),
        (message.started_ts, run.started_ms),
        (message.finished_ts, run.finished_ms),
    ):
        if at_ms is not None:
            stamp(timestamp, at_ms)
