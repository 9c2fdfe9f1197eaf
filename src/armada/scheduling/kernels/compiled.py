"""How every kernel is compiled: cached on disk, without the GIL, with exact arithmetic."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

# Typed loosely: the stubs lack the options that leave out wrappers.
_COMPILER: Final[Any] = numba.njit
_OPTIONS: Final[dict[str, Any]] = {
    "cache": True,
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "_nrt": False,
}

# The loops here are short and full of branches: vectorising finds nothing and takes half of the compiler's time.
setattr(numba.config, "LOOP_VECTORIZE", 0)  # noqa: B010 - numba's type stubs do not know the name


def kernel(function: Function) -> Function:
    """Compile a function that the room calls; with NUMBA_DISABLE_JIT=1 it stays plain Python."""
    return cast("Function", _COMPILER(**_OPTIONS)(function))


def part(function: Function) -> Function:
    """Compile a function that only kernels call: it needs no way in from Python, which is slow to compile."""
    return cast("Function", _COMPILER(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def woven(function: Function) -> Function:
    """Weave a function into the one kernel that calls it, before either is compiled.

    Compiling costs as much as all the code below a function, anew at every level of calls: chains of functions that
    have one caller each are woven into one. Calls must not come from two places.
    """
    return cast("Function", _COMPILER(**_OPTIONS, inline="always")(function))
