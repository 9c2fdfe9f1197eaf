"""Requests about jobs, and their answers."""

import math

import pytest
from armada_client.armada import submit_pb2 as api

from armada.model.errors import InvalidRequest
from armada.model.submission import (
    CancelRequest,
    CancelSetRequest,
    IngressRequest,
    PreemptRequest,
    ReprioritiseRequest,
    ServiceRequest,
    SubmittedJob,
)
from armada.wire import jobs
from tests.unit.wire.builders import POD, pod_message, submit_request


def test_equal_rows_share_one_item_and_keep_their_own_priority_and_client_id() -> None:
    submission = jobs.submission(submit_request(3))
    assert (submission.queue, submission.job_set) == ("vision", "nightly")
    assert [(job.priority, job.client_id) for job in submission.jobs] == [(0.0, "c0"), (1.0, "c1"), (2.0, "c2")]
    assert len({id(job.item) for job in submission.jobs}) == 1
    item = submission.jobs[0].item
    assert (item.namespace, item.labels, item.pods[0].spec) == ("lab", {"team": "imaging"}, POD)
    assert item.pods[0].size_bytes == pod_message().ByteSize()
    assert not item.both_pod_fields
    assert jobs.submission(submit_request()).jobs[0].item is item


def test_rows_that_differ_elsewhere_still_share_an_equal_pod() -> None:
    request = submit_request(2)
    request.job_request_items[1].labels["team"] = "audio"
    first, second = jobs.submission(request).jobs
    assert first.item is not second.item
    assert first.item.pods[0] is second.item.pods[0]


def test_pod_fields_are_told_apart() -> None:
    request = submit_request(4)
    rows = request.job_request_items
    rows[0].ClearField("pod_spec")
    rows[1].pod_specs.append(pod_message())
    rows[2].ClearField("pod_spec")
    rows[2].pod_specs.extend([pod_message(), pod_message()])
    rows[3].pod_spec.Clear()
    rows[3].pod_spec.SetInParent()
    items = [job.item for job in jobs.submission(request).jobs]
    assert [len(item.pods) for item in items] == [0, 1, 2, 1]
    assert [item.both_pod_fields for item in items] == [False, True, False, False]
    assert items[3].pods[0].spec == {}


def test_the_rest_of_an_item_comes_along() -> None:
    request = submit_request()
    row = request.job_request_items[0]
    row.annotations["a"] = "{JobId}"
    row.services.add(type=api.ServiceType.Headless, ports=[80, 81], name="s")
    row.ingress.add(ports=[82], tls_enabled=True, cert_name="c", use_clusterIP=True, annotations={"k": "v"})
    row.scheduler = "other"
    row.external_job_uri = "ext://1"
    row.required_node_labels["ignored"] = "x"
    item = jobs.submission(request).jobs[0].item
    assert item.services == (ServiceRequest("Headless", (80, 81), "s"),)
    assert item.ingresses == (IngressRequest((82,), {"k": "v"}, tls_enabled=True, cert_name="c", use_cluster_ip=True),)
    assert (item.annotations, item.scheduler, item.external_job_uri) == ({"a": "{JobId}"}, "other", "ext://1")


def test_priorities_come_as_sent() -> None:
    request = submit_request(2)
    request.job_request_items[0].priority = math.nan
    request.job_request_items[1].priority = -math.inf
    first, second = (job.priority for job in jobs.submission(request).jobs)
    assert math.isnan(first)
    assert second == -math.inf


def test_no_rows_are_a_submission_of_nothing() -> None:
    assert jobs.submission(api.JobSubmitRequest(queue="q", job_set_id="s")).jobs == ()


def test_a_bad_row_is_named() -> None:
    request = submit_request(2)
    request.job_request_items[1].pod_spec.containers[0].resources.limits["cpu"].string = "many"
    with pytest.raises(InvalidRequest, match=r"^job_request_items\[1\]\.pod_spec\.containers\[0\]\.resources"):
        jobs.submission(request)


def test_all_bad_rows_are_named_up_to_a_limit() -> None:
    request = submit_request(100)
    request.job_request_items[57].pod_spec.containers[0].resources.limits["cpu"].string = "many"
    request.job_request_items[80].client_id = "\0"
    with pytest.raises(InvalidRequest) as refused:
        jobs.submission(request)
    first, second = str(refused.value).split("\n")
    assert first.startswith("job_request_items[57].pod_spec")
    assert second.startswith("job_request_items[80].client_id: ")
    request = submit_request(30)
    for row in request.job_request_items:
        row.namespace = "\0"
    with pytest.raises(InvalidRequest) as refused:
        jobs.submission(request)
    assert str(refused.value).split("\n")[20:] == ["and 10 more"]


@pytest.mark.parametrize("field", ["namespace", "client_id", "scheduler", "external_job_uri"])
def test_nul_bytes_are_refused(field: str) -> None:
    request = submit_request()
    setattr(request.job_request_items[0], field, "a\0b")
    with pytest.raises(InvalidRequest, match=rf"^job_request_items\[0\]\.{field}: .*NUL"):
        jobs.submission(request)


def test_nul_bytes_in_names_are_refused() -> None:
    request = submit_request()
    request.job_set_id = "\0"
    with pytest.raises(InvalidRequest, match=r"^job_set_id: "):
        jobs.submission(request)
    request = submit_request()
    request.job_request_items[0].labels["k\0"] = "v"
    with pytest.raises(InvalidRequest, match="labels: "):
        jobs.submission(request)


def test_commands() -> None:
    assert jobs.cancellation(
        api.JobCancelRequest(queue="q", job_set_id="s", job_id="c", job_ids=["a", "b", "a"], reason="r")
    ) == CancelRequest("q", "s", ("a", "b", "c"), "r")
    filtered = api.JobSetCancelRequest(queue="q", job_set_id="s", reason="r")
    assert jobs.set_cancellation(filtered) == CancelSetRequest("q", "s", (), "r")
    filtered.filter.states.extend([api.JobState.PENDING, api.JobState.RUNNING])
    assert jobs.set_cancellation(filtered) == CancelSetRequest("q", "s", ("PENDING", "RUNNING"), "r")
    assert jobs.reprioritisation(
        api.JobReprioritizeRequest(queue="q", job_set_id="s", job_ids=["a", "a"], new_priority=1.5)
    ) == ReprioritiseRequest("q", "s", ("a", "a"), 1.5)
    assert jobs.preemption(api.JobPreemptRequest(queue="q", job_set_id="s", job_ids=["a"], reason="r")) == (
        PreemptRequest("q", "s", ("a",), "r")
    )


def test_a_state_that_does_not_exist_is_refused() -> None:
    request = api.JobSetCancelRequest.FromString(b"\x1a\x02\x08\x63")  # filter.states = [99]
    with pytest.raises(InvalidRequest, match="99 is no job state"):
        jobs.set_cancellation(request)


def test_answers() -> None:
    assert [row.job_id for row in jobs.submit_response(["a", "b"]).job_response_items] == ["a", "b"]
    assert list(jobs.cancel_response([""]).cancelled_ids) == [""]
    assert dict(jobs.reprioritise_response({"a": ""}).reprioritization_results) == {"a": ""}
    assert dict(jobs.preempt_response({}).preemption_results) == {}


def test_values_are_frozen_rows() -> None:
    job = jobs.submission(submit_request()).jobs[0]
    assert job == SubmittedJob(job.item, 0.0, "c0")
