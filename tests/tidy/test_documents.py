"""The pages agree with the code: links lead somewhere, named functions exist, no command or target is left out."""

import importlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
import typer

from armada.cli import operator, user
from tests.shared_folder import REPOSITORY
from tests.tidy.repository import Finding, Source, documents, expect_none, sample, source
from tests.tidy.test_tooling import makefile, targets

JOURNEY: Final = "docs/journey-of-a-job.md"
RECORDS: Final = "docs/decisions/"
LEAST_NAMES: Final = 25
"""How many functions the journey names at least: fewer, and the rule below checks nothing."""

_LINK: Final = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_NAME: Final = re.compile(r"`([a-z_]+(?:\.[A-Za-z_]\w*)+)(?:\(\))?`")
_TARGET: Final = re.compile(r"`make ([a-z]+)`|^\$ make ([a-z]+)", re.MULTILINE)


def dead_links(pages: Iterable[Source]) -> list[Finding]:
    """Relative links to files that are not there."""
    found = []
    for page in pages:
        folder = (REPOSITORY / page.path).parent
        for match in _LINK.finditer(page.text):
            link = (match[1] or match[2]).partition("#")[0]
            if link and "://" not in link and not (folder / link).exists():
                found.append(page.at(page.text.count("\n", 0, match.start()) + 1, f"no file {link}"))
    return found


def named(page: Source) -> Iterator[tuple[int, str]]:
    """(line, name) of all that a page names like `module.function`; paths of files are no such names."""
    for number, line in enumerate(page.text.splitlines(), start=1):
        for match in _NAME.finditer(line):
            if not match[1].endswith((".py", ".md", ".db", ".yaml")):
                yield number, match[1]


def unknown_names(page: Source) -> list[Finding]:
    """Names below `armada` that don't exist."""
    return [page.at(line, f"armada.{name} does not exist") for line, name in named(page) if not exists(name)]


def exists(name: str) -> bool:
    """True when `armada.NAME` is a module, or something in one."""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["armada", *parts[:depth]]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            fields = getattr(found, "__annotations__", {})
            if not hasattr(found, part) and part not in fields:
                return False
            found = getattr(found, part, None)
        return True
    return False


def unknown_targets(pages: Iterable[Source], known: set[str]) -> list[Finding]:
    """Targets that a page tells readers to make and that the Makefile does not have."""
    return [
        page.at(page.text.count("\n", 0, match.start()) + 1, f"no target {match[1] or match[2]}")
        for page in pages
        for match in _TARGET.finditer(page.text)
        if (match[1] or match[2]) not in known
    ]


def commands(program: str, app: typer.Typer) -> list[str]:
    """All commands of a program, as typed: `armadactl get queue`. Hidden ones are left out."""

    def walk(prefix: str, node: Any) -> Iterator[str]:
        children = getattr(node, "commands", None)
        if children is None:
            yield prefix
            return
        for name, child in sorted(children.items()):
            if not child.hidden:
                yield from walk(f"{prefix} {name}", child)

    return list(walk(program, typer.main.get_command(app)))


def undocumented(names: Iterable[str], pages: Iterable[Source]) -> list[Finding]:
    """Names that no page has."""
    text = "\n".join(page.text for page in pages)
    return [f"{name}: on no page" for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def test_links_lead_somewhere() -> None:
    expect_none(dead_links(documents()))


def test_the_journey_names_what_exists() -> None:
    page = source(JOURNEY)
    assert len(set(named(page))) >= LEAST_NAMES
    expect_none(unknown_names(page))


def test_pages_name_targets_that_exist() -> None:
    expect_none(unknown_targets(documents(), targets(makefile())))


@pytest.mark.parametrize(("program", "app"), [("armada", operator.app), ("armadactl", user.app)])
def test_every_command_is_on_a_page(program: str, app: typer.Typer) -> None:
    names = commands(program, app)
    assert len(names) > 3
    expect_none(undocumented(names, documents()))


def test_every_record_is_in_the_index_under_its_number() -> None:
    index = source(RECORDS + "README.md").text
    records = sorted(page.path for page in documents() if re.match(rf"{RECORDS}\d{{4}}-", page.path))
    names = [path.removeprefix(RECORDS) for path in records]
    numbers = [name[:4] for name in names]
    assert len(dict.fromkeys(numbers)) == len(numbers)
    assert re.findall(r"^\| \[(\d{4})\]\(([^)]+)\)", index, re.MULTILINE) == list(zip(numbers, names, strict=True))


def test_the_rules_see_what_is_wrong() -> None:
    page = sample("# Page\nsee [this](nowhere.md) and [that](#here)\n", "docs/page.md")
    assert dead_links(page) == ["docs/page.md:2: no file nowhere.md"]
    page = sample(
        "`model.events.Entry` `model.events.Nothing` `nowhere.at_all` `views/history.py` `state.ledger.Ledger.apply()`"
    )
    assert [finding.partition(" ")[2] for finding in unknown_names(page[0])] == [
        "armada.model.events.Nothing does not exist",
        "armada.nowhere.at_all does not exist",
    ]
    assert len(unknown_targets(sample("`make demo`\n$ make coffee\n"), {"demo"})) == 1
    assert undocumented(["armada up", "armada upon"], sample("run `armada up --data x`")) == ["armada upon: on no page"]
