"""Shares: tables of weights and demands with what each queue is due."""

import numpy as np
import pytest

from armada.scheduling.kernels.books import adjust_shares, share
from armada.scheduling.round import schedule
from tests.unit.scheduling.builders import Setting, node, policy

CASES = [
    (200, [1, 1, 2], [20, 60, 400], [0.25, 0.25, 0.5], [0.1, 0.3, 0.6], [0.25, 0.3, 0.6]),
    (200, [1, 1, 2], [20, 30, 40], [0.25, 0.25, 0.5], [0.1, 0.15, 0.2], [0.65, 0.7, 0.75]),
    (500, [1, 0.25], [500, 500], [0.8, 0.2], [0.8, 0.2], [0.8, 0.2]),
    (200, [4, 1, 1], [10, 500, 44], [2 / 3, 1 / 6, 1 / 6], [0.05, 0.73, 0.22], [0.871, 0.73, 0.475]),
    (100, [1, 1, 1, 1], [10, 20, 30, 500], [0.25] * 4, [0.1, 0.2, 0.3, 0.4], [0.292, 0.325, 0.35, 0.4]),
    (100, [1, 1, 1], [1, 40, 1000], [1 / 3] * 3, [0.01, 0.4, 0.59], [0.381, 0.495, 0.59]),
]


@pytest.mark.parametrize("case", CASES)
def test_surplus_is_handed_on(
    case: tuple[int, list[float], list[int], list[float], list[float], list[float]],
) -> None:
    total, weights, demands, fair, capped, uncapped = case
    setting = Setting(policy=policy(fairness_resources=policy().fairness_resources[:1]), nodes=[node("a", total)])
    for number, (weight, demand) in enumerate(zip(weights, demands, strict=True)):
        setting.factors[f"q{number}"] = 1 / weight
        setting.add(f"q{number}", cpu=demand)
    figures = setting.decide().decisions.queues
    assert [one.fair_share for one in figures] == pytest.approx(fair)
    assert [one.demand_capped_share for one in figures] == pytest.approx(capped, abs=1e-9)
    assert [one.uncapped_share for one in figures] == pytest.approx(uncapped, abs=5e-4)
    assert [one.demand_share for one in figures] == pytest.approx([demand / total for demand in demands])


def test_the_largest_part_of_any_resource_is_the_cost() -> None:
    total, multiplier = np.array([100, 1000, 0], np.int64), np.array([1.0, 0.5, 1.0])
    assert share(total, multiplier, np.array([10, 300, 9], np.int64)) == pytest.approx(0.15)
    assert share(total, multiplier, np.array([-10, 0, 0], np.int64)) == 0.0


def test_nobody_wants_anything() -> None:
    capped, uncapped = np.zeros(2), np.zeros(2)
    adjust_shares(np.ones(2), np.zeros(2), capped, uncapped, np.zeros(2), np.zeros(2, np.uint8))
    assert capped.tolist() == [0.0, 0.0]
    assert uncapped.tolist() == [1.0, 1.0]


def test_an_override_weighs_instead_of_the_factor() -> None:
    setting = Setting(nodes=[node("a")], factors={"A": 2.0}, lines={"A": {"weight_override": 4.0}})
    setting.add("A")
    setting.add("B")
    one, other = setting.decide().decisions.queues
    assert (one.weight, one.raw_weight, one.fair_share) == (0.25, 0.5, 0.2)
    assert other.fair_share == 0.8


def test_a_penalty_counts_for_whose_turn_it_is() -> None:
    setting = Setting(nodes=[node("a", 10)], lines={"A": {"penalty": (0, 4000, 0)}})
    setting.add("A", 10)
    setting.add("B", 10)
    assert sum(name.startswith("A") for name in setting.decide().placed) == 3


def test_a_cordoned_queue_keeps_its_account_and_asks_for_nothing() -> None:
    setting = Setting(nodes=[node("a", 4)])
    setting.add("A", 3)
    setting.add("B", 3)
    snapshot = setting.snapshot()
    snapshot.queues.cordoned[0] = 1
    decisions = schedule(snapshot)
    first, second = decisions.queues
    assert (first.fair_share, first.demand_capped_share, first.demand_share) == (0.5, 0.0, 0.0)
    assert second.actual_share == 0.75
    assert decisions.refusals.row.tolist() == [0]
