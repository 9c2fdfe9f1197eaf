"""Nodes and shapes as columns."""

import random

import numpy as np

from armada.model.fleet import AwayCondition, AwayNodeType, AwayTypeRef, PriorityClass, Taint, WellKnownNodeType
from armada.model.jobs import JobShape, Toleration
from armada.model.policy import FloatingResource
from armada.scheduling.matching import UNSCHEDULABLE
from armada.scheduling.tables import MAX_AMOUNT, FleetTable, ShapeTable
from tests.unit.scheduling.builders import CLASSES, node, policy

FLEX = PriorityClass(
    name="flex",
    priority=200,
    preemptible=True,
    away_node_types=(
        AwayNodeType(priority=50, node_types=(AwayTypeRef("big", (AwayCondition("gpu", ">", "500m"),)),)),
        AwayNodeType(priority=40, node_types=(AwayTypeRef("spot"),)),
    ),
)
AWAY = policy(
    priority_classes=(*CLASSES, FLEX),
    well_known_node_types=(
        *policy().well_known_node_types,
        WellKnownNodeType(name="big", taints=(Taint("big", "*"),)),
        WellKnownNodeType(name="spot", taints=(Taint("spot", "yes", "NoExecute"),)),
    ),
)


def shape(cpu: str = "1", cls: str = "mid", **values: object) -> JobShape:
    return JobShape(requests=(("cpu", cpu),), priority_class=cls, **values)  # type: ignore[arg-type] # test values


def test_what_others_use_is_not_offered() -> None:
    used = {0: {"cpu": "1"}, 100: {"cpu": "500m", "memory": "1Gi"}}
    fleet = FleetTable(policy(), "p", [node("a", 4, "8Gi", unallocatable=used)])
    assert fleet.total.tolist() == [[8 * 2**30, 4000, 0]]
    assert fleet.allocatable.tolist() == [[7 * 2**30, 2500, 0]]


def test_floating_resources_are_on_no_node() -> None:
    floating = policy(floating_resources=(FloatingResource("licence", "1", {"p": "5"}),))
    one = node("a")
    one.total["licence"] = "7"
    assert FleetTable(floating, "p", [one]).total[0, -1] == 0


def test_lanes_are_told_by_indexed_taints_and_labels() -> None:
    nodes = [node("a"), node("b", labels={"rack": "r"}), node("c", taints=(Taint("x"),)), node("d")]
    by_rack = FleetTable(policy(indexed_node_labels=("rack",), indexed_taints=()), "p", nodes)
    assert by_rack.lane.tolist() == [0, 1, 0, 0]
    by_taint = FleetTable(policy(indexed_taints=("x",)), "p", nodes)
    assert by_taint.lane.tolist() == [0, 0, 1, 0]
    by_all = FleetTable(policy(), "p", nodes)
    assert by_all.lane.tolist() == [0, 0, 1, 0]


def test_ranks_are_places_in_the_order_of_ids() -> None:
    assert FleetTable(policy(), "p", [node("n9"), node("n10"), node("a")]).rank.tolist() == [2, 1, 0]


def test_shut_nodes_get_a_taint_for_the_round() -> None:
    fleet = FleetTable(policy(), "p", [node("a"), node("b", taints=(Taint("x"),)), node("c", unschedulable=True)])
    sets, own = fleet.taint_sets_with(np.array([1, 1, 1], np.uint8))
    assert [sets[index] for index in own] == [(UNSCHEDULABLE,), (Taint("x"), UNSCHEDULABLE), (UNSCHEDULABLE,)]
    assert fleet.taint_sets_with(np.zeros(3, np.uint8)) == (fleet.taint_sets, fleet.taint_set)


def test_equal_shapes_are_one_kind() -> None:
    table = ShapeTable(policy())
    both = (Toleration("a", "Exists"), Toleration("b", "Exists"))
    table.extend([shape("1"), shape("1000m"), shape("1", tolerations=both), shape("1", tolerations=both[::-1])])
    table.extend([shape("1", cls="low")])
    assert table.kind.tolist() == [0, 0, 1, 1, 2]
    assert len(table.rules) == 2


def test_requests_round_up_and_are_held() -> None:
    table = ShapeTable(policy())
    table.extend([shape("1500u"), shape("1e30"), shape("-1")])
    assert table.request[table.kind][:, 1].tolist() == [2, MAX_AMOUNT, 0]


def test_a_replaced_shape_gives_its_place_away() -> None:
    table = ShapeTable(policy())
    table.extend([shape("1"), shape("2", node_selector=(("a", "b"),)), shape("1")])
    table.replace(1, shape("3", node_selector=(("a", "c"),)))
    assert table.request[table.kind][:, 1].tolist() == [1000, 3000, 1000]
    before = table.rules_epoch
    table.replace(0, shape("4"))
    table.replace(2, shape("5", node_selector=(("a", "d"),)))
    assert table.request[table.kind][:, 1].tolist() == [4000, 3000, 5000]
    assert [table.rules[rule].node_selector for rule in table.rule[table.kind]] == [(), (("a", "c"),), (("a", "d"),)]
    assert table.rules_epoch > before


def test_many_replacements_leave_nothing_behind() -> None:
    chance = random.Random(1)
    table = ShapeTable(AWAY)
    made = [shape(str(1 + n % 7), cls=("mid", "flex")[n % 2], node_selector=(("k", str(n % 5)),)) for n in range(70)]
    table.extend(made[:10])
    shown = dict(enumerate(made[:10]))
    for _ in range(500):
        row = chance.randrange(10)
        shown[row] = chance.choice(made)
        table.replace(row, shown[row])
    fresh = ShapeTable(AWAY)
    fresh.extend(shown[row] for row in range(10))
    for row in range(10):
        ours, theirs = int(table.kind[row]), int(fresh.kind[row])
        assert table.request[ours].tolist() == fresh.request[theirs].tolist()
        assert table.rules[table.rule[ours]] == fresh.rules[fresh.rule[theirs]]
        assert [(table.rules[rule], at) for rule, at, _ in table.away.get(ours, ())] == [
            (fresh.rules[rule], at) for rule, at, _ in fresh.away.get(theirs, ())
        ]
    assert len(table.request) <= 20


def test_away_entries_need_their_conditions_exactly() -> None:
    table = ShapeTable(AWAY)
    with_gpu = JobShape(requests=(("cpu", "1"), ("gpu", "501m")), priority_class="flex")
    without = JobShape(requests=(("cpu", "1"), ("gpu", "500m")), priority_class="flex")
    table.extend([with_gpu, without])
    first, second = (table.away[int(kind)] for kind in table.kind)
    assert [(priority, entry) for _, priority, entry in first] == [(50, 0), (40, 1)]
    assert [(priority, entry) for _, priority, entry in second] == [(40, 1)]
    assert table.rules[first[0][0]].tolerations == (Toleration("big", "Exists", "", "NoSchedule"),)
    assert table.rules[first[1][0]].tolerations == (Toleration("spot", "Equal", "yes", "NoExecute"),)


def test_pods_are_counted_where_node_limits_are_respected() -> None:
    table = ShapeTable(policy(respects_node_pod_limits=True))
    table.extend([shape("1")])
    assert table.request[0].tolist() == [0, 1000, 0, 1]
