"""Jobs on nodes of another pool, through leader and ledger (F115): where they run, who displaces them, what is said.

Everywhere: pool `gpu` of one tainted node g1, and pool `cpu` of one node c1, whose jobs may use g1 too; 4 cpu each.
"""

from typing import Any

from armada.control.explaining import Explaining
from armada.control.leasing import Roster
from armada.control.rounds.cadence import Cadence
from armada.model.events import RunLeased, RunPreempted, RunsReleased
from armada.model.fleet import PriorityClass, Taint
from armada.model.jobs import KubernetesObject, Toleration
from armada.model.leases import LeaseRequest, NodeReport
from armada.model.policy import FloatingResource, PoolPolicy, SchedulingPolicy
from armada.model.submission import SubmissionPolicy
from tests.unit.control.driving import Driver
from tests.unit.control.world import fact, gang_item, item, node, pod, resources

CLASSES = (
    PriorityClass(name="low", priority=100, preemptible=True),
    PriorityClass(name="mid", priority=200, preemptible=True),
    PriorityClass(name="high", priority=300, preemptible=True),
)
TAINT = Taint("gpu", "true", "NoSchedule")
TOLERATION = Toleration("gpu", "Equal", "true", "NoSchedule")
NODES = (node("c1", cpu="4", pool="cpu"), node("g1", cpu="4", pool="gpu", taints=(TAINT,)))


SUBMISSION = SubmissionPolicy(allowed_priority_class_names=("low", "mid", "high"), default_priority_class_name="mid")


def two_pools(*more_pools: PoolPolicy, gpu: PoolPolicy | None = None, **settings: Any) -> Driver:
    """The two pools, then `more_pools`; `settings` are the policy's. Rounds are run also where no job waits."""
    cpu = PoolPolicy(name="cpu", away_pools=("gpu",), default_tolerations=(TOLERATION,))
    policy = SchedulingPolicy(
        pools=(gpu or PoolPolicy(name="gpu"), cpu, *more_pools),
        priority_classes=CLASSES,
        default_priority_class="mid",
        **settings,
    )
    driver = Driver(policy, Cadence(round_delay_ms=0, fleet_settle_ms=0, rounds_without_jobs=True), SUBMISSION)
    driver.world.report_nodes(*NODES)
    driver.heard("east")
    for name in ("qb", "qc"):
        driver.world.queue(name)
    return driver


def plain(priority_class: str = "mid", cpu: str = "1", **more: Any) -> KubernetesObject:
    """A pod that only pool `cpu` takes."""
    return pod(cpu=cpu, priorityClassName=priority_class, **more)


def for_gpu(priority_class: str = "mid", cpu: str = "1") -> KubernetesObject:
    """A pod that only the node g1 takes; pool `gpu` comes first."""
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    return plain(priority_class, cpu, tolerations=tolerations, nodeSelector={"kubernetes.io/hostname": "g1"})


def leased(driver: Driver) -> dict[str, RunLeased]:
    return {event.job_id: event for event in driver.events(RunLeased) if isinstance(event, RunLeased)}


def preempted(driver: Driver) -> dict[str, RunPreempted]:
    return {event.job_id: event for event in driver.events(RunPreempted) if isinstance(event, RunPreempted)}


def on(driver: Driver, node_name: str) -> set[str]:
    """Jobs that were ever leased to a node."""
    return {job_id for job_id, lease in leased(driver).items() if lease.node_name == node_name}


def cycles(driver: Driver, count: int = 1) -> None:
    """Let time pass; ended runs are gone from their nodes before each cycle."""
    for _ in range(count):
        driver.world.now_ms += 10_000
        driver.heard("east")
        ended = tuple(driver.world.ledger.runs_to_end("east"))
        if ended:
            driver.world.store(fact(RunsReleased(at_ms=driver.world.now_ms, run_ids=ended)))
        driver.run()


# -- landing -----------------------------------------------------------------------------------------------------------


def test_jobs_of_a_full_pool_land_on_nodes_that_it_may_borrow() -> None:
    driver = two_pools()
    jobs = driver.world.submit(*[item(plain()) for _ in range(6)])
    driver.run()
    assert (len(on(driver, "c1")), len(on(driver, "g1"))) == (4, 2)
    found = leased(driver)
    assert found.keys() == set(jobs)
    assert {lease.pool for lease in found.values()} == {"cpu"}
    assert {lease.tolerations for lease in found.values()} == {(TOLERATION,)}


def test_a_pool_that_does_not_borrow_keeps_to_its_nodes() -> None:
    """Its jobs are not the borrower's either: a pool leaves jobs alone that one of its away pools can take."""
    driver = two_pools()
    driver.world.submit(*[item(plain(tolerations=[{"key": "gpu", "operator": "Exists"}])) for _ in range(6)])
    driver.run()
    assert sorted((lease.pool, lease.node_name) for lease in leased(driver).values()) == [("gpu", "g1")] * 4


def test_the_executor_of_a_borrowed_node_is_told_to_start_the_run() -> None:
    driver = two_pools()
    driver.world.submit(*[item(plain()) for _ in range(5)])
    driver.run()
    ledger, roster = driver.world.ledger, Roster()
    reports = tuple(NodeReport(node=each) for each in NODES)
    request = LeaseRequest(executor_id="east", pool="default", nodes=reports, max_leases=10)
    assert roster.receive(ledger, request, driver.world.now_ms) == ()
    runs = roster.answer(ledger, request).runs
    assert sorted(run.node_name for run in runs) == ["c1"] * 4 + ["g1"]
    assert {run.pool for run in runs} == {"cpu"}


# -- making way --------------------------------------------------------------------------------------------------------


def test_a_pools_own_jobs_displace_guests_of_any_class_and_the_reason_says_so() -> None:
    driver = two_pools()
    guests = driver.world.submit(*[item(plain("high")) for _ in range(8)])
    driver.run()
    assert on(driver, "g1") < set(guests)
    own = driver.world.submit(*[item(for_gpu("low")) for _ in range(3)], queue="qb")
    driver.run()
    lost = preempted(driver)
    assert len(lost) == 3
    assert lost.keys() < on(driver, "g1") & set(guests)
    assert {leased(driver)[job_id].pool for job_id in own} == {"gpu"}
    for each in lost.values():
        assert each.preempting_job_id in own
        assert each.kind == "urgency"
        assert "by urgency on a node of pool gpu, whose own jobs go first - preempting job" in each.reason


def test_guests_may_also_be_held_as_equals() -> None:
    driver = two_pools(gpu=PoolPolicy(name="gpu", cross_pool_preempted_first=False))
    driver.world.submit(*[item(plain()) for _ in range(8)])
    driver.run()
    (low,) = driver.world.submit(item(for_gpu("low")), queue="qb")
    driver.run()
    assert preempted(driver) == {}
    (high,) = driver.world.submit(item(for_gpu("high")), queue="qb")
    driver.run()
    assert len(preempted(driver)) == 1
    assert (driver.world.state(low), driver.world.state(high)) == ("queued", "leased")


def test_borrowers_go_first_others_who_would_borrow_take_nothing_from_them_and_nothing_moves_after() -> None:
    """F115: the second borrower is of a third pool, because only that one's rounds give out the licence."""
    third = PoolPolicy(name="other", away_pools=("gpu",), default_tolerations=(TOLERATION,))
    licences = FloatingResource(name="licence", resolution="1", quantities={"other": "10"})
    driver = two_pools(third, floating_resources=(licences,))
    driver.world.submit(*[item(plain()) for _ in range(8)])
    driver.run()
    guests, at_home = on(driver, "g1"), on(driver, "c1")
    assert (len(guests), len(at_home)) == (4, 4)
    own = driver.world.submit(*[item(for_gpu()) for _ in range(2)], queue="qb")
    driver.run()
    assert len(preempted(driver)) == 2
    assert preempted(driver).keys() < guests
    wanting = plain("high")
    wanting["containers"][0]["resources"] = resources(cpu="1", memory="64Mi", licence="1")
    late = driver.world.submit(*[item(wanting) for _ in range(4)], queue="qc")
    cycles(driver, 20)
    assert len(preempted(driver)) == 2
    assert {driver.world.state(job_id) for job_id in (*own, *at_home)} == {"leased"}
    assert {driver.world.state(job_id) for job_id in late} == {"queued"}


def test_room_of_a_guest_that_is_still_ending_is_not_given_to_a_second_job() -> None:
    driver = two_pools()
    driver.world.submit(*[item(plain()) for _ in range(8)])
    driver.run()
    driver.world.submit(item(for_gpu()), queue="qb")
    driver.run()
    assert len(preempted(driver)) == 1
    (second,) = driver.world.submit(item(for_gpu()), queue="qb")
    driver.run()
    assert (driver.world.state(second), len(preempted(driver))) == ("queued", 1)
    cycles(driver)
    assert (driver.world.state(second), len(preempted(driver))) == ("leased", 2)


def test_a_gang_on_nodes_of_two_pools_goes_whole() -> None:
    driver = two_pools()
    members = driver.world.submit(*[gang_item("g", 3, plain(cpu="2")) for _ in range(3)])
    driver.run()
    assert {job_id: driver.world.state(job_id) for job_id in members} == dict.fromkeys(members, "leased")
    (guest,) = on(driver, "g1")
    (own,) = driver.world.submit(item(for_gpu(cpu="3")), queue="qb")
    driver.run()
    lost = preempted(driver)
    assert lost.keys() == set(members)
    assert {lost[job_id].kind for job_id in members} == {"urgency", "gang"}
    assert lost[guest].kind == "urgency"
    assert {each.preempting_job_id for each in lost.values()} == {own}


def test_the_report_of_a_queue_tells_of_its_guests_apart() -> None:
    driver = two_pools()
    driver.world.submit(*[item(plain()) for _ in range(6)])
    driver.run()
    cycles(driver)
    text = Explaining(driver.leader).queue(driver.world.ledger, "qa")
    assert "Pool cpu: queue qa: share" in text
    assert "Pool gpu: queue qa-away: share 0.500 of a fair share" in text


def test_guests_of_a_queue_and_a_queue_of_that_name_are_two_lines() -> None:
    driver = two_pools()
    driver.world.queue("qa-away")
    driver.world.submit(*[item(plain(cpu="2")) for _ in range(3)])
    driver.run()
    driver.world.submit(item(for_gpu()), queue="qa-away")
    driver.run()
    cycles(driver)
    figures = {each.name: each.actual_share for each in driver.leader.reports["gpu"].decisions.queues}
    assert figures == {"qa-away": 0.25, "qa-away-away": 0.5}
