"""The generated part of docs/metrics.md: `python -m tests.tidy.metrics_page` writes it, a test compares."""

import re
import sys
from typing import Final

from armada.control.measuring.catalogue import SERIES
from armada.control.measuring.series import Series
from tests.shared_folder import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "metrics.md"
_PART: Final = re.compile(r"(?<=<!-- series -->\n).*?(?=\n<!-- end of series -->)", re.DOTALL)


def table() -> str:
    """All series; those that share type and labels stand side by side under them."""
    groups: dict[tuple[str, tuple[str, ...]], list[Series]] = {}
    for series in SERIES:
        groups.setdefault((series.kind, series.labels), []).append(series)
    lines: list[str] = []
    for (kind, labels), group in groups.items():
        shown = ", ".join(f"`{label}`" for label in labels) or "no labels"
        own = " and the queue's own labels" if group[0].has_free_labels else ""
        lines += [f"{kind.capitalize()}s with {shown}{own}:", "", "| series | meaning |", "|---|---|"]
        lines += [f"| `{series.name}` | {series.meaning} |" for series in group]
        lines.append("")
    return "\n".join(lines).rstrip()


def filled(page: str) -> str:
    """The page with its generated part as it should be now."""
    return _PART.sub(lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
    sys.stdout.write(f"{PAGE.relative_to(REPOSITORY)} is up to date\n")
