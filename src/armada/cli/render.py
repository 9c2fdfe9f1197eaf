"""What commands print: tables for people, JSON and YAML for programs; text of others made safe for a terminal."""

import enum
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_WIDTH: Final = 1_000
"""Columns of a table that no terminal limits: nothing is wrapped or cut for a program that reads a pipe."""

STATE_STYLES: Final = {
    "queued": "yellow",
    "leased": "cyan",
    "pending": "cyan",
    "running": "bold blue",
    "succeeded": "green",
    "failed": "bold red",
    "rejected": "red",
    "preempted": "magenta",
    "cancelled": "bright_black",
    "lease expired": "red",
    "lease returned": "yellow",
}
"""How states are coloured, by their lower-case name."""

_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(0x7F, 0xA0)) if code not in (9, 10)} | {
    code: f"\\u{code:04x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))
}
"""Control characters, separators of lines, and marks that turn the direction of writing."""


class OutputFormat(enum.StrEnum):
    """What `-o` chooses."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def printable(text: str, *, one_line: bool = False) -> str:
    """Text from elsewhere without control characters, so that it can't move the cursor or forge lines.

    Line ends and tabs stay, unless `one_line` is set: then they become visible escapes too.
    """
    text = text.translate(_ESCAPES)
    if one_line:
        text = text.replace("\n", "\\n").replace("\t", "\\t")
    return text


def console(stream: TextIO | None = None) -> "Console":
    """A rich console on stdout (or `stream`) that never guesses colours for numbers and never wraps in a pipe."""
    from rich.console import Console

    out = sys.stdout if stream is None else stream
    return Console(file=out, highlight=False, soft_wrap=False, width=None if out.isatty() else PIPE_WIDTH)


def line(text: str) -> None:
    """Print one line (or lines) of plain text to stdout at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def warning(text: str) -> None:
    """Print a remark to stderr: something worth knowing that is no failure."""
    sys.stderr.write(f"Warning: {printable(text)}\n")
    sys.stderr.flush()


def table(headings: Sequence[str], rows: Iterable[Sequence["RenderableType"]], *, right: Sequence[str] = ()) -> Any:
    """A borderless table with one blank column between columns; `right` names right-aligned headings.

    Cells that are strings are taken literally (no markup), cleaned and kept to one line: a row is one line.
    """
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for heading in headings:
        grid.add_column(heading.upper(), justify="right" if heading in right else "left", no_wrap=heading in right)
    for row in rows:
        grid.add_row(*(Text(printable(cell, one_line=True)) if isinstance(cell, str) else cell for cell in row))
    return grid


def fields(rows: Iterable[tuple[str, "RenderableType"]]) -> Any:
    """What is known about one thing: a name and a value a line. Values that are strings are taken literally."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, Text(printable(value)) if isinstance(value, str) else value)
    return grid


def state_text(state: str) -> Any:
    """A state's name in its colour."""
    from rich.text import Text

    name = state.replace("_", " ").lower()
    return Text(name, style=STATE_STYLES.get(name, ""))


def plain_numbers(value: Any) -> Any:
    """The same JSON-like value with whole floats as integers (2.0 reads as 2) and no infinities or NaN."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(item) for item in value]
    return value


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """JSON text, readable unless `indent` is None."""
    return json.dumps(value, indent=indent, ensure_ascii=False, separators=None if indent else (",", ":"))


def as_yaml(value: Any) -> str:
    """YAML text in block style with sorted keys, without the final line end."""
    import yaml

    return yaml.safe_dump(value, default_flow_style=False, allow_unicode=True, sort_keys=True, width=4_096).rstrip("\n")


def emit(output: OutputFormat, value: Any, human: Callable[[], "RenderableType"]) -> None:
    """Print `value` for programs, or what `human` makes for people, as `-o` says."""
    if output is OutputFormat.JSON:
        line(as_json(value))
    elif output is OutputFormat.YAML:
        line(as_yaml(value))
    else:
        shown = human()
        if isinstance(shown, str):
            line(printable(shown))
        elif sys.stdout.isatty():
            console().print(shown)
        else:
            screen = console()
            with screen.capture() as captured:
                screen.print(shown)
            # Tables fill their lines with blanks, which are of no use in a pipe.
            line("\n".join(part.rstrip() for part in captured.get().rstrip("\n").split("\n")))
