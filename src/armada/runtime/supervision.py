"""The life of a process: its tasks, what stops it, and stopping in order within a bound."""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from armada.runtime.telemetry import Log


class Backoff:
    """Waits that grow from `first_s` to `limit_s`, each drawn from the upper half of its range."""

    def __init__(self, first_s: float = 0.1, limit_s: float = 10.0) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self._next_s = first_s

    def reset(self) -> None:
        """Begin again with the shortest wait."""
        self._next_s = self._first_s

    def draw_s(self) -> float:
        """Return the next wait in seconds."""
        wait_s = self._next_s * (0.5 + random.random() / 2)  # noqa: S311 - jitter, not a secret
        self._next_s = min(self._limit_s, self._next_s * 2)
        return wait_s


class Supervisor:
    """Runs the tasks of a process.

    A task that fails is started again after a wait, unless it was called essential: then the process stops and
    `failure` says why. Whatever was opened is closed in the reverse order, each step within the bound.
    """

    def __init__(self, log: Log, shutdown_limit_ms: int) -> None:
        self._log = log
        self._limit_s = shutdown_limit_ms / 1_000
        self._closers: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._stopping = asyncio.Event()
        self.failure: BaseException | None = None

    def start(self, name: str, work: Callable[[], Awaitable[None]], *, essential: bool = False) -> None:
        """Run `work` until it returns, again after each failure, or once where it is essential.

        It is cancelled in its turn when the process stops, before what was registered earlier is closed.
        """
        task = asyncio.create_task(self._kept_up(name, work, essential=essential), name=name)

        async def cancel() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._closers.append((name, cancel))

    def at_stop(self, name: str, close: Callable[[], Awaitable[None]]) -> None:
        """Have something closed when the process stops; the last one registered is closed first."""
        self._closers.append((name, close))

    def stop(self) -> None:
        """Ask the process to stop; may be called at any time and more than once."""
        self._stopping.set()

    def stop_on_signals(self) -> None:
        """Stop in order on SIGINT and SIGTERM; a second signal of the kind ends the process at once."""
        loop = asyncio.get_running_loop()

        def on_signal(number: int) -> None:
            loop.remove_signal_handler(number)
            self.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal, number)

    async def until_stopped(self) -> None:
        """Return once the process was asked to stop or an essential task failed."""
        await self._stopping.wait()

    async def close(self) -> None:
        """Close everything in order; what takes too long is given up with a log line."""
        self._stopping.set()
        for name, close in reversed(self._closers):
            try:
                async with asyncio.timeout(self._limit_s):
                    await close()
            except TimeoutError:
                self._log.warning("closing took too long and was given up", part=name)
            except Exception:  # noqa: BLE001 - the other parts have to be closed all the same
                self._log.exception("closing failed", part=name)
        self._closers.clear()

    async def _kept_up(self, name: str, work: Callable[[], Awaitable[None]], *, essential: bool) -> None:
        backoff = Backoff()
        while True:
            try:
                await work()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the part is started again or the process stops
                if essential:
                    self._log.exception("an essential part failed: stopping", part=name)
                    self.failure = error
                    self._stopping.set()
                    return
                wait_s = backoff.draw_s()
                self._log.exception("a part failed and is started again", part=name, wait_s=round(wait_s, 2))
                await asyncio.sleep(wait_s)
            else:
                return


async def finished(awaitable: Awaitable[Any], limit_s: float) -> bool:
    """Wait for something at most this long; say if it came to an end."""
    try:
        async with asyncio.timeout(limit_s):
            await awaitable
    except TimeoutError:
        return False
    return True
