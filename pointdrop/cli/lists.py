"""Options that take several names with commas between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runners.settings import Benchmark, Test


def names_in(text: str) -> list[str]:
    """The names, without what surrounds them.

    >>> names_in("scan, insert,,")
    ['scan', 'insert']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def tests_in(text: str, benchmark: Benchmark) -> tuple[Test, ...]:
    """The tests of a set, of `all`, or named. BadSettings when the benchmark has no such test."""
    return benchmark.select(text if text in (*benchmark.sets, "all") else tuple(names_in(text)))
