"""Cancel and preempt over whole queues; reports."""

import json

import pytest
from armada_client.armada import submit_pb2

from armada.cli.failures import ExitStatus
from tests.unit.cli.conftest import Armadactl, FakeServer


@pytest.fixture(autouse=True)
def queues(server: FakeServer) -> None:
    """Two queues, one with a label, one cordoned."""
    server.queues["alpha"] = submit_pb2.Queue(name="alpha", priority_factor=1, labels={"team": "x"})
    server.queues["beta"] = submit_pb2.Queue(name="beta", priority_factor=1, cordoned=True)


def asked(server: FakeServer) -> list[str]:
    """Names of the queues for which something was asked."""
    wanted = (submit_pb2.QueueCancelRequest, submit_pb2.QueuePreemptRequest)
    return [request.name for request in server.requests if isinstance(request, wanted)]


def test_cancel_sends_states_classes_and_pools(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl("cancel", "queues", "alpha", "-s", "queued,running", "-p", "armada-default", "--pools", "gpu")
    assert ran.status is ExitStatus.OK
    assert ran.out == (
        "Requesting cancellation of jobs matching queue: alpha, priorityClasses: armada-default, "
        "jobStates: queued,running, pools: gpu\n"
    )
    request = server.requests[-1]
    assert list(request.jobStates) == [submit_pb2.QUEUED, submit_pb2.RUNNING]
    assert (list(request.priorityClasses), list(request.pools)) == (["armada-default"], ["gpu"])


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (("alpha", "beta"), ["alpha", "beta"]),
        (("-l", "team=x"), ["alpha"]),
        (("alpha", "--inverse"), ["beta"]),
        (("alpha", "beta", "--only-cordoned"), ["beta"]),
        (("nonesuch",), []),
    ],
)
def test_queues_are_chosen_by_name_or_label(
    armadactl: Armadactl, server: FakeServer, choice: tuple[str, ...], names: list[str]
) -> None:
    assert armadactl("preempt", "queues", *choice, "-a").status is ExitStatus.OK
    assert asked(server) == names


def test_a_dry_run_asks_for_nothing(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl("cancel", "queue", "alpha", "-s", "queued", "-a", "--dry-run", "-o", "json")
    assert json.loads(ran.out) == {"queues": ["alpha"], "dryRun": True}
    assert asked(server) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("cancel", "queues", "alpha", "-a"),
        ("cancel", "queues", "alpha", "-s", "flying", "-a"),
        ("cancel", "queues", "alpha", "-s", "queued"),
        ("cancel", "queues", "alpha", "-s", "queued", "-a", "-p", "armada-default"),
        ("cancel", "queues", "-s", "queued", "-a"),
        ("preempt", "queues", "alpha"),
        ("preempt", "queues", "alpha", "-l", "team", "-a"),
        ("get", "scheduling-report", "--queue", "q", "--job-id", "j"),
    ],
)
def test_half_said_is_not_done(armadactl: Armadactl, server: FakeServer, arguments: tuple[str, ...]) -> None:
    ran = armadactl(*arguments)
    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith("Error: ")
    assert asked(server) == []


def test_reports_are_printed_as_they_come(armadactl: Armadactl, server: FakeServer) -> None:
    assert armadactl("get", "job-report", "j1").out == "about job j1\n"
    assert armadactl("get", "queue-report", "q1", "-vv").out == "about queue q1\n"
    assert server.requests[-1].verbosity == 2
    assert json.loads(armadactl("get", "scheduling-report", "--queue", "q1", "-o", "json").out) == {
        "report": "about all\n"
    }
    assert server.requests[-1].most_recent_for_queue.queue_name == "q1"
    armadactl("get", "scheduling-report", "--job-id", "j1")
    assert server.requests[-1].most_recent_for_job.job_id == "j1"
