"""A process cluster in a folder, and a look at the machine's table of processes."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from armada.executor.clock import wall_clock_ms
from armada.executor.cluster import LogRequest, Outcome, PodDeletion
from armada.executor.machine.container import kill_strays
from armada.executor.machine.node import ProcessSettings
from armada.executor.pods import Pod, order_for
from armada.executor.processes import ProcessCluster
from tests.unit.executor.builders import lease, template


class Machine:
    """A process cluster in a folder, with the last state of each pod."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        made = ProcessSettings(**{"node_name": "here", **settings})
        self.cluster = ProcessCluster(folder, executor_id="e", pool="p", clock_ms=wall_clock_ms, settings=made)
        self.pods: dict[str, Pod] = {}
        self.gone: list[str] = []

    async def open(self) -> "Machine":
        self.pods = {pod.run_id: pod for pod in (await self.cluster.list()).pods}
        return self

    async def create(self, run_id: str, command: Sequence[str] | None, **spec: Any) -> tuple[Outcome, str]:
        made = template(command, **spec)
        (creation,) = await self.cluster.create([order_for(lease(run_id, template=made, node_name="here"))])
        return creation.outcome, creation.message

    async def sh(self, run_id: str, script: str, **spec: Any) -> None:
        assert await self.create(run_id, ["sh", "-c", script], **spec) == (Outcome.CREATED, "")

    async def until(self, run_id: str, *phases: str) -> Pod:
        async with asyncio.timeout(20):
            while run_id not in self.pods or self.pods[run_id].phase not in phases:
                await self._hear()
        return self.pods[run_id]

    async def end(self, run_id: str) -> Pod:
        return await self.until(run_id, "succeeded", "failed")

    async def until_gone(self, run_id: str) -> None:
        async with asyncio.timeout(20):
            while run_id not in self.gone:
                await self._hear()

    async def _hear(self) -> None:
        changes = await self.cluster.changes()
        self.pods.update((pod.run_id, pod) for pod in changes.pods)
        self.gone.extend(gone.run_id for gone in changes.gone)

    async def text(self, run_id: str, container: str = "") -> list[str]:
        lines = await self.cluster.read_log(LogRequest(run_id=run_id, container=container))
        return [line.text for line in lines if not line.text.startswith("armada: ")]

    async def close(self) -> None:
        run_ids = list(self.cluster._pods)
        await self.cluster.delete([PodDeletion(run_id, 0) for run_id in run_ids])
        for run_id in run_ids:
            await self.until_gone(run_id)
        await self.cluster.close()
        await asyncio.to_thread(kill_strays, frozenset(run_ids))


def processes_of(run_id: str) -> list[int]:
    """Pids of all processes that carry the run's id and are no zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"ARMADA_JOB_RUN_ID={run_id}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def until(done: Callable[[], bool], timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not done():  # noqa: ASYNC110 - neither the table of processes nor files have events
            await asyncio.sleep(0.02)


async def until_none_of(run_id: str) -> None:
    await until(lambda: not processes_of(run_id))
