"""The last entries of a log as they were appended, so that readers in the same process need not decode them again."""

from typing import Final

from armada.model.events import Entry, Position

MAX_ENTRIES: Final = 16_384
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of encoded events before compression; as objects they take about seven times as much."""


class RecentEntries:
    """A bounded run of consecutive entries up to the end of the log. Not for use from several threads."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: list[Entry] = []
        self._sizes: list[int] = []
        self._bytes = 0

    def add(self, entries: list[Entry], sizes: list[int]) -> None:
        """Add entries that follow the last, with their encoded sizes before compression.

        Beyond the bounds the oldest leave until half of them is free, so that this happens once in many appends.
        """
        self._entries.extend(entries)
        self._sizes.extend(sizes)
        self._bytes += sum(sizes)
        if len(self._entries) <= self._max_entries and self._bytes <= self._max_bytes:
            return
        drop = max(0, len(self._entries) - self._max_entries // 2)
        left = self._bytes - sum(self._sizes[:drop])
        while left > self._max_bytes // 2:
            left -= self._sizes[drop]
            drop += 1
        self._drop(drop)

    def _drop(self, count: int) -> None:
        self._bytes -= sum(self._sizes[:count])
        del self._entries[:count]
        del self._sizes[:count]

    def forget_below(self, position: Position) -> None:
        """Drop the entries below a position."""
        if self._entries:
            self._drop(min(len(self._entries), max(0, position - self._entries[0].position)))

    def after(self, position: Position, limit: int) -> list[Entry] | None:
        """Return at most `limit` entries above a position, or None when they do not all lie in here."""
        if not self._entries:
            return None
        start = position + 1 - self._entries[0].position
        return None if start < 0 else self._entries[start : start + limit]
