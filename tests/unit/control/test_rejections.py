"""What the leader rejects for good, and what it lets wait (F007, F012, F121)."""

from armada.control.cycle import Leader
from armada.control.explaining import Explaining
from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    JobRejected,
    QueueCordoned,
)
from armada.model.fleet import ClassLimit
from tests.unit.control.driving import Driver
from tests.unit.control.world import START_MS, fact, gang_item, item, pod


def reasons(driver: Driver) -> list[str]:
    return [event.reason for event in driver.events(JobRejected) if isinstance(event, JobRejected)]


def test_what_can_never_run_is_rejected_with_the_reason() -> None:
    driver = Driver()
    driver.nodes("n1")
    never, possible = driver.world.submit(item(pod(nodeSelector={"kind": "none"})), item())
    assert driver.run() == ["JobRejected", "RunLeased"]
    assert reasons(driver) == ["pool default: 1 of 1 nodes: the node lacks the label kind"]
    assert driver.world.state(never) == "gone"
    assert driver.world.state(possible) == "leased"


def test_jobs_wait_while_no_cluster_has_reported() -> None:
    driver = Driver()
    early, never = driver.world.submit(item(), item(pod(nodeSelector={"kind": "none"})))
    assert driver.run() == []
    explaining = Explaining(driver.leader)
    assert "no capacity of pool default is known yet" in explaining.job(driver.world.ledger, early)
    driver.world.report_nodes()
    driver.heard("east")
    assert driver.run() == []
    driver.nodes("n1")
    assert driver.run() == ["JobRejected", "RunLeased"]
    assert (driver.world.state(early), driver.world.state(never)) == ("leased", "gone")


def test_nothing_is_rejected_while_the_fleet_settles() -> None:
    driver = Driver(cadence=Cadence(round_delay_ms=0, fleet_settle_ms=2_000))
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item(pod(cpu="16")))
    assert driver.run() == []
    assert driver.step().wake_at_ms == START_MS + 2_000
    driver.world.now_ms += 1_500
    driver.nodes("big", cpu="64", executor_id="west")
    assert driver.run() == ["RunLeased"]
    assert driver.world.state(job_id) == "leased"


def test_a_new_leader_rejects_nothing_before_it_has_heard_everybody() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.run()
    driver.world.now_ms += 1_000
    fresh = Driver.__new__(Driver)
    fresh.world, fresh.heartbeats, fresh.seen = driver.world, {}, len(driver.world.entries)
    fresh.leader = Leader(driver.world.policy, Cadence(round_delay_ms=0, fleet_settle_ms=0), "new", driver.world.now_ms)
    (job_id,) = driver.world.submit(item(pod(cpu="16")))
    assert fresh.run() == ["LeadershipClaimed"]
    assert driver.world.state(job_id) == "queued"
    driver.world.now_ms += 5
    fresh.heard("east")
    assert fresh.run() == ["JobRejected"]


def test_jobs_of_a_cordoned_queue_are_not_looked_at() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.store(fact(QueueCordoned(at_ms=START_MS, name="qa", cordoned=True)))
    good, bad = driver.world.submit(item(), item(pod(cpu="64")))
    assert driver.run() == []
    assert "cordoned" in Explaining(driver.leader).job(driver.world.ledger, good)
    driver.world.store(fact(QueueCordoned(at_ms=START_MS, name="qa", cordoned=False)))
    assert driver.run() == ["JobRejected", "RunLeased"]
    assert driver.world.state(bad) == "gone"


def test_more_than_a_queue_may_hold_is_rejected() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.queue("small", limits_by_class={"armada-default": ClassLimit({"cpu": 0.25})})
    driver.world.submit(item(pod(cpu="4")), queue="small")
    assert driver.run() == ["JobRejected"]
    assert "the queue may hold 2" in reasons(driver)[0]


def test_a_gang_that_can_not_fit_is_rejected_whole() -> None:
    driver = Driver()
    driver.nodes("n1", "n2")
    members = driver.world.submit(*[gang_item("g", 4, pod(cpu="6")) for _ in range(4)])
    assert driver.run() == ["JobRejected"] * 4
    assert {driver.world.state(job_id) for job_id in members} == {"gone"}


def test_an_incomplete_gang_waits_and_says_for_what() -> None:
    driver = Driver()
    driver.nodes("n1")
    members = driver.world.submit(*[gang_item("g", 4) for _ in range(3)])
    assert driver.run() == []
    text = Explaining(driver.leader).job(driver.world.ledger, members[0])
    assert "3 of 4 members are here" in text


def test_rejections_reach_jobs_that_were_there_before_the_leader() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.submit(*[item(pod(cpu="64")) for _ in range(3)])
    fresh = Driver.__new__(Driver)
    fresh.world, fresh.heartbeats, fresh.seen = driver.world, {"east": START_MS}, len(driver.world.entries)
    fresh.leader = Leader(driver.world.policy, Cadence(round_delay_ms=0, fleet_settle_ms=0), "new", START_MS)
    assert fresh.run() == ["LeadershipClaimed"] + ["JobRejected"] * 3
