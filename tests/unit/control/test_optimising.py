"""In which rounds the fairness optimiser takes part, and what its preemptions say."""

from armada.control.rounds.cadence import Cadence
from armada.model.events import RunPreempted
from armada.model.policy import OptimiserPolicy, PoolPolicy, SchedulingPolicy
from tests.unit.control.driving import Driver
from tests.unit.control.world import item, node, pod

INTERVAL_MS = 60_000


def driver_with_optimiser(interval_ms: int) -> Driver:
    optimiser = OptimiserPolicy(interval_ms=interval_ms, timeout_ms=5_000, max_jobs_per_round=1)
    policy = SchedulingPolicy(pools=(PoolPolicy(name="default", protected_fraction=9.0, optimiser=optimiser),))
    driver = Driver(policy, Cadence(round_delay_ms=0, fleet_settle_ms=0, rest_share=0.0))
    driver.world.queue("rich")
    driver.world.report_nodes(*[node(f"n{number}", cpu="4") for number in range(2)])
    driver.heard("east")
    small = item(pod(cpu="1", priorityClassName="armada-preemptible"))
    driver.world.submit(*[small] * 8, queue="rich")
    assert driver.run() == ["RunLeased"] * 8
    for number in range(2):
        driver.world.submit(item(pod(cpu="2", priorityClassName="armada-preemptible")))
        driver.world.now_ms += 1 + number
    return driver


def test_a_preempted_job_is_told_which_job_it_made_room_for() -> None:
    driver = driver_with_optimiser(0)
    facts = driver.run()
    assert facts.count("RunLeased") == facts.count("JobPreempted") / 2 == 1
    for event in driver.events(RunPreempted):
        assert isinstance(event, RunPreempted)
        assert event.kind == "optimiser"
        job = driver.world.ledger.job(event.preempting_job_id)
        assert job is not None
        assert job.queue == "qa"
        assert event.reason == (
            f"Preempted by the scheduler by the fairness optimiser - preempting job {job.job_id} of queue qa"
        )


def test_it_takes_part_again_when_its_interval_has_gone_by() -> None:
    driver = driver_with_optimiser(INTERVAL_MS)
    # It took part in the first round, which had room for everybody.
    assert driver.run() == []
    driver.world.now_ms += INTERVAL_MS
    assert "JobPreempted" in driver.run()
    driver.world.now_ms += INTERVAL_MS - 1
    assert "JobPreempted" not in driver.run()
