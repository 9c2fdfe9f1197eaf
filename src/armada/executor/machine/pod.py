"""One pod on this machine: starts its containers in order, ends them, and says how it stands.

Init containers run one after the other, sidecars start with them and end with the main containers, all main containers
run together and all must succeed. Everything that must outlive this process is in the pod's folder.
"""

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from armada.executor.machine.container import LOST_EXIT_CODE, LOST_REASON, ContainerProcess, Ending, kill_strays
from armada.executor.machine.logs import ContainerLog, LogView
from armada.executor.machine.plan import INIT, MAIN, SIDECAR, ContainerPlan, PodPlan
from armada.executor.pods import (
    DEADLINE_REASON,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    ContainerState,
    Pod,
)

PLAN_FILE: Final = "pod.json"
_ENDING_FILE: Final = "ending.json"
_FINAL_FILE: Final = "final.json"
_KILL_AGAIN_MS: Final = 1_000
_RESTART_FIRST_MS: Final = 1_000
_RESTART_LAST_MS: Final = 60_000

_Stored = TypeVar("_Stored", bound=msgspec.Struct)

DELETED: Final = "deleted"
DEADLINE: Final = "deadline"
FINISHED: Final = "finished"


class _PodEnding(msgspec.Struct, frozen=True):
    """Why the containers are being ended (deleted, deadline, finished), and when they are killed."""

    why: str
    due_ms: int


class _Final(msgspec.Struct, frozen=True):
    phase: str
    finished_ms: int
    reason: str = ""
    message: str = ""


class _Place:
    """One container of the pod over its restarts."""

    def __init__(self, pod: PodPlan, folder: Path, number: int, log_limit_bytes: int) -> None:
        self.plan: ContainerPlan = pod.containers[number]
        self._created_ms = pod.created_ms
        self.restarts = 0
        self._folder = folder
        self._number = number
        self._log_limit_bytes = log_limit_bytes
        self._log: ContainerLog | None = None
        self.process = self._process()
        while self.plan.kind == SIDECAR and self._process(self.restarts + 1).has_record:
            self.restarts += 1
            self.process = self._process()
        self.restart_due_ms = 0

    def _process(self, restarts: int | None = None) -> ContainerProcess:
        turn = self.restarts if restarts is None else restarts
        return ContainerProcess(self.plan, self._folder / f"{self._number}.{turn}")

    def renew(self) -> None:
        """The next start of a sidecar."""
        self.restarts += 1
        self.process = self._process()

    @property
    def log(self) -> ContainerLog:
        """Its output, over all starts."""
        if self._log is None:
            path = self._folder / f"{self._number}.log"
            self._log = ContainerLog(path, self.process.started_ms or self._created_ms, self._log_limit_bytes)
        return self._log


OnLive = Callable[["ProcessPod", ContainerProcess], None]


class ProcessPod:
    """A pod in a folder. `on_live` is called with every container whose process must be watched from now on."""

    def __init__(
        self,
        plan: PodPlan,
        folder: Path,
        log_limit_bytes: int,
        on_live: Callable[["ProcessPod", ContainerProcess], None],
    ) -> None:
        self.plan = plan
        self.folder = folder
        self._on_live = on_live
        self._places = [_Place(plan, folder, number, log_limit_bytes) for number in range(len(plan.containers))]
        self._ending = _load(folder / _ENDING_FILE, _PodEnding)
        self._final = _load(folder / _FINAL_FILE, _Final)
        self._killed_ms = 0
        self.is_held_back = False

    # -- life

    def find(self, now_ms: int) -> None:
        """After a restart of this process: find what runs, note what ended. Nothing is started before `go_on`."""
        self.is_held_back = True
        for place in self._places:
            place.process.find()
            if place.process.is_live:
                self._on_live(self, place.process)
                if self._ending is not None:
                    place.process.signal(signal.SIGTERM)
        self.proceed(now_ms)

    def go_on(self, now_ms: int) -> None:
        """A pod that was found may start what is left of it."""
        self.is_held_back = False
        self.proceed(now_ms)

    def proceed(self, now_ms: int) -> None:
        """Start whatever may start now; note the pod's end when nothing is left to wait for."""
        if self._final is not None:
            return
        is_over = self._ending is not None
        if not is_over:
            if not self.is_held_back:
                self._start_what_may(now_ms)
            is_over = self._is_decided()
            if is_over and self.is_live:
                self._end(_PodEnding(FINISHED, now_ms + self.plan.grace_ms))
        if is_over and not self.is_live:
            self._finish(now_ms)

    def _start_what_may(self, now_ms: int) -> None:
        for place in self._places:
            process = place.process
            if place.plan.kind == SIDECAR and process.ending is not None:
                self._restart_sidecar(place, now_ms)
            elif process.ending is None and not process.is_live:
                self._start(process, now_ms)
            if place.plan.kind == INIT and (place.process.ending is None or place.process.ending.exit_code != 0):
                return

    def _restart_sidecar(self, place: _Place, now_ms: int) -> None:
        ending = place.process.ending
        if ending is None:
            return
        delay_ms = min(_RESTART_FIRST_MS << min(place.restarts, 16), _RESTART_LAST_MS)
        place.restart_due_ms = ending.finished_ms + delay_ms
        if now_ms >= place.restart_due_ms:
            place.restart_due_ms = 0
            place.renew()
            self._start(place.process, now_ms)

    def _start(self, process: ContainerProcess, now_ms: int) -> None:
        try:
            process.start(now_ms)
        except OSError as error:
            process.fail_to_start(f"{error.strerror or error}: {error.filename or process.plan.command[0]}", now_ms)
        else:
            self._on_live(self, process)

    def _is_decided(self) -> bool:
        """True when no main container has to be waited for."""
        for place in self._places:
            ending = place.process.ending
            if place.plan.kind == INIT and ending is not None and ending.exit_code != 0:
                return True
        return all(place.process.ending is not None for place in self._places if place.plan.kind == MAIN)

    def notice_end(self, process: ContainerProcess, now_ms: int) -> None:
        """A container's process is gone."""
        if not process.notice_end(now_ms):
            self._on_live(self, process)
            return
        if process.ending is not None and process.ending.reason == LOST_REASON:
            # Its leader is gone without a word; what it led may still be there.
            kill_strays(frozenset((self.plan.run_id,)))
        for place in self._places:
            if place.process is process:
                place.log.note(now_ms)
        self.proceed(now_ms)

    # -- ending

    def stop(self, why: str, due_ms: int, now_ms: int) -> None:
        """End the containers: a request to terminate now, and a kill at `due_ms`. A repeat may only come sooner."""
        if self._ending is not None and self._ending.why == DELETED and self._ending.due_ms <= due_ms:
            return
        if self._final is None:
            self._end(_PodEnding(why, due_ms))
            self.proceed(now_ms)

    def _end(self, ending: _PodEnding) -> None:
        self._ending = ending
        _store(self.folder / _ENDING_FILE, ending)
        for place in self._places:
            if place.process.is_live:
                place.process.signal(signal.SIGTERM)

    def kill_if_due(self, now_ms: int) -> None:
        """Kill what is left when its grace time is over."""
        if self._ending is not None and now_ms >= self._ending.due_ms:
            self._killed_ms = now_ms
            for place in self._places:
                if place.process.is_live:
                    place.process.signal(signal.SIGKILL)

    def next_due_ms(self) -> int | None:
        """When something has to be done about the pod though no process ended."""
        if self._final is not None:
            return None
        if self._ending is not None:
            return max(self._ending.due_ms, self._killed_ms + _KILL_AGAIN_MS) if self.is_live else None
        dues = [place.restart_due_ms for place in self._places if place.restart_due_ms]
        if self.plan.deadline_ms:
            dues.append(self.plan.created_ms + self.plan.deadline_ms)
        return min(dues, default=None)

    def on_time(self, now_ms: int) -> None:
        """The time of `next_due_ms` has come."""
        deadline_ms = self.plan.created_ms + self.plan.deadline_ms
        if self._ending is None and self.plan.deadline_ms and now_ms >= deadline_ms:
            self.stop(DEADLINE, now_ms + self.plan.grace_ms, now_ms)
        elif self._ending is not None:
            self.kill_if_due(now_ms)
        else:
            self.proceed(now_ms)

    def _finish(self, now_ms: int) -> None:
        ending = self._ending
        why = ending.why if ending is not None else FINISHED
        ends = [place.process.ending for place in self._places if place.process.ending is not None]
        finished_ms = max((end.finished_ms for end in ends), default=now_ms) or now_ms
        if why == DEADLINE:
            message = f"the pod ran longer than its active deadline of {self.plan.deadline_ms // 1000} s"
            self._final = _Final(FAILED, finished_ms, DEADLINE_REASON, message)
        elif why == FINISHED and all(
            place.process.ending is not None and place.process.ending.exit_code == 0
            for place in self._places
            if place.plan.kind != SIDECAR
        ):
            self._final = _Final(SUCCEEDED, finished_ms)
        else:
            self._final = _Final(FAILED, finished_ms)
        _store(self.folder / _FINAL_FILE, self._final)

    def pidfds(self) -> list[int]:
        """File descriptors of all processes of the pod that are watched."""
        return [place.process.pidfd for place in self._places if place.process.pidfd is not None]

    def let_go(self) -> None:
        """Stop watching; processes go on."""
        for place in self._places:
            place.process.let_go()

    # -- how it stands

    @property
    def is_live(self) -> bool:
        """True while a process of the pod runs."""
        return any(place.process.is_live for place in self._places)

    @property
    def has_ended(self) -> bool:
        """True once the pod's phase is final."""
        return self._final is not None

    @property
    def is_deleted(self) -> bool:
        """True once its deletion was asked for."""
        return self._ending is not None and self._ending.why == DELETED

    def note_logs(self, now_ms: int) -> None:
        """Look at the logs of running containers: times of lines, and their size."""
        for place in self._places:
            if place.process.is_live:
                place.log.note(now_ms)

    def log_of(self, container: str) -> LogView | None:
        """The log of a container (by default the first main one) as it is now; None when there is no such container."""
        for place in self._places:
            if place.plan.name == container or (not container and place.plan.kind == MAIN):
                return place.log.view(is_complete=place.process.ending is not None)
        return None

    def shown(self) -> Pod:
        """The pod as the port shows it."""
        plan, final = self.plan, self._final
        mains = [place.process for place in self._places if place.plan.kind == MAIN]
        started_ms = min((process.started_ms for process in mains if process.has_started), default=0)
        phase = RUNNING if started_ms else PENDING
        deletion_due_ms = self._ending.due_ms if self._ending is not None and self._ending.why == DELETED else 0
        return Pod(
            run_id=plan.run_id,
            job_id=plan.job_id,
            queue=plan.queue,
            job_set=plan.job_set,
            name=plan.name,
            namespace=plan.namespace,
            uid=plan.run_id,
            phase=phase if final is None else final.phase,
            changed_ms=(final.finished_ms if final is not None else started_ms) or plan.created_ms,
            created_ms=plan.created_ms,
            node_name=plan.node_name,
            pool=plan.pool,
            started_ms=started_ms,
            finished_ms=final.finished_ms if final is not None else 0,
            deletion_due_ms=deletion_due_ms,
            deadline_ms=plan.deadline_ms,
            grace_ms=plan.grace_ms,
            reason=final.reason if final is not None else "",
            message=final.message if final is not None else "",
            containers=tuple(self._state(place) for place in self._places),
        )

    def _state(self, place: _Place) -> ContainerState:
        process, ending = place.process, place.process.ending
        name, is_init = place.plan.name, place.plan.kind != MAIN
        if ending is None:
            return ContainerState(name=name, is_init=is_init, started_ms=process.started_ms)
        ending = self._explained(ending)
        return ContainerState(
            name=name,
            is_init=is_init,
            started_ms=process.started_ms,
            finished_ms=ending.finished_ms,
            # A sidecar is ended on purpose: how it takes that says nothing about the job.
            exit_code=0 if place.plan.kind == SIDECAR else ending.exit_code,
            reason=ending.reason,
            message=ending.message,
        )

    def _explained(self, ending: Ending) -> Ending:
        """An end without a record, after a kill that this process or its earlier life had announced, is that kill."""
        if ending.reason == LOST_REASON and self._ending is not None and ending.finished_ms >= self._ending.due_ms:
            return Ending(LOST_EXIT_CODE, ending.finished_ms, "Error", "killed after its grace time")
        return ending


def _store(path: Path, value: msgspec.Struct) -> None:
    """Keep a value for the next life of this process; on a full disk that life has to find out anew."""
    fresh = path.with_suffix(".new")
    with contextlib.suppress(OSError):
        fresh.write_bytes(msgspec.json.encode(value))
        fresh.replace(path)


def _load(path: Path, kind: type[_Stored]) -> _Stored | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None
