"""Checkpoints beside a log: the newest few, each with a hash, in files or in memory."""

import contextlib
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

from armada.eventlog.folder import write_durably
from armada.eventlog.port import Checkpoint
from armada.model.events import Position

CHECKPOINTS_KEPT: Final = 3

_MAGIC: Final = b"ARMADACHECKPOINT1"
_HASH_BYTES: Final = 32
_POSITION_BYTES: Final = 8
_HEADER_BYTES: Final = len(_MAGIC) + _HASH_BYTES + _POSITION_BYTES
_SUFFIX: Final = ".checkpoint"


class CheckpointStore(Protocol):
    """Where checkpoints are kept. All methods may raise OSError."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint, durably, and drop those that are too old."""
        ...

    def whole(self) -> list[Position]:
        """Return the positions of all checkpoints that read back whole, newest first."""
        ...

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that reads back whole."""
        ...


def sealed(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint's bytes with a hash over position and payload."""
    rest = checkpoint.position.to_bytes(_POSITION_BYTES, "little") + checkpoint.payload
    return _MAGIC + blake2b(rest, digest_size=_HASH_BYTES).digest() + rest


def unsealed(content: bytes) -> Checkpoint | None:
    """Return the checkpoint, or None when the bytes are not what was sealed."""
    if len(content) < _HEADER_BYTES or not content.startswith(_MAGIC):
        return None
    rest = content[len(_MAGIC) + _HASH_BYTES :]
    if blake2b(rest, digest_size=_HASH_BYTES).digest() != content[len(_MAGIC) : len(_MAGIC) + _HASH_BYTES]:
        return None
    return Checkpoint(position=int.from_bytes(rest[:_POSITION_BYTES], "little"), payload=rest[_POSITION_BYTES:])


class FolderCheckpoints:
    """One file a checkpoint, named by position."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint; older ones go only once this one is on disk."""
        self._folder.mkdir(exist_ok=True)
        write_durably(self._folder / f"{checkpoint.position:020d}{_SUFFIX}", sealed(checkpoint))
        for stale in self._files()[CHECKPOINTS_KEPT:]:
            stale.unlink(missing_ok=True)

    def whole(self) -> list[Position]:
        """Return the positions of all checkpoints that read back whole, newest first."""
        found = (self._read(file) for file in self._files())
        return [checkpoint.position for checkpoint in found if checkpoint is not None]

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that reads back whole."""
        return next((found for file in self._files() if (found := self._read(file)) is not None), None)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{_SUFFIX}"), reverse=True)

    def _read(self, file: Path) -> Checkpoint | None:
        with contextlib.suppress(OSError):
            return unsealed(file.read_bytes())
        return None


class MemoryCheckpoints:
    """Checkpoints of a log in memory."""

    def __init__(self) -> None:
        self._sealed: dict[Position, bytes] = {}

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""
        self._sealed[checkpoint.position] = sealed(checkpoint)
        for position in sorted(self._sealed, reverse=True)[CHECKPOINTS_KEPT:]:
            del self._sealed[position]

    def whole(self) -> list[Position]:
        """Return the positions of all checkpoints that read back whole, newest first."""
        return [position for position in sorted(self._sealed, reverse=True) if unsealed(self._sealed[position])]

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that reads back whole."""
        found = (unsealed(self._sealed[position]) for position in sorted(self._sealed, reverse=True))
        return next((checkpoint for checkpoint in found if checkpoint is not None), None)
