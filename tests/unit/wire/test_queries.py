"""Answers of the Jobs service."""

import msgspec
from armada_client.armada import job_pb2 as api
from armada_client.armada import submit_pb2

from armada.model.jobs import JobTemplate
from armada.model.lifecycle import JobState, RunState
from armada.wire import queries
from tests.unit.wire.builders import template


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the history has it."""

    run_id: str = "r1"
    job_id: str = "j1"
    state: RunState = RunState.RUNNING
    executor_id: str = "c1"
    node_name: str = "n1"
    leased_ms: int = 1_000
    pending_ms: int | None = 2_000
    started_ms: int | None = None
    finished_ms: int | None = None
    addresses: dict[int, str] = {}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the history has it."""

    job_id: str = "j1"
    queue: str = "vision"
    job_set: str = "nightly"
    namespace: str = "lab"
    owner: str = "dana"
    priority: int = 3
    state: JobState = JobState.QUEUED
    submitted_ms: int = 1_000
    last_transition_ms: int = 2_000
    latest_run_id: str = ""
    cancelled_ms: int | None = None
    cancel_reason: str = ""
    cancel_requestor: str = ""
    runs: tuple[Run, ...] = ()
    template: JobTemplate | None = None


def test_every_state_has_its_api_name() -> None:
    states = {state.name: queries.status_response({"j": state}).job_states["j"] for state in JobState}
    assert {name: submit_pb2.JobState.Name(number) for name, number in states.items()} == {
        state.name: state.name for state in JobState
    }
    assert queries.status_response({"j": None}).job_states["j"] == submit_pb2.JobState.UNKNOWN
    for state in RunState:
        shown = queries.run_details_response([Run(state=state)]).job_run_details["r1"].state
        assert api.JobRunState.Name(shown).endswith(f"STATE_{state.name}")


def test_details() -> None:
    response = queries.details_response(
        [
            Job(),
            Job(
                job_id="j2",
                state=JobState.CANCELLED,
                cancelled_ms=3_000,
                cancel_requestor="dana",
                cancel_reason="why",
                latest_run_id="r1",
                runs=(Run(addresses={80: "a"}),),
                template=template(labels={"k": "{JobId}"}),
            ),
        ]
    )
    plain, full = response.job_details["j1"], response.job_details["j2"]
    assert {field.name for field, _ in plain.ListFields()} == {
        "job_id",
        "queue",
        "jobset",
        "namespace",
        "submitted_ts",
        "last_transition_ts",
    }
    assert (full.cancel_ts.seconds, full.cancel_user, full.cancel_reason, full.latest_run_id) == (
        3,
        "dana",
        "why",
        "r1",
    )
    assert (full.job_spec.id, full.job_spec.priority, full.job_spec.labels["k"]) == ("j2", 3.0, "j2")
    run = full.job_runs[0]
    assert (run.cluster, run.node, run.leased_ts.seconds, run.pending_ts.seconds) == ("c1", "n1", 1, 2)
    assert not run.HasField("started_ts")
    assert dict(run.ingress_addresses) == {80: "a"}


def test_other_answers() -> None:
    assert queries.asked_ids(["b", "a", "b"]) == ("b", "a")
    assert dict(queries.errors_response({"j": ""}).job_errors) == {"j": ""}
    active = queries.active_queues_response({"default": ["b", "a"]})
    assert list(active.active_queues_by_pool["default"].queues) == ["a", "b"]
    assert queries.job_report("text").report == "text"
    assert queries.queue_report("text").report == "text"
    assert queries.scheduling_report("text").report == "text"
    lines = queries.log_response([("2026-01-31T12:00:00Z", "hello")]).log
    assert (lines[0].timestamp, lines[0].line) == ("2026-01-31T12:00:00Z", "hello")
