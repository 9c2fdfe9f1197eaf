"""`armada up` on one folder and one port, killed and started again."""

import asyncio
import enum
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

from tests.armada_process import ArmadaUp

SETTINGS: Final = "checkpoint_entries: 150\ncheckpoint_interval_s: 1\nlog_level: info\n"
"""So many checkpoints that kills meet them."""
FLEET: Final = "2x4"
_PORTS: Final = range(20_000, 30_000)
"""Below those that the system hands out by itself: nobody takes the port between two lives."""
_STOP_TO_KILL_S: Final = 0.4
_LONGEST_LIFE_S: Final = 2.2
_ACKNOWLEDGEMENTS: Final = 12


class When(enum.Enum):
    """At which moment of its life a process is killed."""

    ANY_TIME = "at any time"
    STARTING = "while it starts"
    ACKNOWLEDGED = "right after an acknowledgement"
    STOPPING = "while it stops in order"


MOMENTS: Final = (When.ANY_TIME, When.STARTING, When.ACKNOWLEDGED, When.ANY_TIME, When.ACKNOWLEDGED)
"""Taken in turn; every tenth kill meets an orderly stop."""


def moment(number: int) -> When:
    """The moment of the kill of this number."""
    return When.STOPPING if number % 10 == 7 else MOMENTS[number % len(MOMENTS)]


def free_port(chance: Random) -> int:
    """A port that nobody listens on now."""
    while True:
        port = chance.choice(_PORTS)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Lives:
    """One life after the other of `armada up`. `acknowledged` is to be called for each acknowledged submission."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.killed_s: list[float] = []
        self.moments: list[str] = []
        self._folder = folder
        self._chance = chance
        self._port = free_port(Random())
        self._settings = folder / "settings.yaml"
        self._settings.write_text(SETTINGS)
        self._start_s = 2.0
        self._countdown = 0
        self._victim: ArmadaUp | None = None
        self._struck = asyncio.Event()

    @property
    def address(self) -> str:
        """Where every life listens."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> ArmadaUp:
        """Begin a life."""
        options = ("--simulate", FLEET, "--config", str(self._settings))
        ports = ("--grpc-port", str(self._port), "--http-port", "0", "--metrics-port", "0")
        return ArmadaUp(self._folder, *options, *ports, ports=False, environment=_compiled_once(self._folder))

    async def live_and_die(self, number: int) -> None:
        """One life, from start to kill."""
        when = moment(number)
        began_s = time.monotonic()
        running = self.start()
        try:
            if when is When.STARTING:
                await asyncio.sleep(self._chance.uniform(0.1, 1.0) * self._start_s)
            else:
                await asyncio.to_thread(running.wait_ready)
                self._start_s = time.monotonic() - began_s
                await self._go_on(running, when)
        finally:
            await asyncio.to_thread(running.kill)
        self.killed_s.append(time.clock_gettime(time.CLOCK_BOOTTIME))
        self.moments.append(f"{when.value}, {time.monotonic() - began_s:.2f} s after its start")

    async def _go_on(self, running: ArmadaUp, when: When) -> None:
        if when is When.ACKNOWLEDGED:
            self._struck.clear()
            self._countdown, self._victim = self._chance.randint(1, _ACKNOWLEDGEMENTS), running
            await self._struck.wait()
            return
        await asyncio.sleep(self._chance.uniform(0.0, _LONGEST_LIFE_S))
        if when is When.STOPPING:
            running.process.terminate()
            await asyncio.sleep(self._chance.uniform(0.0, _STOP_TO_KILL_S))

    def acknowledged(self) -> None:
        """Count an acknowledgement; the last one that this life may give is followed by its death at once."""
        if self._victim is None:
            return
        self._countdown -= 1
        if self._countdown <= 0:
            os.kill(self._victim.process.pid, signal.SIGKILL)
            self._victim = None
            self._struck.set()


def _compiled_once(folder: Path) -> Mapping[str, str]:
    """Where the environment keeps Python from storing compiled modules, lives share a folder of their own for them."""
    if not sys.dont_write_bytecode:
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
