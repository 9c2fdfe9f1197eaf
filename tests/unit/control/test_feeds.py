"""Rounds and the services of others that they go by."""

from typing import Any

import msgspec
import pytest

from armada.control.explaining import Explaining
from armada.control.rounds.feeds import Feeds
from armada.model.events import ExecutorReported
from armada.model.fleet import BidTable
from armada.model.policy import MarketPolicy, PoolPolicy, ReconciliationPolicy, SchedulingPolicy
from armada.scheduling.round import schedule
from armada.state.ledger import Ledger
from tests.unit.control.driving import PREEMPTIBLE, Driver
from tests.unit.control.world import fact, item, node, pod

TWO_POOLS = (PoolPolicy(name="default"), PoolPolicy(name="second"))


def two_pools(**more: Any) -> Driver:
    """A leader of two pools, each with a node."""
    here = Driver(SchedulingPolicy(pools=TWO_POOLS, **more))
    here.nodes("n1", cpu="1")
    here.world.report_nodes(node("m1", "west", "1", pool="second"), executor_id="west", pool="second")
    here.heard("west")
    return here


def hear(here: Driver, **changes: Any) -> None:
    here.leader.hear(msgspec.structs.replace(here.leader.feeds, **changes), here.world.now_ms)


def test_no_round_is_run_before_overrides_came() -> None:
    here = Driver()
    hear(here, awaits_overrides=True, override_trouble="UNAVAILABLE: connection refused")
    here.nodes("n1")
    (job_id,) = here.world.submit(item())
    here.notice()
    step = here.step()
    why = "no priority overrides have been received yet: UNAVAILABLE: connection refused"
    assert (step.sequences, step.round) == ((), None)
    assert step.warnings == (f"pool default can't be decided: {why}",)
    assert here.leader.failures["default"].reason == why
    explaining = Explaining(here.leader)
    assert f"Pool default can't be decided: {why}" in explaining.pools(here.world.ledger)
    assert f"Pool default can't be decided: {why}" in explaining.job(here.world.ledger, job_id)
    assert f"Pool default can't be decided: {why}" in explaining.queue(here.world.ledger, "qa")
    counted = {family.series.name: dict(family.samples) for family in here.leader.tally.families()}
    assert counted["armada_scheduler_pool_scheduling_outcome"] == {("default", "failure", "error"): 1}
    here.world.now_ms += 10_000
    assert here.step().warnings == ()
    hear(here, overrides={})
    assert here.run() == ["RunLeased"]
    assert here.leader.failures == {}


def test_an_answer_that_comes_starts_a_round_at_once() -> None:
    here = Driver()
    hear(here, awaits_overrides=True)
    here.nodes("n1")
    here.world.submit(item())
    assert here.run() == []
    here.world.now_ms += 1
    hear(here, override_trouble="still down")
    assert here.step().round is None
    hear(here, overrides={"default": {"qa": 1.0}})
    assert here.step().round is not None


def test_overrides_stand_in_for_the_queues_own_priority() -> None:
    here = Driver()
    here.nodes("n1", cpu="8")
    here.world.queue("qb")
    hear(here, awaits_overrides=True, overrides={"default": {"qb": 3.0}, "other": {"qa": 9.0}})
    of_a = here.world.submit(*[item(pod(cpu="1", priorityClassName="armada-preemptible")) for _ in range(8)])
    of_b = here.world.submit(
        *[item(pod(cpu="1", priorityClassName="armada-preemptible")) for _ in range(8)], queue="qb"
    )
    here.run()
    running = [sum(here.world.state(job_id) == "leased" for job_id in jobs) for jobs in (of_a, of_b)]
    assert running == [6, 2]
    shares = {queue.name: queue for queue in here.leader.reports["default"].decisions.queues}
    assert shares["qb"].weight == pytest.approx(1 / 3)
    assert (shares["qa"].weight, shares["qa"].raw_weight, shares["qb"].raw_weight) == (1.0, 1.0, 1.0)


def test_a_pool_that_only_waited_for_an_answer_is_fine_once_it_came_though_nobody_waits() -> None:
    here = Driver()
    hear(here, awaits_overrides=True)
    here.nodes("n1")
    (job_id,) = here.world.submit(item())
    here.run()
    assert list(here.leader.failures) == ["default"]
    here.world.cancel(job_id)
    hear(here, override_trouble="still down")
    assert list(here.leader.failures) == ["default"]
    hear(here, overrides={})
    assert here.leader.failures == {}


def market_and_plain() -> Driver:
    market = PoolPolicy(name="default", market=MarketPolicy(pricing_timeout_ms=1_000))
    here = Driver(SchedulingPolicy(pools=(market, PoolPolicy(name="second"))))
    here.nodes("n1", cpu="1")
    here.world.report_nodes(node("m1", "west", "1", pool="second"), executor_id="west", pool="second")
    here.heard("west")
    return here


def test_only_markets_wait_for_bids() -> None:
    """F082: a pool that can not be decided leaves the others alone."""
    here = market_and_plain()
    hear(here, awaits_bids=True, bid_trouble="no answer")
    first, second = here.world.submit(item(), item())
    here.run()
    assert [here.world.state(job_id) for job_id in (first, second)] == ["leased", "queued"]
    assert list(here.leader.failures) == ["default"]
    assert here.leader.failures["default"].reason == "no bids have been received yet: no answer"
    hear(here, bids=BidTable(snapshot_id="1"))
    here.run()
    assert here.world.state(second) == "leased"


def test_a_pool_that_fails_stops_the_others_where_pools_fail_together() -> None:
    here = two_pools(pools_fail_together=True)
    hear(here, awaits_overrides=True)
    here.world.submit(item())
    assert here.run() == []
    assert list(here.leader.failures) == ["default"]


def test_an_error_of_reconciliation_fails_its_pool_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = tuple(PoolPolicy(name=name, reconciliation=ReconciliationPolicy()) for name in ("default", "second"))
    here = Driver(SchedulingPolicy(pools=strict))
    here.nodes("n1", cpu="4")
    (running,) = here.world.submit(item(PREEMPTIBLE))
    here.run()
    here.nodes("n2", cpu="4")
    here.world.report_nodes(node("m1", "west", "1", pool="second"), executor_id="west", pool="second")
    here.heard("west")
    here.run()
    job = Ledger.job

    def broken(ledger: Ledger, job_id: str) -> Any:
        if job_id == running:
            raise RuntimeError("a row that makes no sense")
        return job(ledger, job_id)

    monkeypatch.setattr(Ledger, "job", broken)
    (waiting,) = here.world.submit(item())
    changed = ExecutorReported(
        at_ms=here.world.now_ms, executor_id="east", pool="default", nodes=(node("n1", cpu="4", pool="third"),)
    )
    here.world.store(fact(changed))
    here.notice()
    step = here.step()
    assert step.round is not None
    assert step.round.pool == "second"
    (warning,) = step.warnings
    assert "pool default" in warning
    decisions = schedule(step.round.snapshot, step.round.seed)
    outcome = here.leader.finish(here.world.ledger, step.round, decisions, here.world.now_ms)
    here.store(outcome.sequences, step.epoch)
    assert here.world.state(waiting) == "leased"
    assert here.run() == []
    monkeypatch.undo()
    assert "a row that makes no sense" in here.leader.failures["default"].reason
    here.world.now_ms += 9_999
    assert here.run() == []
    here.world.now_ms += 1
    assert here.run() == ["RunPreempted", "JobPreempted"]
    assert here.world.state(running) == "preempted"


def test_feeds_that_say_nothing_keep_nobody_waiting() -> None:
    assert Feeds().obstacle(PoolPolicy(name="default")) == ""
    assert Feeds().of_pool("default") == {}
