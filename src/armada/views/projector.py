"""Reads the log and keeps the history up with it.

Rows and the position they reach are written in one transaction, and entries at or below the stored position are never
looked at again: a repeat, a crash or a restart changes nothing. While no reader waits, entries gather for a moment,
because one write for many facts about a job is much cheaper than many.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog
from sqlalchemy.exc import DBAPIError

from armada.eventlog.port import EventLog
from armada.model.errors import LogFailed
from armada.model.events import Entry, Position
from armada.views.changes import Changes
from armada.views.history import History

GATHER_MS: Final = 500
"""How long entries may wait for more while nobody asks for them."""

ENTRIES_PER_WRITE: Final = 4000

_RETRY_FIRST_S: Final = 0.2
_RETRY_LAST_S: Final = 30.0


class Projector:
    """Applies the log to the history.

    `effective` gives an entry without its void parts (what is left keeps its place) and is called on the event loop's
    thread; `folded` says how far the ledger stands, because only up to there it is known what is void.
    """

    def __init__(
        self,
        log: EventLog,
        history: History,
        effective: Callable[[Entry], Entry],
        folded: Callable[[], Position],
    ) -> None:
        self._log = log
        self._history = history
        self._effective = effective
        self._folded = folded
        self._stirred = asyncio.Event()
        self._urgent = asyncio.Event()
        self._turn = asyncio.Lock()
        history.on_demand = self._hurry

    def notify(self) -> None:
        """Say that the ledger has folded more. Cheap; called on the event loop's thread."""
        self._stirred.set()
        if self._history.is_waited_for:
            self._urgent.set()

    def _hurry(self) -> None:
        self._stirred.set()
        self._urgent.set()

    async def run(self) -> None:
        """Keep the history up until cancelled. Failures of disk or log are logged and tried again, ever more slowly."""
        logger = structlog.get_logger(__name__)
        delay_s = _RETRY_FIRST_S
        is_checked = False
        while True:
            try:
                if not is_checked:
                    await self.check()
                    is_checked = True
                await self.flush()
                delay_s = _RETRY_FIRST_S
                await self._rest()
            except (LogFailed, DBAPIError) as error:
                logger.warning("history can't be written; trying again", error=str(error), delay_s=delay_s)
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, _RETRY_LAST_S)

    async def _rest(self) -> None:
        """Wait until there is something to do, and then a moment longer unless somebody waits for it."""
        await self._stirred.wait()
        try:
            async with asyncio.timeout(GATHER_MS / 1000):
                await self._urgent.wait()
        except TimeoutError:
            pass
        self._stirred.clear()
        self._urgent.clear()

    async def check(self) -> None:
        """Start from zero when the history was made from another log than this one."""
        history = self._history
        held = await self._log.read(0, 1)
        if held and held[0].position > history.position + 1:
            structlog.get_logger(__name__).warning(
                "the log was trimmed above what the history holds: it lacks the entries between",
                history=history.position,
                log_begins=held[0].position,
            )
        if history.position == 0:
            return
        if history.position > await self._log.last_position():
            await self._start_over("the log is shorter than the history")
            return
        last = await self._log.read(history.position - 1, 1)
        if last and last[0].position == history.position and last[0].batch_id != history.batch_id:
            await self._start_over("the log holds other entries than the history was made from")

    async def _start_over(self, reason: str) -> None:
        structlog.get_logger(__name__).warning("history is rebuilt from the log", reason=reason)
        await self._history.reset()

    async def flush(self) -> None:
        """Project all that the ledger has folded. Raises LogFailed, or sqlalchemy's DBAPIError when the disk fails."""
        async with self._turn:
            while self._history.position < (target := self._folded()):
                entries = await self._log.read(self._history.position, ENTRIES_PER_WRITE)
                ready = [self._effective(entry) for entry in entries if entry.position <= target]
                if not ready:
                    return
                await self._history.write(partial(gather, ready))


def gather(entries: Sequence[Entry]) -> Changes:
    """The row changes of entries in order, each without its void parts."""
    changes = Changes()
    for entry in entries:
        changes.add(entry)
    return changes
