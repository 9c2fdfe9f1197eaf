"""Prices, bills and values."""

import pytest

from armada.scheduling.decisions import QueueMarket
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from tests.unit.scheduling.builders import Setting, node
from tests.unit.scheduling.market.stall import decided, figures, market, offers


def first_queue(setting: Setting, bids: dict[str, list[float]]) -> QueueMarket:
    return figures(decided(setting, bids).decisions).queues[0]


def ten(cutoff: float = 0.9) -> Setting:
    setting = market(cutoff=cutoff)
    setting.nodes = [node("n", cpu=10)]
    return setting


@pytest.mark.parametrize(
    ("cutoff", "price", "billed"), [(0.0, 3, 1), (0.25, 3, 3), (0.5, 2, 6), (0.89, 2, 9), (1.0, 0, 0)]
)
def test_the_price_is_the_bid_that_crosses_the_cutoff(cutoff: float, price: float, billed: int) -> None:
    setting = ten(cutoff)
    setting.add("A", 5)
    setting.add("B", 5)
    found = figures(decided(setting, {"A": [3], "B": [2]}).decisions)
    assert found.spot_price == price
    assert sum(queue.billable[1] for queue in found.queues) == billed * 1000


def test_the_price_setter_pays_the_best_bid_that_waits() -> None:
    setting = ten()
    setting.add("A", 10)
    setting.add("B", 1)
    setting.add("C", 1)
    found = figures(decided(setting, {"A": [5], "B": [2], "C": [4]}).decisions)
    assert {queue.name: queue.price_override for queue in found.queues} == {"A": 4, "B": None, "C": None}


def test_bids_of_a_cordoned_queue_do_not_wait() -> None:
    setting = ten()
    setting.add("A", 10)
    setting.add("B", 3)
    setting.lines["B"] = {"tokens": 0.0}
    found = figures(decided(setting, {"A": [5], "B": [9]}).decisions)
    assert found.queues[0].price_override == 0


def test_a_value_is_bid_times_the_greatest_number_of_units() -> None:
    setting = ten()
    setting.add("A", cpu=2)
    setting.add("A", cpu="500m")
    queue = first_queue(setting, {"A": [3]})
    assert queue.realised_value == pytest.approx(3 * 2.5)
    assert queue.idealised_value == pytest.approx(3 * 2.5)
    assert queue.idealised[1] == 2500


def test_the_ideal_pool_knows_no_nodes() -> None:
    setting = market()
    setting.nodes = [node("a", cpu=3), node("b", cpu=3)]
    setting.add("A", 1, cpu=6)
    setting.add("B", 2, cpu=3, shape={"node_selector": (("host", "a"),)})
    found = figures(decided(setting, {"A": [2], "B": [1]}).decisions)
    assert [(queue.name, queue.realised_value, queue.idealised_value) for queue in found.queues] == [
        ("A", 0, 12),
        ("B", 3, 0),
    ]


def test_a_pool_without_nodes_has_no_price() -> None:
    setting = market()
    setting.add("A")
    found = figures(decided(setting, {"A": [2]}).decisions)
    assert (found.spot_price, found.queues[0].idealised_value, found.indicative_prices) == (0.0, 0.0, ())


def test_a_capsule_carries_the_market() -> None:
    setting = ten()
    setting.add("A", 8)
    setting.add("B", 8, node="n")
    offers(setting, {"A": [2], "B": [1]})
    snapshot = setting.snapshot()
    again = PoolSnapshot.from_bytes(snapshot.to_bytes())
    assert schedule(again).market == schedule(snapshot).market
    assert len(schedule(again).preemptions.row) == 6


def test_a_market_pool_needs_offers() -> None:
    setting = ten()
    setting.add("A")
    with pytest.raises(ValueError, match="needs offers"):
        setting.snapshot()
