"""Requests about executors and nodes."""

from armada._proto import operations_pb2 as api
from armada.model.submission import PlaceJobsRequest


def jobs_on_node(message: api.NodePreemptRequest | api.NodeCancelRequest) -> PlaceJobsRequest:
    """Return which jobs of a node are meant."""
    return PlaceJobsRequest(
        executor_id=message.executor,
        node_name=message.name,
        queues=tuple(message.queues),
        priority_classes=tuple(message.priorityClasses),
    )


def jobs_on_executor(message: api.ExecutorPreemptRequest | api.ExecutorCancelRequest) -> PlaceJobsRequest:
    """Return which jobs of an executor are meant."""
    return PlaceJobsRequest(
        executor_id=message.name,
        queues=tuple(message.queues),
        priority_classes=tuple(message.priorityClasses),
        pools=tuple(message.pools),
    )


def settings_request(name: str, reason: str, *, cordoned: bool) -> api.ExecutorSettingsUpsertRequest:
    """The request to cordon an executor, or to lift its cordon."""
    return api.ExecutorSettingsUpsertRequest(name=name, cordoned=cordoned, cordonReason=reason)


def delete_request(name: str) -> api.ExecutorDeleteRequest:
    """The request to forget an executor."""
    return api.ExecutorDeleteRequest(name=name)


def cancel_request(place: PlaceJobsRequest) -> api.NodeCancelRequest | api.ExecutorCancelRequest:
    """The request to cancel the jobs of a node, where one is named, or of an executor."""
    queues, classes = place.queues, place.priority_classes
    if place.node_name is not None:
        return api.NodeCancelRequest(
            name=place.node_name, executor=place.executor_id, queues=queues, priorityClasses=classes
        )
    return api.ExecutorCancelRequest(name=place.executor_id, queues=queues, priorityClasses=classes, pools=place.pools)


def preempt_request(place: PlaceJobsRequest) -> api.NodePreemptRequest | api.ExecutorPreemptRequest:
    """The request to preempt the jobs of a node, where one is named, or of an executor."""
    queues, classes = place.queues, place.priority_classes
    if place.node_name is not None:
        return api.NodePreemptRequest(
            name=place.node_name, executor=place.executor_id, queues=queues, priorityClasses=classes
        )
    return api.ExecutorPreemptRequest(name=place.executor_id, queues=queues, priorityClasses=classes, pools=place.pools)
