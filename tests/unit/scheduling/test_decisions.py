"""Decisions: texts, names, and that broken ones are noticed."""

from typing import Any

import msgspec
import numpy as np
import pytest

from armada.scheduling import decisions as results
from armada.scheduling.decisions import REASON_TEXTS, Decisions, Method, PreemptionKind, Reason, check_invariants
from armada.scheduling.kernels import codes
from armada.scheduling.round import schedule
from tests.unit.scheduling.builders import Setting, node, policy


def decided() -> Decisions:
    """A round with leases, preemptions, a gang and refusals."""
    setting = Setting(
        policy=policy(protected_fraction=1.0), nodes=[node("a", 4), node("b", 4, labels={"zone": "z"}), node("c", 1)]
    )
    setting.add("A", 3, node="a")
    setting.add("A", 3, node="b", gang="old", size=3)
    setting.add("A", cls="solid", node="c")
    setting.add("B", 2, gang="new", size=2)
    setting.add("B", 2, cls="high")
    setting.add("B", cpu=9)
    return schedule(setting.snapshot())


def broken(one: Decisions, part: str, **columns: Any) -> Decisions:
    return msgspec.structs.replace(one, **{part: msgspec.structs.replace(getattr(one, part), **columns)})


def test_every_reason_has_words_and_every_code_a_name() -> None:
    assert set(REASON_TEXTS) == set(Reason)
    assert max(Reason) == int(codes.QUEUE_NEW_JOB_TIME)
    assert {int(method) for method in Method} == set(range(1, 7))


def test_a_sound_round_breaks_no_invariant() -> None:
    one = decided()
    assert len(one.leases.row) > 0
    assert len(one.preemptions.row) > 0
    assert check_invariants(one) == ()


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        ("leases", {"node": [2]}, "a node has given out more than it has at priority -1"),
        ("leases", {"drop": 1}, "a gang is leased in part"),
        ("preemptions", {"drop": 1}, "a gang is preempted in part"),
        ("refusals", {"repeat": True}, "a queued job is decided twice"),
        ("preemptions", {"repeat": True}, "a running job is preempted twice"),
    ],
)
def test_a_broken_round_is_noticed(part: str, change: dict[str, Any], says: str) -> None:
    one = decided()
    columns = {name: getattr(getattr(one, part), name) for name in getattr(one, part).__struct_fields__}
    if "drop" in change:
        columns = {name: column[: -change["drop"]] for name, column in columns.items()}
    elif "repeat" in change:
        columns = {name: np.concatenate((column, column[:1])) for name, column in columns.items()}
    else:
        columns["node"] = np.full_like(columns["node"], change["node"][0])
    found = check_invariants(broken(one, part, **columns))
    assert any(text.startswith(says) for text in found), found


def test_a_protected_queue_that_loses_to_fairness_is_noticed() -> None:
    setting = Setting(policy=policy(protected_fraction=1.0), nodes=[node("a", 4)])
    setting.add("A", 2, cls="low", node="a")
    setting.add("C", 2, cls="low", node="a")
    setting.add("B", cls="high")
    one = schedule(setting.snapshot())
    assert check_invariants(one) == ()
    kind = np.full_like(one.preemptions.kind, PreemptionKind.FAIR_SHARE)
    spared = msgspec.structs.replace(one.snapshot.rules, protected_fraction=9.0)
    broken_rules = msgspec.structs.replace(one, snapshot=msgspec.structs.replace(one.snapshot, rules=spared))
    found = check_invariants(broken(broken_rules, "preemptions", kind=kind))
    assert len(found) == 1
    assert found[0].startswith("fairness takes from queue")


def test_shares_beyond_the_pool_are_noticed() -> None:
    one = decided()
    too_much = tuple(msgspec.structs.replace(queue, demand_capped_share=0.9) for queue in one.queues)
    assert "the demand-capped shares exceed the pool" in check_invariants(msgspec.structs.replace(one, queues=too_much))


def test_a_solid_victim_is_noticed() -> None:
    one = decided()
    solid = next(
        row
        for row, shape in zip(one.snapshot.running.row, one.snapshot.running.shape, strict=True)
        if not one.snapshot.classes.preemptible[one.snapshot.shapes.class_row[shape]]
    )
    rows = one.preemptions.row.copy()
    rows[0] = solid
    assert "a job that is not preemptible is preempted" in check_invariants(broken(one, "preemptions", row=rows))


def test_a_lease_against_the_rules_is_noticed() -> None:
    setting = Setting(nodes=[node("a"), node("b", 4)])
    setting.add("A", shape={"node_selector": (("host", "a"),)})
    setting.add("A", cpu=6, shape={"node_selector": (("host", "a"),)})
    one = schedule(setting.snapshot())
    found = check_invariants(broken(one, "leases", node=np.ones_like(one.leases.node)))
    assert found[:2] == (
        "a job is leased to a node that it must not run on",
        "a job is leased to a node that is smaller than the job",
    )


def test_overdrawn_tokens_are_noticed() -> None:
    setting = Setting(nodes=[node("a")])
    setting.add("A", 2)
    one = schedule(setting.snapshot())
    one.snapshot.queues.tokens[0] = 1.0
    assert check_invariants(one) == ("more jobs are leased than there were tokens",)


def test_each_decision_has_names() -> None:
    one = decided()
    lease = next(one.each_lease())
    assert lease.node_id in {"a", "b", "c"}
    assert {preemption.kind for preemption in one.each_preemption()} <= set(PreemptionKind)
    assert {reason for _, reason in one.each_refusal()} == {Reason.NO_FIT}
    assert "9 cpu asked for, at most 4 offered" in one.reason_text(0)


def test_room_that_is_taken_is_told_from_room_that_is_not_there() -> None:
    setting = Setting(nodes=[node("a", 4), node("b", 2)])
    setting.add("A", cls="solid", cpu=4, node="a")
    setting.add("B", cpu=3)
    one = schedule(setting.snapshot())
    assert one.reason_text(0) == (
        "no node has room for the job; 1 node: 3 cpu asked for, at most 2 offered; 1 node could hold it but is in use"
    )
    assert results.shown(one.snapshot, 1, 1500) == "1500m"
