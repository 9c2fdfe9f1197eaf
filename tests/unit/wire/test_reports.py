"""What executors report."""

from typing import Any

import msgspec
import pytest

from armada._proto import events_pb2 as armadaevents
from armada._proto import executor_pb2 as executorapi
from armada.model import events as facts
from armada.model.events import JobSetEvents, PodIdentity
from armada.wire import reports

RUN: dict[str, Any] = {"at_ms": 1_500, "job_id": "j1", "run_id": "r1"}
POD = PodIdentity(cluster="c1", namespace="lab", name="armada-j1-0", uid="u1", node_name="n1")
POOLED = msgspec.structs.replace(POD, pool="default")
FAILURE = facts.Failure(
    reason="exit 3",
    cause="oom",
    category="user",
    subcategory="exit3",
    debug="{}",
    pod=POD,
    containers=(
        facts.ContainerStatus(name="main", exit_code=3, reason="Error", message="m"),
        facts.ContainerStatus(name="side", exit_code=137, reason="OOMKilled"),
    ),
)
RETURNED = facts.Failure(reason="no room", kind="lease_returned", pod=msgspec.structs.replace(POD, node_name=""))
FACTS: tuple[facts.Event, ...] = (
    facts.RunPending(**RUN, pod=POOLED),
    facts.RunStarted(**RUN, pod=POOLED),
    facts.RunAddressed(**RUN, addresses={80: "10.0.0.1:31000"}, pod=POD),
    facts.RunUsageReported(**RUN, peak={"cpu": "1"}, average={"cpu": "500m"}, cumulative={"cpu": "9"}, pod=POD),
    facts.RunSucceeded(**RUN, pod=POD),
    facts.RunFailed(**RUN, failure=FAILURE),
    facts.RunReturned(**RUN, failure=RETURNED, attempted=False),
)


def read(message: executorapi.EventList) -> reports.ExecutorReport:
    """What the server reads of a report that was sent."""
    return reports.executor_report(executorapi.EventList.FromString(message.SerializeToString()), now_ms=9_000)


def reported(**kinds: Any) -> executorapi.EventList:
    """A report of one event, without a time."""
    message = executorapi.EventList()
    message.events.add(queue="q", job_set_name="s").events.append(armadaevents.EventSequence.Event(**kinds))
    return message


def test_reports_go_both_ways() -> None:
    sequences = (JobSetEvents("q", "s", FACTS), JobSetEvents("q", "other", FACTS[:1]))
    (message,) = reports.report_messages(sequences)
    assert read(message) == reports.ExecutorReport("c1", sequences, 0)


def test_a_large_report_is_split_in_order() -> None:
    sequence = JobSetEvents("q", "s", FACTS * 40)
    messages = reports.report_messages((sequence, JobSetEvents("q", "t", FACTS)), max_bytes=4_000)
    assert len(messages) > 5
    assert all(message.ByteSize() <= 4_000 for message in messages)
    back = [(part.job_set, event) for message in messages for part in read(message).sequences for event in part.events]
    assert back == [("s", event) for event in FACTS * 40] + [("t", event) for event in FACTS]


def test_one_large_fact_travels_alone() -> None:
    large = facts.RunFailed(**RUN, failure=facts.Failure(reason="x" * 2_000))
    sequence = JobSetEvents("q", "s", (FACTS[0], large, FACTS[0]))
    assert len(reports.report_messages((sequence,), max_bytes=500)) == 3
    assert reports.report_messages(()) == []


def test_only_facts_about_runs_can_be_reported() -> None:
    with pytest.raises(TypeError, match="JobSucceeded"):
        reports.report_messages((JobSetEvents("q", "s", (facts.JobSucceeded(at_ms=1, job_id="j"),)),))


@pytest.mark.parametrize(
    "kinds",
    [
        {},
        {"submitJob": armadaevents.SubmitJob(job_id="j")},
        {"cancelledJob": armadaevents.CancelledJob(job_id="j")},
        {"jobSucceeded": armadaevents.JobSucceeded(job_id="j")},
        {"jobRunPreempted": armadaevents.JobRunPreempted(preempted_job_id="j")},
        {"jobRunTerminatedDebugInfo": armadaevents.JobRunTerminatedDebugInfo(job_id="j")},
        {"jobRunErrors": armadaevents.JobRunErrors(job_id="j", run_id="r")},
        {"jobRunErrors": armadaevents.JobRunErrors(errors=[armadaevents.Error(terminal=True)])},
        {"jobRunErrors": armadaevents.JobRunErrors(errors=[armadaevents.Error(podError=armadaevents.PodError())])},
        {
            "jobRunErrors": armadaevents.JobRunErrors(
                errors=[armadaevents.Error(terminal=True, leaseExpired=armadaevents.LeaseExpired())]
            )
        },
    ],
)
def test_what_an_executor_may_not_say_is_dropped_and_counted(kinds: dict[str, Any]) -> None:
    assert read(reported(**kinds)) == reports.ExecutorReport("", (), 1)


def test_times_that_are_missing_are_now() -> None:
    report = read(reported(jobRunSucceeded=armadaevents.JobRunSucceeded(job_id="j", run_id="r")))
    assert report.sequences[0].events == (facts.RunSucceeded(at_ms=9_000, job_id="j", run_id="r"),)


def test_errors_of_other_kinds_fail_the_run() -> None:
    error = armadaevents.Error(terminal=True, reconciliationError=armadaevents.ReconciliationError(message="lost"))
    fatal = armadaevents.Error(terminal=True, kubernetesError=armadaevents.KubernetesError(resourceType="disk"))
    for given, reason in ((error, "lost"), (fatal, "the executor reported kubernetesError")):
        (sequence,) = read(reported(jobRunErrors=armadaevents.JobRunErrors(errors=[given]))).sequences
        (fact,) = sequence.events
        assert isinstance(fact, facts.RunFailed)
        assert (fact.failure.reason, fact.failure.kind) == (reason, "executor")


def test_texts_are_cleaned_and_cut() -> None:
    pod = armadaevents.PodError(message="a\0b" + "x" * 10_000, debugMessage="d" * 100_000)
    error = armadaevents.Error(terminal=True, podError=pod)
    (sequence,) = read(reported(jobRunErrors=armadaevents.JobRunErrors(errors=[error]))).sequences
    (fact,) = sequence.events
    assert isinstance(fact, facts.RunFailed)
    assert fact.failure.reason.startswith("abx")
    assert len(fact.failure.reason) == reports.MAX_REASON_CHARS
    assert len(fact.failure.debug) == reports.MAX_DEBUG_CHARS


def test_empty_sequences_leave_nothing() -> None:
    message = executorapi.EventList()
    message.events.add(queue="q", job_set_name="s")
    assert read(message) == reports.ExecutorReport("", (), 0)
