"""Queues: messages and model.

Owners of a queue message are permissions in another form: they are handed on apart, control folds them in, and a queue
that is shown has permissions only.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from armada_client.armada import submit_pb2 as api

from armada.model.errors import InvalidRequest
from armada.model.fleet import ClassLimit, Queue, QueuePermission, Subject
from armada.model.submission import QueueJobsRequest, QueueRequest

_STATES: Final[Mapping[int, str]] = {number: name for name, number in api.JobState.items()}


def queue_request(message: api.Queue) -> QueueRequest:
    """Return the queue to create or update. Raises InvalidRequest for a NUL byte."""
    queue = Queue(
        name=_text("name", message.name),
        priority_factor=message.priority_factor,
        permissions=tuple(
            QueuePermission(
                tuple(
                    Subject(
                        _text("permissions.subjects.kind", subject.kind),
                        _text("permissions.subjects.name", subject.name),
                    )
                    for subject in permission.subjects
                ),
                tuple(_text("permissions.verbs", verb) for verb in permission.verbs),
            )
            for permission in message.permissions
        ),
        limits_by_class={
            _text("resource_limits_by_priority_class_name", name): _limit(limits)
            for name, limits in sorted(message.resource_limits_by_priority_class_name.items())
        },
        cordoned=message.cordoned,
        labels={_text("labels", key): _text("labels", value) for key, value in sorted(message.labels.items())},
        retry_policies=tuple(_text("retry_policies", name) for name in message.retry_policies),
    )
    return QueueRequest(
        queue,
        tuple(_text("user_owners", name) for name in message.user_owners),
        tuple(_text("group_owners", name) for name in message.group_owners),
    )


def queue_requests(message: api.QueueList) -> list[QueueRequest]:
    """Return the queues of a batch. Raises InvalidRequest for a NUL byte."""
    return [queue_request(queue) for queue in message.queues]


def cancel_on_queue(message: api.QueueCancelRequest) -> QueueJobsRequest:
    """Return which jobs of a queue to cancel. Raises InvalidRequest for a NUL byte or a state that does not exist."""
    states = []
    for number in message.jobStates:
        if number not in _STATES:
            raise InvalidRequest(f"jobStates: {number} is no job state")
        states.append(_STATES[number])
    return QueueJobsRequest(
        _text("name", message.name), tuple(message.priorityClasses), tuple(message.pools), tuple(states)
    )


def preempt_on_queue(message: api.QueuePreemptRequest) -> QueueJobsRequest:
    """Return which jobs of a queue to preempt. Raises InvalidRequest for a NUL byte."""
    return QueueJobsRequest(_text("name", message.name), tuple(message.priorityClasses), tuple(message.pools))


def queue_message(queue: Queue) -> api.Queue:
    """Return a queue as it is shown."""
    message = api.Queue(
        name=queue.name,
        priority_factor=queue.priority_factor,
        cordoned=queue.cordoned,
        labels=queue.labels,
        retry_policies=queue.retry_policies,
    )
    for permission in queue.permissions:
        row = message.permissions.add(verbs=permission.verbs)
        for subject in permission.subjects:
            row.subjects.add(kind=subject.kind, name=subject.name)
    for name, limit in queue.limits_by_class.items():
        limits = message.resource_limits_by_priority_class_name[name]
        limits.maximum_resource_fraction.update(limit.fractions)
        for pool, fractions in limit.fractions_by_pool.items():
            limits.maximum_resource_fraction_by_pool[pool].maximum_resource_fraction.update(fractions)
    return message


def listed(queue: Queue) -> api.StreamingQueueMessage:
    """One queue of a listing."""
    return api.StreamingQueueMessage(queue=queue_message(queue))


def end_of_listing() -> api.StreamingQueueMessage:
    """The marker that ends a listing."""
    return api.StreamingQueueMessage(end=api.EndMarker())


def create_response(failed: Iterable[tuple[QueueRequest, str]]) -> api.BatchQueueCreateResponse:
    """The answer to a batch of creations: those that failed, as they were asked for, and why."""
    response = api.BatchQueueCreateResponse()
    for request, error in failed:
        response.failed_queues.add(queue=_echoed(request), error=error)
    return response


def update_response(failed: Iterable[tuple[QueueRequest, str]]) -> api.BatchQueueUpdateResponse:
    """The answer to a batch of updates: those that failed, as they were asked for, and why."""
    response = api.BatchQueueUpdateResponse()
    for request, error in failed:
        response.failed_queues.add(queue=_echoed(request), error=error)
    return response


def _echoed(request: QueueRequest) -> api.Queue:
    message = queue_message(request.queue)
    message.user_owners.extend(request.user_owners)
    message.group_owners.extend(request.group_owners)
    return message


def _limit(limits: api.PriorityClassResourceLimits) -> ClassLimit:
    return ClassLimit(
        dict(sorted(limits.maximum_resource_fraction.items())),
        {
            _text("maximum_resource_fraction_by_pool", pool): dict(sorted(by_pool.maximum_resource_fraction.items()))
            for pool, by_pool in sorted(limits.maximum_resource_fraction_by_pool.items())
        },
    )


def _text(name: str, text: str) -> str:
    if "\0" in text:
        raise InvalidRequest(f"{name}: text with a NUL byte")
    return text
