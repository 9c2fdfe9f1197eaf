"""A container's output as lines with times, and its size in bounds.

Programs write straight into the file, so nobody stamps their lines. Instead the file's size is noted once a second: a
line's time is the last moment at which the file did not reach it yet, plus its distance from there in nanoseconds. So
times grow strictly, are right to about a second, and say exactly where to go on reading.

Offsets are logical: they count every byte ever written, also those that were cut away since.
"""

import bisect
import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec

from armada.executor.cluster import LogLine, LogRequest

NANO_PER_MILLI: Final = 1_000_000
LINE_SHIFT_NS: Final = 1_000
"""Room for notes before the first line of a log."""
MAX_LINE_BYTES: Final = 65_536
"""An unfinished line of this length is shown as far as it goes."""


class _Cut(msgspec.Struct, array_like=True):
    """How much of a log was cut away: logical offsets at which the old part and the present file begin."""

    old_start: int = 0
    start: int = 0


class ContainerLog:
    """The log of one container at `path` (`N.log`), with `N.times`, `N.cut` and `N.old` beside it."""

    def __init__(self, path: Path, started_ms: int, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._times: list[tuple[int, int]] = [(0, started_ms)]
        self._size = 0
        self._noted_ms = started_ms
        self._cut = _Cut()
        self._load()

    def _load(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._path.with_suffix(".times").read_text().splitlines():
                offset, _, time_ms = line.partition(" ")
                self._append(int(offset), int(time_ms))
        with contextlib.suppress(OSError, msgspec.DecodeError):
            self._cut = msgspec.json.decode(self._path.with_suffix(".cut").read_bytes(), type=_Cut)
        with contextlib.suppress(OSError):
            self._noted_ms = max(self._noted_ms, self._path.stat().st_mtime_ns // NANO_PER_MILLI)
        self._size = self._logical_size()

    def _append(self, offset: int, time_ms: int) -> bool:
        """Remember that the file had only `offset` bytes at a time. Marks grow; silence moves the last one."""
        last_offset, last_ms = self._times[-1]
        if offset < last_offset or time_ms <= last_ms:
            return False
        if offset == last_offset:
            self._times.pop()
        self._times.append((offset, time_ms))
        return True

    def _logical_size(self) -> int:
        try:
            return self._cut.start + self._path.stat().st_size
        except OSError:
            return self._cut.start

    def note(self, now_ms: int) -> None:
        """Look at the file: remember when it grew, and cut it when it is too long."""
        size = self._logical_size()
        if size != self._size:
            if self._append(self._size, self._noted_ms):
                with contextlib.suppress(OSError), self._path.with_suffix(".times").open("a") as file:
                    file.write(f"{self._size} {self._noted_ms}\n")
            self._size = size
        self._noted_ms = now_ms
        if size - self._cut.start > self._limit_bytes:
            with contextlib.suppress(OSError):
                self._shorten()

    def _shorten(self) -> None:
        """Keep the last quarter aside and start the file anew; what is written in between is lost."""
        keep = self._limit_bytes // 4
        with self._path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - keep, 0))
            kept = file.read(keep)
            self._path.with_suffix(".old").write_bytes(kept)
            self._cut = _Cut(self._cut.start + size - len(kept), self._cut.start + size)
            self._path.with_suffix(".cut").write_bytes(msgspec.json.encode(self._cut))
            file.truncate(0)

    def view(self, *, is_complete: bool) -> "LogView":
        """The log as it is now, for reading in another thread. `is_complete`: nothing will be added any more."""
        times = self._times
        if self._size >= times[-1][0] and self._noted_ms > times[-1][1]:
            # What the next `note` will remember if the file has grown by then.
            kept = times[:-1] if self._size == times[-1][0] else times
            times = [*kept, (self._size, self._noted_ms)]
        return LogView(self._path, tuple(times), self._cut, self._logical_size(), is_complete=is_complete)


class LogView:
    """A log as it was at one moment: marks (offset, time), where the files begin, and where the log ended."""

    def __init__(
        self, path: Path, times: tuple[tuple[int, int], ...], cut: _Cut, end: int, *, is_complete: bool
    ) -> None:
        self._path = path
        self._times = times
        self._cut = cut
        self._end = end
        self._is_complete = is_complete

    def lines(self, request: LogRequest) -> list[LogLine]:
        """Lines after `since_ns`, or the last `tail_lines`; a last line without its end only of a complete log."""
        start = self._cut.old_start
        seen = self._seen_offset(request.since_ns)
        is_inside = seen >= start
        start = max(seen, start)
        if request.tail_lines is not None and self._end - start > request.limit_bytes:
            start = self._end - request.limit_bytes
            is_inside = True
        content = self._read(start, request.limit_bytes)
        if is_inside:
            # `start` lies somewhere in a line that was read already: go on with the next one.
            while content and b"\n" not in content:
                start += len(content)
                content = self._read(start, request.limit_bytes)
            skip = content.find(b"\n") + 1
            content, start = content[skip:], start + skip
        lines = self._split(content, start)
        if request.tail_lines is not None:
            lines = lines[max(len(lines) - request.tail_lines, 0) :]
        return lines

    def _split(self, content: bytes, start: int) -> list[LogLine]:
        lines: list[LogLine] = []
        is_complete = self._is_complete and start + len(content) >= self._end
        for piece in _pieces(content):
            if not piece.endswith(b"\n") and not is_complete and len(piece) < MAX_LINE_BYTES:
                break
            text = piece.rstrip(b"\r\n").decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
            lines.append(LogLine(self._time_ns(start), text))
            start += len(piece)
        return lines

    def _time_ns(self, offset: int) -> int:
        base, time_ms = self._mark_before(offset)
        return time_ms * NANO_PER_MILLI + LINE_SHIFT_NS + offset - base

    def _mark_before(self, offset: int) -> tuple[int, int]:
        return self._times[max(bisect.bisect_right(self._times, offset, key=lambda mark: mark[0]) - 1, 0)]

    def _seen_offset(self, since_ns: int) -> int:
        """An offset inside the last line whose time is not above `since_ns`; -1 when there is none."""
        time_ns = since_ns - LINE_SHIFT_NS
        index = bisect.bisect_right(self._times, time_ns, key=lambda mark: mark[1] * NANO_PER_MILLI) - 1
        if index < 0:
            return -1
        offset, time_ms = self._times[index]
        following = self._times[index + 1][0] if index + 1 < len(self._times) else self._end
        return min(offset + time_ns - time_ms * NANO_PER_MILLI, following - 1)

    def _read(self, start: int, limit: int) -> bytes:
        parts = []
        try:
            if start < self._cut.start:
                with self._path.with_suffix(".old").open("rb") as file:
                    file.seek(start - self._cut.old_start)
                    parts.append(file.read(min(limit, self._cut.start - start)))
                start = self._cut.start
            limit -= sum(map(len, parts))
            with self._path.open("rb") as file:
                file.seek(start - self._cut.start)
                parts.append(file.read(limit))
        except FileNotFoundError:
            pass
        return b"".join(parts)


def _pieces(content: bytes) -> list[bytes]:
    """Split at line feeds only; a bare carriage return (a progress bar) stays inside its line."""
    pieces = content.split(b"\n")
    last = pieces.pop()
    return [piece + b"\n" for piece in pieces] + ([last] if last else [])
