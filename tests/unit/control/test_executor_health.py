"""Executors that are lost, stale, behind or cordoned (row M8, and the table of executor health)."""

from typing import Any

import pytest

from armada.control.cycle import Leader
from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    ExecutorSettingsChanged,
    JobFailed,
    JobSetEvents,
    RetryPolicySet,
    RunPending,
    RunsReleased,
)
from armada.model.fleet import ExecutorSettings
from armada.model.policy import PoolPolicy, RetryEngine, RetryPolicy, SchedulingPolicy
from tests.unit.control.driving import PREEMPTIBLE, Driver
from tests.unit.control.world import fact, item, node, pod

MINUTE_MS = 60_000
CADENCE = Cadence(round_delay_ms=0, fleet_settle_ms=0)


def waits(here: Driver, *job_ids: str) -> bool:
    return {here.world.state(job_id) for job_id in job_ids} == {"queued"}


# -- lost --------------------------------------------------------------------------------------------------------------


def test_a_heartbeat_of_61_minutes_ago_expires_leases_and_one_of_15_gets_no_work() -> None:
    """M8."""
    here = Driver()
    here.nodes("n1")
    (job_id,) = here.world.submit(item(PREEMPTIBLE))
    here.run()
    here.world.now_ms += 15 * MINUTE_MS
    (late,) = here.world.submit(item(pod(cpu="1")))
    assert here.run() == []
    assert (here.world.state(job_id), here.world.state(late)) == ("leased", "queued")
    here.world.now_ms += 46 * MINUTE_MS
    assert here.run() == ["RunLeaseExpired", "JobFailed"]
    (failed,) = here.events(JobFailed)
    assert isinstance(failed, JobFailed)
    assert (failed.job_id, failed.failure.category, failed.failure.subcategory) == (
        job_id,
        "internal",
        "lease-expired",
    )


def test_a_retry_policy_may_let_a_lost_job_wait_again() -> None:
    label = "kubernetes.io/hostname"
    engine = RetryEngine(enabled=True, default_policy="p")
    here = Driver(SchedulingPolicy(retries=engine, indexed_node_labels=(label,)))
    here.world.store(
        fact(RetryPolicySet(at_ms=1, policy=RetryPolicy(name="p", retry_limit=1, retries_by_default=True)))
    )
    here.nodes("n1")
    (job_id,) = here.world.submit(item(PREEMPTIBLE))
    here.run()
    here.world.now_ms += 61 * MINUTE_MS
    assert here.run() == ["RunLeaseExpired", "JobRequeued"]
    assert here.world.state(job_id) == "queued"


def test_a_lost_executor_that_calls_again_is_told_and_used() -> None:
    here = Driver()
    here.nodes("n1")
    here.world.submit(item(PREEMPTIBLE))
    here.run()
    here.world.now_ms += 61 * MINUTE_MS
    here.run()
    (run_id,) = here.world.ledger.runs_to_end("east")
    here.heard("east")
    here.world.store(fact(RunsReleased(at_ms=here.world.now_ms, run_ids=(run_id,))))
    here.world.submit(item(pod(cpu="8")))
    assert here.run() == ["RunLeased"]


# -- stale -------------------------------------------------------------------------------------------------------------


def test_what_runs_at_a_stale_executor_counts_for_its_queue() -> None:
    here = Driver()
    here.world.queue("qb")
    here.nodes("n1", cpu="4")
    here.world.submit(item(PREEMPTIBLE))
    here.run()
    here.world.now_ms += 11 * MINUTE_MS
    here.world.report_nodes(node("m1", "west", "4"), executor_id="west")
    here.heard("west")
    (of_a,) = here.world.submit(item(PREEMPTIBLE))
    (of_b,) = here.world.submit(item(PREEMPTIBLE), queue="qb")
    here.run()
    assert (here.world.state(of_a), here.world.state(of_b)) == ("queued", "leased")
    report = here.leader.reports["default"]
    shares = {queue.name: queue.actual_share for queue in report.decisions.queues}
    assert shares == {"qa": pytest.approx(1.0), "qb": pytest.approx(1.0)}


# -- behind ------------------------------------------------------------------------------------------------------------


def behind(**pools: Any) -> Driver:
    """A leader that lets two leases be unconfirmed; east has three nodes in two pools."""
    policies = (PoolPolicy(name="default"), PoolPolicy(name="second", **pools))
    here = Driver(SchedulingPolicy(pools=policies, max_unacknowledged_leases=2), CADENCE)
    here.world.report_nodes(node("n1", cpu="3"), node("n2", pool="second", cpu="8"))
    here.heard("east")
    return here


def confirm(here: Driver, job_id: str) -> None:
    job = here.world.ledger.job(job_id)
    assert job is not None
    here.world.store(JobSetEvents("qa", "s", (RunPending(at_ms=here.world.now_ms, job_id=job_id, run_id=job.run_id),)))


def test_an_executor_with_too_many_unconfirmed_leases_gets_no_more_until_it_confirms() -> None:
    here = Driver(SchedulingPolicy(max_unacknowledged_leases=2), CADENCE)
    here.nodes("n1")
    first = here.world.submit(*[item() for _ in range(3)])
    here.run()
    (late,) = here.world.submit(item())
    assert here.run() == []
    assert waits(here, late)
    confirm(here, first[0])
    assert here.run() == ["RunLeased"]
    assert not waits(here, late)


def test_leases_of_pools_that_never_meet_hold_nothing_back() -> None:
    here = behind()
    first = here.world.submit(*[item() for _ in range(3)])
    here.run()
    assert {run.pool for run in here.world.ledger.runs_of_executor("east")} == {"default"}
    (late,) = here.world.submit(item())
    assert here.run() == ["RunLeased"]
    job = here.world.ledger.job(late)
    assert job is not None
    run = here.world.ledger.run(job.run_id)
    assert run is not None
    assert run.pool == "second"
    assert not waits(here, *first)


def test_leases_of_pools_that_share_nodes_do() -> None:
    here = behind(away_pools=("default",))
    here.world.submit(*[item() for _ in range(3)])
    here.run()
    (late,) = here.world.submit(item())
    assert here.run() == []
    assert waits(here, late)


# -- cordoned ----------------------------------------------------------------------------------------------------------


def test_jobs_of_a_cordoned_executor_run_on_and_no_new_ones_come() -> None:
    here = Driver()
    here.nodes("n1")
    (running,) = here.world.submit(item(PREEMPTIBLE))
    here.run()
    cordon = ExecutorSettings(executor_id="east", cordoned=True, cordon_reason="drill")
    here.world.store(fact(ExecutorSettingsChanged(at_ms=here.world.now_ms, settings=cordon)))
    (late,) = here.world.submit(item(pod(cpu="1")))
    assert here.run() == []
    assert here.world.state(running) == "leased"
    assert waits(here, late)


def test_an_outage_of_the_control_plane_costs_no_lease() -> None:
    """F025: executors get a fresh grace period from the new leader's start."""
    here = Driver(cadence=Cadence(round_delay_ms=0, fleet_settle_ms=0, executor_timeout_ms=30_000))
    here.nodes("n1")
    (job_id,) = here.world.submit(item(PREEMPTIBLE))
    here.run()
    here.world.now_ms += 3 * MINUTE_MS
    here.leader = Leader(
        here.world.policy, Cadence(round_delay_ms=0, executor_timeout_ms=30_000), "other", here.world.now_ms
    )
    here.heartbeats = {}
    assert here.run() == ["LeadershipClaimed"]
    here.world.now_ms += 29_999
    assert here.run() == []
    assert here.world.state(job_id) == "leased"
    here.world.now_ms += 1
    assert here.run() == ["RunLeaseExpired", "JobFailed"]
