"""What a leader did, counted: rounds and their ends, leases by method, times."""

import pytest

from armada.control.measuring.leading import LEADER_STATUS, SERIES, LeaderTally, leader_status
from armada.control.measuring.series import Family
from armada.scheduling.round import schedule
from tests.unit.control.driving import Driver
from tests.unit.control.world import item, pod


def by_name(families: list[Family]) -> dict[str, Family]:
    return {family.series.name.removeprefix("armada_scheduler_"): family for family in families}


def test_rounds_are_counted_by_their_ends() -> None:
    tally = LeaderTally()
    tally.decided("p", "completed", 12.0)
    tally.decided("p", "rate_limit", 1.0)
    tally.failed("q")
    tally.decided("r", "timeout", 5_000.0, counts=False)
    tally.stored("p", {("qa", "armada-default", "free_room"): 3}, 20.0)
    found = by_name(tally.families())
    assert dict(found["pool_scheduling_outcome"].samples) == {
        ("p", "success", "completed"): 1,
        ("p", "success", "rate_limit"): 1,
        ("q", "failure", "error"): 1,
        ("r", "failure", "timeout"): 1,
    }
    assert dict(found["schedule_outcome"].samples) == {("success",): 2, ("failure",): 2}
    assert dict(found["scheduled_jobs"].samples) == {("p", "qa", "armada-default", "free_room"): 3}
    times = dict(found["pool_scheduling_cycle_times"].distributions)[("p",)]
    assert (sum(times.counts), times.total) == (2, 13.0)
    assert dict(found["schedule_cycle_times"].distributions)[()].total == 20.0
    assert found["reconciliation_cycle_times"].distributions == []


def test_a_look_at_new_jobs_is_shared_out_by_kinds() -> None:
    tally = LeaderTally()
    tally.checked({"qa": 3, "qb": 1}, 8.0)
    times = dict(by_name(tally.families())["submit_check_times"].distributions)
    assert (times[("qa",)].total, times[("qb",)].total) == (6.0, 2.0)


def test_all_series_are_given() -> None:
    families = [leader_status("me", leads=True), *LeaderTally().families()]
    assert [family.series for family in families] == list(SERIES)
    assert families[0] == Family(series=LEADER_STATUS, samples=[(("me",), 1.0)])
    assert leader_status("me", leads=False).samples == [(("me",), 0.0)]


@pytest.mark.parametrize("count", [1, 5])
def test_an_outcome_counts_leases_by_kind(count: int) -> None:
    driver = Driver()
    driver.nodes("n1")
    driver.world.submit(*[item(pod(priorityClassName="armada-preemptible")) for _ in range(count)])
    step = driver.step()
    while step.round is None:
        driver.store(step.sequences, step.epoch)
        step = driver.step()
    assert driver.leader.looked_at() == {"qa": 1}
    assert driver.leader.looked_at() == {}
    outcome = driver.leader.finish(driver.world.ledger, step.round, schedule(step.round.snapshot), driver.world.now_ms)
    assert outcome.leased_by_kind == {("qa", "armada-preemptible", "free_room"): count}
