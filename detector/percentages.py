"""Changes in percent that stay numbers: bounded, whatever the level before.

>>> percent(200.0, 150.0), percent(1e-200, 5.0)
(-25.0, 1000000000.0)
"""

from __future__ import annotations

import math

#: A percentage is bounded, so that it stays a number.
LARGEST_PCT = 1e9
LARGEST_STEP = 20.0


def percent(before: float, after: float) -> float:
    """Change relative to the size of `before`; from zero, relative to `after`.

    >>> percent(0.0, 0.077), percent(-4.0, -2.0)
    (100.0, 50.0)
    """
    base = abs(before) or abs(after)
    return bounded(100.0 * (after / base - before / base)) if base else 0.0


def log_percent(step: float) -> float:
    """A log step in percent, bounded like `percent`.

    >>> round(log_percent(-0.105), 1), log_percent(1e6)
    (-10.0, 1000000000.0)
    """
    return bounded(100.0 * math.expm1(min(step, LARGEST_STEP)))


def bounded(percentage: float) -> float:
    """`percentage`, no larger than `LARGEST_PCT` either way."""
    return min(max(percentage, -LARGEST_PCT), LARGEST_PCT)
