"""The ledger is saved now and then."""

import asyncio
import time

from armada.eventlog.port import Checkpoint
from armada.model.errors import LogFailed
from armada.runtime.telemetry import Log
from armada.server.replica import Replica


class Checkpoints:
    """Saves the ledger now and then, so that a start reads only what came later."""

    def __init__(self, replica: Replica, *, entries: int, interval_s: float, log: Log) -> None:
        self._replica = replica
        self._entries = entries
        self._interval_s = interval_s
        self._log = log
        self._saved = replica.ledger.position
        self._due = asyncio.Event()
        replica.after_fold(self._look)

    def _look(self) -> None:
        if self._replica.ledger.position - self._saved >= self._entries:
            self._due.set()

    async def run(self) -> None:
        """Save when enough has happened, or when anything has and the interval is over."""
        while True:
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            if self._replica.ledger.position > self._saved:
                await self.save()

    async def save(self) -> None:
        """Save the ledger as it is now. Only its columns are copied in the loop; what is slow is done in a thread."""
        ledger = self._replica.ledger
        position = ledger.position
        started = time.perf_counter()
        taken = ledger.taken()
        taken_s = time.perf_counter() - started
        payload = await asyncio.to_thread(taken.packed)
        try:
            await self._replica.log.save_checkpoint(Checkpoint(position=position, payload=payload))
        except LogFailed as error:
            self._log.warning("the checkpoint could not be saved", reason=str(error))
            return
        self._saved = position
        self._log.debug("checkpoint saved", position=position, size=len(payload), milliseconds=round(taken_s * 1_000))
