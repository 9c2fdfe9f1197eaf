"""The executor's clock: Unix milliseconds that go on evenly, whatever is done to the machine's clock meanwhile.

Waits and deadlines are measured with it: a clock that is set back must not keep simulated pods from ending, and one
that is set forward, or a laptop that slept, must not make every pending pod look stuck.
"""

import time
from typing import Final


def wall_clock_ms() -> int:
    """Unix milliseconds by the machine's clock as it is set now."""
    return time.time_ns() // 1_000_000


_BASE_MS: Final = wall_clock_ms() - time.monotonic_ns() // 1_000_000


def steady_clock_ms() -> int:
    """Unix milliseconds by the machine's clock as it was set when this process began."""
    return _BASE_MS + time.monotonic_ns() // 1_000_000
