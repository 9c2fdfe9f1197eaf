"""Readers of configuration values: each takes a value and its path, and returns the value or says what is wrong.

Readers compose: `listed(text)` reads a list of texts, `mapped(number)` a mapping to numbers, and a function on a
`Section`, decorated with `closed`, a mapping with named keys, which refuses keys that nobody read.
"""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from armada.model.errors import InvalidRequest
from armada.model.fleet import Taint
from armada.model.jobs import Toleration
from armada.model.resources import INT64_MAX, MAX_QUANTITY_CHARS, parse_quantity

INERT_KEYS: Final = frozenset(
    {"priorityMultiplier", "maxJobSchedulingContextsPerExecutor", "experimentalIndicativePricing"}
)
"""Keys that the reference's own file carries and nothing reads."""

MAX_DURATION_MS: Final = 10 * 365 * 86_400_000

_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")
_UNIT_MS: Final = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}

_TOLD_CHARS: Final = 80

T = TypeVar("T")
D = TypeVar("D")


def told(value: Any) -> str:
    """Return a value as a message shows it: shortened, for files hold anything."""
    try:
        written = repr(value)
    except ValueError:
        written = "a number of very many digits"
    return written if len(written) <= _TOLD_CHARS else f"{written[:_TOLD_CHARS]}..."


def duration_ms(value: Any, path: str) -> int:
    """Return a duration in whole milliseconds: a text such as `1h30m`, or a number of seconds.

    Raises:
        InvalidRequest: it is neither, is negative, or is longer than ten years.
    """
    total: float
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        total = max(-1.0, min(value, MAX_DURATION_MS)) * 1000.0
    elif isinstance(value, str) and len(value) <= MAX_QUANTITY_CHARS and value:
        if value == "0":
            return 0
        parts = _DURATION_PART.findall(value)
        if "".join(number + unit for number, unit in parts) != value:
            raise InvalidRequest(f"{path}: {told(value)} is no duration; write for example 500ms, 10s, 5m or 1h30m")
        total = sum(float(number) * _UNIT_MS[unit] for number, unit in parts)
    else:
        raise InvalidRequest(f"{path}: {told(value)} is no duration; write for example 500ms, 10s, 5m or 1h30m")
    if not 0 <= total <= MAX_DURATION_MS:
        raise InvalidRequest(f"{path}: a duration of {told(value)} is negative or longer than ten years")
    return round(total)


class Section:
    """One mapping of a configuration with the path to it; every read names its key, and `close` refuses the rest."""

    def __init__(self, values: Any, path: str = "") -> None:
        if not isinstance(values, Mapping):
            raise InvalidRequest(f"{path or 'the configuration'}: expected a mapping, found {type(values).__name__}")
        self._values: Mapping[str, Any] = values
        self._path = path
        self._read: dict[str, None] = {}

    def path(self, key: str) -> str:
        """Return the full path of a key."""
        return f"{self._path}.{key}" if self._path else key

    def get(self, key: str, read: Callable[[Any, str], T], default: D) -> T | D:
        """Read a key by `read(value, path)`; absent or null means the default."""
        self._read[key] = None
        value = self._values.get(key)
        return default if value is None else read(value, self.path(key))

    def need(self, key: str, read: Callable[[Any, str], T]) -> T:
        """Read a key that must be there.

        Raises:
            InvalidRequest: it is absent or null.
        """
        self._read[key] = None
        if self._values.get(key) is None:
            raise InvalidRequest(f"{self.path(key)} is missing")
        return read(self._values[key], self.path(key))

    def close(self) -> None:
        """Refuse keys that nothing read.

        Raises:
            InvalidRequest: there is one; the text names its path and the keys that exist.
        """
        for key in self._values:
            if key not in self._read and key not in INERT_KEYS:
                known = ", ".join(sorted(self._read))
                raise InvalidRequest(f"unknown key {self.path(str(key))}; known here: {known}")


def text(value: Any, path: str) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{path}: expected text, found {told(value)}")
    return value


def boolean(value: Any, path: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise InvalidRequest(f"{path}: expected true or false, found {told(value)}")
    return value


def whole(value: Any, path: str) -> int:
    """Read a whole number from 0 to the largest int64 (a float without a fraction counts)."""
    number_read = number(value, path)
    if number_read != int(number_read):
        raise InvalidRequest(f"{path}: expected a whole number, found {told(value)}")
    if value > INT64_MAX:
        raise InvalidRequest(f"{path}: {told(value)} is beyond the largest whole number, {INT64_MAX}")
    return int(value)


def number(value: Any, path: str) -> float:
    """Read a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= sys.float_info.max:
        raise InvalidRequest(f"{path}: expected a number of at least 0, found {told(value)}")
    return float(value)


def quantity(value: Any, path: str) -> str:
    """Read a Kubernetes quantity; a bare number is taken as its text."""
    written = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else text(value, path)
    try:
        parse_quantity(written)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from error
    return written


def listed(read: Callable[[Any, str], T]) -> Callable[[Any, str], tuple[T, ...]]:
    """Return a reader of lists whose items `read` reads."""

    def read_list(values: Any, path: str) -> tuple[T, ...]:
        if not isinstance(values, (list, tuple)):
            raise InvalidRequest(f"{path}: expected a list, found {told(values)}")
        return tuple(read(value, f"{path}[{index}]") for index, value in enumerate(values))

    return read_list


def mapped(read: Callable[[Any, str], T]) -> Callable[[Any, str], dict[str, T]]:
    """Return a reader of mappings whose values `read` reads."""

    def read_mapping(values: Any, path: str) -> dict[str, T]:
        if not isinstance(values, Mapping):
            raise InvalidRequest(f"{path}: expected a mapping, found {told(values)}")
        return {text(key, path): read(value, f"{path}.{key}") for key, value in values.items()}

    return read_mapping


def closed(read: Callable[[Section], T]) -> Callable[[Any, str], T]:
    """Return a reader of mappings by `read(section)` that refuses keys which `read` left unread."""

    def read_section(values: Any, path: str) -> T:
        section = Section(values, path)
        result = read(section)
        section.close()
        return result

    return read_section


fractions: Final = mapped(number)
quantities: Final = mapped(quantity)
texts: Final = listed(text)


@closed
def toleration(section: Section) -> Toleration:
    """Read a Kubernetes toleration; `tolerationSeconds` is known and has no meaning here."""
    section.get("tolerationSeconds", whole, 0)
    return Toleration(
        key=section.get("key", text, ""),
        operator=section.get("operator", text, "") or "Equal",
        value=section.get("value", text, ""),
        effect=section.get("effect", text, ""),
    )


@closed
def taint(section: Section) -> Taint:
    """Read a Kubernetes taint."""
    section.get("timeAdded", text, "")
    return Taint(
        section.need("key", text),
        section.get("value", text, ""),
        section.get("effect", text, "NoSchedule"),
    )
