"""Verbs about executors and nodes against a server in this process."""

import json

import pytest
from armada_client.armada import submit_pb2

from armada.cli.failures import ExitStatus
from tests.unit.cli.conftest import Armadactl, FakeServer


def test_an_executor_is_cordoned_with_a_reason_and_uncordoned(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl("cordon", "executor", "east", "new network")
    assert (ran.status, ran.out) == (ExitStatus.OK, "Cordoning the following executors:\neast cordoned\n")
    ran = armadactl("uncordon", "executor", "east")
    assert ran.out == "Uncordoning the following executors:\neast uncordoned\n"
    sent = [(request.name, request.cordoned, request.cordonReason) for request in server.requests]
    assert sent == [("east", True, "new network"), ("east", False, "")]


def test_an_executor_is_forgotten(armadactl: Armadactl, server: FakeServer) -> None:
    assert armadactl("delete", "executor", "east").out == "Deleted executor east (or it did not exist)\n"
    assert [request.name for request in server.requests] == ["east"]


@pytest.mark.parametrize(("verb", "what"), [("cancel", "cancellation"), ("preempt", "preemption")])
def test_jobs_of_an_executor_are_ended(armadactl: Armadactl, server: FakeServer, verb: str, what: str) -> None:
    ran = armadactl(verb, "executor", "east", "-q", "a,b", "-p", "x", "--pools", "gpu")
    wanted = "executor: east, queues: a,b, priority-classes: x, pools: gpu"
    assert (ran.status, ran.out) == (ExitStatus.OK, f"Requesting {what} of jobs matching {wanted}\n")
    (request,) = server.requests
    assert type(request).__name__ == f"Executor{verb.capitalize()}Request"
    assert (request.name, list(request.queues), list(request.priorityClasses)) == ("east", ["a", "b"], ["x"])
    assert list(request.pools) == ["gpu"]


@pytest.mark.parametrize(("verb", "what"), [("cancel", "cancellation"), ("preempt", "preemption")])
def test_jobs_of_a_node_are_ended(armadactl: Armadactl, server: FakeServer, verb: str, what: str) -> None:
    for name in ("qb", "qa"):
        server.queues[name] = submit_pb2.Queue(name=name)
    ran = armadactl(verb, "node", "n1", "--executor", "east", "-a")
    wanted = "node: n1, executor: east, queues: all, priority-classes: all"
    assert (ran.status, ran.out) == (ExitStatus.OK, f"Requesting {what} of jobs matching {wanted}\n")
    request = server.requests[-1]
    assert type(request).__name__ == f"Node{verb.capitalize()}Request"
    assert (request.name, request.executor, list(request.queues)) == ("n1", "east", ["qa", "qb"])
    assert list(request.priorityClasses) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("cordon", "executor", "east"),
        ("cancel", "executor", "east", "-q", "a"),
        ("preempt", "executor", "east", "-a", "-p", "x"),
        ("cancel", "node", "n1", "-a"),
    ],
)
def test_what_is_missing_is_a_usage_error(armadactl: Armadactl, server: FakeServer, arguments: tuple[str, ...]) -> None:
    ran = armadactl(*arguments)
    assert ran.status is ExitStatus.USAGE
    assert server.requests == []


def test_programs_get_documents(armadactl: Armadactl) -> None:
    ran = armadactl("cancel", "executor", "east", "-q", "a", "-a", "-o", "json")
    assert json.loads(ran.out) == {"executor": "east", "node": None, "queues": ["a"]}
    assert json.loads(armadactl("cordon", "executor", "e", "r", "-o", "json").out)["cordoned"] is True
