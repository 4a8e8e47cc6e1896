"""What looks like a changepoint and is none: excursions that come back, ends too short to tell, changes too small.

The rules look at robust levels only (medians), never at a single value, and the longest tail of them is a sentence:
a short stretch that returns to the old level is a *transient*; the first few values do not make a level; a new level
at the end has to last longer than any excursion of its size that the series has shown before.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats
from detector.commits.segments import MEDIAN_VARIANCE, bounds_of, fitted, segment_levels
from detector.compilation import compiled

#: A stretch of at most this many values that comes back is a transient.
LONGEST_TRANSIENT = 7
#: It has come back when the levels on its sides differ by less than this share of its height.
RETURNED = 0.5
#: The sides differ all the same when their levels are this many standard errors apart.
MOVED_ERRORS = 4.0
#: Values on either side that the level beside a transient, or before the end, is taken from.
SIDE_VALUES = 15
BEFORE_END_VALUES = 30
#: A series that begins with so few values at another level begins with a transient; in short ones, with fewer.
FIRST_VALUES = 8
FIRST_SHARE = 0.2
#: An end of at most this many values is compared with earlier excursions of at least this share of its height.
END_VALUES = 8
SAME_SIZE = 0.6
#: ... and of at least so many sigma: what is smaller is noise, and noise is in the probability already.
OUTSIDE_SIGMA = 3.0


def too_small(values: Floats, changes: list[int], smallest: float) -> int | None:
    """The position in `changes` of the smallest change when it is below `smallest` (in the unit of `values`)."""
    heights = np.abs(np.diff(segment_levels(values, bounds_of(changes, len(values)))))
    weakest = int(np.argmin(heights))
    return weakest if heights[weakest] < smallest else None


class Passing(NamedTuple):
    """A transient: which change begins it, and whether the level after it is another than before."""

    position: int
    moved: bool
    which: int
    """0 when the new level lies on the transient's side, so that the first of its two changes counts; else 1."""


def transient(values: Floats, changes: list[int], sigma: Floats) -> Passing | None:
    """The first transient between two of `changes`; `sigma` is the scale of the noise at every value."""
    bounds = [0, *changes, len(values)]
    for i in range(1, len(bounds) - 2):
        start, end = bounds[i], bounds[i + 1]
        if end - start > LONGEST_TRANSIENT:
            continue
        left = values[max(bounds[i - 1], start - SIDE_VALUES) : start]
        right = values[end : min(bounds[i + 2], end + SIDE_VALUES)]
        before, after, inside = float(np.median(left)), float(np.median(right)), float(np.median(values[start:end]))
        if abs(after - before) >= RETURNED * min(abs(inside - before), abs(inside - after)):
            continue
        error = math.sqrt(MEDIAN_VARIANCE * (sigma[start - 1] ** 2 / len(left) + sigma[end] ** 2 / len(right)))
        moved = abs(after - before) > MOVED_ERRORS * error
        return Passing(i - 1, moved, 0 if (inside - before) * (after - before) > 0.0 else 1)
    return None


def end_needs(values: Floats, changes: list[int], sigma: Floats) -> int:
    """How many values the last segment needs: one more than the longest earlier excursion of its size; `sigma` as
    above, and where it was another, sizes are in units of it."""
    n, last = len(values), changes[-1]
    if n - last > END_VALUES:
        return 0
    start = changes[-2] if len(changes) > 1 else 0
    height = abs(np.median(values[last:]) - np.median(values[max(start, last - BEFORE_END_VALUES) : last]))
    residuals = values - fitted(values, bounds_of(changes, n))
    sizes = np.abs(residuals[:last]) * (sigma[-1] / sigma[:last])
    return 1 + _longest_run(sizes, max(SAME_SIZE * float(height), OUTSIDE_SIGMA * sigma[-1]))


@compiled
def _longest_run(heights: Floats, least: float) -> int:
    longest = run = 0
    for height in heights:
        run = run + 1 if height >= least else 0
        longest = max(longest, run)
    return longest
