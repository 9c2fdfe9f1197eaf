"""Manifests of leases, facts of pods, and what is wrong with a pod."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armada.executor.pods import (
    CUT_MARK,
    ContainerState,
    cut,
    ended_fact,
    failure_of,
    identity,
    manifest,
    order_for,
)
from armada.model.events import ContainerStatus, RunFailed, RunSucceeded
from armada.model.jobs import GangSpec, Toleration
from tests.unit.executor.builders import lease, pod, template


def test_names_labels_and_annotations() -> None:
    made = template(
        labels={"team": "a", "armada_job_id": "forged"},
        annotations={"note": "job {JobId}", "armada_owner": "forged"},
    )
    pod_made = manifest(lease("r1", template=made, overlay={"extra": "1"}))
    assert pod_made["metadata"] == {
        "name": "armada-job-r1-0",
        "namespace": "default",
        "labels": {
            "team": "a",
            "armada_job_id": "job-r1",
            "armada_job_run_id": "r1",
            "armada_queue_id": "q",
            "armada_pod_number": "0",
            "armada_pod_count": "1",
            "armada_preemptible": "true",
        },
        "annotations": {
            "note": "job job-r1",
            "extra": "1",
            "armada_jobset_id": "s",
            "armada_owner": "ann",
            "armadaproject.io/pool": "p",
        },
    }


def test_the_spec_is_pinned_never_restarts_and_stays_otherwise_as_it_was() -> None:
    made = template(
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "a", "operator": "Exists"}],
        restartPolicy="Always",
        priorityClassName="high",
        unknownField={"kept": True},
    )
    before = bytes(made.pod_spec)
    added = (Toleration("b", "Equal", "v", "NoSchedule"), Toleration("a", "Exists"))
    spec = manifest(lease("r1", template=made, tolerations=added))["spec"]
    assert spec["nodeSelector"] == {"disk": "ssd", "kubernetes.io/hostname": "n1"}
    assert spec["restartPolicy"] == "Never"
    assert spec["priorityClassName"] == "high"
    assert spec["unknownField"] == {"kept": True}
    assert spec["tolerations"] == [
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
    ]
    assert made.pod_spec == before


def test_variables_go_to_all_containers_and_the_user_wins() -> None:
    containers = [{"name": "main", "env": [{"name": "ARMADA_QUEUE", "value": "mine"}]}, {"name": "side"}]
    made = template(containers=containers, initContainers=[{"name": "init"}], gang=GangSpec("g", 3, "zone"))
    overlay = {"armadaproject.io/gangNodeUniformityLabelValue": "z1"}
    spec = manifest(lease("r1", template=made, overlay=overlay))["spec"]
    ours = {
        "ARMADA_JOB_ID": "job-r1",
        "ARMADA_JOB_RUN_ID": "r1",
        "ARMADA_QUEUE": "q",
        "ARMADA_JOB_SET_ID": "s",
        "ARMADA_GANG_ID": "g",
        "ARMADA_GANG_CARDINALITY": "3",
        "ARMADA_GANG_NODE_UNIFORMITY_LABEL_NAME": "zone",
        "ARMADA_GANG_NODE_UNIFORMITY_LABEL_VALUE": "z1",
    }
    for container in (spec["initContainers"][0], spec["containers"][1]):
        assert {entry["name"]: entry["value"] for entry in container["env"]} == ours
    main = [(entry["name"], entry["value"]) for entry in spec["containers"][0]["env"]]
    assert dict(main) == {**ours, "ARMADA_QUEUE": "mine"}
    assert len(main) == len(ours)


def test_a_broken_spec_is_an_error_and_an_order_does_not_look_at_it() -> None:
    broken = lease("r1", template=msgspec.structs.replace(template(), pod_spec=b"["))
    assert order_for(broken).name == "armada-job-r1-0"
    with pytest.raises(msgspec.DecodeError):
        manifest(broken)


def ended(**changes: Any) -> RunFailed:
    failed = pod("r1", "failed", **changes)
    fact = ended_fact(failed, identity(failed, "e"))
    assert isinstance(fact, RunFailed)
    return fact


def test_success() -> None:
    done = pod("r1", "succeeded")
    fact = ended_fact(done, identity(done, "e"))
    assert fact == RunSucceeded(at_ms=2_000, job_id="job-r1", run_id="r1", pod=identity(done, "e"))


@pytest.mark.parametrize(
    ("changes", "reason", "cause"),
    [
        ({}, "Container main ended with exit code 3", "error"),
        ({"message": "the pod says so"}, "the pod says so", "error"),
        ({"reason": "Evicted", "message": "low on memory", "containers": ()}, "low on memory", "evicted"),
        ({"reason": "DeadlineExceeded", "message": "late"}, "late", "deadline_exceeded"),
        ({"reason": "UnexpectedAdmissionError", "message": "no device", "containers": ()}, "no device", "error"),
        ({"reason": "Shutdown", "containers": ()}, "pod failed: Shutdown", "error"),
        ({"containers": ()}, "pod failed without saying why", "error"),
        (
            {"containers": (ContainerState(name="m", finished_ms=1, exit_code=137, reason="OOMKilled"),)},
            "Container m ended with exit code 137 (OOMKilled)",
            "oom",
        ),
        (
            {
                "containers": (
                    ContainerState(name="a", finished_ms=1, exit_code=1, reason="Error", message="boom"),
                    ContainerState(name="b", finished_ms=1),
                    ContainerState(name="c", finished_ms=1, exit_code=2),
                )
            },
            "Container a ended with exit code 1: boom\nContainer c ended with exit code 2",
            "error",
        ),
    ],
)
def test_why_a_pod_failed(changes: dict[str, Any], reason: str, cause: str) -> None:
    failure = ended(**changes).failure
    assert (failure.reason, failure.cause, failure.kind) == (reason, cause, "pod")


def test_containers_that_ended_are_told_and_others_not() -> None:
    containers = (
        ContainerState(name="a", started_ms=1, finished_ms=2, exit_code=3, reason="Error"),
        ContainerState(name="never"),
    )
    assert ended(containers=containers).failure.containers == (ContainerStatus(name="a", exit_code=3, reason="Error"),)


def test_a_huge_message_is_cut_and_the_end_is_told_all_the_same() -> None:
    failed = pod("r1", "failed", message="\N{SNOWMAN}" * 1_000_000)
    failure = failure_of(failed, identity(failed, "e"))
    assert len(failure.reason.encode()) <= 4_096
    assert failure.reason.endswith("\N{SNOWMAN}" + CUT_MARK)


@given(text=st.text(st.characters() | st.sampled_from("\ud800\0")), limit=st.integers(10, 40))
def test_cut_text_is_always_storable(text: str, limit: int) -> None:
    safe = cut(text, limit)
    assert len(safe.encode("utf-8")) <= limit
    assert "\0" not in safe
    assert json.loads(json.dumps(safe)) == safe
    if len(text.encode("utf-8", "replace")) <= limit and "\0" not in text and text.isprintable():
        assert safe == text
