"""Executors and nodes: cordon, forget, and end the jobs that run there.

Jobs are chosen by the queues named: naming none chooses none, so that nothing is ended by leaving something out. An
executor or node that is not known has no jobs, and that is no error.
"""

from collections.abc import Iterator

from armada.control.commands.changing import Sequences, preemptions
from armada.control.commands.permissions import CANCEL_ANY, PREEMPT_ANY, UPDATE_EXECUTOR_SETTINGS, require
from armada.control.commands.situation import Situation
from armada.control.commands.texts import shortened, text_fault
from armada.control.sequences import merged_sequences
from armada.model.errors import InvalidRequest
from armada.model.events import Event, ExecutorDeleted, ExecutorSettingsChanged, JobCancelled, JobSetEvents
from armada.model.fleet import ExecutorSettings
from armada.model.submission import PlaceJobsRequest
from armada.state.ledger import Ledger
from armada.state.records import JobRecord

MAX_NAME_BYTES = 1_023
MAX_REASON_BYTES = 1_024


def change_settings(at: Situation, executor_id: str, reason: str, *, cordoned: bool) -> Sequences:
    """Cordon an executor, which needs a reason, or lift its cordon; it need not have reported yet.

    Raises PermissionDenied, InvalidRequest.
    """
    require(at.caller, UPDATE_EXECUTOR_SETTINGS, f"change the settings of executor {shortened(executor_id)}")
    _named("executor", executor_id)
    if fault := text_fault("the cordon's reason", reason, MAX_REASON_BYTES, required=cordoned):
        raise InvalidRequest(fault)
    settings = ExecutorSettings(
        executor_id=executor_id,
        cordoned=cordoned,
        cordon_reason=reason if cordoned else "",
        set_by=at.caller.name,
        set_at_ms=at.now_ms,
    )
    return _fact(ExecutorSettingsChanged(at_ms=at.now_ms, settings=settings))


def delete_settings(at: Situation, executor_id: str) -> Sequences:
    """Put an executor's settings back to none; raises PermissionDenied, InvalidRequest."""
    require(at.caller, UPDATE_EXECUTOR_SETTINGS, f"delete the settings of executor {shortened(executor_id)}")
    _named("executor", executor_id)
    record, plain = at.ledger.executor(executor_id), ExecutorSettings(executor_id=executor_id)
    if record is None or record.settings == plain:
        return ()
    return _fact(ExecutorSettingsChanged(at_ms=at.now_ms, settings=plain))


def delete_executor(at: Situation, executor_id: str) -> Sequences:
    """Forget an executor and its nodes; one that lives comes back with its next report.

    Raises PermissionDenied, InvalidRequest.
    """
    require(at.caller, UPDATE_EXECUTOR_SETTINGS, f"delete executor {shortened(executor_id)}")
    _named("executor", executor_id)
    if at.ledger.executor(executor_id) is None:
        return ()
    return _fact(ExecutorDeleted(at_ms=at.now_ms, executor_id=executor_id))


def preempt_on_place(at: Situation, request: PlaceJobsRequest) -> Sequences:
    """Preempt the preemptible jobs that run in a place, gangs as a whole; raises PermissionDenied, InvalidRequest."""
    require(at.caller, PREEMPT_ANY, f"preempt the jobs of {_place(request)}")
    _check(request)
    reason = f"Preempted - asked for through the API, with all that run on {_place(request)}"
    return merged_sequences(preemptions(at, _jobs(at.ledger, request), reason))


def cancel_on_place(at: Situation, request: PlaceJobsRequest) -> Sequences:
    """Cancel the jobs that run in a place; raises PermissionDenied, InvalidRequest."""
    require(at.caller, CANCEL_ANY, f"cancel the jobs of {_place(request)}")
    _check(request)
    return merged_sequences(
        JobSetEvents(
            job.queue, job.job_set, (JobCancelled(at_ms=at.now_ms, job_id=job.job_id, requestor=at.caller.name),)
        )
        for job in _jobs(at.ledger, request)
    )


def _jobs(ledger: Ledger, request: PlaceJobsRequest) -> Iterator[JobRecord]:
    """Jobs whose live run is in the place, of the queues named and of the classes and pools (none given: all)."""
    for run in ledger.runs_of_executor(request.executor_id):
        if run.state.is_terminal or not run.is_current or run.queue not in request.queues:
            continue
        if (request.node_name is not None and run.node_name != request.node_name) or (
            request.pools and run.pool not in request.pools
        ):
            continue
        job = ledger.job(run.job_id)
        if job is not None and (not request.priority_classes or job.shape.priority_class in request.priority_classes):
            yield job


def _check(request: PlaceJobsRequest) -> None:
    if request.node_name is not None:
        _named("node", request.node_name)
    _named("executor", request.executor_id)


def _named(what: str, name: str) -> None:
    if fault := text_fault(f"the {what}'s name", name, MAX_NAME_BYTES, required=True):
        raise InvalidRequest(fault)


def _place(request: PlaceJobsRequest) -> str:
    node = f"node {shortened(request.node_name)} of " if request.node_name is not None else ""
    return f"{node}executor {shortened(request.executor_id)}"


def _fact(event: Event) -> Sequences:
    return (JobSetEvents("", "", (event,)),)
