"""How jobs move between states when things happen late or together (spec rows M1 to M9)."""

from typing import Final

from armada.control.commands import changing
from armada.control.cycle import Leader
from armada.control.reports import Reports
from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    Failure,
    JobCancelled,
    JobFailed,
    JobRequeued,
    JobSetEvents,
    JobSucceeded,
    RunReturned,
    RunSucceeded,
)
from armada.model.jobs import KubernetesObject
from armada.model.lifecycle import RunState
from armada.model.submission import PreemptRequest
from armada.scheduling.round import schedule
from tests.unit.control.driving import Driver
from tests.unit.control.world import START_MS, World, gang_item, item, kinds, node, pod

PREEMPTIBLE: Final[KubernetesObject] = pod(priorityClassName="armada-preemptible")
BACK: Final = Failure(reason="no room", kind="lease_returned")


def world() -> World:
    made = World()
    made.report_nodes(node("n1"), node("n2"))
    return made


def returned(job_id: str, run_id: str) -> tuple[RunReturned, JobRequeued]:
    return (
        RunReturned(at_ms=START_MS, job_id=job_id, run_id=run_id, failure=BACK),
        JobRequeued(at_ms=START_MS, job_id=job_id),
    )


def preempt(made: World, job_id: str) -> list[str]:
    _, sequences = changing.preempt(made.at(), PreemptRequest("qa", "s", (job_id,), "why"))
    made.store(*sequences)
    return kinds(sequences)


def test_m1_a_job_goes_back_and_forth_and_ends() -> None:
    made = world()
    (job_id,) = made.submit(item())
    states = [made.state(job_id)]
    run_id = made.lease(job_id)
    states.append(made.state(job_id))
    made.store(JobSetEvents("qa", "s", returned(job_id, run_id)))
    states.append(made.state(job_id))
    run_id = made.start(job_id, "n2")
    states.append(made.state(job_id))
    ended = (
        RunSucceeded(at_ms=START_MS, job_id=job_id, run_id=run_id),
        JobSucceeded(at_ms=START_MS, job_id=job_id),
    )
    made.store(JobSetEvents("qa", "s", ended))
    assert [*states, made.state(job_id)] == ["queued", "leased", "queued", "running", "succeeded"]


def test_m2_what_is_said_of_an_earlier_run_comes_too_late() -> None:
    made = world()
    (job_id,) = made.submit(item())
    first = made.lease(job_id)
    made.store(JobSetEvents("qa", "s", returned(job_id, first)))
    made.lease(job_id, "n2")
    (late,) = made.store(JobSetEvents("qa", "s", returned(job_id, first)))
    assert [getattr(event, "run_ids", None) for event in late.events] == [(), ()]  # void: it says nothing any more
    assert made.state(job_id) == "leased"


def test_m3_a_cancelled_job_does_not_succeed_any_more() -> None:
    made = world()
    (job_id,) = made.submit(item())
    run_id = made.start(job_id)
    made.cancel(job_id)
    done = RunSucceeded(at_ms=START_MS, job_id=job_id, run_id=run_id)
    reports = Reports(made.policy, lambda _job, _avoid: True)
    accepted = reports.accept(made.ledger, "east", (JobSetEvents("qa", "s", (done,)),), START_MS)
    assert (accepted.sequences, len(accepted.dropped)) == ((), 1)
    assert made.kinds_of(job_id)[-2:] == ["JobCancelRequested", "JobCancelled"]


def test_m4_cancelling_a_leased_job_ends_its_run() -> None:
    made = world()
    (job_id,) = made.submit(item())
    run_id = made.lease(job_id)
    made.cancel(job_id)
    assert (made.state(job_id), made.ledger.run_state(run_id)) == ("cancelled", RunState.CANCELLED)


def test_m5_a_solid_job_is_not_preempted() -> None:
    made = world()
    (job_id,) = made.submit(item())
    made.start(job_id)
    assert preempt(made, job_id) == ["JobPreemptRequested"]
    assert made.state(job_id) == "running"


def test_m6_a_gang_is_preempted_as_one() -> None:
    made = world()
    members = made.submit(*[gang_item("g", 3, PREEMPTIBLE) for _ in range(3)])
    for job_id in members:
        made.start(job_id)
    assert preempt(made, members[1]) == ["JobPreemptRequested", *["RunPreempted", "JobPreempted"] * 3]
    assert [made.state(job_id) for job_id in members] == ["preempted"] * 3


def test_m7_what_a_deposed_leader_decided_changes_nothing() -> None:
    driver = Driver()
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item())
    order = driver.step().round
    assert order is not None
    outcome = driver.leader.finish(
        driver.world.ledger, order, schedule(order.snapshot, order.seed), driver.world.now_ms
    )
    successor = Leader(driver.world.policy, Cadence(round_delay_ms=0), "other", START_MS)
    claim = successor.step(driver.world.ledger, driver.heartbeats, driver.world.now_ms)
    driver.world.store(*claim.sequences, epoch=claim.epoch)
    driver.store(outcome.sequences, 1)
    assert driver.world.state(job_id) == "queued"
    again = successor.step(driver.world.ledger, driver.heartbeats, driver.world.now_ms)
    assert again.round is not None


def test_m8_a_silent_executor_gets_nothing_and_then_loses_its_runs() -> None:
    driver = Driver()
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item())
    driver.run()
    driver.world.now_ms += 15 * 60_000
    (waiting,) = driver.world.submit(item())
    assert driver.run() == []
    assert [driver.world.state(each) for each in (job_id, waiting)] == ["leased", "queued"]
    driver.world.now_ms += 46 * 60_000
    assert driver.run() == ["RunLeaseExpired", "JobFailed"]
    (failed,) = driver.events(JobFailed)
    assert isinstance(failed, JobFailed)
    assert failed.job_id == job_id


def test_m9_a_gang_that_lost_a_member_meanwhile_does_not_start() -> None:
    driver = Driver()
    driver.nodes("n1")
    members = driver.world.submit(*[gang_item("g", 2) for _ in range(2)])
    order = driver.step().round
    assert order is not None
    decisions = schedule(order.snapshot, order.seed)
    driver.world.store(JobSetEvents("qa", "s", (JobCancelled(at_ms=START_MS, job_id=members[0]),)))
    outcome = driver.leader.finish(driver.world.ledger, order, decisions, driver.world.now_ms)
    assert (outcome.sequences, outcome.dropped) == ((), 2)
