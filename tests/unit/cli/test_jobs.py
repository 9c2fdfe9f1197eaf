"""Verbs on jobs: what they send, what they print, what they refuse to send."""

import json
from collections.abc import Iterator

import grpc
import pytest
from armada_client.armada import job_pb2, submit_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from armada.cli.failures import ExitStatus
from tests.unit.cli.conftest import Armadactl, FakeServer


def test_cancel_job_sends_ids_and_reason(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl("cancel", "job", "q", "s", "a", "b", "--reason", "bad input")
    assert ran.status is ExitStatus.OK
    assert ran.out.splitlines()[-1] == "Requested cancellation for jobs a, b"
    (request,) = server.requests
    assert (request.queue, request.job_set_id, list(request.job_ids), request.reason) == (
        "q",
        "s",
        ["a", "b"],
        "bad input",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("cancel", "job", "q", "s"),
        ("cancel", "job", "q", "s", ""),
        ("cancel", "job", "q", "s", "a", " "),
        ("preempt", "job", "q", "s", "", "why"),
        ("preempt", "job", "q", "s", "a"),
        ("reprioritize", "job", "q", "s", "", "5"),
        ("reprioritize", "job", "q", "s", "a", "x"),
        ("cancel", "job-set", "q", "s", "--states", "succeeded"),
        ("cancel", "job-set", "q"),
    ],
)
def test_what_could_mean_something_else_is_never_sent(
    armadactl: Armadactl, server: FakeServer, arguments: tuple[str, ...]
) -> None:
    ran = armadactl(*arguments)
    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith("Error: ")
    assert server.requests == []


def test_cancel_job_set_with_and_without_states(armadactl: Armadactl, server: FakeServer) -> None:
    assert armadactl("cancel", "job-set", "q", "s").status is ExitStatus.OK
    assert armadactl("cancel", "job-set", "q", "s", "--states", "pending,running").status is ExitStatus.OK
    whole, part = server.requests
    assert list(whole.filter.states) == []
    assert list(part.filter.states) == [submit_pb2.PENDING, submit_pb2.RUNNING]


def test_a_refused_cancel_says_what_was_asked_and_fails(armadactl: Armadactl, server: FakeServer) -> None:
    server.failures = [(grpc.StatusCode.NOT_FOUND, 'could not find queue "ghost"')]
    ran = armadactl("cancel", "job-set", "ghost", "s")
    assert ran.status is ExitStatus.NOT_FOUND
    assert ran.out.startswith("Requesting cancellation")
    assert ran.err == 'Error: could not find queue "ghost"\n'


def test_preempt_sends_its_reason(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl("preempt", "job", "q", "s", "a", "maintenance")
    assert ran.out.splitlines()[-1] == "Requested preemption for job a"
    assert server.requests[0].reason == "maintenance"


def test_priorities_may_be_negative_and_of_a_whole_set(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl("reprioritize", "job", "q", "s", "a", "-5")
    assert ran.out.splitlines() == ["Reprioritized jobs with ID:", "a"]
    ran = armadactl("reprioritize", "job-set", "q", "s", "6.5")
    assert ran.out.splitlines() == ["Reprioritized jobs with ID:", "all jobs in job set s"]
    one, every = server.requests
    assert (one.new_priority, list(one.job_ids)) == (-5, ["a"])
    assert (every.new_priority, list(every.job_ids)) == (6.5, [])


@pytest.fixture
def known(server: FakeServer) -> FakeServer:
    """A server that knows a failed job `a` with one run and a queued job `b`."""
    run = job_pb2.JobRunDetails(
        run_id="r1",
        job_id="a",
        state=job_pb2.RUN_STATE_FAILED,
        cluster="here",
        node="n1",
        leased_ts=Timestamp(seconds=60),
    )
    server.details["a"] = job_pb2.JobDetails(
        job_id="a", queue="q", jobset="s", namespace="n", state=submit_pb2.FAILED, job_runs=[run], latest_run_id="r1"
    )
    server.details["b"] = job_pb2.JobDetails(job_id="b", queue="q", jobset="s", state=submit_pb2.QUEUED)
    server.errors["a"] = "exit code 3\nof main"
    return server


@pytest.mark.usefixtures("known")
def test_get_job_shows_state_runs_and_error(armadactl: Armadactl) -> None:
    ran = armadactl("get", "job", "a")
    assert ran.status is ExitStatus.OK
    assert "exit code 3" in ran.out
    assert "1970-01-01T00:01:00.000Z" in ran.out
    told = json.loads(armadactl("get", "job", "a", "-o", "json").out)
    assert told["state"] == "FAILED"
    assert told["error"] == "exit code 3\nof main"
    assert told["runs"] == [
        {"runId": "r1", "state": "FAILED", "cluster": "here", "node": "n1", "leased": "1970-01-01T00:01:00.000Z"}
    ]


@pytest.mark.usefixtures("known")
def test_of_several_jobs_the_missing_ones_are_an_error_after_the_found_ones(armadactl: Armadactl) -> None:
    ran = armadactl("get", "job", "a", "zz", "b", "-o", "json")
    assert ran.status is ExitStatus.NOT_FOUND
    assert [job["jobId"] for job in json.loads(ran.out)["jobs"]] == ["a", "b"]
    assert ran.err == "Error: no such job: zz\n"


def test_logs_are_read_in_the_jobs_namespace(armadactl: Armadactl, known: FakeServer) -> None:
    known.logs = [("2026-01-01T00:00:01Z", "hello"), ("2026-01-01T00:00:02Z", "bye")]
    ran = armadactl("logs", "a", "--tail", "5", "--container", "main")
    assert ran.out == "hello\nbye\n"
    request = known.requests[-1]
    assert (request.pod_namespace, request.log_options.tailLines, request.log_options.container) == ("n", 5, "main")
    assert armadactl("logs", "a", "--timestamps").out.startswith("2026-01-01T00:00:01Z hello\n")
    assert armadactl("logs", "zz").status is ExitStatus.NOT_FOUND


def test_followed_logs_have_each_line_once_and_end_with_the_job(
    armadactl: Armadactl, known: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    known.details["a"].state = submit_pb2.RUNNING
    known.logs = [("2026-01-01T00:00:01Z", "one"), ("2026-01-01T00:00:02Z", "two")]

    def between(_seconds: float) -> None:
        known.logs += [("2026-01-01T00:00:02Z", "two again"), ("2026-01-01T00:00:03Z", "three")]
        known.details["a"].state = submit_pb2.SUCCEEDED

    monkeypatch.setattr("armada.cli.verbs.logs.time.sleep", between)
    assert armadactl("logs", "a", "--follow").out == "one\ntwo\ntwo again\nthree\n"


@pytest.mark.parametrize("options", [(), ("--follow",)])
def test_logs_that_come_in_pieces_are_read_to_their_end(
    armadactl: Armadactl, known: FakeServer, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    known.details["a"].state = submit_pb2.SUCCEEDED
    lines = [(f"2026-01-01T00:00:{second:02}Z", f"{second} " + "x" * 700_000) for second in range(9)]

    class Cut(list[tuple[str, str]]):
        def __iter__(self) -> Iterator[tuple[str, str]]:
            return iter([line for line in lines if line[0] >= known.requests[-1].since_time][:2])

    known.logs = Cut()
    monkeypatch.setattr("armada.cli.verbs.logs.FULL_PAGE_BYTES", 600_000)
    shown = armadactl("logs", "a", *options).out.splitlines()
    assert [line.split()[0] for line in shown] == [str(second) for second in range(9)]
