"""Facts of the log as messages of the event stream."""

from typing import Any

import pytest
from armada_client.armada import event_pb2 as api

from armada.model import events as facts
from armada.model.errors import InvalidRequest
from armada.model.jobs import NewJob
from armada.wire import events
from armada.wire.events import START, WHOLE, EventCursor, parse_message_id, stream_messages
from tests.unit.wire.builders import entry, template

POD = facts.PodIdentity(
    cluster="c1", namespace="lab", name="armada-j1-0", uid="u1", node_name="n1", number=0, pool="default"
)
SUBMITTED = facts.JobsSubmitted(
    at_ms=1_500, template=template(), jobs=(NewJob("j1", 0), NewJob("j2", 3, "c2")), owner="dana"
)
RUN: dict[str, Any] = {"at_ms": 1_500, "job_id": "j1", "run_id": "r1"}
JOB: dict[str, Any] = {"at_ms": 1_500, "job_id": "j1"}


def only(fact: Any) -> tuple[str, Any]:
    """The kind and part of the one message that a fact becomes."""
    (message,) = stream_messages(entry(fact))
    kind = message.message.WhichOneof("events")
    assert kind is not None
    part = getattr(message.message, kind)
    assert (part.job_id, part.job_set_id, part.queue) == ("j1", "nightly", "vision")
    assert (part.created.seconds, part.created.nanos) == (1, 500_000_000)
    return kind, part


def values(part: Any) -> dict[str, Any]:
    """What a message says beyond what all say."""
    common = {"job_id", "job_set_id", "queue", "created"}
    return {field.name: value for field, value in part.ListFields() if field.name not in common}


def test_a_submission_shows_every_job_then_its_place_in_the_queue() -> None:
    messages = stream_messages(entry(SUBMITTED))
    assert [(message.id, message.message.WhichOneof("events")) for message in messages] == [
        ("7:0:0:0", "submitted"),
        ("7:0:1:0", "queued"),
        ("7:0:2:0", "submitted"),
        ("7:0:3:1", "queued"),
    ]
    job = messages[2].message.submitted.job
    assert (job.id, job.queue, job.job_set_id, job.namespace, job.owner) == ("j2", "vision", "nightly", "lab", "dana")
    assert (job.priority, job.client_id, job.created.seconds) == (3.0, "c2", 1)
    assert job.pod_spec.containers[0].resources.limits["memory"].string == "1Gi"
    assert job.scheduling_resource_requirements.requests["cpu"].string == "1"
    assert job.scheduling_resource_requirements.limits["cpu"].string == "1"


def test_the_job_id_stands_where_the_user_put_it() -> None:
    shown = template(
        labels={"ticket": "run-{JobId}", "plain": "x"},
        annotations={"word": "{{JobId}}"},
        services=({"metadata": {"name": "armada-{JobId}-0-service-0"}, "spec": {"ports": [{"port": 80}]}},),
        ingresses=({"metadata": {"name": "armada-{JobId}-0-ingress-0"}, "spec": {"rules": [{"host": "{JobId}."}]}},),
    )
    fact = facts.JobsSubmitted(at_ms=1, template=shown, jobs=(NewJob("j1", 0), NewJob("j2", 0)))
    first, _, second, _ = stream_messages(entry(fact))
    job = second.message.submitted.job
    assert dict(job.labels) == {"ticket": "run-j2", "plain": "x"}
    assert dict(job.annotations) == {"word": "JobId"}
    assert job.k8s_service[0].metadata.name == "armada-j2-0-service-0"
    assert job.k8s_ingress[0].spec.rules[0].host == "j2."
    assert first.message.submitted.job.labels["ticket"] == "run-j1"


def test_a_pod_without_containers_shows_empty_resources() -> None:
    shown = template(pod_spec=b"{}", shape=template().shape.__class__((), "c"))
    fact = facts.JobsSubmitted(at_ms=1, template=shown, jobs=(NewJob("j1", 0),))
    job = stream_messages(entry(fact))[0].message.submitted.job
    assert job.HasField("pod_spec")
    assert job.HasField("scheduling_resource_requirements")


FAILURE = facts.Failure(
    reason="went wrong",
    cause="oom",
    category="mem",
    subcategory="oom",
    pod=POD,
    containers=(facts.ContainerStatus(name="main", exit_code=137, reason="OOMKilled", message="m"),),
)
FAILED = {
    "cluster_id": "c1",
    "kubernetes_id": "u1",
    "node_name": "n1",
    "pod_name": "armada-j1-0",
    "pod_namespace": "lab",
    "reason": "went wrong",
    "cause": api.Cause.OOM,
    "failure_category": "mem",
    "failure_subcategory": "oom",
    "container_statuses": [
        api.ContainerStatus(name="main", exitCode=137, message="m", reason="OOMKilled", cause=api.Cause.OOM)
    ],
}


@pytest.mark.parametrize(
    ("fact", "kind", "said"),
    [
        (
            facts.RunLeased(**RUN, executor_id="c1", node_id="c1-n1", node_name="n1", pool="default", priority=0),
            "leased",
            {"cluster_id": "c1", "pool": "default"},
        ),
        (
            facts.RunPending(**RUN, pod=POD),
            "pending",
            {
                "cluster_id": "c1",
                "kubernetes_id": "u1",
                "pod_name": "armada-j1-0",
                "pod_namespace": "lab",
                "pool": "default",
            },
        ),
        (
            facts.RunStarted(**RUN, pod=POD),
            "running",
            {
                "cluster_id": "c1",
                "kubernetes_id": "u1",
                "node_name": "n1",
                "pod_name": "armada-j1-0",
                "pod_namespace": "lab",
                "pool": "default",
            },
        ),
        (facts.JobSucceeded(**JOB), "succeeded", {}),
        (facts.JobFailed(**JOB, failure=FAILURE), "failed", FAILED),
        (facts.JobRequeued(**JOB, failure=FAILURE), "failed", {**FAILED, "retryable": True}),
        (
            facts.JobPreempted(**JOB, failure=facts.Failure(reason="made room", kind="preempted")),
            "failed",
            {"reason": "made room"},
        ),
        (
            facts.JobRejected(**JOB, reason="too large"),
            "failed",
            {
                "reason": "too large",
                "cause": api.Cause.Rejected,
                "failure_category": "internal",
                "failure_subcategory": "job-rejected",
            },
        ),
        (facts.RunLeaseExpired(**RUN), "lease_expired", {}),
        (
            facts.RunReturned(**RUN, failure=facts.Failure(reason="no room", pod=POD)),
            "lease_returned",
            {"cluster_id": "c1", "reason": "no room", "kubernetes_id": "u1", "run_attempted": True},
        ),
        (
            facts.RunPreempted(**RUN, kind="fairshare", reason="fair", preempting_job_id="j9"),
            "preempted",
            {"run_id": "r1", "reason": "fair", "preempting_job_id": "j9"},
        ),
        (
            facts.RunPreempted(**RUN, kind="urgency", reason="urgent: j9", preempting_job_id="j9"),
            "preempted",
            {"run_id": "r1", "reason": "urgent: j9"},
        ),
        (
            facts.RunPreempted(**RUN, kind="api", reason="asked", requestor="dana"),
            "preempted",
            {"run_id": "r1", "reason": "asked", "requestor": "dana"},
        ),
        (
            facts.JobPreemptRequested(**JOB, requestor="dana", reason="r"),
            "preempting",
            {"requestor": "dana", "reason": "r"},
        ),
        (facts.JobCancelRequested(**JOB, requestor="dana", reason="r"), "cancelling", {"requestor": "dana"}),
        (facts.JobCancelled(**JOB, requestor="dana", reason="r"), "cancelled", {"requestor": "dana"}),
        (
            facts.JobReprioritisationRequested(**JOB, priority=9, requestor="dana"),
            "reprioritizing",
            {"new_priority": 9.0, "requestor": "dana"},
        ),
        (
            facts.JobReprioritised(**JOB, priority=9, requestor="dana"),
            "reprioritized",
            {"new_priority": 9.0, "requestor": "dana"},
        ),
        (
            facts.RunAddressed(**RUN, addresses={80: "10.0.0.1:31000"}, pod=facts.PodIdentity(cluster="c1")),
            "ingress_info",
            {"cluster_id": "c1", "ingress_addresses": {80: "10.0.0.1:31000"}},
        ),
    ],
)
def test_facts_as_messages(fact: Any, kind: str, said: dict[str, Any]) -> None:
    shown, part = only(fact)
    assert shown == kind
    assert values(part) == said


def test_usage() -> None:
    kind, part = only(
        facts.RunUsageReported(**RUN, peak={"cpu": "1"}, average={"cpu": "500m"}, cumulative={"cpu": "30"})
    )
    assert kind == "utilisation"
    assert part.MaxResourcesForPeriod["cpu"].string == "1"
    assert part.AvgResourcesForPeriod["cpu"].string == "500m"
    assert part.total_cumulative_usage["cpu"].string == "30"


def test_what_users_do_not_see_takes_no_place() -> None:
    messages = stream_messages(
        entry(facts.RunSucceeded(**RUN), facts.JobSucceeded(**JOB), facts.RunsReleased(at_ms=1, run_ids=("r1",)))
    )
    assert [message.id for message in messages] == ["7:0:0:1"]
    assert stream_messages(entry(facts.JobRequeued(**JOB), facts.RunFailed(**RUN, failure=FAILURE))) == []


def test_every_kind_of_fact_is_shown_or_silent() -> None:
    shown = {*events._FIELDS, facts.JobsSubmitted}
    assert shown | events._SILENT == set(facts.EVENT_KINDS)
    assert not shown & events._SILENT


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("", START),
        ("0:0:0:0", EventCursor(0, 0)),
        ("7:0:1:0", EventCursor(7, 1)),
        ("7:0:1:1", EventCursor(7, WHOLE)),
        ("7:3:0:0", EventCursor(7, WHOLE)),
        ("7-0", EventCursor(7, WHOLE)),
        ("1931205600123:0:0:0", EventCursor(1_931_205_600_123, 0)),
        ("7:0:99999999999999999999:0", EventCursor(7, WHOLE)),
        ("99999999999999999999:0:0:0", EventCursor(WHOLE, 0)),
        ("99999999999999999999-0", EventCursor(WHOLE, WHOLE)),
    ],
)
def test_message_ids_are_places(text: str, cursor: EventCursor) -> None:
    assert parse_message_id(text) == cursor


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "7",
        "7:0:0",
        "7:0:0:2",
        "-1:0:0:0",
        "7:0:0:0:0",
        " 7:0:0:0",
        "7-",
        "\N{ARABIC-INDIC DIGIT SEVEN}:0:0:0",
        "9" * 21 + "-0",
    ],
)
def test_other_texts_are_no_message_ids(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_message_id(text)


@pytest.mark.parametrize(
    ("resumed", "left"),
    [
        ("", 4),
        ("6:0:0:1", 4),
        ("7:0:0:0", 3),
        ("7:0:2:0", 1),
        ("7:0:3:1", 0),
        ("7:0:0:1", 0),
        ("8:0:0:0", 0),
    ],
)
def test_a_stream_resumes_after_an_id(resumed: str, left: int) -> None:
    cursor = parse_message_id(resumed)
    messages = stream_messages(entry(SUBMITTED), cursor)
    assert messages == stream_messages(entry(SUBMITTED))[4 - left :]
    assert cursor.read_after < 7 or left == 0


def test_resuming_after_every_message_gives_the_rest() -> None:
    """Of one entry with many messages, and of those around it."""
    jobs = tuple(NewJob(f"j{index}", index) for index in range(50))
    entries = [entry(facts.JobsSubmitted(at_ms=1, template=template(), jobs=jobs), position=5), entry(SUBMITTED)]
    whole = [message for part in entries for message in stream_messages(part)]
    assert len({message.id for message in whole}) == len(whole) == 104
    for index, message in enumerate(whole):
        cursor = parse_message_id(message.id)
        read = [part for part in entries if part.position > cursor.read_after]
        assert [left for part in read for left in stream_messages(part, cursor)] == whole[index + 1 :]
