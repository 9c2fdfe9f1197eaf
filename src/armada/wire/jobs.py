"""Requests about jobs as values for control, and the answers to them.

A submission often repeats one job hundreds of times. Rows that are equal but for priority and client id share one
`SubmittedItem`, and equal pod specs one `SubmittedPod`, within a request and across requests, so that later stages
may check and convert each once.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from armada_client.armada import submit_pb2 as api

from armada.model.errors import InvalidRequest
from armada.model.submission import (
    CancelRequest,
    CancelSetRequest,
    IngressRequest,
    PreemptRequest,
    ReprioritiseRequest,
    ServiceRequest,
    Submission,
    SubmittedItem,
    SubmittedJob,
)
from armada.wire.podspec import ByteCache, submitted_pod

_SERVICE_TYPES: Final[Mapping[int, str]] = {number: name for name, number in api.ServiceType.items()}
_STATES: Final[Mapping[int, str]] = {number: name for name, number in api.JobState.items()}

MAX_ERRORS_LISTED: Final = 20
"""How many items a refusal names; the rest is counted."""

_items: ByteCache[SubmittedItem] = ByteCache()


def submission(request: api.JobSubmitRequest) -> Submission:
    """Return what a request asks to submit. The request is taken apart on the way and is of no use afterwards.

    Raises:
        InvalidRequest: bad quantities, NUL bytes, text that is not UTF-8; the message has a line for each item.
    """
    jobs: list[SubmittedJob] = []
    wrong: list[str] = []
    for index, row in enumerate(request.job_request_items):
        priority, client_id = row.priority, row.client_id
        row.ClearField("priority")
        row.ClearField("client_id")
        serialised = row.SerializeToString(deterministic=True)
        try:
            item = _items.get(serialised) or _items.put(serialised, _item(row))
            jobs.append(SubmittedJob(item, priority, _text("client_id", client_id)))
        except InvalidRequest as error:
            wrong.append(f"job_request_items[{index}].{error}")
    if wrong:
        more = [f"and {len(wrong) - MAX_ERRORS_LISTED} more"] if len(wrong) > MAX_ERRORS_LISTED else []
        raise InvalidRequest("\n".join(wrong[:MAX_ERRORS_LISTED] + more))
    queue, job_set = _place(request.queue, request.job_set_id)
    return Submission(queue, job_set, tuple(jobs))


def cancellation(request: api.JobCancelRequest) -> CancelRequest:
    """Return which jobs to cancel: `job_ids`, then `job_id`, each once. Raises InvalidRequest for a NUL byte."""
    ids = tuple(dict.fromkeys([*request.job_ids, *([request.job_id] if request.job_id else ())]))
    queue, job_set = _place(request.queue, request.job_set_id)
    return CancelRequest(queue, job_set, _texts("job_ids", ids), _text("reason", request.reason))


def set_cancellation(request: api.JobSetCancelRequest) -> CancelSetRequest:
    """Return which job set to cancel. Raises InvalidRequest for a NUL byte or a state that does not exist."""
    states = []
    for number in request.filter.states:
        if number not in _STATES:
            raise InvalidRequest(f"filter.states: {number} is no job state")
        states.append(_STATES[number])
    queue, job_set = _place(request.queue, request.job_set_id)
    return CancelSetRequest(queue, job_set, tuple(states), _text("reason", request.reason))


def reprioritisation(request: api.JobReprioritizeRequest) -> ReprioritiseRequest:
    """Return which jobs get another priority. Raises InvalidRequest for a NUL byte."""
    queue, job_set = _place(request.queue, request.job_set_id)
    return ReprioritiseRequest(queue, job_set, _texts("job_ids", request.job_ids), request.new_priority)


def preemption(request: api.JobPreemptRequest) -> PreemptRequest:
    """Return which jobs to preempt. Raises InvalidRequest for a NUL byte."""
    queue, job_set = _place(request.queue, request.job_set_id)
    return PreemptRequest(queue, job_set, _texts("job_ids", request.job_ids), _text("reason", request.reason))


def submit_response(job_ids: Iterable[str]) -> api.JobSubmitResponse:
    """The answer to a submission: ids in the order of the request."""
    response = api.JobSubmitResponse()
    add = response.job_response_items.add
    for job_id in job_ids:
        add().job_id = job_id
    return response


def cancel_response(job_ids: Iterable[str]) -> api.CancellationResult:
    """The answer to a cancellation by id."""
    return api.CancellationResult(cancelled_ids=job_ids)


def reprioritise_response(results: Mapping[str, str]) -> api.JobReprioritizeResponse:
    """The answer to a reprioritisation: an error text, or nothing, by job id."""
    return api.JobReprioritizeResponse(reprioritization_results=results)


def preempt_response(results: Mapping[str, str]) -> api.PreemptionResult:
    """The answer to a preemption: an error text, or nothing, by job id."""
    return api.PreemptionResult(preemption_results=results)


def forget() -> None:
    """Empty the cache of items (to measure conversions as if they were the first)."""
    _items.clear()


def _text(name: str, text: str) -> str:
    if "\0" in text:
        raise InvalidRequest(f"{name}: text with a NUL byte")
    return text


def _texts(name: str, texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(_text(name, text) for text in texts)


def _place(queue: str, job_set: str) -> tuple[str, str]:
    return _text("queue", queue), _text("job_set_id", job_set)


def _table(name: str, pairs: Mapping[str, str]) -> dict[str, str]:
    return {_text(name, key): _text(f"{name}.{key}", pairs[key]) for key in sorted(pairs)}


def _item(row: api.JobSubmitRequestItem) -> SubmittedItem:
    single = row.HasField("pod_spec")
    specs = list(row.pod_specs) or ([row.pod_spec] if single else [])
    field = "pod_specs" if row.pod_specs else "pod_spec"
    try:
        pods = tuple(submitted_pod(spec) for spec in specs)
    except InvalidRequest as error:
        raise InvalidRequest(f"{field}.{error}") from error
    return SubmittedItem(
        pods=pods,
        both_pod_fields=single and bool(row.pod_specs),
        namespace=_text("namespace", row.namespace),
        labels=_table("labels", row.labels),
        annotations=_table("annotations", row.annotations),
        services=tuple(
            ServiceRequest(
                _SERVICE_TYPES.get(service.type, str(service.type)),
                tuple(service.ports),
                _text("services.name", service.name),
            )
            for service in row.services
        ),
        ingresses=tuple(
            IngressRequest(
                tuple(ingress.ports),
                _table("ingress.annotations", ingress.annotations),
                ingress.tls_enabled,
                _text("ingress.cert_name", ingress.cert_name),
                ingress.use_clusterIP,
            )
            for ingress in row.ingress
        ),
        scheduler=_text("scheduler", row.scheduler),
        external_job_uri=_text("external_job_uri", row.external_job_uri),
    )
