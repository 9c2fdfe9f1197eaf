"""Changes to jobs that exist: cancel, reprioritise, preempt.

Ids that name no live job of the given queue and job set are left alone, and the answer repeats every id that was
asked for, known or not: it says what was asked, and nothing about the jobs of others.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from armada.control.commands.permissions import (
    CANCEL_ANY,
    PREEMPT_ANY,
    REPRIORITISE_ANY,
    known_queue,
    require,
    require_on_queue,
)
from armada.control.commands.situation import Situation
from armada.control.commands.submission.defaults import clamped_priority
from armada.control.commands.texts import text_fault
from armada.control.sequences import merged_sequences
from armada.model.errors import InvalidRequest
from armada.model.events import (
    Event,
    Failure,
    JobCancelled,
    JobCancelRequested,
    JobPreempted,
    JobPreemptRequested,
    JobReprioritisationRequested,
    JobReprioritised,
    JobSetEvents,
    RunPreempted,
)
from armada.model.lifecycle import JobState
from armada.model.policy import SchedulingPolicy
from armada.model.submission import (
    CancelRequest,
    CancelSetRequest,
    PreemptRequest,
    QueueJobsRequest,
    ReprioritiseRequest,
)
from armada.state.ledger import Ledger
from armada.state.records import JobRecord

_ACTIVE: Final = (JobState.LEASED, JobState.PENDING, JobState.RUNNING)
_SET_STATES: Final = ("QUEUED", "PENDING", "RUNNING")
_QUEUE_STATES: Final = {
    "QUEUED": JobState.QUEUED,
    "LEASED": JobState.LEASED,
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
}

Sequences = tuple[JobSetEvents, ...]


def _target_checked(at: Situation, queue: str, job_set: str, reason: str) -> None:
    policy = at.submission
    faults = (
        text_fault("reason", reason, policy.max_reason_bytes),
        text_fault("queue", queue, policy.max_queue_name_bytes, required=True),
        text_fault("job_set_id", job_set, policy.max_job_set_bytes, required=True),
    )
    if fault := next(filter(None, faults), ""):
        raise InvalidRequest(fault)


def _ids_checked(job_ids: Sequence[str]) -> None:
    # An empty id most likely came from an empty variable of a script; it must never stand for the whole set.
    if "" in job_ids:
        raise InvalidRequest(f"job id {job_ids.index('')} is empty")


def _live(ledger: Ledger, queue: str, job_set: str, job_ids: Iterable[str]) -> list[JobRecord]:
    """Jobs among these ids that belong to the job set and have not ended, each once."""
    records = [ledger.job(job_id) for job_id in dict.fromkeys(job_ids)]
    return [
        record
        for record in records
        if record is not None and record.queue == queue and record.job_set == job_set and not record.state.is_terminal
    ]


def _sequence(queue: str, job_set: str, events: Sequence[Event]) -> Sequences:
    return merged_sequences([JobSetEvents(queue, job_set, tuple(events))])


def cancel(at: Situation, request: CancelRequest) -> tuple[tuple[str, ...], Sequences]:
    """Cancel jobs by id, or without any id the whole job set.

    Returns the ids asked for, each once in order (for the whole set: one empty text), and the facts. Raises
    InvalidRequest, NotFound (the queue), PermissionDenied.
    """
    _target_checked(at, request.queue, request.job_set, request.reason)
    require_on_queue(at.caller, known_queue(at.ledger, request.queue), CANCEL_ANY, "cancel")
    if not request.job_ids:
        whole = CancelSetRequest(request.queue, request.job_set, (), request.reason)
        return ("",), cancel_set(at, whole)
    _ids_checked(request.job_ids)
    jobs = _live(at.ledger, request.queue, request.job_set, request.job_ids)
    events = _cancellations(at, (job.job_id for job in jobs), request.reason)
    return tuple(dict.fromkeys(request.job_ids)), _sequence(request.queue, request.job_set, events)


def _cancellations(at: Situation, job_ids: Iterable[str], reason: str) -> list[Event]:
    return [
        kind(at_ms=at.now_ms, job_id=job_id, requestor=at.caller.name, reason=reason)
        for job_id in job_ids
        for kind in (JobCancelRequested, JobCancelled)
    ]


def cancel_set(at: Situation, request: CancelSetRequest) -> Sequences:
    """Cancel the jobs of a set that exist now and are in one of the states (none given: all that have not ended).

    PENDING and RUNNING come only together and cover leased jobs too. Raises InvalidRequest (also for any other state),
    NotFound (the queue), PermissionDenied.
    """
    _target_checked(at, request.queue, request.job_set, request.reason)
    require_on_queue(at.caller, known_queue(at.ledger, request.queue), CANCEL_ANY, "cancel")
    for state in request.states:
        if state not in _SET_STATES:
            raise InvalidRequest(f"jobs can't be selected by state {state}: only by {', '.join(_SET_STATES)}")
    if ("PENDING" in request.states) is not ("RUNNING" in request.states):
        raise InvalidRequest("states PENDING and RUNNING can only be given together")
    wanted = [
        *([JobState.QUEUED] if "QUEUED" in request.states else []),
        *(_ACTIVE if "PENDING" in request.states else ()),
    ]
    job_ids = at.ledger.jobs_in_set(request.queue, request.job_set)
    if request.states:
        job_ids = tuple(job_id for job_id in job_ids if at.ledger.job_state(job_id) in wanted)
    return _sequence(request.queue, request.job_set, _cancellations(at, job_ids, request.reason))


def reprioritise(at: Situation, request: ReprioritiseRequest) -> tuple[dict[str, str], Sequences]:
    """Give jobs another priority, by id or (without any id) all of a job set.

    Returns an empty text for each id asked for (or one entry for the set) and the facts; a job whose priority does not
    change gets no `JobReprioritised`. Raises InvalidRequest, NotFound (the queue), PermissionDenied.
    """
    _target_checked(at, request.queue, request.job_set, "")
    require_on_queue(at.caller, known_queue(at.ledger, request.queue), REPRIORITISE_ANY, "reprioritize")
    _ids_checked(request.job_ids)
    priority = clamped_priority(request.priority)
    by_id = bool(request.job_ids)
    found = _live(
        at.ledger,
        request.queue,
        request.job_set,
        request.job_ids if by_id else at.ledger.jobs_in_set(request.queue, request.job_set),
    )
    live = {job.job_id for job in found}
    events: list[Event] = [
        JobReprioritisationRequested(at_ms=at.now_ms, job_id=job_id, priority=priority, requestor=at.caller.name)
        for job_id in request.job_ids
        if job_id in live
    ]
    events.extend(
        JobReprioritised(at_ms=at.now_ms, job_id=job.job_id, priority=priority, requestor=at.caller.name)
        for job in found
        if job.priority != priority
    )
    asked = request.job_ids or (f"all jobs in job set {request.job_set}",)
    return dict.fromkeys(asked, ""), _sequence(request.queue, request.job_set, events)


def preempt(at: Situation, request: PreemptRequest) -> tuple[dict[str, str], Sequences]:
    """Preempt running jobs by id, each with its whole gang; only jobs of preemptible classes end.

    Returns an empty text for each id asked for, and the facts. Raises InvalidRequest, NotFound (the queue),
    PermissionDenied.
    """
    _target_checked(at, request.queue, request.job_set, request.reason)
    require_on_queue(at.caller, known_queue(at.ledger, request.queue), PREEMPT_ANY, "preempt")
    _ids_checked(request.job_ids)
    active = [job for job in _live(at.ledger, request.queue, request.job_set, request.job_ids) if job.state.is_active]
    requested = JobSetEvents(
        request.queue,
        request.job_set,
        tuple(
            JobPreemptRequested(at_ms=at.now_ms, job_id=job.job_id, requestor=at.caller.name, reason=request.reason)
            for job in active
        ),
    )
    who = f"Preempted by {at.caller.name}" if at.caller.name else "Preempted"
    text = f"{who} - {request.reason}" if request.reason else who
    ended = preemptions(at, active, text)
    merged = merged_sequences([requested, *ended])
    return dict.fromkeys(request.job_ids, ""), merged


def preemptions(at: Situation, jobs: Iterable[JobRecord], reason: str) -> list[JobSetEvents]:
    """End the runs of these jobs and of their gangs' other active members, where the class may be preempted."""
    done: set[str] = set()
    sequences: list[JobSetEvents] = []
    for asked in jobs:
        members = at.ledger.gang_members(asked.queue, asked.gang.id) if asked.gang else (asked.job_id,)
        for job_id in members:
            job = at.ledger.job(job_id)
            if job is None or not job.state.is_active or job_id in done or not _preemptible(job, at.scheduling):
                continue
            done.add(job_id)
            failure = Failure(reason=reason, kind="preempted")
            events = (
                RunPreempted(
                    at_ms=at.now_ms,
                    job_id=job_id,
                    run_id=job.run_id,
                    kind="api",
                    reason=reason,
                    requestor=at.caller.name,
                ),
                JobPreempted(at_ms=at.now_ms, job_id=job_id, failure=failure),
            )
            sequences.append(JobSetEvents(job.queue, job.job_set, events))
    return sequences


def _preemptible(job: JobRecord, scheduling: SchedulingPolicy) -> bool:
    kind = scheduling.priority_class(job.shape.priority_class)
    return kind is not None and kind.preemptible


def _queue_jobs(ledger: Ledger, request: QueueJobsRequest, states: Sequence[JobState]) -> list[JobRecord]:
    """Jobs of a queue in these states that match the request's classes and pools (none given: all)."""
    found: list[JobRecord] = []
    for job_id in ledger.jobs_in_queue(request.name):
        if ledger.job_state(job_id) not in states:
            continue
        job = ledger.job(job_id)
        if job is None or (request.priority_classes and job.shape.priority_class not in request.priority_classes):
            continue
        if request.pools:
            run = ledger.run(job.run_id) if job.state.is_active else None
            pools = (run.pool,) if run is not None else job.pools
            if pools is not None and not any(pool in request.pools for pool in pools):
                continue
        found.append(job)
    return found


def cancel_on_queue(at: Situation, request: QueueJobsRequest) -> Sequences:
    """Cancel a queue's jobs by state, class and pool; no state selects nothing, an unknown queue has no jobs.

    Raises InvalidRequest for a state that is none of QUEUED, LEASED, PENDING, RUNNING; PermissionDenied.
    """
    require(at.caller, CANCEL_ANY, f"cancel the jobs of queue {request.name!r}")
    if fault := text_fault("queue", request.name, at.submission.max_queue_name_bytes, required=True):
        raise InvalidRequest(fault)
    for state in request.states:
        if state not in _QUEUE_STATES:
            raise InvalidRequest(f"jobs can't be cancelled by state {state}: only by {', '.join(_QUEUE_STATES)}")
    states = [_QUEUE_STATES[state] for state in request.states]
    return merged_sequences(
        JobSetEvents(
            job.queue, job.job_set, (JobCancelled(at_ms=at.now_ms, job_id=job.job_id, requestor=at.caller.name),)
        )
        for job in _queue_jobs(at.ledger, request, states)
    )


def preempt_on_queue(at: Situation, request: QueueJobsRequest) -> Sequences:
    """Preempt all of a queue's active jobs that match; raises InvalidRequest, PermissionDenied."""
    require(at.caller, PREEMPT_ANY, f"preempt the jobs of queue {request.name!r}")
    if fault := text_fault("queue", request.name, at.submission.max_queue_name_bytes, required=True):
        raise InvalidRequest(fault)
    jobs = _queue_jobs(at.ledger, request, _ACTIVE)
    reason = "Preempted - asked for through the API"
    return merged_sequences(preemptions(at, jobs, reason))
