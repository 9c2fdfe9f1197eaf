"""How every kernel is compiled: cached on disk, without the GIL, with exact arithmetic."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function when it is first called; with NUMBA_DISABLE_JIT=1 it stays plain Python."""
    compiler = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")
    return cast("Function", compiler(function))
