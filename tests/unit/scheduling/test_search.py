"""The node search gives the reference's choice, whatever way it takes; victims likewise. Compared on random pools."""

import random
from typing import Any

import pytest

from armada.model.fleet import Taint
from armada.model.jobs import Toleration
from armada.scheduling.kernels import codes
from armada.scheduling.kernels.nodes.room import change
from armada.scheduling.kernels.nodes.search import search
from armada.scheduling.placement import Board, Tuning, lay_out
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from tests.unit.scheduling.builders import Setting, node, policy

NOTHING_SPECIAL = Tuning(few_nodes=0, longest_walk=10**6)
ALWAYS_A_HEAP = Tuning(few_nodes=0, longest_walk=0, heaps=2, freed_ring=8)
ALWAYS_A_LIST = Tuning(few_nodes=10**6)
DISKS = ("fast", "slow")


def random_setting(seed: int, *, nodes: int, jobs: int, running: float) -> Setting:
    """A pool with uneven amounts, lanes by rack, ids that do not follow rows, taints, gangs and four classes.

    The label `disk` makes no lanes: a selector of it refuses nodes in the middle of one.
    """
    chance = random.Random(seed)
    setting = Setting(policy=policy(protected_fraction=chance.choice([0.0, 0.5, 1.0]), indexed_node_labels=("rack",)))
    names = [f"n{number}" for number in range(nodes)]
    chance.shuffle(names)
    setting.nodes = [
        node(
            name,
            chance.choice([2, 4, 4.05]),
            f"{chance.choice([16384, 17000, 40000])}Mi",
            gpu=chance.choice([0, 0, 0, 4]),
            labels={"rack": f"r{chance.randrange(1 + nodes // 8)}", "disk": chance.choice(DISKS)},
            taints=(Taint("gpu", "yes"),) if chance.random() < 0.2 else (),
        )
        for name in names
    ]
    room = {one.name: int(float(one.total["cpu"]) * 1000) for one in setting.nodes}
    for number in range(jobs):
        cpu = chance.choice([50, 100, 250, 500, 1000, 1500, 3000])
        values: dict[str, Any] = {
            "cls": chance.choice(["low", "mid", "mid", "high", "solid"]),
            "cpu": f"{cpu}m",
            "memory": f"{chance.choice([100, 512, 600, 1024])}Mi",
            "priority": chance.randrange(3),
        }
        if chance.random() < 0.3:
            values["shape"] = {"tolerations": (Toleration("gpu", "Exists"),)}
        elif chance.random() < 0.2:
            values["shape"] = {"node_selector": (("disk", chance.choice(DISKS)),)}
        queue = f"q{chance.randrange(6)}"
        place = chance.choice(names)
        if chance.random() < running and room[place] >= cpu:
            room[place] -= cpu
            setting.add(chance.choice(["q0", "q0", queue]), node=place, **values)
        elif chance.random() < 0.1:
            size = chance.randrange(2, 5)
            label = chance.choice(["", "", "rack", "disk"])
            setting.add(queue, size, gang=f"g{number}", size=size, label=label, **values)
        else:
            setting.add(queue, **values)
    return setting


def plain_choice(snapshot: PoolSnapshot, board: Board, bucket: int, shape: int) -> int:
    """The reference's choice: lanes sorted by rounded amounts and row, merged by the heads' exact amounts and rank."""
    free, nodes = board.nodes.free[bucket], snapshot.nodes
    want = board.shapes.wanted[shape]
    lanes: dict[int, list[int]] = {}
    indexed = snapshot.rules.indexed
    for row in range(len(nodes.ids)):
        if all(free[row, column] >= want[column] for column, _ in indexed):
            lanes.setdefault(int(nodes.lane[row]), []).append(row)
    for rows in lanes.values():
        rows.sort(key=lambda row: (*(int(free[row, column]) // step for column, step in indexed), row), reverse=True)
    while lanes:
        heads = {lane: rows[-1] for lane, rows in lanes.items()}
        lane = min(
            heads, key=lambda one: (*(free[heads[one], column] for column, _ in indexed), nodes.rank[heads[one]])
        )
        row = lanes[lane].pop()
        verdict = snapshot.shapes.verdict[snapshot.shapes.rule[shape], nodes.type[row]]
        if verdict < 0 and (free[row] >= want).all():
            return row
        if not lanes[lane]:
            del lanes[lane]
    return -1


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_search_finds_what_a_merge_of_lanes_finds(seed: int, *, is_listed: bool) -> None:
    chance = random.Random(seed)
    snapshot = random_setting(seed, nodes=90, jobs=150, running=0.5).snapshot()
    board = lay_out(snapshot, ALWAYS_A_LIST)
    nodes, shapes = board.nodes, board.shapes
    for _ in range(150):
        shape = chance.randrange(len(shapes.rule))
        bucket = chance.randrange(len(snapshot.rules.priorities))
        want, verdict = shapes.wanted[shape], shapes.verdict[shapes.rule[shape]]
        low, high = shapes.few_offsets[shapes.rule[shape]], shapes.few_offsets[shapes.rule[shape] + 1]
        found = search(nodes, bucket, want, verdict, shapes.few_nodes, low, high, is_listed)
        assert found == plain_choice(snapshot, board, bucket, shape)
        if found >= 0 and chance.random() < 0.7:
            change(nodes, found, want, -1, 0, bucket)
        elif chance.random() < 0.3:
            change(nodes, chance.randrange(len(snapshot.nodes.ids)), want, 1, 0, len(snapshot.rules.priorities) - 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_node_that_a_rule_refuses_still_stands_in_the_way_of_its_lane(seed: int) -> None:
    chance = random.Random(seed)
    setting = Setting(policy=policy(indexed_node_labels=("rack",)))
    setting.nodes = [
        node(
            f"n{number:02d}",
            chance.choice([4, 4.03, 4.06, 4.09, 4.1]),
            labels={"rack": f"r{chance.randrange(4)}", "disk": chance.choice(DISKS)},
        )
        for number in chance.sample(range(100), 40)
    ]
    for disk in DISKS:
        setting.add("A", 40, cpu="130m", shape={"node_selector": (("disk", disk),)})
    snapshot = setting.snapshot()
    board = lay_out(snapshot, ALWAYS_A_LIST)
    nodes, shapes = board.nodes, board.shapes
    for _ in range(60):
        shape = chance.randrange(len(shapes.rule))
        want, verdict = shapes.wanted[shape], shapes.verdict[shapes.rule[shape]]
        low, high = shapes.few_offsets[shapes.rule[shape]], shapes.few_offsets[shapes.rule[shape] + 1]
        listed = search(nodes, 0, want, verdict, shapes.few_nodes, low, high, True)
        assert listed == search(nodes, 0, want, verdict, shapes.few_nodes, 0, 0, False)
        assert listed == plain_choice(snapshot, board, 0, shape)
        change(nodes, listed, want, -1, 0, len(snapshot.rules.priorities) - 1)


@pytest.mark.parametrize("seed", range(12))
def test_no_decision_depends_on_the_way_of_searching(seed: int) -> None:
    setting = random_setting(seed, nodes=70, jobs=500, running=0.8)
    usual = setting.decide(NOTHING_SPECIAL)
    for tuning in (ALWAYS_A_HEAP, ALWAYS_A_LIST, Tuning()):
        other = setting.decide(tuning)
        assert other.placed == usual.placed
        assert other.out == usual.out
        assert other.waiting == usual.waiting


def test_random_pools_use_every_way() -> None:
    methods: set[str] = set()
    kinds: set[str] = set()
    for seed in range(12):
        decided = random_setting(seed, nodes=70, jobs=500, running=0.8).decide()
        methods |= set(decided.how.values())
        kinds |= {kind for kind, _ in decided.out.values()}
    assert methods >= {"FREE_ROOM", "FAIR_SHARE", "URGENCY", "RESCHEDULED"}
    assert kinds >= {"FAIR_SHARE", "URGENCY"}


def test_no_place_is_counted_as_considered() -> None:
    setting = Setting(nodes=[node("a")])
    setting.add("A")
    decisions = schedule(setting.snapshot())
    assert codes.NOT_CONSIDERED not in decisions.refusals.reason
