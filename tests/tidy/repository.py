"""The repository as the tidy rules see it: files with their text and syntax tree.

A rule is a function from these to findings (`path:line: what is wrong`); each is run on the whole repository and, so
that it is known to work, on a sample that breaks it.
"""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.shared_folder import REPOSITORY

PACKAGE: Final = "src/armada"

PURE: Final = (
    f"{PACKAGE}/model/",
    f"{PACKAGE}/scheduling/",
    f"{PACKAGE}/state/",
    f"{PACKAGE}/control/",
    f"{PACKAGE}/executor/agent",
    f"{PACKAGE}/executor/pods",
)
"""Beginnings of the paths of pure code."""

GENERATED: Final = f"{PACKAGE}/_proto/"

Finding = str


class Source(NamedTuple):
    """One Python file; `path` is relative to the repository, with forward slashes."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return _parsed(self.path, self.text)

    @property
    def is_pure(self) -> bool:
        """True for code that may not depend on anything but its arguments."""
        return self.path.startswith(PURE)

    @property
    def is_test(self) -> bool:
        """True below `tests/`."""
        return self.path.startswith("tests/")

    def at(self, line: int, what: str) -> Finding:
        """A finding in this file."""
        return f"{self.path}:{line}: {what}"


def sample(text: str, path: str = f"{PACKAGE}/state/sample.py") -> list[Source]:
    """A single file that is not in the repository, for trying a rule on it."""
    return [Source(path, text)]


@cache
def _parsed(path: str, text: str) -> ast.Module:
    return ast.parse(text, path)


@cache
def tracked() -> tuple[Path, ...]:
    """All files that are or would be committed, as absolute paths."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True).stdout
    files = (REPOSITORY / name for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in files if path.is_file())


@cache
def sources() -> tuple[Source, ...]:
    """All Python files written by hand."""
    found = (Source(relative(path), path.read_text()) for path in tracked() if path.suffix == ".py")
    return tuple(source for source in found if not source.path.startswith(GENERATED))


def product() -> list[Source]:
    """Those of the product."""
    return [source for source in sources() if source.path.startswith(PACKAGE)]


def source(path: str) -> Source:
    """One file of the repository."""
    return Source(path, (REPOSITORY / path).read_text())


@cache
def documents() -> tuple[Source, ...]:
    """All Markdown files."""
    return tuple(Source(relative(path), path.read_text()) for path in tracked() if path.suffix == ".md")


def relative(path: Path) -> str:
    """A path as findings name it."""
    return path.relative_to(REPOSITORY).as_posix()


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    """All functions and methods, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def expect_none(findings: list[Finding]) -> None:
    """Fail the test with the findings, one a line."""
    if findings:
        pytest.fail("\n".join(findings), pytrace=False)
