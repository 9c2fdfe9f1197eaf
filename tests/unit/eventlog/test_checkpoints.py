"""Checkpoints: the newest few, each either whole or passed over."""

from pathlib import Path

import pytest

from armada.eventlog.checkpoints import (
    CHECKPOINTS_KEPT,
    CheckpointStore,
    FolderCheckpoints,
    MemoryCheckpoints,
    sealed,
    unsealed,
)
from armada.eventlog.port import Checkpoint


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    return FolderCheckpoints(tmp_path / "checkpoints") if request.param == "folder" else MemoryCheckpoints()


def test_the_newest_few_are_kept(store: CheckpointStore) -> None:
    assert store.newest() is None
    assert store.whole() == []
    for position in (1, 9, 10, 100, 1_000_000):
        store.save(Checkpoint(position=position, payload=str(position).encode()))
    assert store.whole() == [1_000_000, 100, 10][:CHECKPOINTS_KEPT]
    assert store.newest() == Checkpoint(position=1_000_000, payload=b"1000000")


def test_the_same_position_again_replaces_the_first(store: CheckpointStore) -> None:
    store.save(Checkpoint(position=5, payload=b"a"))
    store.save(Checkpoint(position=5, payload=b"b"))
    assert store.whole() == [5]
    assert store.newest() == Checkpoint(position=5, payload=b"b")


def test_any_damage_is_seen() -> None:
    content = sealed(Checkpoint(position=77, payload=b"payload"))
    assert unsealed(content) == Checkpoint(position=77, payload=b"payload")
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        assert unsealed(bytes(damaged)) is None
        assert unsealed(content[:place]) is None
    assert unsealed(content + b"x") is None


def test_files_that_are_half_written_or_strange_are_passed_over(tmp_path: Path) -> None:
    store = FolderCheckpoints(tmp_path)
    store.save(Checkpoint(position=5, payload=b"five"))
    (tmp_path / f"{6:020d}.checkpoint").write_bytes(b"")
    (tmp_path / f"{7:020d}.checkpoint").mkdir()
    (tmp_path / f"{8:020d}.checkpoint.new").write_bytes(b"half")
    assert store.newest() == Checkpoint(position=5, payload=b"five")
    assert store.whole() == [5]
