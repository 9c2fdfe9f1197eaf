"""The leader: what it decides, when, and never on what is no longer so (F044, F086)."""

import pytest

from armada.control.cycle import Leader
from armada.control.explaining import Explaining
from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    ExecutorSettingsChanged,
    JobFailed,
    JobPreempted,
    JobSetEvents,
    JobSucceeded,
    RunLeased,
    RunPreempted,
    RunsReleased,
    RunStarted,
    RunSucceeded,
)
from armada.model.fleet import ExecutorSettings
from armada.model.policy import PoolPolicy, RateLimit, SchedulingPolicy
from armada.scheduling.round import schedule
from tests.unit.control.driving import PREEMPTIBLE, Driver
from tests.unit.control.world import START_MS, World, fact, gang_item, item, kinds, node, pod


def test_a_leader_claims_the_next_epoch_first() -> None:
    world = World()
    leader = Leader(world.policy, Cadence(), "me", START_MS)
    step = leader.step(world.ledger, {}, START_MS)
    assert (kinds(step.sequences), step.epoch) == (["LeadershipClaimed"], 1)
    world.store(*step.sequences, epoch=1)
    assert leader.leads(world.ledger)
    assert leader.step(world.ledger, {}, START_MS).sequences == ()


def test_a_deposed_leader_does_nothing_more() -> None:
    driver = Driver()
    driver.leader.deposed()
    driver.nodes("n1")
    driver.world.submit(item())
    step = driver.step()
    assert (step.sequences, step.round, step.wake_at_ms) == ((), None, None)
    assert not driver.leader.leads(driver.world.ledger)


# -- placing -----------------------------------------------------------------------------------------------------------


def test_a_job_that_fits_is_leased() -> None:
    driver = Driver()
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item())
    assert driver.run() == ["RunLeased"]
    (leased,) = driver.events(RunLeased)
    assert isinstance(leased, RunLeased)
    assert (leased.job_id, leased.executor_id, leased.node_name, leased.attempt) == (job_id, "east", "n1", 0)
    assert driver.world.state(job_id) == "leased"


def test_changes_gather_before_a_round() -> None:
    driver = Driver(cadence=Cadence(round_delay_ms=5, fleet_settle_ms=0))
    driver.nodes("n1")
    driver.world.now_ms += 1_000
    driver.run()
    driver.world.submit(item())
    step = driver.step()
    assert (step.round, step.wake_at_ms) == (None, driver.world.now_ms + 5)
    driver.world.now_ms += 5
    assert driver.run() == ["RunLeased"]


def test_an_idle_leader_sleeps_until_an_executor_may_be_lost() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.run()
    wake_at_ms = driver.step().wake_at_ms
    assert wake_at_ms is not None
    assert wake_at_ms - driver.world.now_ms > 500_000


def test_while_jobs_wait_a_round_is_run_now_and_then() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="1")
    driver.world.submit(item(), item())
    driver.run()
    step = driver.step()
    assert step.wake_at_ms == driver.world.now_ms + 10_000
    driver.world.now_ms += 10_000
    assert driver.step().round is not None


def test_after_a_long_round_there_is_a_rest() -> None:
    driver = Driver(cadence=Cadence(round_delay_ms=5, rest_share=0.5, fleet_settle_ms=0))
    driver.nodes("n1")
    driver.world.now_ms += 1_000
    driver.run()
    driver.world.submit(item())
    driver.step()
    driver.world.now_ms += 5
    order = driver.step().round
    assert order is not None
    driver.world.now_ms += 400
    driver.store(
        driver.leader.finish(driver.world.ledger, order, schedule(order.snapshot), driver.world.now_ms).sequences
    )
    driver.world.submit(item())
    step = driver.step()
    assert (step.round, step.wake_at_ms) == (None, driver.world.now_ms + 200)


def test_where_scheduling_is_switched_off_the_leader_sleeps_and_runs_no_round() -> None:
    driver = Driver(policy=SchedulingPolicy(disabled=True))
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item())
    assert driver.run() == []
    step = driver.step()
    assert step.round is None
    assert step.wake_at_ms is not None
    assert step.wake_at_ms - driver.world.now_ms > 500_000
    assert driver.world.state(job_id) == "queued"


def test_room_is_given_once() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="1")
    first, second = driver.world.submit(item(), item())
    driver.run()
    run = driver.world.ledger.job(first)
    assert run is not None
    driver.world.store(
        JobSetEvents("qa", "s", (RunSucceeded(at_ms=START_MS, job_id=first, run_id=run.run_id),)),
    )
    assert driver.run() == []
    assert driver.world.state(second) == "queued"


def test_released_room_is_given_again() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="1")
    first, second = driver.world.submit(item(), item())
    driver.run()
    driver.world.cancel(first)
    assert driver.run() == []
    (run_id,) = driver.world.ledger.runs_to_end("east")
    driver.world.store(fact(RunsReleased(at_ms=START_MS, run_ids=(run_id,))))
    assert driver.run() == ["RunLeased"]
    assert driver.world.state(second) == "leased"


def test_a_job_cancelled_while_the_round_ran_takes_its_gang_along() -> None:
    driver = Driver()
    driver.nodes("n1")
    members = driver.world.submit(*[gang_item("g", 3) for _ in range(3)])
    (single,) = driver.world.submit(item())
    order = driver.step().round
    assert order is not None
    decisions = schedule(order.snapshot, order.seed)
    driver.world.cancel(members[1])
    outcome = driver.leader.finish(driver.world.ledger, order, decisions, driver.world.now_ms)
    driver.store(outcome.sequences, 1)
    assert [driver.world.state(job_id) for job_id in members] == ["queued", "gone", "queued"]
    assert driver.world.state(single) == "leased"
    assert outcome.dropped == 3


def test_a_preemption_for_a_job_that_is_gone_falls_away() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="4")
    (victim,) = driver.world.submit(item(PREEMPTIBLE))
    driver.run()
    (urgent,) = driver.world.submit(item(pod(cpu="4", priorityClassName="armada-urgent")))
    order = driver.step().round
    assert order is not None
    decisions = schedule(order.snapshot, order.seed)
    driver.world.cancel(urgent)
    outcome = driver.leader.finish(driver.world.ledger, order, decisions, driver.world.now_ms)
    assert outcome.sequences == ()
    assert driver.world.state(victim) == "leased"


def test_a_preemption_names_its_kind_and_the_job_it_made_room_for() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="4")
    (victim,) = driver.world.submit(item(PREEMPTIBLE))
    driver.run()
    (urgent,) = driver.world.submit(item(pod(cpu="4", priorityClassName="armada-urgent")))
    assert sorted(driver.run()) == ["JobPreempted", "RunLeased", "RunPreempted"]
    (preempted,) = driver.events(RunPreempted)
    (failed,) = driver.events(JobPreempted)
    assert isinstance(preempted, RunPreempted)
    assert isinstance(failed, JobPreempted)
    assert (preempted.job_id, preempted.kind, preempted.preempting_job_id) == (victim, "urgency", urgent)
    assert preempted.reason == failed.failure.reason
    assert f"by urgency - preempting job {urgent} of queue qa" in preempted.reason
    assert driver.world.state(urgent) == "leased"


def test_a_queue_over_its_share_makes_room_for_another() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="8")
    victims = driver.world.submit(item(PREEMPTIBLE), item(PREEMPTIBLE))
    driver.run()
    driver.world.queue("qb")
    (winner,) = driver.world.submit(item(PREEMPTIBLE), queue="qb")
    driver.run()
    (preempted,) = driver.events(RunPreempted)
    assert isinstance(preempted, RunPreempted)
    assert (preempted.kind, preempted.preempting_job_id) == ("fairshare", winner)
    assert preempted.job_id in victims
    assert "by fair share" in preempted.reason


def test_a_gang_starts_whole_or_not_at_all() -> None:
    driver = Driver()
    driver.nodes("n1")
    first = driver.world.submit(gang_item("g", 3), gang_item("g", 3))
    assert driver.run() == []
    (last,) = driver.world.submit(gang_item("g", 3))
    assert driver.run() == ["RunLeased"] * 3
    assert {driver.world.state(job_id) for job_id in (*first, last)} == {"leased"}


def test_a_uniform_gang_is_told_its_label() -> None:
    driver = Driver()
    labelled = [node(name, labels={"kubernetes.io/hostname": name, "rack": f"r{name}"}) for name in ("n1", "n2")]
    driver.world.report_nodes(*labelled)
    driver.heard("east")
    driver.world.submit(*[gang_item("g", 2, gangNodeUniformityLabel="rack") for _ in range(2)])
    driver.run()
    overlays = {
        tuple(sorted(event.overlay.items())) for event in driver.events(RunLeased) if isinstance(event, RunLeased)
    }
    assert len(overlays) == 1
    assert dict(next(iter(overlays)))["ARMADA_GANG_NODE_UNIFORMITY_LABEL_NAME"] == "rack"


def test_rates_hold_leases_back_for_a_while() -> None:
    limit = RateLimit(per_second=1.0, burst=2)
    driver = Driver(SchedulingPolicy(rate=limit))
    driver.nodes("n1")
    driver.world.submit(*[item() for _ in range(4)])
    assert driver.run() == ["RunLeased"] * 2
    wake_at_ms = driver.step().wake_at_ms
    assert wake_at_ms is not None
    assert wake_at_ms <= driver.world.now_ms + 1_000
    driver.world.now_ms += 1_000
    driver.heard("east")
    assert driver.run() == ["RunLeased"]


def test_a_queue_whose_jobs_end_too_soon_waits_behind_one_whose_jobs_do_not() -> None:
    policy = SchedulingPolicy(pools=(PoolPolicy(name="default", short_job_penalty_ms=60_000),))
    driver = Driver(policy)
    driver.nodes("n1", cpu="1")
    driver.world.queue("qb")
    (short,) = driver.world.submit(item())
    driver.run()
    run_id = run_of(driver, short)
    for ended in (
        RunStarted(at_ms=driver.world.now_ms, job_id=short, run_id=run_id),
        RunSucceeded(at_ms=driver.world.now_ms, job_id=short, run_id=run_id),
        JobSucceeded(at_ms=driver.world.now_ms, job_id=short),
    ):
        driver.world.store(JobSetEvents("qa", "s", (ended,)))
    (of_a,) = driver.world.submit(item())
    (of_b,) = driver.world.submit(item(), queue="qb")
    driver.world.store(fact(RunsReleased(at_ms=driver.world.now_ms, run_ids=(run_id,))))
    driver.run()
    assert (driver.world.state(of_a), driver.world.state(of_b)) == ("queued", "leased")


def run_of(driver: Driver, job_id: str) -> str:
    job = driver.world.ledger.job(job_id)
    assert job is not None
    return job.run_id


@pytest.mark.parametrize("jump_ms", [-7_200_000, -3_000, 3_000, 7_200_000])
def test_a_clock_that_jumps_stops_no_rounds(jump_ms: int) -> None:
    driver = Driver(SchedulingPolicy(rate=RateLimit(per_second=1.0, burst=2)), Cadence(fleet_settle_ms=0))
    driver.nodes("n1")
    driver.world.submit(*[item() for _ in range(4)])
    driver.run()
    driver.world.now_ms += 1_000
    assert driver.run() == ["RunLeased"] * 2
    driver.world.submit(item())
    driver.notice()
    driver.world.now_ms += jump_ms
    driver.leader.forgive(driver.world.now_ms)
    driver.heard("east")
    driver.run()
    driver.world.now_ms += 1_500
    assert driver.run() == ["RunLeased"]


# -- executors ---------------------------------------------------------------------------------------------------------


def test_silent_and_cordoned_executors_get_nothing() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.now_ms += 600_001
    driver.world.submit(item())
    assert driver.run() == []
    driver.heard("east")
    cordon = ExecutorSettings(executor_id="east", cordoned=True)
    driver.world.store(fact(ExecutorSettingsChanged(at_ms=driver.world.now_ms, settings=cordon)))
    assert driver.run() == []
    driver.world.store(
        fact(ExecutorSettingsChanged(at_ms=driver.world.now_ms, settings=ExecutorSettings(executor_id="east")))
    )
    assert driver.run() == ["RunLeased"]


def test_an_executor_that_is_heard_again_is_used_at_once() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.now_ms += 600_001
    (job_id,) = driver.world.submit(item())
    driver.run()
    assert driver.world.state(job_id) == "queued"
    driver.world.now_ms += 1
    driver.heard("east")
    assert driver.run() == ["RunLeased"]


def test_runs_of_a_lost_executor_are_given_up_once() -> None:
    driver = Driver()
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item())
    driver.run()
    driver.world.now_ms += 3_599_999
    assert driver.run() == []
    driver.world.now_ms += 1
    assert driver.run() == ["RunLeaseExpired", "JobFailed"]
    assert driver.run() == []
    (failed,) = driver.events(JobFailed)
    assert isinstance(failed, JobFailed)
    assert (failed.failure.kind, failed.failure.subcategory) == ("lease_expired", "lease-expired")
    assert driver.world.state(job_id) == "failed"


def test_a_new_leader_gives_executors_time_to_call() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.submit(item())
    driver.run()
    driver.world.now_ms += 10_000_000
    fresh = Leader(driver.world.policy, Cadence(), "other", driver.world.now_ms)
    claim = fresh.step(driver.world.ledger, {}, driver.world.now_ms)
    driver.store(claim.sequences, claim.epoch)
    assert fresh.step(driver.world.ledger, {}, driver.world.now_ms).sequences == ()


# -- admission ---------------------------------------------------------------------------------------------------------


def test_facts_that_could_not_be_appended_are_decided_again() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.submit(item(pod(cpu="64")))
    assert kinds(driver.step().sequences) == ["JobRejected"]
    assert driver.step().sequences == ()
    driver.leader.interrupted(driver.world.ledger, driver.world.now_ms)
    assert kinds(driver.step().sequences) == ["JobRejected"]


# -- words -------------------------------------------------------------------------------------------------------------


def test_a_waiting_job_hears_what_the_nodes_have_against_it() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="1")
    first, second = driver.world.submit(item(), item())
    driver.run()
    explaining, ledger = Explaining(driver.leader), driver.world.ledger
    assert "Pool default: no node has room for the job" in explaining.job(ledger, second)
    assert explaining.job(ledger, first).startswith(f"Job {first} is leased on node n1 of executor east.\n")
    assert "not known, or has ended" in explaining.job(ledger, "x" * 26)
    assert "queue qa: share 1.000" in explaining.pools(ledger)
    assert "holds 1 cpu" in explaining.queue(ledger, "qa") or "cpu" in explaining.queue(ledger, "qa")
    assert "no queue 'ghost'" in explaining.queue(ledger, "ghost")


def test_the_largest_weight_makes_finite_shares_and_no_loop() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="4")
    driver.world.queue("qb", priority_factor=1e300)
    driver.world.queue("qc", priority_factor=1e300)
    for queue in ("qb", "qc"):
        driver.world.submit(
            *[item(pod(cpu="1", priorityClassName="armada-preemptible")) for _ in range(4)], queue=queue
        )
    driver.run()
    for _ in range(3):
        driver.world.now_ms += 10_000
        driver.heard("east")
        assert "RunPreempted" not in driver.run()
    for figures in driver.leader.reports["default"].decisions.queues:
        assert 0.0 <= figures.actual_share <= 1.0
