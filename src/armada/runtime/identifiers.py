"""Ids that need chance or a clock: job ids, batch ids, the name of a replica."""

import os
import secrets
import socket
import time
from collections.abc import Callable
from importlib import metadata
from typing import Final

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS: Final = 80
_PAIRS: Final = tuple(high + low for high in _ALPHABET for low in _ALPHABET)


class JobIds:
    """Draws ULIDs in lower case: 48 bits of milliseconds, 80 of chance; each is greater than the one before."""

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._now_ms = now_ms if now_ms is not None else wall_clock_ms
        self._last = 0

    def draw(self, count: int) -> list[str]:
        """Return that many new ids, in order."""
        if count <= 0:
            return []
        first = (self._now_ms() << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS - 1)
        first = max(first, self._last + 1)
        self._last = first + count - 1
        return [_text(number) for number in range(first, first + count)]


def _text(number: int) -> str:
    """Write 128 bits as 26 characters, 10 bits at a time."""
    return "".join(_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10))


def release() -> str:
    """Return the version of the installed distribution; `unknown` when it runs from a bare source tree."""
    try:
        return metadata.version("armada-queue")
    except metadata.PackageNotFoundError:
        return "unknown"


def wall_clock_ms() -> int:
    """Return the time of this machine's clock, in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def batch_id() -> str:
    """Draw the id of a batch of facts."""
    return secrets.token_hex(12)


def host_name() -> str:
    """Return the name of this machine, or of this pod."""
    return socket.gethostname()


def replica_name() -> str:
    """Name this process among all that may ever share its log."""
    return f"{host_name()}-{os.getpid()}-{secrets.token_hex(4)}"
