"""`armada` as processes of their own, for tests that need the real thing: start, read the `ready` line, stop, kill."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

PROGRAM: Final = (sys.executable, "-m", "armada")
START_LIMIT_S: Final = 100.0
"""Kernels that nobody has compiled yet, on a busy machine, take their time."""
STOP_LIMIT_S: Final = 20.0
FREE_PORTS: Final = ("--grpc-port", "0", "--http-port", "0", "--metrics-port", "0")


class ArmadaUp:
    """One `armada up` (or another command that prints a `ready` line), started at once.

    Leaving the context stops it. `facts` holds what the `ready` line says; the log is in `log_path`.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        command: Sequence[str] = ("up",),
        ports: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_path = folder / f"armada-{len(list(folder.glob('armada-*.log')))}.log"
        arguments = [*PROGRAM, *command, "--data", str(folder / "data"), *(FREE_PORTS if ports else ()), *options]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                arguments,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        self.printed: list[str] = []
        self.facts: dict[str, str] = {}
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            text = line.decode(errors="replace").rstrip("\n")
            self.printed.append(text)
            if text.startswith("ready "):
                self.facts = dict(part.partition("=")[::2] for part in shlex.split(text)[1:])
                self._ready.set()
        self._ready.set()

    def wait_ready(self) -> Self:
        """Wait until it is ready; an AssertionError shows its log when it never is."""
        assert self._ready.wait(START_LIMIT_S), f"not ready in time: {self.log()}"
        assert self.facts, f"ended before it was ready: {self.log()}"
        return self

    @property
    def url(self) -> str:
        """The address of the API."""
        return self.facts["grpc"]

    def log(self) -> str:
        """What it logged so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> int:
        """Ask it to stop and return its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self._wait()

    def interrupt(self) -> int:
        """Send it what Ctrl-C sends and return its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self._wait()

    def kill(self) -> None:
        """Kill it without warning. What it started goes on."""
        self.process.kill()
        self._wait()

    def ended(self) -> int:
        """Wait until it ends by itself and return its exit status."""
        return self._wait()

    def _wait(self) -> int:
        try:
            status = self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise
        self._reader.join(STOP_LIMIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None or self.process.stdout is not None:
            self.stop()


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `armada` with these arguments to its end."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=START_LIMIT_S,
        check=False,
        env={**os.environ, **environment},
    )
