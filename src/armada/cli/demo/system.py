"""`armada up` as a child of the demo: temporary folder, free ports, stopped and cleaned up whatever happens."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Final, Self

from armada.cli.failures import CommandFailed

START_LIMIT_S: Final = 150.0
"""Long enough for kernels that nobody has compiled yet (`make setup` does)."""
STOP_LIMIT_S: Final = 15.0
_LOG_TAIL_LINES: Final = 15


class DemoSystem:
    """The running system. Use as a context: leaving it stops the child and every process of its session."""

    def __init__(self, folder: Path, fleet: str) -> None:
        self.log_path = folder / "armada.log"
        command = [sys.executable, "-m", "armada", "up", "--data", str(folder / "data"), "--simulate", fleet]
        command += ["--grpc-port", "0", "--http-port", "0", "--metrics-port", "0", "--log-level", "warning"]
        self._log = self.log_path.open("wb")
        # A session of its own: Ctrl-C reaches only the demo, which then stops the system in order.
        self._child = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self.url = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def wait_ready(self) -> str:
        """Wait for the `ready` line and return the address of the API.

        Raises:
            CommandFailed: the child ended or did not become ready in time; with the end of its log.
        """
        answer: list[str] = []
        reader = threading.Thread(target=_read_until_ready, args=(self._child.stdout, answer), daemon=True)
        reader.start()
        reader.join(START_LIMIT_S)
        if not answer:
            state = "did not become ready" if self._child.poll() is None else "could not start"
            raise CommandFailed(f"the system {state}{self.log_tail()}")
        facts = dict(part.partition("=")[::2] for part in shlex.split(answer[0])[1:])
        self.url = facts["grpc"]
        return self.url

    @property
    def is_running(self) -> bool:
        """Whether the child still runs."""
        return self._child.poll() is None

    @property
    def process_id(self) -> int:
        """The child's process id."""
        return self._child.pid

    def log_tail(self) -> str:
        """The last lines of the child's log, to be put after a message; empty when it logged nothing."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return ":\n  " + "\n  ".join(lines) if lines else ""

    def stop(self) -> None:
        """Stop the child in order; if it does not obey, kill its session. Harmless when it has ended."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                _kill_group(self._child.pid)
                self._child.wait()
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._log.close()


def _read_until_ready(stream: IO[bytes] | None, answer: list[str]) -> None:
    for line in stream or ():
        text = line.decode(errors="replace").strip()
        if text.startswith("ready "):
            answer.append(text)
            return


def _kill_group(process_id: int) -> None:
    try:
        os.killpg(process_id, signal.SIGKILL)
    except ProcessLookupError:
        return
