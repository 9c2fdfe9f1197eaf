"""The executor's journal: a file of marks, so that a restart doesn't run again what ran before.

Lines of JSON, appended in batches and not synced: it has to outlive the process, not the machine, for pods of this
machine don't outlive it either. A line cut short by a crash is skipped. The file is rewritten when most of it is old.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from armada.executor.holding.runs import Mark, Remembered, marks_of, remember
from armada.model.errors import StartupRefused

REWRITE_LINES: Final = 20_000
"""The file is rewritten once it has this many lines more than twice what is needed."""


class Journal:
    """One executor's journal at `path`; `open()` before use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._encoder = msgspec.json.Encoder()
        self._runs: dict[str, Remembered] = {}
        self._lines = 0

    def open(self) -> dict[str, Remembered]:
        """Read what an earlier life left, rewrite the file, and return it. Raises StartupRefused."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            marks = _read(self._path) if self._path.exists() else []
            self._runs = remember(marks, {})
            self._rewrite()
        except OSError as error:
            raise StartupRefused(f"the executor's journal {self._path} can't be used: {error.strerror}") from error
        return dict(self._runs)

    def write(self, marks: Sequence[Mark]) -> None:
        """Append marks. Raises OSError when the disk takes no more."""
        if self._file is None:
            raise ValueError("the journal is not open")
        self._file.write(b"".join(self._encoder.encode(mark) + b"\n" for mark in marks))
        self._file.flush()
        self._lines += len(marks)
        remember(marks, self._runs)
        if self._lines > REWRITE_LINES + 2 * 3 * len(self._runs):
            self._rewrite()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rewrite(self) -> None:
        self.close()
        marks = marks_of(self._runs)
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(b"".join(self._encoder.encode(mark) + b"\n" for mark in marks))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._file = self._path.open("ab")
        self._lines = len(marks)


def _read(path: Path) -> list[Mark]:
    decoder = msgspec.json.Decoder(Mark)
    marks: list[Mark] = []
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            marks.append(decoder.decode(line))
    return marks
