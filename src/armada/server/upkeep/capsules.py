"""Capsules of rounds in the data folder: those of failed rounds always, the latest of each pool where asked for."""

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import quote

from armada.control.rounds.capsules import JobNames, RoundEnd, capsule_of, names_of
from armada.model.errors import ArmadaError
from armada.runtime.identifiers import release
from armada.runtime.telemetry import Log
from armada.server.replica import Replica

KEPT_FAILURES: Final = 10
"""Capsules of failed rounds that are kept, of all pools together."""

_SUFFIX: Final = ".capsule"
_FAILED: Final = "failed"
_DECIDED: Final = "round"
_LONGEST_NAME: Final = 150


class Capsules:
    """Keeps capsules, written in a thread. While one is written, only the latest of each pool waits for its turn."""

    def __init__(self, replica: Replica, folder: Path, *, rounds: int, limit_bytes: int, log: Log) -> None:
        """`rounds` capsules are kept of each pool, and all together take `limit_bytes` at most."""
        self._replica = replica
        self._folder = folder
        self._rounds = rounds
        self._limit_bytes = limit_bytes
        self._log = log
        self._waiting: dict[tuple[str, str], RoundEnd] = {}
        self._bell = asyncio.Event()

    def keep(self, end: RoundEnd) -> None:
        """Keep a round that failed, and one that was decided if such are kept."""
        if end.failure or self._rounds:
            self._waiting[_FAILED if end.failure else _DECIDED, end.order.pool] = end
            self._bell.set()

    async def run(self) -> None:
        """Write what there is to write."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write all that waits."""
        while self._waiting:
            kind, pool = next(iter(self._waiting))
            end = self._waiting.pop((kind, pool))
            # The ids are gathered in the loop, where the ledger stands still; all else is slow.
            jobs = names_of(self._replica.ledger, end.order)
            try:
                path = await asyncio.to_thread(self._written, kind, end, jobs)
            except (OSError, ArmadaError) as error:
                self._log.warning("a round's capsule could not be written", pool=pool, reason=str(error))
                continue
            if path is None:
                self._log.warning("a round's capsule is larger than all may be together: not kept", pool=pool)
            elif end.failure:
                self._log.warning("the failed round can be decided again: armada replay", capsule=str(path), pool=pool)

    def _written(self, kind: str, end: RoundEnd, jobs: JobNames) -> Path | None:
        """Write one file in one go, then drop those that are too many."""
        payload = capsule_of(end, jobs, release()).to_bytes()
        if len(payload) > self._limit_bytes:
            return None
        name = f"{kind}-{_file_name(end.order.pool)}-{end.order.started_ms:013d}-{end.order.seed}"
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{name}{_SUFFIX}"
        unfinished = self._folder / f"{name}.tmp"
        unfinished.write_bytes(payload)
        unfinished.replace(path)
        self._drop(path)
        return path

    def _drop(self, newest: Path) -> None:
        """Drop the oldest capsules beyond the number and the size that are kept."""
        files = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda file: (file.stat().st_mtime_ns, file.name))
        kept: dict[str, int] = {}
        size = 0
        for file in reversed(files):
            group = _FAILED if file.name.startswith(_FAILED) else file.name.rsplit("-", 2)[0]
            kept[group] = kept.get(group, 0) + 1
            size += file.stat().st_size
            most = KEPT_FAILURES if group == _FAILED else self._rounds
            if file != newest and (kept[group] > most or size > self._limit_bytes):
                file.unlink(missing_ok=True)


def _file_name(pool: str) -> str:
    """Return a pool's name as part of a file's."""
    return quote(pool, safe="")[:_LONGEST_NAME] or "_"
