"""One way to compile a hot loop, typed, cached on disk, the same bits on every run (no fast-math, no threads)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """`function` compiled by numba on its first call with a set of argument types, and kept in its cache."""
    return cast(Function, numba.njit(cache=True, fastmath=False, nogil=True)(function))
