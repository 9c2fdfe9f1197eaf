"""What may not stand in any file: somebody's machine, loose ends, silenced checks without a reason."""

import re
from collections.abc import Iterable
from typing import Final

from tests.tidy.repository import Finding, Source, documents, expect_none, relative, sample, sources, tracked

_HOME: Final = re.compile(r"(?<![\w.-])/(?:work|root|home(?!/you\b)|Users|mnt)/\w")
_TEMPORARY: Final = re.compile(r"""["']/(?:tmp|var/tmp)\b(?!.*noqa: S108 -)""")
_LOOSE_END: Final = re.compile(r"(?<!`)\b(?:TODO|FIXME|XXX|HACK)\b(?!.*docs/decisions/\d{4})")
_BARE_NOQA: Final = re.compile(r"#\s*noqa(?::\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*)?\s*$")
_BARE_IGNORE: Final = re.compile(r"#\s*type:\s*ignore(?:\[[\w,\s-]*\])?\s*$")
_MAIL: Final = re.compile(r"\b[\w.+-]+@(?!example\b)[\w-]+\.(?!example\b|invalid\b|test\b|local\b|svc\b)[a-z]{2,}\b")

BAD: Final = (
    (_HOME, "a path of somebody's machine"),
    (_TEMPORARY, "a fixed temporary path: two runs would meet there"),
    (_LOOSE_END, "a loose end: settle it, or name its record in docs/decisions/"),
    (_BARE_NOQA, "a silenced lint rule without a reason on the line"),
    (_BARE_IGNORE, "a silenced type error without a reason on the line"),
    (_MAIL, "somebody's mail address: use one under example.com"),
)

EXEMPT: Final = ("tests/tidy/test_text.py",)


def bad_lines(files: Iterable[Source]) -> list[Finding]:
    """Lines with something that doesn't belong."""
    return [
        file.at(number, what)
        for file in files
        if file.path not in EXEMPT
        for number, line in enumerate(file.text.splitlines(), start=1)
        for pattern, what in BAD
        if pattern.search(line)
    ]


def other_texts() -> list[Source]:
    """Tracked text files that are neither Python nor Markdown."""
    found = []
    for path in tracked():
        if path.suffix in {".py", ".md", ".lock", ".gz"} or path.name == "LICENSE":
            continue
        try:
            found.append(Source(relative(path), path.read_text()))
        except UnicodeDecodeError:
            continue
    return found


def test_no_line_that_does_not_belong() -> None:
    expect_none(bad_lines([*sources(), *documents(), *other_texts()]))


def test_the_rule_sees_each_of_them() -> None:
    samples = [
        'folder = "/work/elsewhere"',
        "see /home/somebody/notes",
        'folder = "/tmp/armada"',
        "x = 1  # TODO: later",
        "import os  # noqa: F401",
        "import os  # noqa",
        "x: int = ''  # type: ignore[assignment]",
        "write to somebody@company.org",
    ]
    for line in samples:
        assert len(bad_lines(sample(line + "\n"))) == 1, line


def test_the_rule_leaves_other_lines_alone() -> None:
    fine = [
        "import os  # noqa: F401 - loaded for its side effect",
        "x: int = ''  # type: ignore[assignment]  # the stub is wrong",
        "x = 1  # TODO: docs/decisions/0007-trimming.md",
        "anna@example.com and runs at https://kubernetes.default.svc/api/v1/pods/root/x",
        "the path shared/work/x and a working folder, or /home/you/armada",
        "Path('/tmp')  # noqa: S108 - only the last resort",
    ]
    assert bad_lines(sample("\n".join(fine))) == []
