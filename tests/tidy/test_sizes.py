"""Files, functions and rooms stay small enough to be read at once."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from tests.tidy.repository import PACKAGE, Finding, Source, expect_none, functions, product, sample, sources

FILE_LINES: Final = 500
FUNCTION_LINES: Final = 70
KERNEL_LINES: Final = 120
ROOM_FILES: Final = 10
ENTRY_LINES: Final = 30

KERNELS: Final = f"{PACKAGE}/scheduling/kernels/"


def long_files(files: Iterable[Source]) -> list[Finding]:
    """Files over their limit: 500 lines, and 30 for `__init__.py` and `__main__.py`, which only open a room."""
    found = []
    for file in files:
        limit = ENTRY_LINES if file.path.endswith(("__init__.py", "__main__.py")) else FILE_LINES
        lines = file.text.count("\n")
        if lines > limit:
            found.append(file.at(lines, f"{lines} lines, {limit} are allowed: split it by noun"))
    return found


def long_functions(files: Iterable[Source]) -> list[Finding]:
    """Functions over 70 lines, kernels over 120, counted from `def` to the last line."""
    found = []
    for file in files:
        limit = KERNEL_LINES if file.path.startswith(KERNELS) else FUNCTION_LINES
        for function in functions(file.tree):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > limit:
                found.append(file.at(function.lineno, f"{function.name} has {lines} lines, {limit} are allowed"))
    return found


def full_rooms(files: Iterable[Source]) -> list[Finding]:
    """Folders of the package with more than ten files, `__init__.py` and `__main__.py` aside."""
    rooms: dict[str, int] = defaultdict(int)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        if name not in {"__init__.py", "__main__.py"} and not folder.endswith("migrations/versions"):
            rooms[folder] += 1
    return [f"{room}: {count} files, {ROOM_FILES} are allowed" for room, count in rooms.items() if count > ROOM_FILES]


def test_files() -> None:
    expect_none(long_files(sources()))


def test_functions() -> None:
    expect_none(long_functions(sources()))


def test_rooms() -> None:
    expect_none(full_rooms(product()))


def test_the_rules_see_what_is_too_long() -> None:
    assert long_files(sample("x = 1\n" * 501)) == [
        "src/armada/state/sample.py:501: 501 lines, 500 are allowed: split it by noun",
    ]
    assert len(long_files(sample("x = 1\n" * 31, f"{PACKAGE}/state/__init__.py"))) == 1
    assert long_files(sample("x = 1\n" * 500)) == []
    nested = "class A:\n    async def work(self):\n" + "        x = 1\n" * 70
    assert long_functions(sample(nested)) == ["src/armada/state/sample.py:2: work has 71 lines, 70 are allowed"]
    assert long_functions(sample(nested, f"{KERNELS}sample.py")) == []
    assert len(long_functions(sample("def work():\n" + "    x = 1\n" * 120, f"{KERNELS}sample.py"))) == 1


def test_the_rule_sees_a_full_room() -> None:
    files = [Source(f"{PACKAGE}/state/f{number}.py", "") for number in range(11)]
    assert full_rooms(files[:10]) == []
    assert full_rooms([*files[:10], Source(f"{PACKAGE}/state/__init__.py", "")]) == []
    assert full_rooms(files) == ["src/armada/state: 11 files, 10 are allowed"]
