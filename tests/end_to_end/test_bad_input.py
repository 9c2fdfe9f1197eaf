"""Requests that must be refused with the right code and a precise text, and leave nothing behind; over real gRPC."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from armada_client.armada import event_pb2, job_pb2, submit_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as resource

from armada.wire.services import EventStub, JobsStub, QueueStub, SubmitStub
from tests.armada_process import ArmadaUp
from tests.end_to_end.conftest import Armadactl

pytestmark = pytest.mark.timeout(300)

QUEUE = "bad-input"


@pytest.fixture(scope="module")
def channel(up: ArmadaUp) -> Iterator[Any]:
    """A connection to the running system, on which the queue exists."""
    options = (("grpc.max_send_message_length", -1),)
    opened: Any
    with grpc.insecure_channel(up.url, options=options) as opened:
        QueueStub(opened).CreateQueue(submit_pb2.Queue(name=QUEUE, priority_factor=1.0), timeout=10)
        yield opened


def quantities(**amounts: str) -> dict[str, resource.Quantity]:
    return {name: resource.Quantity(string=amount) for name, amount in amounts.items()}


def item(*, pods: int = 1, padding: int = 0, **amounts: str) -> submit_pb2.JobSubmitRequestItem:
    """A job that is right unless the amounts are wrong."""
    wanted = quantities(**({"cpu": "1", "memory": "1Gi"} | amounts))
    container = core.Container(
        name="main",
        image="busybox",
        args=["x" * padding],
        resources=core.ResourceRequirements(requests=wanted, limits=wanted),
    )
    spec = core.PodSpec(containers=[container])
    return submit_pb2.JobSubmitRequestItem(namespace="n", pod_specs=[spec] * pods)


def request(queue: str = QUEUE, job_set: str = "s", **changes: Any) -> submit_pb2.JobSubmitRequest:
    built = item()
    for field, value in changes.items():
        if field == "items":
            return submit_pb2.JobSubmitRequest(queue=queue, job_set_id=job_set, job_request_items=value)
        if isinstance(value, dict):
            getattr(built, field).update(value)
        else:
            setattr(built, field, value)
    return submit_pb2.JobSubmitRequest(queue=queue, job_set_id=job_set, job_request_items=[built])


def both_fields() -> submit_pb2.JobSubmitRequestItem:
    built = item()
    built.pod_spec.CopyFrom(built.pod_specs[0])
    return built


INVALID = grpc.StatusCode.INVALID_ARGUMENT
BAD_SUBMISSIONS = {
    "unknown queue": (request(queue="ghost"), grpc.StatusCode.PERMISSION_DENIED, "could not find queue"),
    "empty job set": (request(job_set=""), INVALID, "job_set_id"),
    "job set too long": (request(job_set="s" * 1_024), INVALID, "1023"),
    "job set of NUL": (request(job_set="a\0b"), INVALID, ""),
    "queue of NUL": (request(queue="a\0b"), None, ""),
    "both pod fields": (request(items=[both_fields()]), INVALID, "pod_spec"),
    "two pods": (request(items=[item(pods=2)]), INVALID, "pod_specs"),
    "no pod": (request(items=[item(pods=0)]), INVALID, "pod"),
    "no namespace": (request(namespace=""), INVALID, "namespace"),
    "client id too long": (request(client_id="c" * 101), INVALID, "100"),
    "label of NUL": (request(labels={"a": "b\0c"}), INVALID, ""),
    "annotation of NUL": (request(annotations={"a\0": "b"}), INVALID, ""),
    "cpu of 1e30": (request(items=[item(cpu="1e30")]), INVALID, "cpu"),
    "cpu of -1": (request(items=[item(cpu="-1")]), INVALID, "cpu"),
    "cpu of NaN": (request(items=[item(cpu="NaN")]), INVALID, "cpu"),
    "cpu of nothing": (request(items=[item(cpu="")]), INVALID, "cpu"),
    "cpu of words": (request(items=[item(cpu="lots")]), INVALID, "cpu"),
    "memory of 0": (request(items=[item(memory="0")]), INVALID, "memory"),
    "memory of 512Ki": (request(items=[item(memory="512Ki")]), INVALID, "memory"),
    "pod of 70 KB": (request(items=[item(padding=70_000)]), INVALID, "65535"),
    "one bad of three": (request(items=[item(), item(cpu="-1"), item()]), INVALID, "1"),
}
"""By name: a request, the code (None: any refusal), and a part of the text that is about the fault."""


@pytest.mark.parametrize("name", BAD_SUBMISSIONS)
def test_bad_submissions_are_refused_and_leave_nothing(channel: Any, name: str) -> None:
    bad, code, part = BAD_SUBMISSIONS[name]
    with pytest.raises(grpc.RpcError) as caught:
        SubmitStub(channel).SubmitJobs(bad, timeout=10)
    if code is not None:
        assert caught.value.code() is code, caught.value.details()
    assert caught.value.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
    assert part in str(caught.value.details())
    assert events_of(channel, QUEUE, "s") == []


def test_a_request_of_5_mib_is_too_large(channel: Any) -> None:
    big = request(items=[item(padding=60_000) for _ in range(88)])
    assert big.ByteSize() > 5 * 1024 * 1024
    with pytest.raises(grpc.RpcError) as caught:
        SubmitStub(channel).SubmitJobs(big, timeout=10)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert events_of(channel, QUEUE, "s") == []


def test_bytes_that_are_no_message_are_an_invalid_argument(channel: Any) -> None:
    send = channel.unary_unary("/api.Submit/SubmitJobs", request_serializer=bytes, response_deserializer=bytes)
    for junk in (b"\xff" * 20, b"\x0a\x05abc", b"\x0a\x02\xff\xfe"):
        with pytest.raises(grpc.RpcError) as caught:
            send(junk, timeout=10)
        assert caught.value.code() is INVALID, caught.value.details()


@pytest.mark.parametrize("factor", [0.0, -1.0, 0.999, float("nan"), float("inf"), float("-inf"), 1e-300, -0.0])
def test_queues_need_a_finite_weight(channel: Any, factor: float) -> None:
    name = "weightless"
    for method in (QueueStub(channel).CreateQueue, QueueStub(channel).UpdateQueue, SubmitStub(channel).CreateQueue):
        with pytest.raises(grpc.RpcError) as caught:
            method(submit_pb2.Queue(name=name, priority_factor=factor), timeout=10)
        assert caught.value.code() is INVALID, caught.value.details()
    listed = [
        each.queue.name for each in QueueStub(channel).GetQueues(submit_pb2.StreamingQueueGetRequest(), timeout=10)
    ]
    assert name not in listed
    assert QUEUE in listed


@pytest.mark.parametrize("name", ["", "a\0b", "q" * 5_000])
def test_queues_need_a_name_that_can_be_kept(channel: Any, name: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        QueueStub(channel).CreateQueue(submit_pb2.Queue(name=name, priority_factor=1.0), timeout=10)
    assert caught.value.code() is INVALID, caught.value.details()


def test_calls_about_jobs_are_refused_as_precisely(channel: Any) -> None:
    submit, jobs = SubmitStub(channel), JobsStub(channel)
    refused = [
        (submit.CancelJobs, submit_pb2.JobCancelRequest(queue=QUEUE, job_set_id="", job_ids=["x"])),
        (submit.CancelJobs, submit_pb2.JobCancelRequest(queue="", job_set_id="s", job_ids=["x"])),
        (submit.CancelJobs, submit_pb2.JobCancelRequest(queue=QUEUE, job_set_id="s", job_ids=["x"], reason="r" * 51)),
        (submit.CancelJobs, submit_pb2.JobCancelRequest(queue=QUEUE, job_set_id="s", job_ids=[""])),
        (submit.CancelJobSet, submit_pb2.JobSetCancelRequest(queue=QUEUE, job_set_id="")),
        (submit.PreemptJobs, submit_pb2.JobPreemptRequest(queue=QUEUE, job_set_id="s", job_ids=["x"], reason="r" * 51)),
        (submit.ReprioritizeJobs, submit_pb2.JobReprioritizeRequest(queue="", job_set_id="s", new_priority=1)),
        (jobs.GetJobStatus, job_pb2.JobStatusRequest(job_ids=[str(number) for number in range(501)])),
    ]
    for method, bad in refused:
        with pytest.raises(grpc.RpcError) as caught:
            method(bad, timeout=10)
        assert caught.value.code() is INVALID, (bad, caught.value.details())
        assert caught.value.details()


def test_streams_that_cannot_be_are_refused(channel: Any) -> None:
    asked = EventStub(channel).GetJobSetEvents
    for bad, code in (
        (event_pb2.JobSetRequest(queue="ghost", id="s"), grpc.StatusCode.NOT_FOUND),
        (event_pb2.JobSetRequest(queue=QUEUE, id="never", errorIfMissing=True), grpc.StatusCode.NOT_FOUND),
        (event_pb2.JobSetRequest(queue=QUEUE, id="s", from_message_id="garbage"), INVALID),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            list(asked(bad, timeout=10))
        assert caught.value.code() is code, caught.value.details()


def events_of(channel: Any, queue: str, job_set: str) -> list[Any]:
    """Every event stored for a job set."""
    wanted = event_pb2.JobSetRequest(queue=queue, id=job_set, watch=False)
    return list(EventStub(channel).GetJobSetEvents(wanted, timeout=10))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("queue: [\n", "line"),
        (f"queue: {QUEUE}\njobSetId: s\njobs: [{{namespace: n, podSpecc: {{}}}}]\n", "jobs[0].podSpecc"),
        ("{}", "no jobs"),
    ],
)
def test_malformed_files_send_nothing(
    armadactl: Armadactl, channel: Any, tmp_path: Path, content: str, part: str
) -> None:
    (tmp_path / "jobs.yaml").write_text(content)
    ran = armadactl("submit", "jobs.yaml")
    assert ran.returncode == 1
    assert part in ran.stderr
    assert events_of(channel, QUEUE, "s") == []


def test_of_many_bad_jobs_each_is_named(channel: Any) -> None:
    many = [item() for _ in range(100)]
    many[57].pod_specs[0].priorityClassName = "gold"
    many[80].CopyFrom(item(memory="-1"))
    with pytest.raises(grpc.RpcError) as caught:
        SubmitStub(channel).SubmitJobs(request(items=many), timeout=10)
    assert caught.value.code() is INVALID
    assert "57" in str(caught.value.details())
    assert events_of(channel, QUEUE, "s") == []


def test_refusals_reach_the_person_who_typed(armadactl: Armadactl) -> None:
    ran = armadactl("create", "queue", "zz", "--priority-factor", "nan")
    assert ran.returncode == 1
    assert ran.stderr.startswith("Error: ")
    assert armadactl("get", "queues", "zz", "-o", "json").stdout.count('"name"') == 0
    assert json.loads(armadactl("get", "queues", "-o", "json").stdout)["kind"] == "QueueList"
