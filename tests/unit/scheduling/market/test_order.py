"""Who is served when, inside a queue and between queues."""

import numpy as np

from armada.scheduling.kernels.market.turns import Market
from armada.scheduling.market.bidding import open_trade
from armada.scheduling.market.order import line_up
from armada.scheduling.placement import lay_out
from tests.unit.scheduling.builders import Setting, node
from tests.unit.scheduling.market.stall import decided, figures, market, offers


def full(*queues: str, count: int = 3) -> Setting:
    setting = market()
    setting.nodes = [node("n", cpu=count)]
    for queue in queues:
        setting.add(queue, count)
    return setting


def test_jobs_stand_by_class_and_bid_then_age_whatever_their_priority() -> None:
    setting = full("A")
    setting.add("A", cls="low", priority=0)
    setting.add("A", cls="high", priority=9)
    offers(setting, {"A": [1, 2, 3]}, {"A0": 2, "A1": 1, "A2": 2, "A3": 3, "A4": 1})
    snapshot = setting.snapshot()
    assert [setting.jobs[row].name for row in snapshot.queued.row] == ["A4", "A0", "A2", "A1", "A3"]


def test_running_jobs_stand_before_waiting_ones_of_the_same_bid() -> None:
    setting = market()
    setting.nodes = [node("n", cpu=4)]
    setting.add("A", 2)
    setting.add("A", 2, node="n")
    offers(setting, {"A": [1, 2]}, {"A0": 2, "A1": 1, "A2": 1, "A3": 2})
    snapshot = setting.snapshot()
    board = lay_out(snapshot)
    board = board._replace(trade=open_trade(snapshot, board.jobs))
    line: Market = line_up(board, np.arange(2, dtype=np.int32), queued=True)
    rows = np.concatenate((snapshot.running.row, snapshot.queued.row))
    assert [setting.jobs[row].name for row in rows[line.line]] == ["A3", "A0", "A2", "A1"]
    assert line.is_back.tolist() == [1, 1, 0, 0]


def test_equal_bids_take_turns_by_name() -> None:
    named = decided(full("C", "A", "B"), {"A": [1], "B": [1], "C": [1]})
    assert sorted(named.placed) == ["A0", "B0", "C0"]


def test_the_higher_bid_is_served_first() -> None:
    named = decided(full("A", "B", "C"), {"A": [1], "B": [3], "C": [2]})
    assert sorted(named.placed) == ["B0", "B1", "B2"]


def test_a_gang_bids_what_its_lowest_member_bids() -> None:
    setting = market()
    setting.nodes = [node("n", cpu=2)]
    setting.add("A", 2, gang="g", size=2)
    setting.add("B", 2)
    named = decided(setting, {"A": [9, 1], "B": [2]}, {"A1": 2})
    assert sorted(named.placed) == ["B0", "B1"]
    assert figures(named.decisions).spot_price == 2


def test_equally_old_running_jobs_go_on_with_the_queue_that_was_served_last() -> None:
    """Bids 2 are served A, B; at bid 1 B goes on: A's second running job comes last and has to go."""
    setting = market()
    setting.nodes = [node("n", cpu=4)]
    setting.add("A", 2, node="n")
    setting.add("B", 2, node="n")
    setting.add("C")
    named = decided(setting, {"A": [2, 1], "B": [2, 1], "C": [3]}, {"A1": 2, "B1": 2})
    assert list(named.out) == ["A1"]


def test_the_longest_running_job_begins_at_another_bid() -> None:
    setting = market()
    setting.nodes = [node("n", cpu=2)]
    setting.add("A", node="n")
    setting.add("B", node="n")
    setting.add("C")
    offers(setting, {"A": [1], "B": [1], "C": [2]})
    assert list(setting.decide().out) == ["B0"]
    snapshot = setting.snapshot()
    snapshot.running.leased_ms[:] = [5, 0]
    board = lay_out(snapshot)
    trade = open_trade(snapshot, board.jobs)
    assert trade is not None
    assert trade.leased[:2].tolist() == [5, 0]


def test_when_new_jobs_are_stopped_what_runs_behind_them_still_returns() -> None:
    setting = market(max_round_fractions={"cpu": 0.2})
    setting.nodes = [node("n", cpu=10)]
    setting.add("A", 6)
    setting.add("A", 4, node="n")
    named = decided(setting, {"A": [5, 1]}, {f"A{number}": 2 for number in range(6, 10)})
    assert named.out == {}
    assert len(named.placed) == 3


def test_beyond_the_lookback_only_running_jobs_are_served() -> None:
    setting = market(max_queue_lookback=2)
    setting.nodes = [node("n", cpu=10)]
    setting.add("A", 4)
    setting.add("A", 3, node="n")
    named = decided(setting, {"A": [5, 1]}, {"A4": 2, "A5": 2, "A6": 2})
    assert (sorted(named.placed), named.out) == (["A0", "A1"], {})


def test_many_queues_of_one_bid_share_evenly() -> None:
    setting = market()
    setting.nodes = [node("n", cpu=26)]
    names = [f"Q{number:02d}" for number in range(13)]
    for name in names:
        setting.add(name, 5)
    named = decided(setting, {name: [1] for name in names})
    assert sorted(named.placed) == sorted(f"{name}{number}" for name in names for number in (0, 1))
