"""`armada demo` in its small variant: everything as told, nothing left behind; and stopped half-way."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "armada", "demo", "--small")


def demo(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """Start the demo with its temporary files in `folder`."""
    environment = {**os.environ, "TMPDIR": str(folder), "COLUMNS": "110"}
    return subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def children_of(folder: Path) -> list[str]:
    """Command lines of processes that mention the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line:
                found.append(line)
    return found


@pytest.mark.timeout(180)
def test_everything_comes_out_as_told_and_nothing_stays(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    process = demo(tmp_path, "--picture", str(picture))
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, out + err
    assert "All 9 came out as expected" in out
    assert "make up" in out
    assert "\x1b" not in out
    assert picture.read_text().startswith("<svg")
    assert list(tmp_path.glob("armada-demo-*")) == []
    assert children_of(tmp_path) == []


@pytest.mark.timeout(120)
def test_an_interrupt_cleans_up(tmp_path: Path) -> None:
    process = demo(tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if "running" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert list(tmp_path.glob("armada-demo-*")) == []
    assert children_of(tmp_path) == []
