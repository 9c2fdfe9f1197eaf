"""This machine behind the cluster port: one node whose containers are process groups of the host.

Containers outlive this process and are found again by the next one that opens the same folder; a lock keeps two from
doing so at once. Ends are noticed through pidfds, so an idle machine costs nothing; while something runs, a look every
second keeps the times and sizes of logs.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from armada.executor.cluster import (
    Capabilities,
    Changes,
    Creation,
    Listing,
    LogLine,
    LogRequest,
    Outcome,
    PodDeletion,
    PodGone,
)
from armada.executor.machine.container import ContainerProcess, kill_strays
from armada.executor.machine.logs import NANO_PER_MILLI
from armada.executor.machine.node import ProcessSettings, machine_node
from armada.executor.machine.plan import Place, PodPlan, plan_pod
from armada.executor.machine.pod import DELETED, PLAN_FILE, ProcessPod
from armada.executor.pods import PENDING, PodOrder, manifest
from armada.model.errors import InvalidRequest, NotFound, StartupRefused

LOOK_S: Final = 1.0
"""How often logs are looked at while something runs."""
STRAYS_S: Final = 2.0
"""How long after a pod's end processes that left its groups are looked for; many ends share one search."""
_NEW: Final = ".new-"
_OLD: Final = ".old-"


class ProcessCluster:
    """Implements `Cluster`. `folder` holds one folder a pod; it is created and locked by `list`.

    Raises StartupRefused (from `list`) when the folder can't be used, another process uses it, or this machine has no
    pidfds (Linux 5.3 and later has).
    """

    capabilities = Capabilities(runs_images=False, survives_agent=True, enforces_resources=False, has_logs=True)

    def __init__(
        self,
        folder: Path,
        *,
        executor_id: str,
        pool: str,
        clock_ms: Callable[[], int],
        settings: ProcessSettings | None = None,
    ) -> None:
        self._folder = folder
        self._executor_id = executor_id
        self._pool = pool
        self._clock_ms = clock_ms
        self._settings = settings or ProcessSettings()
        self._pods: dict[str, ProcessPod] = {}
        self._lock: int | None = None
        self._changed: dict[str, ProcessPod] = {}
        self._gone: list[PodGone] = []
        self._stirred = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._look: asyncio.TimerHandle | None = None
        self._over: dict[str, None] = {}
        self._search: asyncio.TimerHandle | None = None
        self._live = 0

    # -- the port

    async def list(self) -> Listing:
        """The node and all pods; the first call opens the folder and finds what runs from before."""
        if self._lock is None:
            self._open()
        self._changed.clear()
        self._gone.clear()
        return Listing(nodes=(self._node,), pods=tuple(pod.shown() for pod in self._pods.values()))

    async def changes(self) -> Changes:
        """Wait for the next batch."""
        while not (self._changed or self._gone):
            self._stirred.clear()
            await self._stirred.wait()
        pods, self._changed = self._changed, {}
        gone, self._gone = self._gone, []
        return Changes(pods=tuple(pod.shown() for pod in pods.values()), gone=tuple(gone))

    async def create(self, orders: Sequence[PodOrder]) -> Sequence[Creation]:
        """Start pods, one after the other; the loop gets its turn in between."""
        creations = []
        for order in orders:
            creations.append(self._create(order))
            await asyncio.sleep(0)
        return creations

    async def delete(self, deletions: Sequence[PodDeletion]) -> None:
        """End pods and remove their folders."""
        now_ms = self._clock_ms()
        for deletion in deletions:
            pod = self._pods.get(deletion.run_id)
            if pod is None or (deletion.only_pending and pod.shown().phase != PENDING):
                continue
            own_ms = pod.plan.grace_ms
            grace_ms = own_ms if deletion.grace_ms is None else min(deletion.grace_ms, own_ms)
            pod.stop(DELETED, now_ms + grace_ms, now_ms)
            pod.kill_if_due(now_ms)
            if pod.has_ended:
                self._remove(pod)
            else:
                self._note(pod)

    async def proceed(self) -> None:
        """Let pods that were found go on to their next containers."""
        now_ms = self._clock_ms()
        for pod in list(self._pods.values()):
            if pod.is_held_back:
                pod.go_on(now_ms)
                self._note(pod)

    async def read_log(self, request: LogRequest) -> Sequence[LogLine]:
        """Lines of a container's output; a first page begins with notes on what is different on this machine."""
        pod = self._pods.get(request.run_id) if request.run_id else self._last_pod_of(request.job_id)
        if pod is None:
            raise NotFound(f"there is no pod of job {request.job_id or request.run_id} here: finished and cleaned up?")
        log = pod.log_of(request.container)
        if log is None:
            raise InvalidRequest(f"pod {pod.plan.name} has no container {request.container!r}")
        lines = await asyncio.to_thread(log.lines, request)
        if request.since_ns == 0 and request.tail_lines is None:
            first_ns = pod.plan.created_ms * NANO_PER_MILLI
            notes = [LogLine(first_ns + number, f"armada: {note}") for number, note in enumerate(pod.plan.notes)]
            lines = notes + lines
        return lines

    async def close(self) -> None:
        """Let go of folder and processes; they go on."""
        for pod in self._pods.values():
            self._forget_watches(pod)
            pod.let_go()
        for timer in (*self._timers.values(), self._look, self._search):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        self._pods.clear()
        self._look = self._search = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- opening

    def _open(self) -> None:
        if not hasattr(os, "pidfd_open"):
            raise StartupRefused("this machine can't run pods as processes: it needs Linux 5.3 or later")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartupRefused(f"the folder of pods {self._folder} can't be used: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise StartupRefused(f"another executor uses the folder of pods {self._folder}") from error
        self._lock = lock
        self._node = machine_node(self._settings, self._executor_id, self._pool, self._folder)
        now_ms = self._clock_ms()
        for path in sorted(self._folder.iterdir()):
            if path.name.startswith((_NEW, _OLD)):
                shutil.rmtree(path, ignore_errors=True)
            elif path.is_dir():
                self._find(path, now_ms)

    def _find(self, path: Path, now_ms: int) -> None:
        try:
            plan = msgspec.json.decode((path / PLAN_FILE).read_bytes(), type=PodPlan)
        except (OSError, msgspec.DecodeError):
            # Not one of ours, or damaged: nothing can be said about it, and it is not ours to delete.
            return
        pod = self._pods[plan.run_id] = ProcessPod(plan, path, self._settings.log_limit_bytes, self._watch)
        pod.find(now_ms)
        if pod.is_deleted and pod.has_ended:
            self._remove(pod)
        else:
            self._note(pod)

    # -- creating and removing

    def _create(self, order: PodOrder) -> Creation:
        run_id, lease = order.run_id, order.lease
        if run_id in self._pods:
            return Creation(run_id, Outcome.ALREADY_THERE)
        if lease.node_name != self._node.name:
            return Creation(run_id, Outcome.NO_NODE, f"this machine is node {self._node.name}, not {lease.node_name}")
        if not run_id or run_id.startswith(".") or "/" in run_id or "\0" in run_id or len(run_id) > 200:
            return Creation(run_id, Outcome.REFUSED, f"run id {run_id!r} can't be the name of a folder")
        folder = self._folder / run_id
        place = Place(
            folder=folder,
            node_name=self._node.name,
            pool=self._pool,
            run_id=run_id,
            user_id=os.geteuid(),
            group_id=os.getegid(),
        )
        names = {"job_id": lease.job_id, "queue": lease.queue, "job_set": lease.job_set}
        now_ms = self._clock_ms()
        try:
            plan = plan_pod(manifest(lease), names, place, now_ms)
            self._write(folder, plan)
        except (ValueError, TypeError, KeyError, AttributeError, InvalidRequest) as error:
            return Creation(run_id, Outcome.REFUSED, str(error) if isinstance(error, InvalidRequest) else repr(error))
        except OSError as error:
            return Creation(run_id, Outcome.FAILED, f"{error.strerror}: {error.filename}")
        pod = self._pods[run_id] = ProcessPod(plan, folder, self._settings.log_limit_bytes, self._watch)
        pod.proceed(now_ms)
        self._note(pod)
        return Creation(run_id, Outcome.CREATED)

    def _write(self, folder: Path, plan: PodPlan) -> None:
        """A pod's folder appears whole or not at all."""
        fresh = self._folder / f"{_NEW}{plan.run_id}"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        with os.fdopen(os.open(fresh / PLAN_FILE, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(msgspec.json.encode(plan))
        fresh.rename(folder)

    def _remove(self, pod: ProcessPod) -> None:
        run_id = pod.plan.run_id
        del self._pods[run_id]
        self._changed.pop(run_id, None)
        self._set_timer(pod, None)
        old = self._folder / f"{_OLD}{run_id}"
        with contextlib.suppress(OSError):
            pod.folder.rename(old)
        asyncio.get_running_loop().run_in_executor(None, shutil.rmtree, old, True)
        self._gone.append(PodGone(run_id))
        self._stirred.set()

    # -- watching

    def _watch(self, pod: ProcessPod, process: ContainerProcess) -> None:
        if process.pidfd is None:
            return
        self._live += 1
        asyncio.get_running_loop().add_reader(process.pidfd, self._ended, pod, process)
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_at_logs)

    def _ended(self, pod: ProcessPod, process: ContainerProcess) -> None:
        if process.pidfd is not None:
            asyncio.get_running_loop().remove_reader(process.pidfd)
            self._live -= 1
        pod.notice_end(process, self._clock_ms())
        self._note(pod)
        if pod.is_deleted and pod.has_ended:
            self._remove(pod)

    def _forget_watches(self, pod: ProcessPod) -> None:
        for pidfd in pod.pidfds():
            asyncio.get_running_loop().remove_reader(pidfd)

    def _note(self, pod: ProcessPod) -> None:
        self._changed[pod.plan.run_id] = pod
        self._stirred.set()
        self._set_timer(pod, pod.next_due_ms())
        if pod.has_ended:
            self._over[pod.plan.run_id] = None
            if self._search is None:
                self._search = asyncio.get_running_loop().call_later(STRAYS_S, self._search_strays)

    def _set_timer(self, pod: ProcessPod, due_ms: int | None) -> None:
        run_id = pod.plan.run_id
        timer = self._timers.pop(run_id, None)
        if timer is not None:
            timer.cancel()
        if due_ms is not None:
            delay_s = max(due_ms - self._clock_ms(), 0) / 1000
            self._timers[run_id] = asyncio.get_running_loop().call_later(delay_s, self._due, pod)

    def _due(self, pod: ProcessPod) -> None:
        self._timers.pop(pod.plan.run_id, None)
        pod.on_time(self._clock_ms())
        self._note(pod)

    def _look_at_logs(self) -> None:
        self._look = None
        now_ms = self._clock_ms()
        for pod in self._pods.values():
            if pod.is_live:
                pod.note_logs(now_ms)
        if self._live:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_at_logs)

    def _search_strays(self) -> None:
        self._search = None
        run_ids, self._over = frozenset(self._over), {}
        asyncio.get_running_loop().run_in_executor(None, kill_strays, run_ids)

    def _last_pod_of(self, job_id: str) -> ProcessPod | None:
        pods = [pod for pod in self._pods.values() if pod.plan.job_id == job_id]
        return max(pods, key=lambda pod: pod.plan.created_ms, default=None)
