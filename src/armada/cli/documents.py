"""Files that users write: YAML or JSON, read strictly, every mistake reported with its place.

Stricter than plain YAML where silence would hurt: a key given twice is refused, and text that older YAML would turn
into a date or into base-60 numbers (`12:30`) stays text. Numbers keep the text they were written with, so that
`version: 1.10` put where a string is wanted reads "1.10".
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from armada.cli.failures import CommandFailed, ExitStatus

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's loader in C where it is built in: ten times as fast, with the same rules."""

LARGEST_FILE_BYTES: Final = 256 * 1024 * 1024

_SPECIAL_FLOAT: Final = re.compile(r"\.(inf|nan)")
_INT: Final = re.compile(r"^[-+]?(?:0|[1-9][0-9_]*|0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+)$")
_FLOAT: Final = re.compile(
    r"^[-+]?(?:(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|\.inf|\.Inf|\.INF)$|^\.(?:nan|NaN|NAN)$"
)


class WrittenInt(int):
    """A whole number of a file that prints as it was written."""

    written: str

    @classmethod
    def of(cls, text: str, base: int = 10) -> "WrittenInt":
        """The number that the text writes in this base (0: as its prefix says)."""
        number = cls(text.replace("_", ""), base)
        number.written = text
        return number

    def __str__(self) -> str:
        return self.written


class WrittenFloat(float):
    """A number with a fraction or exponent that prints as it was written."""

    written: str

    @classmethod
    def of(cls, text: str) -> "WrittenFloat":
        """The number that the text writes; `.inf` and `.nan` as YAML spells them."""
        number = cls(_SPECIAL_FLOAT.sub(r"\1", text.lower()).replace("_", ""))
        number.written = text
        return number

    def __repr__(self) -> str:
        return self.written

    def is_integer(self) -> bool:
        """False: even 1.0 was not written as a whole number."""
        return False


class _Loader(_Base):  # type: ignore[misc] # either of two loaders, chosen at import
    """PyYAML's safe loader with the rules of this module."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class's mutable table, replaced as a whole
        first: [(tag, pattern) for tag, pattern in rules if not tag.endswith((":timestamp", ":int", ":float"))]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        """A mapping with text keys, each given once; merge keys (`<<`) work."""
        seen: dict[str, yaml.Mark] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", key_node.start_mark)
            if key_node.value in seen:
                first = seen[key_node.value].line + 1
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key_node.value!r} is given twice (first in line {first})", key_node.start_mark
                )
            seen[key_node.value] = key_node.start_mark
        self.flatten_mapping(node)
        return {str(key.value): self.construct_object(value, deep=True) for key, value in node.value}

    def whole(self, node: yaml.ScalarNode) -> int:
        """An integer in any of YAML's bases."""
        octal = re.fullmatch(r"[-+]?0[0-7_]+", node.value)
        return WrittenInt.of(node.value, 8 if octal else 0)

    def fraction(self, node: yaml.ScalarNode) -> float:
        """A float, infinite or not a number included."""
        return WrittenFloat.of(node.value)


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.fraction)


def source_name(path: Path) -> str:
    """What messages call the file."""
    return "standard input" if str(path) == "-" else str(path)


def read_file(path: Path) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        CommandFailed: it is missing, no file, unreadable, too large, empty, or not text.
    """
    name = source_name(path)
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1)
        else:
            if path.is_dir():
                raise CommandFailed(f"{name} is a directory, not a file", ExitStatus.USAGE)
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        cause = (error.strerror or str(error)).lower()
        raise CommandFailed(f"can't read {name}: {cause}", ExitStatus.USAGE) from error
    if len(content) > LARGEST_FILE_BYTES:
        raise CommandFailed(f"{name} is larger than {LARGEST_FILE_BYTES >> 20} MiB", ExitStatus.USAGE)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{name} is not a text file: byte {error.start} is not UTF-8", ExitStatus.USAGE) from error
    if "\0" in text:
        raise CommandFailed(f"{name} is not a text file: it holds NUL bytes", ExitStatus.USAGE)
    if not text.strip():
        raise CommandFailed(f"{name} is empty", ExitStatus.USAGE)
    return text


def read_document(path: Path) -> tuple[dict[str, Any], int]:
    """The first document of a YAML or JSON file, which must be a mapping, and the number of documents.

    Raises:
        CommandFailed: the file can't be read, is broken, or holds something else than a mapping.
    """
    text = read_file(path)
    name = source_name(path)
    try:
        documents = [_json(text)] if path.suffix.lower() == ".json" else list(_documents(text))
    except yaml.YAMLError as error:
        raise CommandFailed(f"{name}: {_syntax(error, text)}", ExitStatus.USAGE) from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise CommandFailed(f"{name}: {place}: {error.msg.lower()}", ExitStatus.USAGE) from error
    except ValueError as error:
        raise CommandFailed(f"{name}: {error}", ExitStatus.USAGE) from error
    except RecursionError as error:
        raise CommandFailed(f"{name}: nested too deep", ExitStatus.USAGE) from error
    if not documents or documents[0] is None:
        raise CommandFailed(f"{name} is empty: it holds comments only", ExitStatus.USAGE)
    if not isinstance(documents[0], dict):
        kind = "a list" if isinstance(documents[0], list) else "a single value"
        raise CommandFailed(f"{name} holds {kind}, not a mapping of fields", ExitStatus.USAGE)
    return documents[0], len(documents)


def _json(text: str) -> Any:
    """The value of a JSON text; a key given twice is a ValueError."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, value in pairs:
            if key in members:
                raise ValueError(f"key {key!r} is given twice")
            members[key] = value
        return members

    return json.loads(text, object_pairs_hook=unique, parse_int=WrittenInt.of, parse_float=WrittenFloat.of)


def _documents(text: str) -> Iterator[Any]:
    """The documents of the text; only the first is built, the others are merely parsed."""
    loader = _Loader(text)
    try:
        if loader.check_data():
            yield loader.get_data()
        while loader.check_node():
            yield loader.get_node()
    finally:
        loader.dispose()


def _syntax(error: yaml.YAMLError, text: str) -> str:
    """A YAML error as one line: place and cause."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is None:
        return problem
    rows = text.splitlines()
    row = rows[mark.line] if mark.line < len(rows) else ""
    if "\t" in row[: len(row) - len(row.lstrip())]:
        problem = "the line is indented with a tab; YAML wants spaces"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
