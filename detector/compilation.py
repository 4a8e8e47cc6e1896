"""One way to compile a hot loop: typed, the same bits on every run (no fast-math, no threads), when it is first called.

numba keeps the machine code on disk: beside the module or, where that folder cannot be written, in the user's cache
folder (`NUMBA_CACHE_DIR` names another). With neither, every process compiles anew. What calls no hot loop does not
load numba.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


class _Compiled:
    """A function that is compiled on its first call."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *arguments: object) -> object:
        return self._machine_code(*arguments)

    @cached_property
    def _machine_code(self) -> Any:
        import numba

        names = self._function.__globals__
        for name in self._function.__code__.co_names:  # numba compiles calls of its own functions only
            if isinstance(callee := names.get(name), _Compiled):
                names[name] = callee._machine_code
        options = {"fastmath": False, "nogil": True}
        try:
            return numba.njit(cache=True, **options)(self._function)
        except RuntimeError:  # no folder can be written
            return numba.njit(**options)(self._function)


def compiled(function: Function) -> Function:
    """`function`, compiled by numba on its first call with a set of argument types."""
    return cast(Function, _Compiled(function))
