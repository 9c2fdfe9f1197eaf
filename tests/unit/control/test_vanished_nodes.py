"""Nodes that vanish under their jobs (row P3, F054), and executors that are deleted."""

import pytest

from armada.control.explaining import Explaining
from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    ExecutorDeleted,
    JobFailed,
    RetryPolicySet,
)
from armada.model.policy import (
    ReconciliationPolicy,
    RetryEngine,
    RetryPolicy,
    RetryRule,
)
from tests.unit.control.driving import PREEMPTIBLE, Driver
from tests.unit.control.reconciling import CADENCE, NODE_TIMEOUT_MS, SOLID, driver, on, placed, policy, vanished
from tests.unit.control.world import fact, gang_item, item, pod

# -- nodes that vanish -------------------------------------------------------------------------------------------------


def test_a_single_job_stays_for_a_while_with_a_warning() -> None:
    """P3."""
    here = driver()
    (job_id,) = placed(here, item(PREEMPTIBLE))
    name = on(here, job_id)
    vanished(here, name)
    step = here.step()
    assert step.sequences == ()
    (warning,) = step.warnings
    assert f"node {name} of executor east is not reported any more" in warning
    assert here.step().warnings == ()
    assert here.world.state(job_id) == "leased"
    assert "That node is not reported any more." in Explaining(here.leader).job(here.world.ledger, job_id)
    wake_at_ms = here.step().wake_at_ms
    assert wake_at_ms is not None
    assert wake_at_ms <= here.world.now_ms + NODE_TIMEOUT_MS


@pytest.mark.parametrize("rules", [None, ReconciliationPolicy()])
def test_a_single_job_on_a_vanished_node_does_not_linger(rules: ReconciliationPolicy | None) -> None:
    """27.10, F054."""
    here = driver(rules)
    first, second = placed(here, item(PREEMPTIBLE), item(SOLID))
    vanished(here, "n1", "n2")
    here.run()
    here.world.now_ms += NODE_TIMEOUT_MS - 1
    here.heard("east")
    assert here.run() == []
    here.world.now_ms += 1
    assert here.run() == ["RunFailed", "JobFailed"] * 2
    assert (here.world.state(first), here.world.state(second)) == ("gone", "gone")
    assert only_reasons(here) == {"node-gone"}
    assert here.run() == []
    here.world.now_ms += NODE_TIMEOUT_MS + 1
    assert here.run() == []


def only_reasons(here: Driver) -> set[str]:
    return {event.failure.subcategory for event in here.events(JobFailed) if isinstance(event, JobFailed)}


def test_a_node_that_comes_back_in_time_keeps_its_jobs() -> None:
    here = driver()
    (job_id,) = placed(here, item(PREEMPTIBLE))
    name = on(here, job_id)
    vanished(here, name)
    here.run()
    here.world.now_ms += NODE_TIMEOUT_MS - 1
    here.nodes(name)
    here.run()
    here.world.now_ms += NODE_TIMEOUT_MS
    assert here.run() == []
    vanished(here, name)
    here.run()
    here.world.now_ms += NODE_TIMEOUT_MS - 1
    assert here.run() == []


def test_a_gang_on_a_vanished_node_is_preempted_at_once() -> None:
    here = driver()
    gang = placed(here, *[gang_item("g", 2, pod(cpu="8", priorityClassName="armada-preemptible")) for _ in range(2)])
    vanished(here, on(here, gang[0]))
    assert here.run() == ["RunPreempted", "JobPreempted"] * 2


def test_a_gang_where_pools_do_not_ask_is_preempted_as_a_whole_after_a_while() -> None:
    """F054: the gang rule is applied."""
    here = driver(None)
    gang = placed(here, *[gang_item("g", 2, pod(cpu="8", priorityClassName="armada-preemptible")) for _ in range(2)])
    vanished(here, on(here, gang[0]))
    assert here.run() == []
    here.world.now_ms += NODE_TIMEOUT_MS
    assert here.run() == ["RunPreempted", "JobPreempted"] * 2


def test_a_retry_policy_may_try_a_job_of_a_vanished_node_again() -> None:
    label = "kubernetes.io/hostname"
    here = driver(None, retries=RetryEngine(enabled=True, default_policy="p"), indexed_node_labels=(label,))
    again = RetryRule(retries=True, on_category="internal", on_subcategory="node-gone")
    here.world.store(fact(RetryPolicySet(at_ms=1, policy=RetryPolicy(name="p", retry_limit=3, rules=(again,)))))
    (job_id,) = placed(here, item(SOLID))
    vanished(here, on(here, job_id))
    here.run()
    here.world.now_ms += NODE_TIMEOUT_MS
    here.heard("east")
    assert here.run() == ["RunFailed", "JobRequeued", "RunLeased"]


def test_what_could_not_be_appended_is_decided_again() -> None:
    here = driver()
    (job_id,) = placed(here, item(SOLID))
    vanished(here, on(here, job_id))
    here.run()
    here.world.now_ms += NODE_TIMEOUT_MS
    here.heard("east")
    assert here.step().sequences
    here.leader.interrupted(here.world.ledger, here.world.now_ms)
    assert here.run() == ["RunFailed", "JobFailed"]


@pytest.mark.parametrize("jump_ms", [-7_200_000, 7_200_000])
def test_a_clock_that_jumps_gives_a_vanished_node_its_time_anew(jump_ms: int) -> None:
    here = driver()
    (job_id,) = placed(here, item(SOLID))
    vanished(here, on(here, job_id))
    here.run()
    here.world.now_ms += jump_ms
    here.leader.forgive(here.world.now_ms)
    here.heard("east")
    here.world.now_ms += NODE_TIMEOUT_MS - 1
    assert here.run() == []
    here.world.now_ms += 1
    assert here.run() == ["RunFailed", "JobFailed"]


def test_a_time_of_zero_keeps_single_jobs_for_ever() -> None:
    here = Driver(policy(), Cadence(round_delay_ms=0, fleet_settle_ms=0, node_timeout_ms=0))
    here.nodes("n1")
    (job_id,) = placed(here, item(PREEMPTIBLE))
    vanished(here, "n1")
    here.run()
    for _ in range(10):
        here.world.now_ms += 600_000
        here.heard("east")
        assert here.run() == []
    assert here.world.state(job_id) == "leased"


# -- executors that are deleted ----------------------------------------------------------------------------------------


def test_jobs_of_a_deleted_executor_expire_like_those_of_a_lost_one() -> None:
    """27.10."""
    here = driver()
    (job_id,) = placed(here, item(PREEMPTIBLE))
    here.world.store(fact(ExecutorDeleted(at_ms=here.world.now_ms, executor_id="east")))
    assert here.run() == []
    here.world.now_ms += CADENCE.executor_timeout_ms - 1
    assert here.run() == []
    here.world.now_ms += 1
    assert here.run() == ["RunLeaseExpired", "JobFailed"]
    assert here.world.state(job_id) == "gone"


def test_a_deleted_executor_that_lives_keeps_its_jobs() -> None:
    here = driver()
    gang = placed(here, *[gang_item("g", 2, pod(cpu="8", priorityClassName="armada-preemptible")) for _ in range(2)])
    here.world.store(fact(ExecutorDeleted(at_ms=here.world.now_ms, executor_id="east")))
    here.run()
    here.nodes("n1", "n2")
    for _ in range(3):
        here.world.now_ms += NODE_TIMEOUT_MS
        here.heard("east")
        assert here.run() == []
    assert {here.world.state(job_id) for job_id in gang} == {"leased"}


def test_a_deleted_executor_that_comes_back_without_a_node_has_lost_it() -> None:
    here = driver()
    (job_id,) = placed(here, item(PREEMPTIBLE))
    name = on(here, job_id)
    here.world.store(fact(ExecutorDeleted(at_ms=here.world.now_ms, executor_id="east")))
    here.run()
    here.nodes("n2" if name == "n1" else "n1")
    here.run()
    here.world.now_ms += NODE_TIMEOUT_MS
    here.heard("east")
    assert here.run() == ["RunFailed", "JobFailed"]
