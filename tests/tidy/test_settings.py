"""Every setting is on its page, with the default that it has."""

import re
from typing import Final

import pytest

from tests.shared_folder import REPOSITORY
from tests.tidy.repository import PACKAGE, Finding, Source, expect_none, sample, source, sources
from tests.tidy.settings_page import PAGE, filled

_READ: Final = re.compile(r"""\b(?:get|need|switched_off)\(\s*"(\w+)\"""")
_KEY: Final = re.compile(r"`([\w.]+)`")

KUBERNETES: Final = frozenset({"timeAdded"})
"""Parts of taints and tolerations that need no page of ours."""


def undocumented_keys(readers: list[Source], page: str) -> list[Finding]:
    """Keys that the readers of configuration ask for and the page does not name."""
    known = set(_KEY.findall(page)) | KUBERNETES
    return [
        file.at(file.text.count("\n", 0, match.start()) + 1, f"{match[1]} is not in docs/settings.md")
        for file in readers
        for match in _READ.finditer(file.text)
        if match[1] not in known
    ]


def test_generated_tables_are_current() -> None:
    page = PAGE.read_text()
    if filled(page) != page:
        pytest.fail("docs/settings.md is behind: run .venv/bin/python -m tests.tidy.settings_page", pytrace=False)


def test_every_key_of_a_configuration_is_on_the_page() -> None:
    readers = [file for file in sources() if file.path.startswith(f"{PACKAGE}/model/configuration/")]
    assert len(readers) > 2
    expect_none(undocumented_keys(readers, source("docs/settings.md").text))


def test_the_rule_sees_what_is_missing() -> None:
    readers = sample('section.get("known", text, ""); section.need(\n    "newKey", whole)\n')
    assert undocumented_keys(readers, "| `known` |") == [
        "src/armada/state/sample.py:1: newKey is not in docs/settings.md",
    ]
    page = "<!-- process -->\nold\n<!-- end of process -->"
    assert "`grpc_port` | `50051` | `ARMADA_GRPC_PORT`" in filled(page)
    assert REPOSITORY.joinpath("docs/settings.md") == PAGE
