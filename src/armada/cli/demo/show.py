"""The demo from curtain to curtain: start, perform, judge, clean up."""

import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from rich.console import Console
from rich.live import Live

from armada.cli.demo import mix, screen, verdict
from armada.cli.demo.performance import Performance
from armada.cli.demo.system import DemoSystem
from armada.cli.failures import CommandFailed, ExitStatus

LIMIT_S: Final = 75.0
"""Longest performance; what has not ended by then did not come out as expected."""

TICK_S: Final = 0.2
PLAIN_EVERY_S: Final = 2.0
CLEANUP_S: Final = 8.0
_WEB_FONT: Final = re.compile(r"@font-face\s*\{[^}]*\}\s*")
"""Fonts from elsewhere: the picture does with the viewer's own monospaced one."""

_PICTURE_AT: Final = 0.45
"""Part of the jobs that have ended when the moment for the picture is taken."""


def run(*, small: bool = False, picture: Path | None = None) -> int:
    """Perform the demo and return the exit status: 0 only when everything came out as expected.

    Raises:
        CommandFailed: the system could not be started, or broke.
    """
    chosen = mix.small(usable_cpus()) if small else mix.full(usable_cpus())
    is_terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if is_terminal else screen.WIDTH)
    signal.signal(signal.SIGTERM, _interrupted)
    with tempfile.TemporaryDirectory(prefix="armada-demo-", ignore_cleanup_errors=True) as folder:
        console.print(f"Starting Armada in {folder}: this machine, and {_fleet_text(chosen.fleet)} …")
        with DemoSystem(Path(folder), chosen.fleet) as system:
            url = system.wait_ready()
            performance = Performance(url, chosen)
            try:
                return _perform(performance, system, console, picture)
            except KeyboardInterrupt:
                console.print("\nInterrupted: stopping what was started …")
                return int(ExitStatus.INTERRUPTED)
            finally:
                _leave_nothing(performance, system)


def usable_cpus() -> int:
    """How many cpus this process may use, which is what the machine's node offers."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fleet_text(fleet: str) -> str:
    clusters, _, nodes = fleet.partition("x")
    return f"{clusters} simulated clusters of {nodes} node{'' if nodes == '1' else 's'}"


def _interrupted(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _perform(performance: Performance, system: DemoSystem, console: Console, picture: Path | None) -> int:
    meter = verdict.FairnessMeter(settle_s=1.4 * performance.mix.runtime_s)
    moment: Any = None
    begin = performance.begin()
    with _display(console, performance) as show:
        next_tick_s = 0.0
        submitting = True
        while not performance.is_over and performance.elapsed_s < LIMIT_S:
            if submitting:
                submitting = next(begin, _ENDED) is not _ENDED
            performance.advance()
            if performance.elapsed_s >= next_tick_s:
                next_tick_s = performance.elapsed_s + TICK_S
                shares = performance.shares()
                meter.look(performance, shares)
                show()
                if moment is None and _is_picturesque(performance):
                    moment = screen.stage(performance, shares)
            if not system.is_running:
                raise CommandFailed(f"the system ended by itself{system.log_tail()}")
            if not submitting:
                time.sleep(TICK_S / 4)
        performance.advance()
        show()
    performance.read_output()
    found = verdict.findings(performance, meter)
    seconds = performance.elapsed_s
    _print_end(console, found, seconds)
    if picture is not None:
        _draw(picture, moment, found, seconds)
    is_kept = all(finding.is_kept for finding in found)
    if not is_kept:
        sys.stderr.write(f"The server's log{system.log_tail() or ' is empty.'}\n")
    return 0 if is_kept else 1


_ENDED: Final = object()


def _is_picturesque(performance: Performance) -> bool:
    ended = sum(performance.count(each.name, "succeeded") for each in performance.mix.queues)
    return ended >= _PICTURE_AT * performance.mix.total_simulated


@contextmanager
def _display(console: Console, performance: Performance) -> Iterator[Callable[[], None]]:
    """A way to show the present moment: drawn in place on a terminal, a line now and then elsewhere."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=False) as live:
            yield lambda: live.update(screen.stage(performance, performance.shares(), console.width), refresh=True)
        return
    printed_s = [-PLAIN_EVERY_S]
    told = [0]

    def show() -> None:
        for remark in performance.remarks[told[0] :]:
            suffix = f": {remark.text}" if remark.text else ""
            print(f"{remark.at_s:6.1f} s  {remark.key} {remark.kind}{suffix}", flush=True)  # noqa: T201 - the display
        told[0] = len(performance.remarks)
        if performance.elapsed_s - printed_s[0] >= PLAIN_EVERY_S or performance.is_over:
            printed_s[0] = performance.elapsed_s
            print(screen.plain_line(performance, performance.shares()), flush=True)  # noqa: T201 - the display

    yield show


def _print_end(console: Console, found: list[verdict.Finding], seconds: float) -> None:
    console.print()
    console.print(screen.final_table(found))
    console.print()
    console.print(screen.closing(found, seconds))


def _draw(path: Path, moment: Any, found: list[verdict.Finding], seconds: float) -> None:
    """Write one moment and the end as an SVG picture."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        recorder = Console(record=True, width=screen.WIDTH + 2, file=nowhere, force_terminal=True, highlight=False)
        if moment is not None:
            recorder.print(moment)
        _print_end(recorder, found, seconds)
        svg = recorder.export_svg(title="make demo", unique_id="armada-demo")
        path.write_text(_WEB_FONT.sub("", svg), encoding="utf-8")


def _leave_nothing(performance: Performance, system: DemoSystem) -> None:
    """Cancel what still runs and wait until its processes are gone, as far as the system still answers."""
    try:
        if system.is_running and not performance.is_over:
            performance.finish()
            deadline_s = performance.elapsed_s + CLEANUP_S
            while performance.has_active() and performance.elapsed_s < deadline_s:
                time.sleep(TICK_S)
    except CommandFailed:
        return
    finally:
        performance.close()
