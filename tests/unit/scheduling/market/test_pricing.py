"""Indicative prices, compared with an obvious search and by hand."""

import math
import random
from typing import Any

import msgspec
import pytest

from armada.model.fleet import Taint
from armada.model.jobs import Toleration
from armada.model.policy import PricedGang
from armada.scheduling.decisions import IndicativePrice
from armada.scheduling.round import schedule
from tests.unit.scheduling.builders import Setting, node
from tests.unit.scheduling.market.stall import decided, figures, market, offers


def gang(name: str = "g", size: int = 1, cpu: float = 1, **values: Any) -> PricedGang:
    return PricedGang(name=name, size=size, priority_class="mid", requests={"cpu": str(cpu)}, **values)


def prices(
    setting: Setting, bids: dict[str, list[float]], bands: dict[str, int] | None = None
) -> list[IndicativePrice]:
    return list(figures(decided(setting, bids, bands).decisions).indicative_prices)


def test_free_room_costs_nothing() -> None:
    setting = market(gang(size=3))
    setting.nodes = [node("n", cpu=4)]
    setting.add("A", node="n")
    assert prices(setting, {"A": [7]}) == [
        IndicativePrice(name="g", price=0.0, evaluated=True, schedulable=True),
    ]


def test_the_lowest_bids_leave_and_the_highest_of_them_is_the_price() -> None:
    setting = market(gang(cpu=2), gang("larger", cpu=3), gang("everything", cpu=4))
    setting.nodes = [node("n", cpu=4)]
    setting.add("A", 4, node="n")
    bands = {"A0": 4, "A1": 2, "A2": 3, "A3": 1}
    found = prices(setting, {"A": [1, 2, 5, 8]}, bands)
    assert [one.price for one in found] == [2, 5, 8]


def test_members_take_the_cheapest_node_one_by_one() -> None:
    setting = market(gang(size=1), gang("two", size=2), gang("three", size=3))
    setting.nodes = [node("dear", cpu=1), node("cheap", cpu=1), node("middle", cpu=1)]
    for name in ("dear", "cheap", "middle"):
        setting.add("A", node=name)
    found = prices(setting, {"A": [1, 2, 3]}, {"A0": 3, "A1": 1, "A2": 2})
    assert [one.price for one in found] == [1, 2, 3]


def test_the_cheapest_value_of_a_label_counts() -> None:
    setting = market(
        gang(size=2),
        gang("together", size=2, uniformity_label="rack"),
        gang("too large", size=3, uniformity_label="rack"),
    )
    racks = {"a": "x", "b": "x", "c": "y", "d": "y"}
    setting.nodes = [node(name, cpu=1, labels={"rack": rack}) for name, rack in racks.items()]
    for name in racks:
        setting.add("A", node=name)
    found = prices(setting, {"A": [1, 2, 3, 4]}, {"A0": 1, "A1": 4, "A2": 2, "A3": 3})
    assert [one.price for one in found[:2]] == [2, 3]
    assert math.isnan(found[2].price)
    assert not found[2].schedulable
    assert found[2].reason == "no nodes have room for it at any price"


def test_taints_and_labels_say_where_members_may_be() -> None:
    setting = market(
        gang("plain"),
        gang("tolerant", tolerations=(Toleration("team", "Exists"),)),
        gang("choosy", node_selector={"host": "c"}),
        gang("lost", node_selector={"host": "elsewhere"}),
    )
    setting.nodes = [node("a", cpu=1), node("b", cpu=1, taints=(Taint("team", "x"),)), node("c", cpu=1)]
    setting.add("A", node="a")
    setting.add("A", node="c")
    found = prices(setting, {"A": [3, 5]}, {"A0": 1, "A1": 2})
    assert [one.price for one in found[:3]] == [3, 0, 5]
    assert (found[3].schedulable, found[3].reason) == (False, "no node may run it")


def test_what_can_not_be_preempted_leaves_at_no_price() -> None:
    setting = market(gang(cpu=1), gang("more", cpu=2))
    setting.nodes = [node("n", cpu=2)]
    setting.add("A", node="n", cls="solid")
    setting.add("A", node="n")
    found = prices(setting, {"A": [4]})
    assert found[0].price == 4
    assert not found[1].schedulable


def test_without_time_left_there_is_no_price() -> None:
    setting = market(gang(size=3), gang("next"))
    setting.nodes = [node("n", cpu=4)]
    setting.add("A", node="n")
    offers(setting, {"A": [7]})
    snapshot = setting.snapshot()
    assert snapshot.market is not None
    hurried = msgspec.structs.replace(snapshot, market=msgspec.structs.replace(snapshot.market, pricing_steps=0))
    found = figures(schedule(hurried)).indicative_prices
    assert [(math.isnan(one.price), one.evaluated, one.schedulable) for one in found] == [(True, False, False)] * 2
    assert found[0].reason == "no time was left to look for a price"


@pytest.mark.parametrize("seed", range(30))
def test_prices_are_those_of_an_obvious_search(seed: int) -> None:
    draw = random.Random(seed)
    size, cpu = draw.randint(1, 5), draw.choice((1, 2, 3))
    setting = market(gang(size=size, cpu=cpu))
    room = {f"n{number}": draw.randint(1, 6) for number in range(4)}
    setting.nodes = [node(name, cpu=room[name]) for name in room]
    seats: dict[str, list[tuple[float, int]]] = {name: [] for name in room}
    free = dict(room)
    bands: dict[str, int] = {}
    for _ in range(12):
        name, wanted, band = draw.choice(list(room)), draw.randint(1, 2), draw.randint(1, 6)
        if free[name] >= wanted:
            free[name] -= wanted
            bands[f"A{len(bands)}"] = band
            seats[name].append((float(band), wanted))
            setting.add("A", cpu=wanted, node=name)
    if not bands:
        setting.add("A", node="n0")
        free["n0"] -= 1
        seats["n0"].append((1.0, 1))
    (found,) = prices(setting, {"A": [1, 2, 3, 4, 5, 6]}, bands)
    expected = searched(size, cpu, free, seats)
    assert found.schedulable == (expected is not None)
    if expected is not None:
        assert found.price == expected


def searched(size: int, cpu: int, free: dict[str, int], seats: dict[str, list[tuple[float, int]]]) -> float | None:
    """Price a gang by trying every node for every member."""
    left = {name: sorted(own, key=lambda seat: seat[0]) for name, own in seats.items()}
    dearest = 0.0
    for _ in range(size):
        best: tuple[float, str, int] | None = None
        for name, own in left.items():
            gained, price, count = free[name], 0.0, 0
            while gained < cpu and count < len(own):
                gained, price, count = gained + own[count][1], max(price, own[count][0]), count + 1
            if gained >= cpu and (best is None or price < best[0]):
                best = price, name, count
        if best is None:
            return None
        price, name, count = best
        free[name] += sum(amount for _, amount in left[name][:count]) - cpu
        left[name] = left[name][count:]
        dearest = max(dearest, price)
    return dearest
