"""Where compiled kernels go: never into the package, never where others could write, elsewhere after an edit."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from armada import kernel_cache
from armada.kernel_cache import KERNELS, PREFIX, VARIABLE, choose_cache

CALL_A_KERNEL = """
import numpy as np
from armada.scheduling.kernels.books import share
print(share(np.array([4]), np.array([1.0]), np.array([1])))
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No variable set, no home; temporary files go into the folder returned."""
    for name in (VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_the_users_own_choice_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/somewhere/else")
    assert choose_cache() is None
    assert os.environ[VARIABLE] == "/somewhere/else"


def test_the_cache_is_under_the_users_cache_folder(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bare / "home"))
    chosen = choose_cache()
    assert chosen is not None
    assert chosen.parent == bare / "home" / ".cache" / "armada"
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "xdg"))
    assert choose_cache() == bare / "xdg" / "armada" / chosen.name
    assert os.environ[VARIABLE] == str(bare / "xdg" / "armada" / chosen.name)


def test_without_a_home_it_is_under_the_temporary_folder(bare: Path) -> None:
    chosen = choose_cache()
    assert chosen is not None
    assert chosen.parent == bare / f"armada-{os.getuid()}"
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700


@pytest.mark.usefixtures("bare")
def test_a_folder_that_others_may_write_to_is_not_used() -> None:
    first = choose_cache()
    assert first is not None
    first.chmod(0o777)
    other = choose_cache()
    assert other is not None
    assert other != first
    assert other.name.startswith(PREFIX)


def test_a_home_that_is_no_folder_is_passed_over(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "file").write_text("no folder")
    monkeypatch.setenv("HOME", str(bare / "file"))
    chosen = choose_cache()
    assert chosen is not None
    assert chosen.is_relative_to(bare / f"armada-{os.getuid()}")


@pytest.mark.usefixtures("bare")
def test_an_edited_inner_kernel_gets_another_cache(tmp_path: Path) -> None:
    copy = tmp_path / "kernels"
    shutil.copytree(KERNELS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = choose_cache(copy)
    assert before == choose_cache(copy)
    inner = copy / "nodes" / "index.py"
    inner.write_text(inner.read_text() + "\n# edited\n")
    assert choose_cache(copy) != before


@pytest.mark.usefixtures("bare")
def test_another_compiler_gets_another_cache(tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    (packages / "numba-1.0.dist-info").mkdir(parents=True)
    before = kernel_cache._fingerprint(KERNELS, packages)
    (packages / "numba-1.0.dist-info").rename(packages / "numba-1.1.dist-info")
    assert kernel_cache._fingerprint(KERNELS, packages) != before


@pytest.mark.usefixtures("bare")
def test_without_a_compiler_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert choose_cache() is None
    assert VARIABLE not in os.environ


def test_an_inherited_choice_of_ours_is_made_anew(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(bare / f"{PREFIX}old"))
    chosen = choose_cache()
    assert chosen is not None
    assert chosen.name != f"{PREFIX}old"


def test_kernels_run_from_a_package_that_is_never_written_to(bare: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    package = site / "armada"
    sources = KERNELS.parents[1]
    for room in ("model", "scheduling"):
        shutil.copytree(sources / room, package / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("__init__.py", "kernel_cache.py"):
        shutil.copy(sources / file, package / file)
    environment = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "HOME")}
    environment |= {"PYTHONPATH": str(site), "TMPDIR": str(bare), "PYTHONDONTWRITEBYTECODE": "1"}
    for path in (*package.rglob("*"), package):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = subprocess.run(
            [sys.executable, "-c", CALL_A_KERNEL], cwd=bare, env=environment, check=True, capture_output=True, text=True
        )
    finally:
        for path in (package, *package.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.stdout.strip() == "0.25"
    assert [path for path in package.rglob("*") if path.suffix in {".nbi", ".nbc", ".pyc"}] == []
    assert list((bare / f"armada-{os.getuid()}").rglob("*.nbc"))
