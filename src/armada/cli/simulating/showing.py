"""What a simulation shows: progress while it runs, a line for each cycle if asked for, and the summary."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from armada.cli import render
from armada.cli.simulating.figures import QueueSummary, Summary
from armada.simulation.whatif.simulation import Tick

HEADINGS: Final = (
    "queue",
    "succeeded",
    "preempted",
    "cancelled",
    "rejected",
    "mean wait",
    "median wait",
    "longest wait",
    "cpu hours",
    "mean share",
)


class Watcher(Protocol):
    """Takes every tick."""

    def __call__(self, tick: Tick) -> None:
        """Show a tick."""
        ...


@contextmanager
def watching(title: str, *, logs: bool) -> Iterator[Watcher]:
    """Show how far a simulation is: a bar on a terminal, and with `logs` a line for each cycle, all on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=sys.stderr, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("jobs"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[clock]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task(render.printable(title, one_line=True), total=None, clock="")

        def show(tick: Tick) -> None:
            progress.update(bar, completed=tick.done, total=tick.total, clock=f"at {clock(tick.at_ms / 1_000)}")
            if logs:
                console.print(log_line(tick), markup=False, soft_wrap=True)

        yield show


def log_line(tick: Tick) -> str:
    """Say in a line what a cycle did."""
    return (
        f"{clock(tick.at_ms / 1_000)} leased={tick.leased} preempted={tick.preempted} queued={tick.queued}"
        f" running={tick.running} done={tick.done} of {tick.total}"
    )


def clock(seconds: float) -> str:
    """Write a time or a length of time as days, hours, minutes and seconds: `1d 02:03:04`."""
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    text = f"{rest // 3_600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}d {text}" if days else text


def headline(summary: Summary) -> str:
    """Sum up in a sentence."""
    used = ", ".join(f"{share:.0%} of the cpus of pool {pool}" for pool, share in summary.utilisation)
    again = f", {summary.resubmitted:,} jobs submitted again after preemption" if summary.resubmitted else ""
    return f"{clock(summary.end_s)} of virtual time, {summary.rounds:,} rounds{again}; in use: {used or 'nothing'}"


def queue_rows(summary: Summary) -> list[list[str]]:
    """Return the cells of the summary, a row for each queue."""
    return [_cells(queue) for queue in summary.queues]


def _cells(queue: QueueSummary) -> list[str]:
    waits = (queue.mean_wait_s, queue.median_wait_s, queue.worst_wait_s)
    return [
        queue.queue,
        *(f"{count:,}" for count in (queue.succeeded, queue.preempted, queue.cancelled, queue.rejected)),
        *("-" if wait is None else clock(wait) for wait in waits),
        f"{queue.cpu_hours:,.1f}",
        f"{queue.mean_share:.1%}",
    ]


def show_summary(title: str, summary: Summary) -> None:
    """Print the summary."""
    render.line(render.printable(f"{title}: {headline(summary)}"))
    render.console().print(render.table(HEADINGS, queue_rows(summary), right=HEADINGS[1:]))
