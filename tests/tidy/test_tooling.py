"""The tools agree with each other: Makefile, CI, project file, lock."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from tests.shared_folder import REPOSITORY

TARGETS: Final = {"help", "setup", "demo", "up", "test", "check", "bench", "fmt"}
"""What a newcomer has to know. Slow proofs may get targets of their own beside these."""

HEAVY: Final = ("numba", "numpy", "fastapi", "uvicorn", "sqlalchemy", "alembic")
"""What only the control plane needs: the command line and the executor install without."""


def makefile() -> str:
    return (REPOSITORY / "Makefile").read_text()


def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def targets(text: str) -> set[str]:
    """The documented targets of a Makefile."""
    return set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))


def exported(*options: str) -> str:
    """What an installation would contain, one requirement a line, from the lock alone."""
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "export", "--frozen", "--offline", "--no-emit-project", "--no-hashes", *options]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True).stdout


def test_the_makefile_offers_what_newcomers_are_told() -> None:
    assert targets(makefile()) >= TARGETS
    assert targets("a:\n\techo\nb: a ## Do.\n") == {"b"}


def test_ci_runs_make_check_and_nothing_else() -> None:
    script = REPOSITORY / ".ci" / "run"
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "exec make check"]
    assert script.stat().st_mode & 0o111 == 0o111


def test_tests_are_the_last_thing_that_test_and_check_do() -> None:
    """Whoever reads only the end of the output reads pytest's closing line."""
    for target in ("test", "check"):
        recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile(), re.MULTILINE)
        assert recipe is not None
        assert "$(BIN)/pytest" in recipe[1].rstrip().splitlines()[-1]


def test_uv_has_one_version() -> None:
    pinned = re.search(r"^UV_VERSION := (\S+)$", makefile(), re.MULTILINE)
    assert pinned is not None
    assert f"uv=={pinned[1]}" in project()["dependency-groups"]["dev"]


def test_the_lock_belongs_to_the_project_file() -> None:
    lock = tomllib.loads((REPOSITORY / "uv.lock").read_text())
    (ours,) = [each for each in lock["package"] if each["name"] == project()["project"]["name"]]
    assert _requirements(ours["metadata"]["requires-dist"]) == _requirements_of(
        project()["project"]["dependencies"], project()["project"]["optional-dependencies"]
    )
    groups = project()["dependency-groups"]
    locked = {name: _requirements(lines) for name, lines in ours["metadata"]["requires-dev"].items()}
    assert locked == {name: _requirements_of(lines, {}) for name, lines in groups.items()}


def test_command_line_and_executor_install_without_the_control_plane() -> None:
    light, whole = exported("--no-dev"), exported("--no-dev", "--extra", "server")
    for name in HEAVY:
        assert not re.search(rf"^{name}==", light, re.MULTILINE), name
        assert re.search(rf"^{name}==", whole, re.MULTILINE), name


def _requirements(lines: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """(name, version bounds, extra) of requirements as the lock holds them."""
    found = set()
    for line in lines:
        extra = re.search(r"extra == '([^']+)'", line.get("marker", ""))
        found.add((line["name"], line.get("specifier", ""), extra[1] if extra else ""))
    return found


def _requirements_of(plain: list[str], optional: dict[str, list[str]]) -> set[tuple[str, str, str]]:
    """The same as the project file holds them."""
    found = set()
    for extra, lines in [("", plain), *optional.items()]:
        for line in lines:
            name, bounds = re.match(r"([\w-]+)\s*(.*)", line).groups()  # type: ignore[union-attr]  # every line matches
            found.add((name.lower(), bounds, extra))
    return found
