"""Which pools' rounds see which jobs: those that took them when they were looked at (sections O of the tables too)."""

from typing import Any

import pytest

from armada.control.admitting.admission import LOOKS, Admission
from armada.control.admitting.eligibility import Eligibility
from armada.model.errors import InvalidRequest
from armada.model.events import JobRejected, QueueCordoned
from armada.model.fleet import ClassLimit
from armada.model.policy import PoolPolicy, SchedulingPolicy
from armada.scheduling.snapshot import PoolSnapshot
from tests.unit.control.driving import Driver
from tests.unit.control.world import START_MS, fact, gang_item, item, node, pod, resources

REVIEW_MS = 10_000


def two_pools(**large: Any) -> Driver:
    """Pool `small` with a node of 8 cpu, and pool `large`, with these settings, with one of 16."""
    policy = SchedulingPolicy(
        pools=(PoolPolicy(name="small"), PoolPolicy(name="large", **large)), fleet_refresh_ms=REVIEW_MS
    )
    driver = Driver(policy)
    driver.world.report_nodes(node("s", pool="small"), node("l", pool="large", cpu="16"))
    driver.heard("east")
    return driver


def seen(driver: Driver) -> dict[str, int]:
    """How many queued jobs the next round of each pool sees; nothing is decided."""
    counts: dict[str, int] = {}
    for _ in range(10):
        step = driver.step()
        if step.sequences:
            driver.store(step.sequences, step.epoch)
        elif step.round is not None:
            snapshot: PoolSnapshot = step.round.snapshot
            counts[step.round.pool] = len(snapshot.queued.row)
            driver.leader.failed_round(step.round.pool, "why", driver.world.now_ms)
    return counts


def test_a_pool_that_refused_a_job_does_not_see_it() -> None:
    driver = two_pools()
    driver.world.submit(item(pod(cpu="12")), item(pod(cpu="2")))
    assert seen(driver) == {"small": 1, "large": 2}


def test_pools_of_one_submission_group_see_the_same_jobs() -> None:
    driver = Driver(
        SchedulingPolicy(
            pools=(PoolPolicy(name="small", submission_group="g"), PoolPolicy(name="large", submission_group="g"))
        )
    )
    driver.world.report_nodes(node("s", pool="small"), node("l", pool="large", cpu="16"))
    driver.heard("east")
    driver.world.submit(item(pod(cpu="12")), item(pod(cpu="2")))
    assert seen(driver) == {"small": 2, "large": 2}


def test_a_pool_whose_away_pool_took_a_job_leaves_it_alone() -> None:
    driver = two_pools(away_pools=("small",))
    driver.world.submit(item(pod(cpu="12")), item(pod(cpu="2")))
    assert seen(driver) == {"small": 1, "large": 1}


def test_gangs_are_seen_where_all_of_them_fit() -> None:
    driver = two_pools()
    driver.world.submit(*[gang_item("g", 2, pod(cpu="6")) for _ in range(2)], item(pod(cpu="6")))
    assert seen(driver) == {"small": 1, "large": 3}


def test_pools_are_asked_again_after_the_fleet_has_changed() -> None:
    driver = two_pools()
    driver.world.submit(item(pod(cpu="12")))
    assert seen(driver) == {"small": 0, "large": 1}
    driver.world.report_nodes(node("s", pool="small", cpu="32"), node("l", pool="large", cpu="16"))
    driver.heard("east")
    assert seen(driver) == {"small": 0, "large": 1}
    driver.world.now_ms += REVIEW_MS
    assert seen(driver) == {"small": 1, "large": 1}


def test_a_job_that_was_admitted_is_not_rejected_when_its_node_goes() -> None:
    driver = two_pools()
    (job_id,) = driver.world.submit(item(pod(cpu="12")))
    seen(driver)
    driver.world.report_nodes(node("s", pool="small"), node("l", pool="large", cpu="4"))
    driver.heard("east")
    driver.world.now_ms += REVIEW_MS
    assert seen(driver) == {"small": 0, "large": 1}
    assert driver.world.state(job_id) == "queued"


def test_a_queue_with_jobs_for_another_pool_only_takes_no_share_here() -> None:
    """F043: whose jobs can't run in a pool, or who has none, is no sharer there; limits go by the pool's capacity."""
    pools = (PoolPolicy(name="cpu"), PoolPolicy(name="gpu"))
    driver = Driver(SchedulingPolicy(pools=pools))
    total = {"cpu": "12", "memory": "32Gi", "ephemeral-storage": "1Ti"}
    driver.world.report_nodes(
        node("c", pool="cpu", total=total), node("g", pool="gpu", total={**total, "nvidia.com/gpu": "4"})
    )
    driver.heard("east")
    limit = {"armada-default": ClassLimit(fractions_by_pool={"cpu": {"cpu": 0.25}})}
    for name in ("qx", "qz", "limited", *(f"idle{number}" for number in range(20))):
        driver.world.queue(name, limits_by_class=limit if name == "limited" else {})
    with_gpu = {
        "containers": [{"name": "a", "resources": resources(cpu="1", memory="64Mi", **{"nvidia.com/gpu": "1"})}]
    }
    driver.world.submit(*[item(with_gpu)] * 8, queue="qx")
    for queue in ("limited", "qz"):
        driver.world.submit(*[item(pod(cpu="1"))] * 50, queue=queue)
    driver.run()
    decisions = driver.leader.reports["cpu"].decisions
    assert [queue.name for queue in decisions.queues] == ["limited", "qz"]
    assert [queue.fair_share for queue in decisions.queues] == [0.5, 0.5]
    held = {queue.name: queue.actual_share * 12 for queue in decisions.queues}
    assert held == pytest.approx({"limited": 3, "qz": 9})


def test_many_new_kinds_are_looked_at_step_by_step() -> None:
    driver = Driver()
    driver.nodes("n1")
    admission = Admission(Eligibility(driver.world.policy), REVIEW_MS)
    ledger = driver.world.ledger
    driver.world.submit(*[item(pod(cpu=f"{100 + number}")) for number in range(LOOKS + 5)])
    for entry in driver.world.entries:
        admission.notice(entry)
    rejected = [len(admission.decide(ledger, START_MS)) > 0]
    assert admission.looked_at() == {"qa": LOOKS}
    assert admission.has_work(ledger, START_MS)
    rejected.append(len(admission.decide(ledger, START_MS)) > 0)
    assert admission.looked_at() == {"qa": 5}
    assert not admission.has_work(ledger, START_MS)
    assert all(rejected)


# -- rows O of the tables: validation ---------------------------------------------------------------------------------


def rejections(driver: Driver) -> list[str]:
    driver.run()
    return [event.reason for event in driver.events(JobRejected) if isinstance(event, JobRejected)]


def test_o1_larger_than_the_largest_node_is_rejected_with_a_text_for_each_pool() -> None:
    driver = two_pools()
    driver.world.submit(item(pod(cpu="17")))
    [reason] = rejections(driver)
    assert reason.splitlines() == [
        "pool small: 1 of 1 nodes: 17 cpu asked for, the largest node offers 8",
        "pool large: 1 of 1 nodes: 17 cpu asked for, the largest node offers 16",
    ]


def test_o2_busy_cordoned_or_silent_nodes_count() -> None:
    driver = Driver()
    driver.world.report_nodes(node("n1", unschedulable=True))
    driver.heard("east")
    driver.world.submit(item(pod(cpu="8")))
    driver.world.now_ms += 700_000
    assert rejections(driver) == []


def test_o3_a_cordoned_queue_is_not_looked_at() -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.store(fact(QueueCordoned(at_ms=START_MS, name="qa", cordoned=True)))
    driver.world.submit(item(pod(cpu="99")))
    assert rejections(driver) == []


def test_o5_more_than_the_queue_may_hold_in_every_pool_is_rejected() -> None:
    driver = two_pools()
    driver.world.queue("tight", limits_by_class={"armada-default": ClassLimit({"cpu": 0.1})})
    driver.world.submit(item(pod(cpu="2")), queue="tight")
    [reason] = rejections(driver)
    assert [line.partition(":")[0] for line in reason.splitlines()] == ["pool small", "pool large"]
    assert "the queue may hold" in reason


def test_o6_members_of_different_classes_are_refused() -> None:
    driver = Driver()
    driver.nodes("n1")
    members = [gang_item("g", 2), gang_item("g", 2, pod(priorityClassName="armada-urgent"))]
    with pytest.raises(InvalidRequest, match="gang 'g': priorityClassName is 'armada-urgent' here"):
        driver.world.submit(*members)
    for member in members:
        driver.world.submit(member)
    [reason] = rejections(driver)
    assert "priorityClassName" in reason
