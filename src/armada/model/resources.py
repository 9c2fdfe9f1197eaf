"""Kubernetes quantities as exact integers, and resource kinds as columns of int64.

A quantity is text such as `500m`, `1.5Gi` or `2e3`. It is read once, exactly, into *nano units* (an unbounded Python
int, 10**-9 of the resource's unit); what lies below a nano unit is rounded away from zero, and what has a binary suffix
is cut at the largest int64 of whole units, both as Kubernetes does it. Everything else counts in *column units*: each
resource kind has a resolution, a power of ten, and the column holds int64 multiples of it.

Rounding always errs on the safe side: what a job asks for is rounded up, what a node offers is rounded down.
Numbers that leave int64 are held at its ends (saturated), never wrapped.
"""

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from armada.model.errors import InvalidRequest

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

NANO_PER_UNIT: Final = 10**9
NANO_PER_MILLI: Final = 10**6

MAX_QUANTITY_CHARS: Final = 128
"""A longer quantity is refused unread."""

MAX_EXPONENT: Final = 100
"""A larger decimal exponent, of either sign, is refused; int64 ends at 10**18 units."""

Quantities = Mapping[str, str] | Iterable[tuple[str, str]]
"""Kubernetes quantities by resource name, as a mapping or as pairs."""

Vector = tuple[int, ...]
"""One amount per resource kind, in column units, within int64."""

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?P<point>\.?)(?P<fraction>[0-9]*)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE](?P<exponent>[+-]?[0-9]+))?",
)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}

# Kubernetes keeps a quantity in an int64 with a decimal scale while it surely fits, and then also keeps the text it
# came from: 18 decimal digits always fit.
_EXACT_DIGITS: Final = 18
_EXACT_BINARY_DIGITS: Final = 15


class InvalidQuantity(InvalidRequest, ValueError):
    """A text that is no Kubernetes quantity, or one beyond all limits."""


class _Reading(msgspec.Struct, frozen=True):
    """A quantity as read. `format` is binary, decimal or exponent; `kept` the text where that is canonical."""

    nano: int
    format: str
    kept: str | None


def _away_from_zero(numerator: int, denominator: int) -> int:
    magnitude = -(-abs(numerator) // denominator)
    return magnitude if numerator >= 0 else -magnitude


def _scaled(digits: int, exponent: int) -> int:
    """`digits` x 10**`exponent`, rounded away from zero."""
    return digits * 10**exponent if exponent >= 0 else _away_from_zero(digits, 10**-exponent)


def _read_binary(match: re.Match[str], power: int) -> _Reading:
    whole, fraction = match["whole"].lstrip("0") or "0", match["fraction"]
    sign = -1 if match["sign"] == "-" else 1
    exact = not fraction and _EXACT_BINARY_DIGITS - len(whole) - power * 3 // 10 - 1 >= 0
    if not exact and not match["whole"] + fraction:
        raise InvalidQuantity(f"quantity {match.string!r} has no digits")
    magnitude = -(-(int(whole + fraction) * 2**power * NANO_PER_UNIT) // 10 ** len(fraction))
    magnitude = min(magnitude, INT64_MAX * NANO_PER_UNIT)
    return _Reading(sign * magnitude, "binary", match.string if exact and int(whole) % 1024 else None)


def _read_decimal(match: re.Match[str], exponent: int, form: str) -> _Reading:
    whole, fraction = match["whole"].lstrip("0") or "0", match["fraction"]
    sign = -1 if match["sign"] == "-" else 1
    scale = exponent - len(fraction)
    exact = scale >= -9 and len(whole) + len(fraction) <= _EXACT_DIGITS
    if not exact and not match["whole"] + fraction:
        raise InvalidQuantity(f"quantity {match.string!r} has no digits")
    digits = int(whole + fraction)
    kept = exact and scale % 3 == 0 and digits % 1000 != 0 and whole != "0"
    return _Reading(sign * _scaled(digits, scale + 9), form, match.string if kept else None)


@lru_cache(maxsize=65_536)
def _read(text: str) -> _Reading:
    if not text:
        raise InvalidQuantity("a quantity is empty: write a number such as 1, 500m or 2Gi")
    if len(text) > MAX_QUANTITY_CHARS:
        raise InvalidQuantity(f"a quantity of {len(text)} characters is too long (at most {MAX_QUANTITY_CHARS})")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InvalidQuantity(
            f"{text!r} is no Kubernetes quantity: write a number with an optional suffix"
            " (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e and an exponent), such as 1, 500m or 2Gi",
        )
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        return _read_binary(match, _BINARY[suffix])
    if suffix in _DECIMAL:
        return _read_decimal(match, _DECIMAL[suffix], "decimal")
    exponent = int(match["exponent"])
    if abs(exponent) > MAX_EXPONENT:
        raise InvalidQuantity(f"quantity {text!r} has an exponent beyond {MAX_EXPONENT}")
    return _read_decimal(match, exponent, "exponent")


def parse_quantity(text: str) -> int:
    """Return the value of a Kubernetes quantity in nano units, rounded away from zero. The result may leave int64.

    Raises:
        InvalidQuantity: an `InvalidRequest` and `ValueError`; the text says what is wrong with it.
    """
    return _read(text).nano


def canonical_quantity(text: str) -> str:
    """Return the quantity as Kubernetes writes it back.

    Kubernetes keeps a text whose digits already stand at a suffix, without thousands to spare, as it is (`007Ki`, `+1`,
    `1.`), writes zero as `0`, and brings everything else into the form of `format_quantity`, with the kind of suffix
    that the text had: binary (only for whole amounts of at least 1024 units), decimal, or a decimal exponent.

    Raises:
        InvalidQuantity: as `parse_quantity`.
    """
    reading = _read(text)
    if reading.nano == 0:
        return "0"
    if reading.kept is not None:
        return reading.kept
    whole, rest = divmod(abs(reading.nano), NANO_PER_UNIT)
    if reading.format == "binary" and rest == 0 and whole >= 1024:
        sign = "-" if reading.nano < 0 else ""
        suffixes = iter(_BINARY)
        suffix = ""
        while whole % 1024 == 0 and suffix != "Ei":
            whole //= 1024
            suffix = next(suffixes)
        return f"{sign}{whole}{suffix}"
    digits, exponent = _thousands(reading.nano)
    if reading.format == "exponent":
        return f"{digits}e{exponent}" if exponent else str(digits)
    return f"{digits}{_DECIMAL_SUFFIX[exponent]}"


def _thousands(nano: int) -> tuple[int, int]:
    """(digits, exponent): `nano` as digits x 10**exponent units with the largest exponent of n, u, m, ... E."""
    exponent = -9
    while exponent < 18 and nano % 1000 == 0:
        nano //= 1000
        exponent += 3
    return nano, exponent


def format_quantity(nano: int) -> str:
    """Return an amount of nano units as a decimal quantity: the fewest digits before a suffix of n, u, m, k ... E.

    The choice is always decimal (2 GiB is `2147483648`, 2000 GiB `2147483648k`), because an amount that was added up
    no longer knows which suffix its parts had.
    """
    if nano == 0:
        return "0"
    digits, exponent = _thousands(nano)
    return f"{digits}{_DECIMAL_SUFFIX[exponent]}"


def whole_units(nano: int) -> int:
    """Return whole units, rounded away from zero and held within int64."""
    return saturated(_away_from_zero(nano, NANO_PER_UNIT))


def milli_units(nano: int) -> int:
    """Return thousandths of a unit, rounded away from zero and held within int64."""
    return saturated(_away_from_zero(nano, NANO_PER_MILLI))


def saturated(value: int) -> int:
    """Hold a number within int64."""
    return max(INT64_MIN, min(INT64_MAX, value))


def fraction_of(amount: int, fraction: float) -> int:
    """Return this fraction of an int64 amount, truncated towards zero and held within int64.

    1.0 is exact, and infinity (no limit set) gives the largest int64 whatever the amount.
    """
    if fraction == 1.0:
        return amount
    if fraction == math.inf:
        return INT64_MAX
    product = amount * fraction
    if product >= INT64_MAX:
        return INT64_MAX
    return INT64_MIN if product <= INT64_MIN else int(product)


def resolution_exponent(resolution: str) -> int:
    """Return the power of ten, in nano units, of a kind's column unit: 10**floor(log10(resolution)).

    A resolution of zero or less means thousandths.

    Raises:
        InvalidQuantity: the text is no quantity.
    """
    nano = parse_quantity(resolution)
    return 6 if nano <= 0 else len(str(nano)) - 1


class ResourceKinds(msgspec.Struct, frozen=True):
    """The resource kinds that exist, in column order. `exponents` are the columns' units as powers of ten of nano.

    Vectors are tuples of ints in the same order: one amount per kind, in the kind's column unit, within int64.
    """

    names: tuple[str, ...]
    exponents: tuple[int, ...]

    @classmethod
    def from_resolutions(cls, kinds: Quantities) -> "ResourceKinds":
        """Make the kinds from (name, resolution) pairs.

        Raises:
            InvalidRequest: a name repeats or is empty, or a resolution is no quantity.
        """
        pairs = tuple(_pairs(kinds))
        names = tuple(name for name, _ in pairs)
        for index, name in enumerate(names):
            if not name:
                raise InvalidRequest(f"resource kind {index} has no name")
            if name in names[:index]:
                raise InvalidRequest(f"resource kind {name!r} is declared twice")
        return cls(names, tuple(resolution_exponent(resolution) for _, resolution in pairs))

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int | None:
        """Return the column of a kind, or None where no such kind exists."""
        try:
            return self.names.index(name)
        except ValueError:
            return None

    def unknown(self, quantities: Quantities) -> tuple[str, ...]:
        """Return the names that are no kind of ours, in the order given."""
        return tuple(name for name, _ in _pairs(quantities) if name not in self.names)

    def vector_up(self, requests: Quantities) -> Vector:
        """Return what a job asks for, rounded up. Unknown names are left out (`unknown` tells them).

        Raises:
            InvalidQuantity: a quantity can't be read; the text names the resource.
        """
        amounts = [0] * len(self.names)
        for name, nano in self._readings(requests):
            column = self.names.index(name)
            amounts[column] = saturated(-(-nano // 10 ** self.exponents[column]))
        return tuple(amounts)

    def vector_down(self, total: Quantities) -> Vector:
        """Return what a node offers, rounded down. Unknown names are left out.

        Raises:
            InvalidQuantity: a quantity can't be read; the text names the resource.
        """
        amounts = [0] * len(self.names)
        for name, nano in self._readings(total):
            column = self.names.index(name)
            amounts[column] = saturated(nano // 10 ** self.exponents[column])
        return tuple(amounts)

    def quantities(self, vector: Iterable[int]) -> dict[str, str]:
        """Return a vector as quantities by name, without the kinds of which there is none."""
        return {
            name: format_quantity(amount * 10**exponent)
            for name, exponent, amount in zip(self.names, self.exponents, vector, strict=True)
            if amount
        }

    def _readings(self, quantities: Quantities) -> Iterable[tuple[str, int]]:
        for name, text in _pairs(quantities):
            if name in self.names:
                try:
                    yield name, parse_quantity(text)
                except InvalidQuantity as error:
                    raise InvalidQuantity(f"resource {name}: {error}") from error


def _pairs(quantities: Quantities) -> Iterable[tuple[str, str]]:
    return quantities.items() if isinstance(quantities, Mapping) else quantities


def added(left: Vector, right: Vector) -> Vector:
    """Add two vectors, held within int64."""
    return tuple(saturated(a + b) for a, b in zip(left, right, strict=True))


def exceeds(left: Vector, right: Vector) -> bool:
    """Return True when at least one amount of `left` is greater than its partner in `right`."""
    return any(a > b for a, b in zip(left, right, strict=True))
