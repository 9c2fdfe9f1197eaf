"""One container as a process group of this machine: started once, found again, ended, its exit code kept.

The group's leader is a few lines of shell. It claims the container by creating a file that must not exist, with its own
identity in it; runs the command; records the exit code; and ends whatever is left in the group. So whoever starts a
container twice, before and after a crash, runs it once; and an exit code is there although nobody waited for it.
"""

import contextlib
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import Final

import msgspec

from armada.executor.machine.plan import ContainerPlan

LOST_EXIT_CODE: Final = 137
LOST_REASON: Final = "ContainerStatusUnknown"
START_FAILED_EXIT_CODE: Final = 128
START_FAILED_REASON: Final = "StartError"
RUN_VARIABLE: Final = "ARMADA_JOB_RUN_ID"

_SHELL: Final = "/bin/sh"
# $1 is the prefix of the state files, $2 the time, the rest is the command. Names have a prefix of our own, for a
# variable of the container's environment stays exported when the shell assigns to it.
_LEADER: Final = """
set -C
IFS= read -r __armada_boot < /proc/sys/kernel/random/boot_id
IFS= read -r __armada_stat < /proc/$$/stat
{ printf '%s %s %s\\n' "$2" "$__armada_boot" "$__armada_stat" > "$1.started"; } 2> /dev/null || exit 0
set +C
unset __armada_boot __armada_stat
__armada_state=$1
shift 2
trap : HUP INT QUIT TERM
"$@"
__armada_code=$?
printf '%s\\n' "$__armada_code" > "$__armada_state.ended" || exit "$__armada_code"
kill -s KILL 0
"""
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, unmistakably: a pid may be used again, but not with the same start time since the same boot."""

    pid: int
    start_ticks: int
    boot_id: str


class Ending(msgspec.Struct, frozen=True):
    """How a container ended."""

    exit_code: int
    finished_ms: int
    reason: str
    message: str = ""


def boot_id() -> str:
    """Which start of the machine this is."""
    return _BOOT_ID.read_text().strip()


def _identity_in(stat: str, boot: str) -> tuple[ProcessIdentity, str]:
    """Identity and state letter from a line of /proc/PID/stat; the command's name in it may hold anything."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return ProcessIdentity(int(stat.split(" ", 1)[0]), int(fields[19]), boot), fields[0]


def is_running(identity: ProcessIdentity) -> bool:
    """True while exactly this process runs (a zombie doesn't)."""
    if identity.boot_id != boot_id():
        return False
    try:
        now, state = _identity_in(Path(f"/proc/{identity.pid}/stat").read_text(), identity.boot_id)
    except (OSError, ValueError):
        return False
    return now == identity and state not in ("Z", "X")


class ContainerProcess:
    """One start of a container. `state` is the prefix of its files: `.started`, `.ended`, `.log`."""

    def __init__(self, plan: ContainerPlan, state: Path) -> None:
        self.plan = plan
        self.state = state
        self.log = state.with_name(state.name.split(".")[0] + ".log")
        self.started_ms = 0
        self.ending: Ending | None = None
        self.pidfd: int | None = None
        self._identity: ProcessIdentity | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._was_killed = False

    @property
    def is_live(self) -> bool:
        """True from start or adoption until the end was noticed."""
        return self.pidfd is not None

    @property
    def has_started(self) -> bool:
        """True once it was started, by this process or an earlier one."""
        return self.started_ms > 0

    @property
    def has_record(self) -> bool:
        """True when its files say that it was started."""
        return self._started_file() is not None

    def start(self, now_ms: int) -> None:
        """Start it, or take over what an earlier life of this process started. Raises OSError."""
        Path(self.plan.home).mkdir(exist_ok=True)
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._child = subprocess.Popen(  # noqa: S603 - running what users submit is what this is for
                [_SHELL, "-c", _LEADER, "armada", str(self.state), str(now_ms), *self._command()],
                cwd=self.plan.folder,
                env=_nameable(self.plan.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)
        self.started_ms = now_ms
        try:
            self.pidfd = os.pidfd_open(self._child.pid)
        except OSError:
            # What can't be watched must not run.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child = None
            raise

    def _command(self) -> tuple[str, ...]:
        """The shell drops variables whose names it can't use itself; `env` brings them to the command."""
        odd = [f"{key}={value}" for key, value in self.plan.environment.items() if not _is_shell_name(key)]
        return ("/usr/bin/env", *odd, *self.plan.command) if odd else self.plan.command

    def fail_to_start(self, message: str, now_ms: int) -> None:
        """It can't be started: that is its end."""
        self.started_ms = self.started_ms or now_ms
        self._record(Ending(START_FAILED_EXIT_CODE, now_ms, START_FAILED_REASON, message))

    def find(self) -> None:
        """After a restart: is it running, has it ended, or was it never started?"""
        started = self._started_file()
        if started is None:
            return
        identity, self.started_ms = started
        self._identity = identity
        self.ending = self._recorded()
        if self.ending is None:
            self._adopt(identity)

    def _adopt(self, identity: ProcessIdentity) -> None:
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(identity.pid)
            if is_running(identity):
                self.pidfd = pidfd
                return
            os.close(pidfd)
        self.ending = self._recorded()
        if self.ending is None:
            self._record(self._lost())

    def notice_end(self, now_ms: int) -> bool:
        """The leader is gone: note the end. False when another leader turned out to have the container (adopted)."""
        child_pid, child_code = 0, -1
        if self._child is not None:
            child_pid, child_code = self._child.pid, self._child.wait()
            self._child = None
        self.let_go()
        self.ending = self._recorded()
        if self.ending is not None:
            if not self.started_ms <= self.ending.finished_ms <= now_ms:
                # The machine's clock, by which files are dated, has been set meanwhile.
                self.ending = msgspec.structs.replace(self.ending, finished_ms=now_ms)
            return True
        started = self._started_file()
        if child_pid and started is None:
            message = "its state could not be written, so it was not started"
            self._record(Ending(START_FAILED_EXIT_CODE, now_ms, START_FAILED_REASON, message))
        elif child_pid and started is not None and started[0].pid != child_pid:
            self._identity, self.started_ms = started
            self._adopt(self._identity)
            return not self.is_live
        elif child_code >= 0:
            self._record(Ending(child_code, now_ms, "Error" if child_code else "Completed"))
        else:
            self._record(self._lost(now_ms))
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, while its leader lives."""
        if self.pidfd is None or select.select([self.pidfd], [], [], 0)[0]:
            return
        group = self._child.pid if self._child is not None else self._identity.pid if self._identity else 0
        if group <= 1:
            return
        if number == signal.SIGKILL:
            self._was_killed = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)

    def let_go(self) -> None:
        """Stop watching; the process goes on."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        if self._child is not None:
            # The child is meant to outlive this object, which would otherwise complain about it.
            self._child.returncode = 0
            self._child = None

    def _started_file(self) -> tuple[ProcessIdentity, int] | None:
        path = self.state.with_name(self.state.name + ".started")
        try:
            started_ms, boot, stat = path.read_text().split(" ", 2)
            return _identity_in(stat, boot)[0], int(started_ms)
        except (OSError, ValueError, IndexError):
            return None

    def _ended_path(self) -> Path:
        return self.state.with_name(self.state.name + ".ended")

    def _recorded(self) -> Ending | None:
        """What the leader (a number) or this process (a whole ending) wrote."""
        path = self._ended_path()
        try:
            text = path.read_text()
        except OSError:
            return None
        if text.startswith("{"):
            with contextlib.suppress(msgspec.DecodeError):
                return msgspec.json.decode(text, type=Ending)
            return None
        if not text.endswith("\n") or not text.strip().isdigit():
            return None
        code = int(text)
        return Ending(code, max(_mtime_ms(path), self.started_ms), "Error" if code else "Completed")

    def _record(self, ending: Ending) -> None:
        self.ending = ending
        with contextlib.suppress(OSError):
            self._ended_path().write_bytes(msgspec.json.encode(ending))

    def _lost(self, now_ms: int = 0) -> Ending:
        """It ended without a record: killed with its leader, by us, by somebody, or with the machine."""
        if self._was_killed:
            return Ending(LOST_EXIT_CODE, now_ms, "Error", "killed after its grace time")
        at_ms = now_ms or _mtime_ms(self.log) or self.started_ms
        return Ending(LOST_EXIT_CODE, at_ms, LOST_REASON, "it ended without a record: killed, or the machine restarted")


def _mtime_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _is_shell_name(name: str) -> bool:
    return name.isidentifier() and name.isascii()


def _nameable(environment: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in environment.items() if _is_shell_name(key)}


def kill_strays(run_ids: frozenset[str]) -> int:
    """Kill processes that left the group of a pod that is over: they still carry the run's id. Return how many."""
    if not run_ids:
        return 0
    killed = 0
    marker = RUN_VARIABLE.encode() + b"="
    own = os.getpid()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == own:
            continue
        try:
            variables = Path(entry.path, "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in variables:
            if variable.startswith(marker) and variable[len(marker) :].decode("ascii", "replace") in run_ids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed += 1
                break
    return killed
