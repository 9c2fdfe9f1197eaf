"""Kubernetes' rules of taints, selectors and node affinity, one by one and all at once."""

import random

import numpy as np
import pytest

from armada.model.fleet import Node, Taint
from armada.model.jobs import SelectorRequirement, Toleration
from armada.scheduling.matching import (
    FITS,
    Judgements,
    PlacementRule,
    Verdicts,
    match,
    requirement_holds,
    tolerates,
)
from armada.scheduling.tables import FleetTable
from tests.unit.scheduling.builders import node, policy

GPU = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (Toleration("gpu", "", "yes"), True),
        (Toleration("gpu", "Equal", "no"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("", "Exists"), True),
        (Toleration("cpu", "Exists"), False),
        (Toleration("gpu", "Unheard", "yes"), False),
    ],
)
def test_toleration_covers_a_taint(toleration: Toleration, *, covers: bool) -> None:
    assert tolerates(toleration, GPU) is covers


@pytest.mark.parametrize(
    ("operator", "values", "value", "holds"),
    [
        ("In", ("a", "b"), "b", True),
        ("In", ("a",), None, False),
        ("In", (), "a", False),
        ("NotIn", ("a",), "b", True),
        ("NotIn", ("a",), None, True),
        ("NotIn", (), "a", False),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "a", False),
        ("Gt", ("3",), "4", True),
        ("Gt", ("3",), "3", False),
        ("Gt", ("x",), "4", False),
        ("Gt", ("1", "2"), "4", False),
        ("Lt", ("3",), "-4", True),
        ("Lt", ("3",), "four", False),
        ("Lt", ("3",), None, False),
        ("Lt", (str(2**63),), "1", False),
        ("Near", ("3",), "3", False),
    ],
)
def test_requirement_on_a_label(operator: str, values: tuple[str, ...], value: str | None, *, holds: bool) -> None:
    assert requirement_holds(SelectorRequirement("k", operator, values), value) is holds


def plain_verdict(rule: PlacementRule, labels: dict[str, str], name: str, taints: tuple[Taint, ...]) -> bool:
    """Whether a rule accepts a node, evaluated the slow way."""
    if any(not any(tolerates(one, taint) for one in rule.tolerations) for taint in taints):
        return False
    if any(labels.get(key) != value for key, value in rule.node_selector):
        return False
    if rule.affinity is None:
        return True
    return any(
        term and all(requirement_holds(one, name if one.on_field else labels.get(one.key)) for one in term)
        for term in rule.affinity
    )


def random_rule(chance: random.Random) -> PlacementRule:
    def requirement() -> SelectorRequirement:
        if chance.random() < 0.2:
            return SelectorRequirement("metadata.name", chance.choice(["In", "NotIn"]), ("n1", "n2"), on_field=True)
        operator = chance.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        count = 1 if operator in {"Gt", "Lt"} else chance.randrange(3)
        return SelectorRequirement(chance.choice("ab"), operator, tuple(str(chance.randrange(4)) for _ in range(count)))

    return PlacementRule(
        tolerations=(Toleration("t", "Exists"),) if chance.random() < 0.5 else (),
        node_selector=(("a", str(chance.randrange(3))),) if chance.random() < 0.3 else (),
        affinity=chance.choice(
            [None, None, tuple(tuple(requirement() for _ in range(chance.randrange(3))) for _ in range(2)), ()]
        ),
    )


def random_nodes(chance: random.Random) -> list[Node]:
    return [
        node(
            f"n{number}",
            labels={key: str(chance.randrange(4)) for key in "ab" if chance.random() < 0.8},
            taints=(Taint("t", "1"),) if chance.random() < 0.3 else (),
        )
        for number in range(40)
    ]


def check(verdicts: Verdicts, rules: list[PlacementRule], nodes: list[Node]) -> None:
    for row, rule in enumerate(rules):
        for place, one in enumerate(nodes):
            accepted = verdicts.verdict[row, verdicts.type[place]] == FITS
            assert accepted == plain_verdict(rule, one.labels, one.name, one.taints)


@pytest.mark.parametrize("seed", range(20))
def test_verdicts_on_types_equal_those_on_nodes(seed: int) -> None:
    chance = random.Random(seed)
    nodes, rules = random_nodes(chance), [random_rule(chance) for _ in range(8)]
    fleet = FleetTable(policy(), "p", nodes)
    keys = ("a", "b", "\0metadata.name")
    check(match(rules, fleet.taint_sets, fleet.taint_set, {key: fleet.label(key) for key in keys}), rules, nodes)


@pytest.mark.parametrize("seed", range(10))
def test_rules_may_come_and_go_and_places_be_used_again(seed: int) -> None:
    chance = random.Random(seed)
    nodes = random_nodes(chance)
    fleet = FleetTable(policy(), "p", nodes)
    judgements = Judgements(fleet.taint_sets, fleet.taint_set, fleet.label)
    rules = [random_rule(chance) for _ in range(12)]
    for _ in range(8):
        places = sorted(chance.sample(range(12), chance.randrange(12)))
        check(judgements.verdicts(rules, places), [rules[place] for place in places], nodes)
        rules[chance.randrange(12)] = random_rule(chance)


def test_verdicts_of_a_rule_lie_together_when_types_were_split() -> None:
    """Kernels are compiled for such tables: another layout would have them compiled once more."""
    fleet = FleetTable(policy(), "p", [node("a", labels={"rack": "r"}), node("b"), node("c", labels={"rack": "s"})])
    judgements = Judgements(fleet.taint_sets, fleet.taint_set, fleet.label)
    rules = [
        PlacementRule(),
        PlacementRule(node_selector=(("rack", "r"),)),
        PlacementRule(node_selector=(("rack", "s"),)),
    ]
    for count in (1, 2, 3):
        assert judgements.verdicts(rules[:count], range(count)).verdict.flags.c_contiguous


def test_a_rule_is_judged_once() -> None:
    fleet = FleetTable(policy(), "p", [node("a"), node("b")])
    judged: list[PlacementRule] = []

    def widened(rule: PlacementRule) -> PlacementRule:
        judged.append(rule)
        return rule

    judgements = Judgements(fleet.taint_sets, fleet.taint_set, fleet.label, widened=widened)
    rules = [PlacementRule(node_selector=(("host", host),)) for host in ("a", "b", "gone")]
    for places in ([0, 1], [0, 1, 2], [2]):
        judgements.verdicts(rules, places)
    assert judged == rules
    assert len(judgements) == 3


def test_nodes_that_no_rule_tells_apart_are_one_type() -> None:
    fleet = FleetTable(policy(), "p", [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")])
    rule = PlacementRule(node_selector=(("zone", "a"),))
    assert len(match([PlacementRule()], fleet.taint_sets, fleet.taint_set, {}).first) == 1
    verdicts = match([rule], fleet.taint_sets, fleet.taint_set, {"zone": fleet.label("zone")})
    assert verdicts.type[0] == verdicts.type[1] != verdicts.type[2]
    columns = {key: fleet.label(key) for key in ("zone", "host")}
    split = match([rule], fleet.taint_sets, fleet.taint_set, columns, ["host"])
    assert len(split.first) == 3


def test_verdict_names_the_first_test_that_failed() -> None:
    fleet = FleetTable(policy(), "p", [node("a", taints=(GPU,)), node("b"), node("c", labels={"zone": "y"})])
    rule = PlacementRule(node_selector=(("zone", "z"),))
    verdicts = match([rule], fleet.taint_sets, fleet.taint_set, {"zone": fleet.label("zone")})
    assert [verdicts.texts[verdicts.verdict[0, kind]] for kind in verdicts.type] == [
        "the taint gpu=yes:NoSchedule is not tolerated",
        "the node lacks the label zone",
        "the node's label zone is not z",
    ]


def test_a_fleet_of_none_has_no_types() -> None:
    fleet = FleetTable(policy(), "p", [])
    verdicts = match([PlacementRule()], fleet.taint_sets, fleet.taint_set, {})
    assert verdicts.verdict.shape == (1, 0)
    assert np.array_equal(verdicts.type, [])
