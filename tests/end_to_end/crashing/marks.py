"""What real jobs left behind: marks in files, and processes."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self


def uptime_s() -> float:
    """Now, by the clock that marks are made with."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of a mark file."""

    what: str
    run_id: str
    pid: int
    at_s: float


class Marks:
    """All marks below a folder, by job and container."""

    def __init__(self, by_container: dict[tuple[str, str], list[Mark]]) -> None:
        self._by_container = by_container

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what is there now."""
        found = {}
        for file in folder.iterdir():
            job_id, _, container = file.name.partition(".")
            lines = [line.split() for line in file.read_text().splitlines()]
            found[job_id, container] = [Mark(what, run, int(pid), float(at)) for what, run, pid, at in lines]
        return cls(found)

    def of(self, job_id: str, container: str, what: str) -> list[Mark]:
        """The marks of one kind that a container of a job made."""
        return [mark for mark in self._by_container.get((job_id, container), ()) if mark.what == what]

    def job_ids(self) -> set[str]:
        """Jobs that ever started."""
        return {job_id for job_id, _ in self._by_container}


def processes_with(text: str) -> list[int]:
    """Processes of this machine whose command line or environment holds a text."""
    needle = text.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if needle in (entry / "cmdline").read_bytes() or needle in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
