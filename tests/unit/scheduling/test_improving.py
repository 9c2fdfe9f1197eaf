"""The fairness optimiser, one rule each, on two nodes of 10 cpu that are full of protected jobs."""

from typing import Any

import numpy as np
import pytest

from armada.model.policy import OptimiserPolicy
from armada.scheduling.decisions import Termination, check_invariants
from armada.scheduling.repeating.stops import OPTIMISER, Stop
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from armada.scheduling.tables import OptimiserTurn
from tests.unit.scheduling.builders import Setting, node, policy


def full(*, racks: tuple[str, str] = ("r1", "r2"), **optimiser: Any) -> Setting:
    """Two nodes and an optimiser, which takes part in the round; jobs are added by the test."""
    values: dict[str, Any] = {"timeout_ms": 5_000, "max_jobs_per_round": 10} | optimiser
    setting = Setting(
        policy=policy(protected_fraction=9.0, pool={"optimiser": OptimiserPolicy(**values)}),
        nodes=[node(name, labels={"rack": rack}) for name, rack in zip(("a", "b"), racks, strict=True)],
    )
    setting.numbers["optimiser"] = OptimiserTurn(now_ms=0, submitted=np.arange(1_000, dtype=np.int64))
    return setting


def test_a_place_that_makes_the_pool_fairer_is_made() -> None:
    setting = full()
    setting.add("A", 10, node="a")
    setting.add("A", 10, node="b")
    setting.add("B", cpu=8)
    decided = setting.decide()
    assert decided.placed == {"B0": "a"}
    assert decided.how == {"B0": "OPTIMISER"}
    assert decided.out == {f"A{number}": ("OPTIMISER", "B0") for number in range(8)}
    figures = decided.decisions.optimised
    assert figures is not None
    assert (figures.tried, figures.placed, figures.ran_out) == (1, 1, False)


@pytest.mark.parametrize(("least", "placed"), [(50.0, True), (100.0, False), (150.0, False)])
def test_it_has_to_be_fairer_by_so_many_per_cent(*, least: float, placed: bool) -> None:
    setting = full(min_improvement_percent=least, max_jobs_per_round=1)
    setting.add("A", 10, node="a")
    setting.add("C", 10, node="b")
    setting.add("B", 2, cpu=6)
    # Three victims cost nothing, because A stays above its third; three cost a twentieth each, for a job of .3.
    assert len(setting.decide().placed) == placed


def test_victims_of_two_queues_above_their_share_cost_nothing() -> None:
    setting = full(min_improvement_percent=1_000.0, max_jobs_per_round=1)
    for place in ("a", "b"):
        setting.add("A", 5, node=place)
        setting.add("C", 5, node=place)
    setting.add("B", 2, cpu=6)
    decided = setting.decide()
    assert decided.placed == {"B0": "a"}
    assert sorted(decided.out) == ["A0", "A1", "A2", "C0", "C1", "C2"]


def test_a_job_that_would_go_beyond_its_queues_share_is_not_placed() -> None:
    setting = full()
    setting.add("A", 10, node="a")
    setting.add("C", 10, node="b")
    setting.add("B", 2, cpu=8)
    decided = setting.decide()
    assert decided.placed == {}
    assert decided.waiting == {"B0": "NO_FIT", "B1": "NO_FIT"}


@pytest.mark.parametrize(
    ("optimiser", "victim"),
    [
        ({}, {"gang": "g", "size": 10}),
        ({}, {"cls": "solid"}),
        ({}, {"cls": "high"}),
        ({"max_victim_size": {"cpu": "500m"}}, {}),
        ({"min_job_size": {"cpu": "9"}}, {}),
        ({"max_round_fractions": {"cpu": 0.35}}, {}),
        ({"max_jobs_per_round": 0}, {}),
    ],
)
def test_bounds_hold(optimiser: dict[str, Any], victim: dict[str, Any]) -> None:
    setting = full(**optimiser)
    setting.add("A", 10, node="a", **victim)
    setting.add("A", 10, node="b", **(victim | ({"gang": "h"} if "gang" in victim else {})))
    setting.add("B", cpu=8)
    assert setting.decide().placed == {}


def test_the_number_of_jobs_a_round_is_bounded() -> None:
    setting = full(max_jobs_per_round=2)
    setting.add("A", 10, node="a")
    setting.add("A", 10, node="b")
    setting.add("B", 4, cpu=2)
    assert sorted(setting.decide().placed) == ["B0", "B1"]


def test_lower_jobs_go_first_and_for_nothing() -> None:
    setting = full(min_improvement_percent=1_000.0)
    setting.add("A", 5, node="a", cls="mid")
    setting.add("A", 5, node="a", cls="low")
    setting.add("A", 10, node="b", cls="mid")
    setting.policy = policy(
        protected_fraction=9.0,
        pool={
            "urgency_preemption": False,
            "optimiser": OptimiserPolicy(timeout_ms=1, max_jobs_per_round=9, min_improvement_percent=1_000.0),
        },
    )
    setting.add("B", cpu=5)
    assert sorted(setting.decide().out) == ["A5", "A6", "A7", "A8", "A9"]


def test_a_gang_goes_whole_and_agrees_in_its_label() -> None:
    setting = full(racks=("r1", "r2"))
    setting.nodes.append(node("c", labels={"rack": "r2"}))
    for place in ("a", "b", "c"):
        setting.add("A", 10, node=place)
    setting.add("B", 2, cpu=6, gang="g", size=2, label="rack")
    decided = setting.decide()
    assert decided.placed == {"B0": "b", "B1": "c"}
    assert decided.value == {"B0": ("rack", "r2"), "B1": ("rack", "r2")}


def test_a_gang_that_is_not_worth_it_leaves_everything_as_it_was() -> None:
    setting = full(min_improvement_percent=900.0)
    setting.add("A", 10, node="a")
    setting.add("A", 10, node="b")
    setting.add("B", 2, cpu=5, gang="g", size=2)
    setting.add("B", cpu=8)
    decided = setting.decide()
    # The tenth victim would bring A to its share: a twentieth for a half is 900 %, no more. Eight cost nothing.
    assert decided.placed == {"B2": "a"}
    held = {figures.name: figures.actual_share for figures in decided.decisions.queues}
    assert held == {"A": 0.6, "B": 0.4}


def test_what_was_placed_may_have_to_go_for_the_next() -> None:
    """As recorded: a queue's small job makes room for its larger one; who lost to it lost to the larger one."""
    setting = full()
    setting.add("A", 10, node="a", cls="solid")
    setting.add("A", 9, node="b", cls="solid")
    setting.add("A", node="b")
    setting.add("B", cpu=1, priority=0)
    setting.add("C", cpu=1)
    decided = setting.decide()
    assert list(decided.placed) in (["B0"], ["C0"])
    assert {winner for _, winner in decided.out.values()} == set(decided.placed)


def test_without_time_whole_deals_stay() -> None:
    setting = full()
    setting.add("A", 10, node="a")
    setting.add("A", 10, node="b")
    setting.add("B", cpu=8)
    decisions = schedule(setting.snapshot(), stops=(Stop(0, OPTIMISER),))
    assert not len(decisions.leases.row)
    assert decisions.optimised is not None
    assert decisions.optimised.ran_out
    assert decisions.termination is Termination.COMPLETED
    assert check_invariants(decisions) == ()


def test_it_takes_part_only_where_it_is_asked_to() -> None:
    setting = full()
    setting.add("A", 10, node="a")
    setting.add("B", cpu=8)
    del setting.numbers["optimiser"]
    assert setting.decide().decisions.optimised is None


def test_what_it_goes_by_is_part_of_the_capsule() -> None:
    setting = full(min_improvement_percent=50.0)
    setting.add("A", 10, node="a")
    setting.add("A", 10, node="b")
    setting.add("B", cpu=8)
    again = schedule(PoolSnapshot.from_bytes(setting.snapshot().to_bytes()))
    assert again.leases.row.tolist() == schedule(setting.snapshot()).leases.row.tolist() == [20]
