"""Small rounds made by hand, one rule each. The full rules are in tests/scenarios, tests/oracle and tests/vectors."""

import random
from typing import Any

import pytest

from armada.model.fleet import ClassLimit, Taint
from armada.model.jobs import SelectorRequirement, Toleration
from armada.model.policy import FloatingResource
from armada.scheduling.decisions import Method, Termination
from armada.scheduling.readiness.warming import warm_up
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from tests.unit.scheduling.builders import GPU_TAINT, Setting, node, policy


def test_best_fit_takes_the_node_with_the_least_left() -> None:
    setting = Setting(nodes=[node("a", 2), node("b", 5), node("c", 9)])
    for cpu in (2, 4, 6, 1):
        setting.add("A", cpu=cpu)
    assert setting.decide().placed == {"A0": "a", "A1": "b", "A2": "c", "A3": "b"}


def test_room_below_the_resolution_is_found() -> None:
    setting = Setting(nodes=[node("a", 1)])
    setting.add("A", cpu="550m")
    setting.add("A", cpu="450m")
    assert setting.decide().placed == {"A0": "a", "A1": "a"}


def test_queues_take_turns_by_weight() -> None:
    setting = Setting(nodes=[node("a", 10)], factors={"B": 4.0})
    setting.add("A", 10)
    setting.add("B", 10)
    assert sorted(setting.decide().placed) == ["A0", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "B0", "B1"]


def test_job_priority_orders_a_queue() -> None:
    setting = Setting(nodes=[node("a", 2)])
    for priority in (5, 1, 3):
        setting.add("A", priority=priority)
    assert sorted(setting.decide().placed) == ["A1", "A2"]


def test_fair_share_takes_from_those_that_would_return_last() -> None:
    setting = Setting(policy=policy(protected_fraction=1.0), nodes=[node("a", 10)])
    setting.add("A", 10, node="a")
    setting.add("B", 10)
    decided = setting.decide()
    assert sorted(decided.placed) == ["B0", "B1", "B2", "B3", "B4"]
    assert decided.out == {f"A{9 - n}": ("FAIR_SHARE", f"B{n}") for n in range(5)}
    assert decided.waiting == {f"B{n}": "NO_FIT" for n in range(5, 10)}


def test_jobs_that_differ_in_a_small_detail_have_verdicts_of_their_own() -> None:
    """F073: in whatever order they come, each that fits runs and each that does not says its own reason."""

    def affinity(operator: str) -> dict[str, Any]:
        return {"affinity": ((SelectorRequirement("zone", operator, ("c",)),),)}

    details: dict[str, tuple[dict[str, Any], str]] = {
        "selector": ({"node_selector": (("zone", "b"),)}, "the node's label zone is not b"),
        "none": ({}, ""),
        "in": (affinity("In"), "does not meet the required node affinity"),
        "not-in": (affinity("NotIn"), ""),
        "absent": ({"node_selector": (("rack", "b"),)}, "the node lacks the label rack"),
        "tolerant": ({"tolerations": (Toleration("team", "Exists"),)}, ""),
    }
    chance = random.Random(73)
    for _ in range(20):
        order = chance.sample(sorted(details), len(details))
        setting = Setting(
            nodes=[
                node("a", 5, labels={"zone": "a"}),
                node("t", 1, labels={"zone": "a"}, taints=(Taint("team", "x", "NoSchedule"),)),
            ]
        )
        for name in order:
            setting.add(name, shape=details[name][0])
        decided = setting.decide()
        assert sorted(decided.placed) == ["none0", "not-in0", "tolerant0"]
        for name, (_, words) in details.items():
            assert words in decided.text.get(f"{name}0", "")


def test_with_a_margin_only_the_excess_of_a_queue_is_drawn_again() -> None:
    for margin, drawn in ((None, 10), (0.0, 5), (0.4, 7)):
        setting = Setting(policy=policy(protected_fraction=1.0, excess_margin=margin), nodes=[node("a", 10)])
        setting.add("A", 10, node="a")
        setting.add("B", 10)
        decisions = schedule(setting.snapshot())
        assert (len(decisions.evicted), len(decisions.preemptions.row)) == (drawn, 5)


def test_a_queue_at_its_share_is_protected() -> None:
    setting = Setting(policy=policy(protected_fraction=1.0), nodes=[node("a", 10)])
    setting.add("A", 5, node="a")
    setting.add("B", 5, node="a")
    setting.add("C", 1)
    decided = setting.decide()
    assert decided.placed == {"C0": "a"}
    assert decided.out == {"B4": ("FAIR_SHARE", "C0")}


def crowded(**lines: dict[str, bool]) -> Setting:
    """Two nodes of 8 with 2 and 1 free, for ever as far as a round can know; A wants a whole one, B small ones."""
    setting = Setting(nodes=[node("x", 8), node("y", 8)], lines=lines)
    setting.add("C", 6, cls="solid", node="x")
    setting.add("C", 7, cls="solid", node="y")
    setting.add("A", cpu=8, cls="solid")
    setting.add("B", 5, cls="solid")
    return setting


def test_small_jobs_take_every_gap_before_a_large_one() -> None:
    """F023: without preemption a large job waits as long as small ones come, and its reason says so."""
    assert sorted(crowded().decide().placed) == ["B0", "B1", "B2"]


def test_room_is_held_for_a_job_that_has_waited_long() -> None:
    setting = crowded(A={"holds": True})
    decisions = schedule(setting.snapshot())
    held = decisions.held
    assert [setting.jobs[row].name for row in held.row] == ["A0"]
    assert [decisions.snapshot.nodes.ids[place] for place in held.node] == ["x"]
    assert setting.decide().placed == {"B0": "y"}


def test_held_room_goes_to_the_job_it_was_held_for() -> None:
    setting = Setting(nodes=[node("x", 8), node("y", 8)], lines={"A": {"holds": True}})
    setting.add("B", 12, cls="solid")
    setting.add("A", cpu=8, cls="solid")
    decided = setting.decide()
    assert decided.placed["A0"] == "x"
    assert len(decided.placed) == 9
    assert len(schedule(setting.snapshot()).held.row) == 0


def test_no_room_is_held_for_a_queue_that_has_its_due() -> None:
    setting = crowded(A={"holds": True}, C={"holds": True})
    setting.add("C", cpu=8, cls="solid")
    assert {setting.jobs[row].name for row in schedule(setting.snapshot()).held.row} == {"A0"}


def test_room_is_held_for_every_member_of_a_gang() -> None:
    setting = crowded(D={"holds": True})
    setting.add("D", 2, cpu=7, cls="solid", gang="g", size=2)
    decided = setting.decide()
    assert decided.placed == {}
    assert len(schedule(setting.snapshot()).held.row) == 2


def test_no_room_is_held_for_a_gang_with_a_member_that_fits_nowhere() -> None:
    setting = crowded(D={"holds": True})
    setting.add("D", 1, cpu=2, cls="solid", gang="g", size=2)
    setting.add("D", 1, cpu=9, cls="solid", gang="g", size=2)
    assert len(schedule(setting.snapshot()).held.row) == 0


def test_who_took_the_last_of_a_floating_resource_is_named() -> None:
    licences = FloatingResource("lic", "1", {"p": "2"})
    setting = Setting(policy=policy(floating_resources=(licences,)), nodes=[node("a"), node("b")])
    setting.add("A", 2, node="a", more={"lic": "1"})
    setting.add("B", 1, more={"lic": "1"})
    assert setting.decide().out == {"A1": ("FAIR_SHARE", "B0")}


def test_a_gang_that_is_put_back_keeps_the_value_its_members_agree_in() -> None:
    """Two gangs go away to a node, at priority 50; a job of a lower class of their own then needs most of it."""
    setting = Setting(nodes=[node("g", 4, labels={"rack": "r"}, taints=(GPU_TAINT,))])
    setting.add("A", 2, cls="roam", cpu="500m", gang="small", size=2, label="rack")
    setting.add("B", 2, cls="roam", gang="large", size=2, label="rack")
    setting.add("C", cls="low", cpu=3, shape={"tolerations": (Toleration("gpu", "Exists"),)})
    decisions = schedule(setting.snapshot())
    leases = {setting.jobs[lease.row].name: (lease.method, lease.uniformity) for lease in decisions.each_lease()}
    put_back = (Method.RESCHEDULED, ("rack", "r"))
    assert leases == {"A0": put_back, "A1": put_back, "C0": (Method.URGENCY, None)}


def test_urgency_displaces_lower_classes_of_the_same_queue() -> None:
    setting = Setting(nodes=[node("a", 4)])
    setting.add("A", 4, cls="low", node="a")
    setting.add("A", 3, cls="high")
    decided = setting.decide()
    assert decided.placed == {"A4": "a", "A5": "a", "A6": "a"}
    assert {job: kind for job, (kind, _) in decided.out.items()} == dict.fromkeys(("A1", "A2", "A3"), "URGENCY")


def test_what_is_not_preemptible_stays() -> None:
    setting = Setting(nodes=[node("a", 4)])
    setting.add("A", 4, cls="solid", node="a")
    setting.add("B", 2, cls="high")
    decided = setting.decide()
    assert (decided.placed, decided.out) == ({}, {})


def test_without_preemption_the_pool_keeps_what_runs() -> None:
    off = policy(pool={"fairshare_preemption": False, "urgency_preemption": False})
    setting = Setting(policy=off, nodes=[node("a", 4)])
    setting.add("A", 4, node="a")
    setting.add("B", 2, cls="high")
    assert setting.decide().placed == {}


def test_gang_is_placed_whole_or_not_at_all() -> None:
    setting = Setting(nodes=[node("a", 10)])
    setting.add("A", 6, cpu=2, gang="g", size=6)
    setting.add("A", 4, cpu=2)
    decided = setting.decide()
    assert sorted(decided.placed) == ["A6", "A7", "A8", "A9"]
    assert decided.waiting == {f"A{n}": "GANG_NO_FIT" for n in range(6)}


def test_incomplete_gang_waits_with_a_reason() -> None:
    setting = Setting(nodes=[node("a", 10)])
    setting.add("A", 2, gang="g", size=3)
    decided = setting.decide()
    assert decided.waiting == {"A0": "GANG_INCOMPLETE", "A1": "GANG_INCOMPLETE"}


def test_gang_is_preempted_whole() -> None:
    setting = Setting(nodes=[node("a", 4), node("b", 4)])
    for place in ("a", "b"):
        setting.add("A", 4, node=place, gang="g", size=8)
    setting.add("B", 1, cls="high")
    decided = setting.decide()
    assert len(decided.placed) == 1
    assert decided.out == {f"A{n}": ("FAIR_SHARE", "B0") for n in range(8)}


def test_gang_agrees_in_a_label_that_nobody_declared() -> None:
    racks = [("a", "r1"), ("b", "r1"), ("c", "r2"), ("d", "r2"), ("e", "r2")]
    setting = Setting(nodes=[node(name, 4, labels={"rack": rack}) for name, rack in racks])
    setting.add("A", 3, cpu=4, gang="g", size=3, label="rack")
    decided = setting.decide()
    assert decided.placed == {"A0": "c", "A1": "d", "A2": "e"}
    assert set(decided.value.values()) == {("rack", "r2")}


@pytest.mark.parametrize(("label", "reason"), [("rack", "LABEL_NO_FIT"), ("row", "LABEL_UNKNOWN")])
def test_gang_that_agrees_nowhere_says_why(label: str, reason: str) -> None:
    setting = Setting(nodes=[node(name, 4, labels={"rack": name}) for name in ("a", "b")])
    setting.add("A", 2, cpu=4, gang="g", size=2, label=label)
    assert setting.decide().waiting == {"A0": reason, "A1": reason}


def test_gang_disturbs_the_lowest_priorities() -> None:
    setting = Setting(policy=policy(protected_fraction=9.0))
    setting.nodes = [node("a", 4, labels={"rack": "r1"}), node("b", 4, labels={"rack": "r2"})]
    setting.add("A", 1, cpu=4, cls="mid", node="a")
    setting.add("A", 1, cpu=4, cls="low", node="b")
    setting.add("B", 2, cpu=2, cls="high", gang="g", size=2, label="rack")
    decided = setting.decide()
    assert decided.placed == {"B0": "b", "B1": "b"}
    assert list(decided.out) == ["A1"]


def test_taints_selectors_and_affinity_bar_nodes() -> None:
    setting = Setting(nodes=[node("a", taints=(Taint("gpu", "yes"),)), node("b", labels={"zone": "z"}), node("c", 1)])
    setting.add("A", cpu=2, shape={"tolerations": (Toleration("gpu", "Exists"),), "node_selector": (("host", "a"),)})
    setting.add("A", cpu=2, shape={"affinity": ((SelectorRequirement("zone", "In", ("z", "y")),),)})
    setting.add("A", cpu=2, shape={"affinity": ((SelectorRequirement("zone", "NotIn", ("z",)),),)})
    decided = setting.decide()
    assert decided.placed == {"A0": "a", "A1": "b"}
    assert decided.text["A2"] == (
        "no node has room for the job; 1 node: the taint gpu=yes:NoSchedule is not tolerated;"
        " 1 node: the node does not meet the required node affinity; 1 node: 2 cpu asked for, at most 1 offered"
    )


def test_an_overfull_node_keeps_its_jobs_and_gets_no_more() -> None:
    setting = Setting(nodes=[node("a", 4), node("b", 4)])
    setting.add("A", 5, node="a")
    setting.add("B", 6)
    decided = setting.decide()
    assert decided.placed == {f"B{n}": "b" for n in range(4)}
    assert decided.out == {}


def test_an_overfull_node_does_not_shelter_from_other_limits() -> None:
    floating = policy(protected_fraction=9.0, floating_resources=(FloatingResource("licence", "1", {"p": "2"}),))
    setting = Setting(policy=floating, nodes=[node("a", 2)])
    setting.add("A", 3, node="a", more={"licence": "1"})
    assert setting.decide().out == {"A2": ("DISPLACED", None)}


def test_unschedulable_nodes_are_left_out_unless_they_hold_jobs() -> None:
    setting = Setting(nodes=[node("a", 4, unschedulable=True), node("b", 4, unschedulable=True), node("c", 4)])
    setting.add("A", 1, node="a")
    setting.add("B", 1)
    assert setting.snapshot().nodes.ids == ("a", "c")
    assert setting.decide().placed == {"B0": "c"}


def test_limits_say_who_hit_them() -> None:
    limited = policy(max_round_fractions={"cpu": 0.2})
    setting = Setting(policy=limited, nodes=[node("a", 10)], lines={"B": {"tokens": 0.0}, "C": {"burst": 1}})
    setting.add("A", 4)
    setting.add("B", 1, cls="high")
    setting.add("C", 2, cls="high", gang="g", size=2)
    decided = setting.decide()
    assert sorted(decided.placed) == ["A0", "A1", "A2"]
    assert decided.waiting == {"A3": "ROUND_LIMIT", "B0": "QUEUE_RATE", "C0": "QUEUE_BURST", "C1": "QUEUE_BURST"}
    assert decided.decisions.termination is Termination.MAX_RESOURCES


def test_a_queue_may_hold_only_so_much_of_a_class() -> None:
    classes = tuple(
        kind
        if kind.name != "mid"
        else type(kind)(name="mid", priority=200, preemptible=True, limit=ClassLimit(fractions={"cpu": 0.35}))
        for kind in policy().priority_classes
    )
    setting = Setting(policy=policy(priority_classes=classes), nodes=[node("a", 10)])
    for cpu in (2, 2, 1):
        setting.add("A", cpu=cpu)
    decided = setting.decide()
    assert sorted(decided.placed) == ["A0", "A2"]
    assert decided.waiting == {"A1": "QUEUE_LIMIT"}


def test_lookback_bounds_how_far_a_queue_is_read() -> None:
    setting = Setting(policy=policy(max_queue_lookback=3), nodes=[node("a", 4)])
    for cpu in (1, 9, 9, 9, 1):
        setting.add("A", cpu=cpu)
    decided = setting.decide()
    assert sorted(decided.placed) == ["A0"]
    assert "A4" not in decided.waiting


def test_equal_shapes_in_other_words_share_their_refusal() -> None:
    setting = Setting(nodes=[node("a", 4)])
    setting.add("A", cpu="9")
    setting.add("A", cpu="9000m")
    assert len(setting.snapshot().shapes.rule) == 1
    assert setting.decide().waiting == {"A0": "NO_FIT", "A1": "NO_FIT"}


def test_a_resource_that_is_not_given_out_bars_the_job() -> None:
    setting = Setting(policy=policy(pool={"unscheduled_resources": ("gpu",)}), nodes=[node("a", gpu=8)])
    setting.add("A")
    setting.add("A", more={"gpu": "1"})
    decided = setting.decide()
    assert (list(decided.placed), decided.waiting) == (["A0"], {"A1": "UNSCHEDULED_RESOURCE"})


def test_an_unknown_resource_bars_the_job_and_is_named() -> None:
    """F089."""
    setting = Setting(nodes=[node("a")])
    setting.add("A", more={"fpga": "1"})
    assert "there is no resource fpga" in setting.decide().text["A0"]


def test_an_absurd_request_waits_and_spoils_no_sums() -> None:
    setting = Setting(nodes=[node("a")])
    setting.add("A", 300, memory="1e18")
    setting.add("A", 2, memory="1e18", gang="g", size=2)
    setting.add("B", 1)
    decided = setting.decide()
    assert list(decided.placed) == ["B0"]
    assert all(figures.demand_capped_share <= 1 for figures in decided.decisions.queues)


def test_a_request_beyond_all_amounts_fits_no_node_however_large() -> None:
    setting = Setting(nodes=[node("a", memory="1e18")])
    setting.add("A", memory="9223372036854775807")
    assert setting.decide().waiting == {"A0": "NO_FIT"}


def test_a_pool_without_nodes_still_says_how_queues_stand() -> None:
    setting = Setting(nodes=[])
    setting.add("A")
    setting.add("B")
    decided = setting.decide()
    assert [(figures.name, figures.fair_share) for figures in decided.decisions.queues] == [("A", 0.5), ("B", 0.5)]
    assert decided.placed == {}


def test_a_pool_without_jobs_decides_nothing() -> None:
    decided = Setting(nodes=[node("a")]).decide()
    assert (decided.placed, decided.out, decided.decisions.queues) == ({}, {}, ())


def test_the_snapshot_is_not_changed_by_a_round() -> None:
    setting = Setting(nodes=[node("a", 4), node("b", 4)])
    setting.add("A", 6, node="a", cpu="500m")
    setting.add("B", 6, cls="high")
    snapshot = setting.snapshot()
    before = snapshot.to_bytes()
    schedule(snapshot)
    assert snapshot.to_bytes() == before


def test_a_capsule_decides_alike() -> None:
    setting = Setting(nodes=[node("a", 4), node("b", 4)])
    setting.add("A", 6, node="a", cpu="500m")
    setting.add("B", 6, cls="high")
    snapshot = setting.snapshot()
    again = PoolSnapshot.from_bytes(snapshot.to_bytes())
    first, second = schedule(snapshot), schedule(again)
    assert first.leases.node.tolist() == second.leases.node.tolist()
    assert first.queues == second.queues


def test_warming_up_decides_a_round() -> None:
    warm_up()
