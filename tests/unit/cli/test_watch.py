"""`watch` and `get job-set`: what the events of a set add up to, and how the stream is followed."""

import json
from typing import Any

import grpc
import pytest
from armada_client.armada import event_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote import following
from armada.cli.remote.connection import Connection
from armada.cli.remote.following import FollowedEvent, Follower, JobSetTally
from armada.cli.remote.targets import Target
from tests.unit.cli.conftest import Armadactl, FakeServer

CREATED = Timestamp(seconds=1_787_303_702)


def event(kind: str, job_id: str = "a", **more: Any) -> Any:
    message = event_pb2.EventMessage()
    part = getattr(message, kind)
    part.SetInParent()
    part.job_id, part.job_set_id, part.queue = job_id, "s", "q"
    part.created.CopyFrom(CREATED)
    for key, value in more.items():
        if isinstance(value, list):
            getattr(part, key).extend(value)
        else:
            setattr(part, key, value)
    return message


def story(*kinds: str, job_id: str = "a") -> list[Any]:
    return [event(kind, job_id) for kind in kinds]


WELL = ("submitted", "queued", "leased", "pending", "running", "succeeded")


def test_watch_prints_a_line_an_event_with_counts(armadactl: Armadactl, server: FakeServer) -> None:
    server.events["q", "s"] = story(*WELL)
    ran = armadactl("watch", "q", "s", "--exit-if-inactive")
    assert ran.status is ExitStatus.OK
    lines = ran.out.splitlines()
    assert lines[0] == "Watching job set s"
    assert lines[2] == (
        "Aug 21 09:15:02 | Queued:   1, Leased:   0, Pending:   0, Running:   0, Succeeded:   0, Failed:   0, "
        "Cancelled:   0 | JobQueuedEvent, job id: a"
    )
    assert lines[5].endswith("| JobRunningEvent, job id: a pod: 0")
    assert "Running:   0, Succeeded:   1" in lines[6]
    assert len(lines) == 7


def test_a_failure_is_explained_and_ends_a_watch_that_asks_for_it(armadactl: Armadactl, server: FakeServer) -> None:
    failed = event("failed", reason="exit code 3\nbecause", pod_name="armada-a-0", cluster_id="here")
    server.events["q", "s"] = [*story(*WELL[:5]), failed, *story("submitted", "queued", job_id="b")]
    ran = armadactl("watch", "q", "s", "--exit-on-failure")
    assert ran.status is ExitStatus.JOB_FAILED
    assert "Job failed: exit code 3\nbecause\nIts output: armadactl logs a\n" in ran.out
    assert ran.err == "Error: job a failed\n"


def test_utilisation_is_not_shown_and_requestors_are(armadactl: Armadactl, server: FakeServer) -> None:
    events = [*story("submitted", "queued"), event("utilisation"), event("cancelling", requestor="dana")]
    server.events["q", "s"] = [*events, event("cancelled", requestor="dana")]
    out = armadactl("watch", "q", "s", "--exit-if-inactive").out
    assert "Utilisation" not in out
    assert "JobCancelledEvent, job id: a, user: dana" in out


def test_raw_and_json_carry_the_whole_event(armadactl: Armadactl, server: FakeServer) -> None:
    server.events["q", "s"] = story(*WELL)
    raw = armadactl("watch", "q", "s", "--exit-if-inactive", "--raw").out.splitlines()
    name, _, body = raw[2].partition(" ")
    assert name == "*api.JobQueuedEvent"
    assert json.loads(body) == {
        "jobId": "a",
        "jobSetId": "s",
        "queue": "q",
        "created": {"seconds": 1_787_303_702},
    }
    told = [
        json.loads(line) for line in armadactl("watch", "q", "s", "--exit-if-inactive", "-o", "json").out.splitlines()
    ]
    assert [each["kind"] for each in told] == list(WELL)
    assert told[3]["id"] == "3:0:0:1"
    assert told[3]["event"]["created"] == "2026-08-21T09:15:02.000Z"
    resumed = armadactl("watch", "q", "s", "--exit-if-inactive", "-o", "json", "--from", told[3]["id"]).out
    assert [json.loads(line)["kind"] for line in resumed.splitlines()] == ["running", "succeeded"]


def test_a_missing_set_is_said_without_a_failure_status(armadactl: Armadactl) -> None:
    ran = armadactl("watch", "q", "none")
    assert ran.status is ExitStatus.OK
    assert "no job set none" in ran.out
    assert ran.err == ""
    assert armadactl("watch", "q", "none", "--exit-codes", "detailed").status is ExitStatus.NOT_FOUND


def test_an_early_end_of_some_jobs_is_not_the_end_of_all(armadactl: Armadactl, server: FakeServer) -> None:
    server.events["q", "s"] = [*story(*WELL), *story(*WELL, job_id="b")]
    out = armadactl("watch", "q", "s", "--exit-if-inactive").out
    assert "Succeeded:   2" in out


def test_control_characters_of_others_never_reach_the_terminal(armadactl: Armadactl, server: FakeServer) -> None:
    failed = event("failed", reason="\x1b[2Jgone\rforged")
    server.events["q", "s"] = [*story("submitted", "queued"), failed]
    out = armadactl("watch", "q", "s", "--exit-if-inactive").out
    assert "\x1b" not in out
    assert "\r" not in out
    assert "\\x1b[2Jgone\\x0dforged" in out


def test_get_job_set_lists_what_the_events_say(armadactl: Armadactl, server: FakeServer) -> None:
    statuses = [event_pb2.ContainerStatus(name="main", exitCode=3)]
    server.events["q", "s"] = [
        *story(*WELL),
        *story("submitted", "queued", "leased", "running", job_id="b"),
        event("failed", "b", reason="exit code 3", container_statuses=statuses),
        *story("submitted", "queued", job_id="c"),
        event("failed", "c", reason="too big", cause=4),
    ]
    told = json.loads(armadactl("get", "job-set", "q", "s", "-o", "json").out)
    assert told["counts"] == {"failed": 2, "succeeded": 1}
    assert [(job["jobId"], job["state"], job["reason"]) for job in told["jobs"]][1:] == [
        ("b", "failed", "exit code 3"),
        ("c", "failed", "too big"),
    ]
    table = armadactl("get", "job-set", "q", "s").out
    assert "rejected" in table
    assert armadactl("get", "job-set", "q", "none").status is ExitStatus.NOT_FOUND


def tally_of(events: list[Any]) -> JobSetTally:
    tally = JobSetTally()
    for position, message in enumerate(events):
        kind = message.WhichOneof("events")
        tally.take(FollowedEvent(str(position), kind, getattr(message, kind)))
    return tally


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        (WELL, "succeeded"),
        (("submitted",), ""),
        (("submitted", "queued", "leased", "lease_returned"), "queued"),
        (("submitted", "queued", "leased", "running", "preempted"), "running"),
        (("submitted", "queued", "leased", "running", "preempted", "failed"), "failed"),
        (("submitted", "queued", "cancelled", "running"), "cancelled"),
        (("submitted", "queued", "reprioritized"), "queued"),
    ],
)
def test_the_last_telling_event_decides_a_jobs_state(kinds: tuple[str, ...], state: str) -> None:
    tally = tally_of(story(*kinds))
    assert tally.jobs["a"].state == state
    assert tally[state] == (1 if state else tally[""])


def test_a_failure_that_will_be_retried_is_not_the_end() -> None:
    tally = tally_of([*story("submitted", "queued", "leased", "running"), event("failed", retryable=True)])
    assert tally.jobs["a"].state == "queued"
    assert not tally.is_inactive


def test_a_lost_stream_is_taken_up_after_the_last_event(url: str, server: FakeServer) -> None:
    server.events["q", "s"] = [*story(*WELL[:3]), grpc.StatusCode.UNAVAILABLE, *story(*WELL[3:])]
    pauses: list[float] = []
    said: list[str] = []
    follower = Follower(Connection(Target(url=url)), "q", "s", on_trouble=said.append, pause=pauses.append)
    kinds = []
    for followed in follower.forever():
        kinds.append(followed.kind)
        if followed.kind == "succeeded":
            break
    assert kinds == list(WELL)
    assert pauses == [following.RECONNECT_PAUSE_S]
    assert "can't reach" in said[0]


def test_a_stream_that_stays_away_is_given_up(url: str, server: FakeServer) -> None:
    for after, limit, pause_s in (
        ("", following.FIRST_LIMIT, following.FIRST_PAUSE_S),
        ("5:0:0:1", following.RECONNECT_LIMIT, following.RECONNECT_PAUSE_S),
    ):
        server.failures = [(grpc.StatusCode.INTERNAL, "broken")] * limit
        pauses: list[float] = []
        follower = Follower(Connection(Target(url=url)), "q", "s", after=after, pause=pauses.append)
        with pytest.raises(CommandFailed, match="broken"):
            list(follower.forever())
        assert pauses == [pause_s] * (limit - 1)
