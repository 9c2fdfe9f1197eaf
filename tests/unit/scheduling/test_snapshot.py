"""Capsules: a snapshot as bytes, and back."""

import msgspec
import numpy as np
import pytest

from armada.model.errors import CorruptEntry
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import CAPSULE_VERSION, PoolSnapshot
from tests.unit.scheduling.builders import Setting, node


def setting() -> Setting:
    one = Setting(nodes=[node("a", 4), node("b", 2)])
    one.add("A", 3, node="a")
    one.add("B", 4, gang="g", size=4)
    one.add("C", 4)
    return one


def test_a_capsule_holds_everything() -> None:
    snapshot = setting().snapshot()
    again = PoolSnapshot.from_bytes(snapshot.to_bytes())
    assert again.to_bytes() == snapshot.to_bytes()
    assert again.rules.priorities == snapshot.rules.priorities
    for part in ("nodes", "shapes", "queues", "queued", "running", "gangs", "classes"):
        ours, theirs = getattr(snapshot, part), getattr(again, part)
        for name in ours.__struct_fields__:
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


def test_a_capsule_is_decided_as_the_snapshot_was() -> None:
    snapshot = setting().snapshot()
    again = PoolSnapshot.from_bytes(snapshot.to_bytes())
    assert schedule(again, 7).queues == schedule(snapshot, 7).queues


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"nothing", b"\x92\x01\x80"])
def test_other_bytes_are_refused(damage: bytes) -> None:
    with pytest.raises(CorruptEntry):
        PoolSnapshot.from_bytes(damage)


def test_a_cut_capsule_is_refused() -> None:
    with pytest.raises(CorruptEntry):
        PoolSnapshot.from_bytes(setting().snapshot().to_bytes()[:-9])


def test_a_capsule_of_another_version_is_refused() -> None:
    with pytest.raises(CorruptEntry, match=f"version {CAPSULE_VERSION + 1} can't be read"):
        PoolSnapshot.from_bytes(msgspec.msgpack.encode((CAPSULE_VERSION + 1, None)))


def test_a_snapshot_keeps_nothing_of_its_sources() -> None:
    one = setting()
    first = one.snapshot()
    before = first.to_bytes()
    one.nodes.clear()
    one.jobs.clear()
    assert first.to_bytes() == before


def test_queues_are_sorted_by_name_and_idle_ones_left_out() -> None:
    one = Setting(nodes=[node("a")])
    for queue in ("zeta", "alpha", "mu"):
        one.add(queue, 2)
    snapshot = one.snapshot()
    assert snapshot.queues.names == ("alpha", "mu", "zeta")
    assert snapshot.queued.row.tolist() == [2, 3, 4, 5, 0, 1]
