"""Runs all benchmarks, one process each, and prints their figures: `python -m tests.benchmarks [NAME ...] [--write]`.

A benchmark is a file `bench_NAME.py` here or in a folder here, with a function `measure()` that yields figures.
`--write` puts the table into docs/performance.md, with the date and the machine.
"""

import argparse
import datetime as dt
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.benchmarks.figures import Figure, markdown, plain

HERE: Final = Path(__file__).resolve().parent
REPOSITORY: Final = HERE.parents[1]
PAGE: Final = REPOSITORY / "docs" / "performance.md"
TABLE: Final = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
LIMIT_S: Final = 600


def main() -> int:
    """Run what is named (default: everything) and return the exit status: 1 when a benchmark failed."""
    parser = argparse.ArgumentParser(prog="make bench", description="Measure speed, latency and memory.")
    parser.add_argument("names", nargs="*", help="benchmarks to run (bench_NAME.py); default: all")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args()
    found = {module.rpartition("bench_")[2]: module for module in modules()}
    unknown = sorted(set(options.names) - set(found))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(found)}")
    figures: list[Figure] = []
    failed = []
    for name, module in found.items():
        if not options.names or name in options.names:
            say(f"== {name}")
            answer = run(module)
            figures.extend(answer or ())
            if answer is None:
                failed.append(name)
            else:
                say(plain(answer))
    say(f"{len(figures)} figures on {machine()}")
    missed = [figure for figure in figures if figure.is_met is False]
    for figure in missed:
        say(f"target missed: {figure.name}: {figure.cells[1]} instead of {figure.cells[2]}")
    if figures and not missed:
        say("every target is reached")
    if options.write and not failed:
        write(figures)
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def modules() -> Iterator[str]:
    """Names of the benchmark modules, in order of their paths."""
    for path in sorted(HERE.rglob("bench_*.py")):
        yield ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)


def run(module: str) -> list[Figure] | None:
    """The figures of one benchmark, measured in a process of its own; None when it failed."""
    code = f"from {module} import measure; from tests.benchmarks.figures import hand_over; hand_over(measure())"
    command = [sys.executable, "-c", code]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        say(f"not done after {LIMIT_S} s")
        return None
    if done.returncode:
        return None
    return [msgspec.json.decode(line, type=Figure) for line in done.stdout.splitlines()]


def machine() -> str:
    """What the figures were measured on."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{os.cpu_count()} cores ({processor()}), {memory_bytes / 2**30:.0f} GiB, Python {platform.python_version()}"


def processor() -> str:
    """The processor's name as the kernel tells it."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def write(figures: list[Figure]) -> None:
    """Replace the table in docs/performance.md."""
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    text = PAGE.read_text()
    PAGE.write_text(TABLE.sub(lambda _: f"\n{today}, {machine()}:\n\n{markdown(figures)}\n", text))


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
