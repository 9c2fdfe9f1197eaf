"""What the demo shows: the queues at every moment, what the real jobs do, and the final table."""

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from armada.cli import render
from armada.cli.demo.performance import ACTIVE, Performance, Remark, Share
from armada.cli.demo.verdict import Finding

WIDTH: Final = 104
"""Columns where no terminal says how many there are; also the most that are used."""

NARROW: Final = 92
"""Below this many columns the table of queues gets less air."""

REMARKS: Final = 9
_FIXED_CELLS: Final = 66
"""Columns of the table of queues without its bars, with the least air."""
_COLOURS: Final = ("bright_blue", "magenta", "dark_orange3")


def stage(performance: Performance, shares: dict[str, Share], width: int = WIDTH) -> Any:
    """The whole picture of one moment, on a terminal of this many columns."""
    width = min(width, WIDTH)
    total = performance.mix.total_simulated + len(performance.mix.jobs)
    ended = sum(performance.count(each.name, "succeeded", "failed", "cancelled") for each in performance.mix.queues)
    head = Text.assemble(
        ("Armada demo", "bold"),
        f"   {performance.elapsed_s:5.1f} s   ",
        (f"{ended:,} of {total:,} jobs have ended", "dim"),
    )
    queues = queue_table(performance, shares, width)
    return Group(head, Text(), queues, Text(), remark_lines(performance.remarks, width))


def queue_table(performance: Performance, shares: dict[str, Share], width: int = WIDTH) -> Table:
    """Queues by state, and their shares of the cpus in use beside the fair ones."""
    air = 2 if width >= NARROW else 1
    cells = max(8, width - _FIXED_CELLS - 9 * (air - 1))
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, air, 0, 0))
    grid.add_column("QUEUE", no_wrap=True)
    for heading in ("WEIGHT", "QUEUED", "LEASED", "RUNNING", "DONE", "OTHER"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("CPUS IN USE │ FAIR" if cells >= 18 else "CPU │ FAIR", no_wrap=True)
    grid.add_column("", justify="right", no_wrap=True)
    for number, each in enumerate(performance.mix.queues):
        share = shares.get(each.name, Share())
        colour = _COLOURS[number % len(_COLOURS)]
        grid.add_row(
            Text(each.name, style=colour),
            f"{1 / each.priority_factor:g}",
            f"{performance.count(each.name, 'queued'):,}",
            f"{performance.count(each.name, 'leased', 'pending'):,}",
            f"{performance.count(each.name, 'running'):,}",
            Text(f"{performance.count(each.name, 'succeeded'):,}", style="green"),
            f"{performance.count(each.name, 'failed', 'cancelled'):,}",
            bar(share, colour, cells),
            f"{share.used:.0%} of {share.fair:.0%}",
        )
    return grid


def bar(share: Share, colour: str, cells: int) -> Text:
    """A bar of the share used, with a mark where the fair share ends."""
    filled = round(share.used * cells)
    mark = min(cells - 1, round(share.fair * cells))
    text = Text()
    for cell in range(cells):
        if share.fair and cell == mark:
            text.append("│", style="bold")
        else:
            text.append("█" if cell < filled else "░", style=colour if cell < filled else "bright_black")
    return text


def remark_lines(remarks: Sequence[Remark], width: int = WIDTH) -> Text:
    """The latest remarks on the real jobs, oldest first; always as many lines."""
    text = Text("ON THIS MACHINE\n", style="bold")
    shown = list(remarks)[-REMARKS:]
    for remark in shown:
        line = Text(f"{remark.at_s:6.1f} s  {remark.key:<10} ", style="not bold")
        line.append(remark.kind, style=render.STATE_STYLES.get(remark.kind, ""))
        if remark.text:
            line.append(f"  {render.printable(remark.text, one_line=True)}", style="dim")
        line.truncate(width, overflow="ellipsis")
        text.append_text(line)
        text.append("\n")
    text.append("\n" * (REMARKS - len(shown)))
    return text


def plain_line(performance: Performance, shares: dict[str, Share]) -> str:
    """The moment as one line, where there is no terminal to draw on."""
    states = {
        state: sum(performance.count(each.name, *names) for each in performance.mix.queues)
        for state, names in {
            "queued": ("queued",),
            "running": ACTIVE,
            "succeeded": ("succeeded",),
            "other": ("failed", "cancelled"),
        }.items()
    }
    counts = "  ".join(f"{state} {count:,}" for state, count in states.items())
    parts = "  ".join(f"{name} {share.used:.0%}/{share.fair:.0%}" for name, share in shares.items())
    return f"{performance.elapsed_s:6.1f} s  {counts}  share/fair: {parts}"


def final_table(findings: Sequence[Finding]) -> Table:
    """What was promised and what happened."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column("", no_wrap=True)
    grid.add_column("WHAT", max_width=24)
    grid.add_column("EXPECTED", max_width=28, style="dim")
    grid.add_column("WHAT HAPPENED", overflow="fold")
    for finding in findings:
        mark = Text("✓", style="bold green") if finding.is_kept else Text("✗", style="bold red")
        grid.add_row(mark, finding.what, finding.expected, Text(render.printable(finding.happened, one_line=True)))
    return grid


def closing(findings: Sequence[Finding], seconds: float) -> Panel:
    """The last word, and how to go on."""
    kept = sum(finding.is_kept for finding in findings)
    if kept == len(findings):
        verdict = Text(f"All {kept} came out as expected, in {seconds:.0f} s.", style="bold green")
    else:
        verdict = Text(f"{len(findings) - kept} of {len(findings)} did not come out as expected.", style="bold red")
    text = Text.assemble(
        verdict,
        "\n\nGo on:\n",
        ("  make up", "cyan"),
        "                                 stay running\n",
        ("  .venv/bin/armadactl create queue mine", "cyan"),
        "   your first queue\n",
        ("  .venv/bin/armadactl submit --help", "cyan"),
        "       what a file of jobs is like\n",
        ("  docs/tutorial.md", "cyan"),
        "                        five minutes, step by step",
    )
    return Panel(text, border_style="bright_black", expand=False)
