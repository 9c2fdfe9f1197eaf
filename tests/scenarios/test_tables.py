"""Every row of the scheduler's tables is played here, as a row (rows.toml) or as a story (stories.toml)."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent


def named(texts: str) -> list[str]:
    """`A1-3 B2` as A1, A2, A3, B2."""
    names = []
    for letter, first, last in re.findall(r"([A-Z])([0-9]+)(?:-([0-9]+))?", texts):
        names += [f"{letter}{number}" for number in range(int(first), int(last or first) + 1)]
    return names


def missing(ids: Iterable[str], played: Iterable[str]) -> list[str]:
    """Ids of which there is neither the row nor a variant of it."""
    rows = {re.sub(r"[a-z]$", "", name) for name in played}
    return [name for name in ids if name not in rows]


def test_every_row_is_played() -> None:
    ids = named(tomllib.loads((HERE / "tables.toml").read_text(encoding="utf-8"))["ids"])
    assert len(ids) > 100
    played = [
        name for file in ("rows.toml", "stories.toml") for name in tomllib.loads((HERE / file).read_text("utf-8"))
    ]
    assert missing(ids, played) == []


def test_a_row_that_is_not_played_is_noticed() -> None:
    assert missing(["A1", "A2", "A10"], ["A1b", "A10", "X2"]) == ["A2"]
