"""Gauges of rounds, on rounds whose figures can be worked out by hand."""

import math

import msgspec
import pytest

from armada.control.measuring.rounds import SERIES, in_unit, round_families
from armada.control.rounds.planning import RoundReport
from armada.scheduling.decisions import IndicativePrice, IndicativeShare, MarketFigures, QueueMarket
from tests.unit.control.driving import Driver
from tests.unit.control.test_accounts import crowded
from tests.unit.control.world import item, pod

Values = dict[tuple[str, ...], float]


def values(reports: dict[str, RoundReport], name: str) -> Values:
    """All samples of one series by label values."""
    (family,) = [family for family in round_families(reports) if family.series.name == f"armada_scheduler_{name}"]
    return dict(family.samples)


@pytest.fixture(scope="module")
def reports() -> dict[str, RoundReport]:
    """Two soft jobs of qa lose their cpus to a gang of two of qb; three more jobs of qb find no place."""
    driver, _ = crowded()
    return dict(driver.leader.reports)


def test_shares_and_weights(reports: dict[str, RoundReport]) -> None:
    qa, qb = ("default", "qa"), ("default", "qb")
    assert values(reports, "fair_share") == {qa: 0.5, qb: 0.5}
    assert values(reports, "actual_share") == {qa: 0.0, qb: 1.0}
    # 2 of 4 cpus are held by qa when the round begins; qb waits for 10.
    assert values(reports, "demand") == {qa: 0.5, qb: 2.5}
    assert values(reports, "constrained_demand")[qa] == 0.5
    assert values(reports, "adjusted_fair_share") == {qa: 0.5, qb: 0.5}
    assert values(reports, "queue_weight") == values(reports, "raw_queue_weight") == {qa: 1.0, qb: 1.0}
    assert values(reports, "short_job_penalty") == {qa: 0.0, qb: 0.0}
    assert values(reports, "fairness_error") == {("default",): 0.5}


def test_what_was_looked_at_and_placed(reports: dict[str, RoundReport]) -> None:
    qa, qb = ("default", "qa"), ("default", "qb")
    assert values(reports, "considered_jobs") == {qa: 0, qb: 5}
    # One gang of two and three jobs of their own.
    assert values(reports, "gangs_considered") == {qa: 0, qb: 4}
    assert values(reports, "gangs_scheduled") == {qa: 0, qb: 1}
    assert values(reports, "unschedulable_jobs") == {("default", "qb", "no_fit"): 3}
    assert values(reports, "node_pool_size") == {("default",): 2}
    assert values(reports, "protected_fraction_of_fair_share") == {("default",): 1.0}
    assert values(reports, "spot_price") == {("default",): 0.0}


def test_turns_are_numbered_through_the_round(reports: dict[str, RoundReport]) -> None:
    qa, qb = ("default", "qa"), ("default", "qb")
    turns = values(reports, "loop_number")[("default",)]
    first, last = values(reports, "first_gang_queue_position"), values(reports, "last_gang_queue_position")
    assert last[qa] == 0
    assert 1 <= first[qb] <= last[qb] <= turns
    spent = values(reports, "per_queue_schedule_cycle_times")
    report = reports["default"]
    assert sum(spent.values()) == pytest.approx(report.finished_ms - report.order.started_ms)


def test_evictions_are_counted_with_what_they_hold(reports: dict[str, RoundReport]) -> None:
    assert values(reports, "evicted_jobs")[("default", "qa")] == 2
    evicted = values(reports, "evicted_resources")
    assert evicted[("default", "qa", "cpu")] == 2.0
    assert evicted[("default", "qa", "memory")] == 2 * 64 * 2**20
    assert evicted[("default", "qb", "cpu")] == 0.0


def test_a_later_round_replaces_all() -> None:
    driver = Driver()
    driver.nodes("n1", cpu="2")
    driver.world.submit(*[item(pod(cpu="2")) for _ in range(2)])
    driver.run()
    assert values(dict(driver.leader.reports), "unschedulable_jobs") == {("default", "qa", "no_fit"): 1}
    for job_id in driver.world.ledger.jobs_in_queue("qa"):
        driver.world.cancel(job_id)
    driver.nodes("n2", cpu="2")
    driver.world.submit(item(pod(cpu="2")))
    driver.run()
    reports = dict(driver.leader.reports)
    assert values(reports, "unschedulable_jobs") == {}
    assert values(reports, "considered_jobs") == {("default", "qa"): 1}


def test_a_market_shows_prices_and_values(reports: dict[str, RoundReport]) -> None:
    width = len(reports["default"].order.snapshot.rules.resources)
    cpu = reports["default"].order.snapshot.rules.resources.index("cpu")
    billable = tuple(4_000 if column == cpu else 0 for column in range(width))
    market = MarketFigures(
        spot_price=3.0,
        queues=(
            QueueMarket(
                name="qb",
                billable=billable,
                price_override=2.0,
                idealised=(0,) * width,
                idealised_value=12.5,
                realised_value=7.5,
            ),
        ),
        indicative_prices=(
            IndicativePrice(name="big", price=4.0, evaluated=True, schedulable=True),
            IndicativePrice(name="late", price=9.0, evaluated=False, schedulable=False, reason="no time"),
        ),
    )
    report = reports["default"]
    sold = {
        "m": msgspec.structs.replace(report, decisions=msgspec.structs.replace(report.decisions, market=market)),
    }
    assert values(sold, "spot_price") == {("m",): 3.0}
    assert values(sold, "spot_price_override") == {("m", "qb"): 2.0}
    assert values(sold, "billable_resources")[("m", "qb", "cpu")] == 4.0
    assert values(sold, "idealised_scheduled_value") == {("m", "qb"): 12.5}
    assert values(sold, "realised_scheduled_value") == {("m", "qb"): 7.5}
    prices = values(sold, "indicative_price")
    assert prices[("m", "big")] == 4.0
    assert math.isnan(prices[("m", "late")])
    assert values(sold, "indicative_price_is_schedulable") == {("m", "big", ""): 1.0, ("m", "late", "no time"): 0.0}


def test_every_sample_has_its_labels(reports: dict[str, RoundReport]) -> None:
    found = round_families(reports)
    assert [family.series for family in found] == list(SERIES)
    assert all(len(labels) == len(family.series.labels) for family in found for labels, _ in family.samples)


def test_only_shortfalls_are_errors(reports: dict[str, RoundReport]) -> None:
    report = reports["default"]
    qa, qb = report.decisions.queues
    short = msgspec.structs.replace(qa, demand_capped_share=0.5, actual_share=0.2)
    above = msgspec.structs.replace(qb, demand_capped_share=0.5, actual_share=0.9)
    decisions = msgspec.structs.replace(report.decisions, queues=(short, above))
    changed = {"default": msgspec.structs.replace(report, decisions=decisions)}
    assert values(changed, "fairness_error") == {("default",): pytest.approx(0.3)}


def test_shares_that_new_queues_would_get(reports: dict[str, RoundReport]) -> None:
    report = reports["default"]
    shares = (IndicativeShare(priority=1, share=0.25), IndicativeShare(priority=10, share=0.125))
    decisions = msgspec.structs.replace(report.decisions, indicative_shares=shares)
    changed = {"default": msgspec.structs.replace(report, decisions=decisions)}
    assert values(reports, "indicative_share") == {}
    assert values(changed, "indicative_share") == {("default", "1"): 0.25, ("default", "10"): 0.125}


def test_amounts_are_shown_in_units() -> None:
    assert (in_unit(1_500, 6), in_unit(7, 9), in_unit(3, 12)) == (1.5, 7.0, 3_000.0)
