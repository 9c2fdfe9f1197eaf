"""Old entries leave the log. What is younger than the retention stays, and what anything here still reads."""

import asyncio
from typing import Final

from armada.model.errors import LogFailed
from armada.model.events import Position
from armada.runtime.telemetry import Log
from armada.server.replica import Replica
from armada.views.history import History

LONGEST_PERIOD_S: Final = 3_600
FIRST_WAIT_S: Final = 60
"""A start has enough to do; the first look at the log's age comes later."""


class Trimming:
    """Trims the log now and then.

    An entry goes once it is older than the retention, folded into a checkpoint that reads back whole, and on disk in
    the history: live jobs keep their specs there, because the ledger holds only the places of their submissions.
    """

    def __init__(self, replica: Replica, history: History, *, retention_s: int, log: Log) -> None:
        self._replica = replica
        self._history = history
        self._retention_s = retention_s
        self._log = log

    async def run(self) -> None:
        """Trim for ever; what fails is tried again at the next turn."""
        period_s = min(LONGEST_PERIOD_S, self._retention_s)
        await asyncio.sleep(min(FIRST_WAIT_S, period_s))
        while True:
            now_ms = self._replica.now_ms()
            try:
                await self.trim(now_ms - self._retention_s * 1_000, now_ms)
            except LogFailed as error:
                self._log.warning("the log could not be trimmed", reason=str(error))
            await asyncio.sleep(period_s)

    async def trim(self, before_ms: int, now_ms: int) -> Position:
        """Drop entries that were appended before `before_ms`, as far as they are needed nowhere.

        Returns the first position that is held now; 0 for an empty log. Raises LogFailed.
        """
        eventlog, ledger = self._replica.log, self._replica.ledger
        held = await eventlog.read(0, 1)
        if not held:
            return 0
        first = held[0]
        # Voids of entries that went in an earlier turn. Those that go now may be in the hands of a slow reader still.
        ledger.forget_voids(first.position)
        if first.time_ms > now_ms:
            self._log.warning(
                "the oldest entry of the log has a time that is yet to come: nothing is trimmed until then",
                position=first.position,
                time_ms=first.time_ms,
            )
        below = min(await eventlog.position_before(before_ms) + 1, self._history.position)
        if below <= first.position:
            return first.position
        checkpoint = await eventlog.latest_checkpoint()
        below = min(below, checkpoint.position if checkpoint is not None else 0)
        if below <= first.position:
            return first.position
        await self._history.settle()
        await eventlog.trim(below)
        self._log.info("old entries have left the log", entries=below - first.position, first=below)
        return below
