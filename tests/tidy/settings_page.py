"""The generated parts of docs/settings.md: `python -m tests.tidy.settings_page` writes them, a test compares."""

import re
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic_core import PydanticUndefined

from armada.model.submission import SubmissionPolicy
from armada.runtime.settings import Settings
from tests.shared_folder import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "settings.md"


def process_table() -> str:
    """All settings of the processes with default, environment variable and meaning."""
    lines = ["| setting | default | environment | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = field.default_factory() if field.default_factory is not None else field.default  # type: ignore[call-arg]  # takes none
        shown = "" if default is PydanticUndefined else plain(default)
        lines.append(f"| `{name}` | {shown} | `ARMADA_{name.upper()}` | {field.description} |")
    return "\n".join(lines)


def submission_table() -> str:
    """The keys of the section `submission` with their defaults."""
    lines = ["| key | default |", "|---|---|"]
    policy = msgspec.to_builtins(SubmissionPolicy())
    lines += [f"| `{key}` | {plain(value)} |" for key, value in policy.items()]
    return "\n".join(lines)


def plain(value: Any) -> str:
    """A default as the page shows it."""
    if value is None or value in ("", {}, [], ()):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    text = value if isinstance(value, str) else value.as_posix() if isinstance(value, Path) else ""
    return f"`{text or msgspec.json.encode(value).decode()}`"


TABLES: Final = {"process": process_table, "submission": submission_table}


def filled(page: str) -> str:
    """The page with each generated part as it should be now."""
    for name, make in TABLES.items():
        part = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=\n<!-- end of {name} -->)", re.DOTALL)
        page = part.sub(lambda _, make=make: make(), page)  # type: ignore[misc]  # bound now, not late
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
    sys.stdout.write(f"{PAGE.relative_to(REPOSITORY)} is up to date\n")
