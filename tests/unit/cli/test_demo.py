"""The demo's own arithmetic and judgement; the demo as a whole runs in tests/end_to_end."""

import io
from typing import Any

import pytest
from armada_client.armada import event_pb2
from rich.console import Console

from armada.cli.demo import mix, screen, verdict
from armada.cli.demo.mix import COMMANDS, SIMULATED
from armada.cli.demo.performance import Performance, Remark, Share, Staged, fair_parts
from armada.cli.remote.following import FollowedEvent


@pytest.mark.parametrize(
    ("weights", "wanted", "parts"),
    [
        ({"a": 4, "b": 2, "c": 1}, {"a": 1, "b": 1, "c": 1}, {"a": 4 / 7, "b": 2 / 7, "c": 1 / 7}),
        ({"a": 1, "b": 1}, {"a": 0.1, "b": 1}, {"a": 0.1, "b": 0.9}),
        ({"a": 2, "b": 1, "c": 1}, {"a": 0, "b": 0.2, "c": 1}, {"a": 0, "b": 0.2, "c": 0.8}),
        ({"a": 1}, {"a": 0}, {"a": 0}),
        ({}, {}, {}),
    ],
)
def test_fair_parts_follow_weights_and_pass_on_what_is_not_wanted(
    weights: dict[str, float], wanted: dict[str, float], parts: dict[str, float]
) -> None:
    assert fair_parts(weights, wanted) == pytest.approx(parts)


def test_the_mix_holds_what_the_demo_promises() -> None:
    chosen = mix.full(2)
    assert chosen.total_simulated == 2_000
    assert len({queue.priority_factor for queue in chosen.queues}) == 3
    by_key = {job.key: job for job in chosen.jobs}
    members = [job for key, job in by_key.items() if key.startswith("gang")]
    assert len(members) == 4
    assert {dict(job.item.annotations)["armadaproject.io/gangId"] for job in members} == {"quartet"}
    low, high = by_key["modest"], by_key["urgent"]
    assert low.cpu + high.cpu > 2
    assert low.cpu < 2
    assert low.item.pod_spec.priorityClassName == "armada-preemptible"
    for job in chosen.jobs:
        assert dict(job.item.pod_spec.nodeSelector) == {mix.MACHINE: "true"}
    first, second = mix.simulated(1, 3.0), mix.simulated(2, 3.0)
    assert dict(first.annotations) != dict(second.annotations)
    assert dict(first.pod_spec.nodeSelector) == {mix.SIMULATED_NODE: "true"}


def message(kind: str, job_id: str, at_s: int, **more: Any) -> FollowedEvent:
    event = getattr(
        event_pb2,
        {
            "queued": "JobQueuedEvent",
            "leased": "JobLeasedEvent",
            "running": "JobRunningEvent",
            "succeeded": "JobSucceededEvent",
            "failed": "JobFailedEvent",
            "preempted": "JobPreemptedEvent",
            "cancelled": "JobCancelledEvent",
        }[kind],
    )(job_id=job_id, **more)
    event.created.seconds = at_s
    return FollowedEvent(f"{at_s}:0:0:1", kind, event)


@pytest.fixture
def performance() -> Performance:
    """A performance in which everything went well, as told by events."""
    chosen = mix.small(4)
    played = Performance("127.0.0.1:1", chosen)
    endings: dict[str, tuple[str, dict[str, Any]]] = {
        "exit 3": ("failed", {"reason": "exit code 3", "container_statuses": [event_pb2.ContainerStatus(exitCode=3)]}),
        "too big": ("failed", {"reason": "no node has 100000 cpu", "cause": 4}),
        "to cancel": ("cancelled", {}),
        "modest": ("preempted", {"reason": "made room"}),
    }
    for job in chosen.jobs:
        staged = Staged(job, f"id of {job.key}")
        played.staged[job.key] = played._by_id[staged.job_id] = staged
        ending, more = endings.get(job.key, ("succeeded", {}))
        for kind in ("queued", "leased", "running") if job.key != "too big" else ("queued",):
            played._take(job.queue, COMMANDS, message(kind, staged.job_id, 100))
        played._take(job.queue, COMMANDS, message(ending, staged.job_id, 101, **more))
        if ending == "preempted":
            played._take(job.queue, COMMANDS, message("failed", staged.job_id, 101, reason="made room"))
    played.staged["hello"].output = ["armada: a note", "hello from job x of queue research"]
    played.staged["sum"].output = ["1 to 1000 add up to 500500"]
    for number in range(chosen.total_simulated):
        queue = chosen.queues[0].name
        played._take(queue, SIMULATED, message("queued", f"s{number}", 100))
        played._take(queue, SIMULATED, message("leased", f"s{number}", 101, cluster_id=f"sim-{number % 3}"))
        played._take(queue, SIMULATED, message("succeeded", f"s{number}", 110))
    return played


@pytest.fixture
def meter(performance: Performance) -> verdict.FairnessMeter:
    """A meter that saw shares as they should be."""
    due = fair_parts(
        {each.name: 1 / each.priority_factor for each in performance.mix.queues},
        dict.fromkeys((each.name for each in performance.mix.queues), 1.0),
    )
    return verdict.FairnessMeter(0.0, samples=5, total_s=1.0, used=dict(due), fair=dict(due))


def kept(performance: Performance, meter: verdict.FairnessMeter) -> list[bool]:
    return [finding.is_kept for finding in verdict.findings(performance, meter)]


def test_everything_as_told_is_all_kept(performance: Performance, meter: verdict.FairnessMeter) -> None:
    assert kept(performance, meter) == [True] * 9


@pytest.mark.parametrize(
    ("spoil", "broken"),
    [
        (lambda played: played.staged["hello"].output.clear(), 0),
        (lambda played: played.staged["sum"].output.__setitem__(0, "1 to 1000 add up to 500499"), 1),
        (lambda played: played.staged["gang 2"].moments_ms.update(leased=200_000), 2),
        (lambda played: played.staged["gang 4"].moments_ms.pop("leased"), 2),
        (lambda played: setattr(played.state_of("exit 3"), "exit_codes", (1,)), 3),
        (lambda played: setattr(played.state_of("too big"), "is_rejected", False), 4),
        (lambda played: setattr(played.state_of("to cancel"), "state", "succeeded"), 5),
        (lambda played: played.staged["to cancel"].moments_ms.pop("running"), 5),
        (lambda played: setattr(played.state_of("modest"), "was_preempted", False), 6),
        (lambda played: setattr(played.state_of("urgent"), "state", "queued"), 6),
        (lambda played: played.clusters.pop(), 7),
        (lambda played: played.tallies["research", SIMULATED]._counts.subtract(succeeded=1), 7),
    ],
)
def test_each_thing_that_goes_wrong_is_found(
    performance: Performance, meter: verdict.FairnessMeter, spoil: Any, broken: int
) -> None:
    spoil(performance)
    assert kept(performance, meter) == [number != broken for number in range(9)]


def test_unfair_shares_are_found(performance: Performance, meter: verdict.FairnessMeter) -> None:
    meter.used["research"], meter.used["batch"] = meter.used["batch"], meter.used["research"]
    assert not kept(performance, meter)[8]
    assert not kept(performance, verdict.FairnessMeter(0.0))[8]


def test_the_meter_counts_only_while_all_queues_wait(performance: Performance) -> None:
    meter = verdict.FairnessMeter(settle_s=0.0)
    shares = {each.name: Share(0.3, 0.3) for each in performance.mix.queues}
    meter.look(performance, shares)
    assert meter.samples == 0
    for each in performance.mix.queues:
        for kind, job in (("queued", "w1"), ("queued", "w2"), ("leased", "w2")):
            performance._take(each.name, SIMULATED, message(kind, job + each.name, 120))
    for _ in range(4):
        meter.look(performance, performance.shares())
    assert meter.samples == 4
    assert meter.average()["batch"].used == pytest.approx(1 / 3)
    assert meter.average()["batch"].fair == pytest.approx(1 / 7)


def test_every_screen_can_be_drawn(performance: Performance, meter: verdict.FairnessMeter) -> None:
    performance.remarks.append(Remark(1.0, "evil", "failed", "\x1b[2J" + "long " * 100))
    out = io.StringIO()
    console = Console(file=out, width=screen.WIDTH, force_terminal=False)
    console.print(screen.stage(performance, performance.shares()))
    console.print(screen.final_table(verdict.findings(performance, meter)))
    console.print(screen.closing(verdict.findings(performance, meter), 30.0))
    text = out.getvalue()
    assert "\x1b" not in text
    assert "All 9 came out as expected" in text
    assert all(len(line.rstrip()) <= screen.WIDTH for line in text.splitlines())
    assert "succeeded 207" in screen.plain_line(performance, performance.shares())
