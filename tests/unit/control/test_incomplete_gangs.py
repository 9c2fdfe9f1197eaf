"""Gangs of which members never came: they wait with a reason, and by configuration not for ever."""

from armada.control.cycle import Leader
from armada.control.explaining import Explaining
from armada.control.rounds.cadence import Cadence
from armada.model.events import JobFailed
from armada.model.policy import SchedulingPolicy
from tests.unit.control.driving import Driver
from tests.unit.control.world import gang_item, item, pod

LIMIT_MS = 100_000


def waiting(limit_ms: int = LIMIT_MS) -> tuple[Driver, list[str]]:
    """Two of three members of a gang wait, and a job of its own."""
    driver = Driver(policy=SchedulingPolicy(incomplete_gang_ms=limit_ms))
    driver.nodes("n1")
    return driver, list(driver.world.submit(gang_item("g", 3), gang_item("g", 3), item()))


def test_by_default_they_wait_for_ever_and_say_why() -> None:
    driver, ids = waiting(0)
    driver.run()
    driver.world.now_ms += 10**9
    driver.heard("east")
    assert "JobFailed" not in driver.run()
    told = Explaining(driver.leader).job(driver.world.ledger, ids[0])
    assert "It waits for the rest of its gang 'g': 2 of 3 members are here." in told
    assert "not all members of the gang have been submitted" in told


def test_after_the_limit_all_its_members_fail_with_the_reason() -> None:
    driver, ids = waiting()
    assert driver.run() == ["RunLeased"]
    driver.world.now_ms += LIMIT_MS - 1
    driver.heard("east")
    assert driver.run() == []
    wake_at_ms = driver.step().wake_at_ms
    assert wake_at_ms == driver.world.now_ms + 1
    driver.world.now_ms += 1
    assert driver.run() == ["JobFailed", "JobFailed"]
    failed = [event for event in driver.events(JobFailed) if isinstance(event, JobFailed)]
    assert sorted(event.job_id for event in failed) == sorted(ids[:2])
    assert {(event.failure.category, event.failure.subcategory) for event in failed} == {
        ("internal", "gang-incomplete")
    }
    assert "2 of 3 members" in failed[0].failure.reason
    assert driver.run() == []


def test_a_member_that_comes_gives_the_others_time() -> None:
    driver, _ = waiting()
    driver.run()
    driver.world.now_ms += LIMIT_MS - 1
    driver.heard("east")
    driver.world.submit(gang_item("h", 2))
    driver.run()
    driver.world.now_ms += 1
    assert driver.run() == ["JobFailed", "JobFailed"]
    driver.world.submit(gang_item("h", 2))
    assert driver.run() == ["RunLeased", "RunLeased"]
    driver.world.now_ms += LIMIT_MS
    driver.heard("east")
    assert "JobFailed" not in driver.run()


def test_a_new_leader_counts_from_when_they_were_submitted() -> None:
    driver, ids = waiting()
    driver.run()
    driver.world.now_ms += LIMIT_MS
    driver.heard("east")
    driver.leader = Leader(
        driver.world.policy, Cadence(round_delay_ms=0, fleet_settle_ms=0), "other", driver.world.now_ms
    )
    assert driver.run() == ["LeadershipClaimed", "JobFailed", "JobFailed"]
    assert [driver.world.state(job_id) for job_id in ids[:2]] == ["gone", "gone"]


def test_a_gang_that_lost_a_waiting_member_is_ended_too() -> None:
    driver = Driver(policy=SchedulingPolicy(incomplete_gang_ms=LIMIT_MS))
    driver.nodes("n1", cpu="3")
    driver.world.submit(item(pod(cpu="2")))
    driver.run()
    ids = driver.world.submit(gang_item("g", 3), gang_item("g", 3), gang_item("g", 3))
    driver.run()
    driver.world.cancel(ids[0])
    driver.run()
    driver.world.now_ms += LIMIT_MS + 60_000
    driver.heard("east")
    assert driver.run()[:2] == ["JobFailed", "JobFailed"]
