"""The import contracts name every room and every file that must be fenced, so that a new one can't slip past them."""

import configparser
from collections.abc import Iterable
from typing import Final

from tests.shared_folder import REPOSITORY
from tests.tidy.repository import PACKAGE, Finding, expect_none, product

PURE_TOWER: Final = "importlinter:contract:pure-tower"
WORLD: Final = "importlinter:contract:pure-rooms-touch-no-world"
NUMBA: Final = "importlinter:contract:numba-is-fenced"
SHELLS: Final = "importlinter:contract:shells"

PURE_ROOMS: Final = ("model", "scheduling", "state", "control")
PURE_FILES: Final = ("executor.agent", "executor.pods")
OPEN_TO_NUMBA: Final = frozenset({"scheduling"})
"""Rooms whose files are fenced one by one, because some of them may use numba or call what does."""


def contracts(text: str) -> configparser.ConfigParser:
    """The contracts of an `.importlinter` file."""
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return parser


def modules() -> set[str]:
    """All rooms, and all files and folders directly in a room, as dotted names below `armada`."""
    found = set()
    for file in product():
        parts = file.path.removeprefix(f"{PACKAGE}/").removesuffix(".py").split("/")
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found.update({".".join(parts[:depth]) for depth in (1, 2)} if parts else set())
    return {name for name in found if not name.split(".")[0].startswith("_") and not name.endswith("__main__")}


def unfenced(parser: configparser.ConfigParser, present: Iterable[str]) -> list[Finding]:
    """Modules that a contract should name and does not."""
    present = set(present)

    def named(contract: str, key: str) -> set[str]:
        words = parser[contract][key].replace("|", " ").split()
        return {word.removeprefix("armada.") for word in words if word.startswith("armada")}

    rooms = {name for name in present if "." not in name}
    tower, world = named(PURE_TOWER, "layers"), named(WORLD, "source_modules")
    outside, fenced = named(WORLD, "forbidden_modules"), named(NUMBA, "source_modules")
    pure_files = {name for name in present if name in PURE_FILES}
    found = [f"{name}: missing from the pure tower" for name in sorted({*PURE_ROOMS} & rooms - tower)]
    found += [
        f"{name}: pure, but not kept from the world" for name in sorted(({*PURE_ROOMS} & rooms | pure_files) - world)
    ]
    impure = rooms - {*PURE_ROOMS, "executor"}
    found += [f"{name}: pure rooms may import it unseen" for name in sorted(impure - outside)]
    open_rooms = rooms & OPEN_TO_NUMBA
    fence = rooms - open_rooms - {"assembly"}
    fence |= {name for name in present if name.split(".")[0] in open_rooms and "." in name} - {"scheduling.kernels"}
    found += [f"{name}: may import numba unseen" for name in sorted(fence - fenced)]
    return found


def test_contracts_name_everything() -> None:
    expect_none(unfenced(contracts((REPOSITORY / ".importlinter").read_text()), modules()))


def test_the_rule_sees_a_new_room_and_a_new_file() -> None:
    parser = contracts((REPOSITORY / ".importlinter").read_text())
    assert unfenced(parser, {"model", "billing"}) == [
        "billing: pure rooms may import it unseen",
        "billing: may import numba unseen",
    ]
    assert unfenced(parser, {"scheduling", "scheduling.lottery", "scheduling.kernels"}) == [
        "scheduling.lottery: may import numba unseen"
    ]
