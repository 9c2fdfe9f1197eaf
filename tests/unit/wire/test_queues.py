"""Queue messages."""

import pytest
from armada_client.armada import submit_pb2 as api

from armada.model.errors import InvalidRequest
from armada.model.fleet import ClassLimit, Queue, QueuePermission, Subject
from armada.model.submission import QueueJobsRequest
from armada.wire import queues

QUEUE = Queue(
    name="vision",
    priority_factor=2.5,
    permissions=(QueuePermission((Subject("User", "dana"), Subject("Group", "imaging")), ("submit", "watch")),),
    limits_by_class={"armada-default": ClassLimit({"cpu": 0.5}, {"gpu-pool": {"cpu": 0.25}})},
    cordoned=True,
    labels={"team": "imaging"},
    retry_policies=("grow",),
)


def test_a_queue_goes_both_ways() -> None:
    request = queues.queue_request(queues.queue_message(QUEUE))
    assert (request.queue, request.user_owners, request.group_owners) == (QUEUE, (), ())


def test_owners_are_handed_on_apart_and_never_shown() -> None:
    message = api.Queue(name="q", priority_factor=1, user_owners=["a"], group_owners=["g"])
    message.resource_limits["cpu"] = 1
    message.labels_deprecated.append("x")
    request = queues.queue_request(message)
    assert (request.user_owners, request.group_owners) == (("a",), ("g",))
    assert queues.queue_message(request.queue) == api.Queue(name="q", priority_factor=1)


def test_a_listing_ends_with_its_marker() -> None:
    assert queues.listed(QUEUE).queue.name == "vision"
    assert queues.end_of_listing().WhichOneof("event") == "end"


def test_failures_of_a_batch_echo_the_queue_with_owners() -> None:
    message = api.Queue(name="q", priority_factor=0.5, user_owners=["a"])
    request = queues.queue_requests(api.QueueList(queues=[message]))[0]
    created = queues.create_response([(request, "too small")])
    assert created.failed_queues[0].queue == message
    assert queues.update_response([(request, "too small")]).failed_queues[0].error == "too small"


def test_jobs_of_a_queue() -> None:
    cancel = api.QueueCancelRequest(name="q", priorityClasses=["c"], jobStates=[api.JobState.QUEUED], pools=["p"])
    assert queues.cancel_on_queue(cancel) == QueueJobsRequest("q", ("c",), ("p",), ("QUEUED",))
    assert queues.preempt_on_queue(api.QueuePreemptRequest(name="q")) == QueueJobsRequest("q")
    with pytest.raises(InvalidRequest, match="99 is no job state"):
        queues.cancel_on_queue(api.QueueCancelRequest.FromString(b"\x1a\x01\x63"))


def test_nul_bytes_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^name: "):
        queues.queue_request(api.Queue(name="a\0"))
    with pytest.raises(InvalidRequest, match=r"^labels: "):
        queues.queue_request(api.Queue(name="a", labels={"k": "\0"}))
