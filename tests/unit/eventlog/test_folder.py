"""One data folder, one process, one version."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armada.eventlog.folder import FOLDER_VERSION, DataFolder, write_durably
from armada.model.errors import StartupRefused

UNPRIVILEGED = 65_534


def test_a_folder_is_made_and_can_be_used_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    for _ in range(2):
        DataFolder.open(path).close()
    assert (path / "VERSION").read_text() == f"{FOLDER_VERSION}\n"


def test_a_second_user_is_refused_and_told_whom_to_stop(tmp_path: Path) -> None:
    first = DataFolder.open(tmp_path)
    with pytest.raises(StartupRefused, match=f"in use by process {os.getpid()}; stop that one"):
        DataFolder.open(tmp_path)
    first.close()
    DataFolder.open(tmp_path).close()


def test_a_process_that_died_does_not_keep_the_folder(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time; from armada.eventlog.folder import DataFolder;"
        " held = DataFolder.open(pathlib.Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StartupRefused, match=f"in use by process {holder.pid}"):
            DataFolder.open(tmp_path)
        holder.kill()
        holder.wait()
    DataFolder.open(tmp_path).close()


@pytest.mark.parametrize("version", ["0", str(FOLDER_VERSION + 1), "banana", ""])
def test_another_version_is_refused_and_left_alone(tmp_path: Path, version: str) -> None:
    (tmp_path / "VERSION").write_text(version)
    with pytest.raises(StartupRefused, match=f"has version '{version}'; this program uses version {FOLDER_VERSION}"):
        DataFolder.open(tmp_path)
    assert (tmp_path / "VERSION").read_text() == version


def test_somebody_else_s_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StartupRefused, match=r"holds 'thesis.txt' but no VERSION"):
        DataFolder.open(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["lock", "thesis.txt"]


def test_a_fresh_disk_is_no_stranger(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    DataFolder.open(tmp_path).close()


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StartupRefused, match="can't be used: File exists"):
        DataFolder.open(tmp_path / "data")
    with pytest.raises(StartupRefused, match="can't be used: Not a directory"):
        DataFolder.open(tmp_path / "data" / "below")


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    """Root may write anywhere, so the folder is opened by a process that has given up its rights, from inside it."""
    DataFolder.open(tmp_path).close()
    for file in tmp_path.iterdir():
        file.chmod(0o444)
    tmp_path.chmod(0o555)
    script = (
        "import os, pathlib\n"
        "from armada.eventlog.folder import DataFolder\n"
        "from armada.model.errors import StartupRefused\n"
        f"if os.getuid() == 0: os.setgroups([]); os.setgid({UNPRIVILEGED}); os.setuid({UNPRIVILEGED})\n"
        "try: DataFolder.open(pathlib.Path('.'))\n"
        "except StartupRefused as refusal: print(refusal)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    tmp_path.chmod(0o755)
    assert "can't be used: Permission denied; choose a folder that this user may write" in done.stdout, done.stderr


def test_a_durable_write_is_whole_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_durably(file, b"first")

    def failing(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="No space left"):
        write_durably(file, b"second")
    assert file.read_bytes() == b"first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
