"""From beliefs to boundaries: the releases at which a test changed, each exactly once.

Evidence for one change can be spread over two neighbouring releases; the neighbours' probability counts for the
stronger one, and a boundary is where that sum clears the bar and the step itself is worth a word. Steps that are a
slope cut into pieces (small, all one way, and a straight line fits better) are none.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median

import numpy as np

from detector.arrays import Floats

#: P(a change at r or at a neighbour) from which it is one.
THRESHOLD = 0.62
#: P(a change) on the newest release from which it is suspected: it is measured again before anybody is told.
NEWEST = 0.35
#: Two neighbours that sum to more than this are two changes, not one whose place is uncertain.
BOTH = 1.3
#: P(a change exactly at r) below which no boundary is placed there.
EXACT = 0.3
#: Fewer releases than this show no slope.
FEWEST_OF_SLOPE = 8
#: A step larger than this (log units) is a step, whatever lies around it.
LARGEST_SLOPE_STEP = 0.04
#: By so much the line's information criterion must be the better one.
SLOPE_MARGIN = 6.0


def boundaries(probability: Floats, threshold: float = THRESHOLD, newest: float = NEWEST) -> list[int]:
    """Releases where one series changes, ascending; `probability` is [releases], `newest` the bar of the last one.

    >>> boundaries(np.array([0.0, 0.02, 0.55, 0.4, 0.0, 0.9, 0.1]))
    [2, 5]
    """
    left = probability.copy()
    left[0] = 0.0
    bar = np.full(left.size, threshold)
    bar[-1] = min(threshold, newest)
    places: list[int] = []
    while True:
        r = int(np.argmax(left))
        low = max(1, r - 1)
        if left[r] < EXACT or left[low : r + 2].sum() < threshold:
            suspected = [left.size - 1] if left[-1] >= bar[-1] else []
            return sorted(places + suspected)
        places.append(r)
        peak = float(left[r])
        for neighbour in range(low, min(r + 2, left.size)):
            if neighbour == r or left[neighbour] < bar[neighbour] or left[neighbour] + peak < BOTH:
                left[neighbour] = 0.0


def segments(places: list[int], releases: int) -> list[tuple[int, int]]:
    """Half-open ranges of releases between boundaries.

    >>> segments([2, 5], 7)
    [(0, 2), (2, 5), (5, 7)]
    """
    return list(pairwise((0, *places, releases)))


def step(values: Floats, left: tuple[int, int], right: tuple[int, int]) -> float:
    """Difference of the medians of two segments of one series, NaN where one of them was not measured."""
    before, after = ([v for v in values[start:stop].tolist() if v == v] for start, stop in (left, right))
    return median(after) - median(before) if before and after else math.nan


def is_slope(values: Floats, steps: list[tuple[int, float]]) -> bool:
    """Whether a line explains `values` [releases] better than `steps`, pairs of (first release, size), do.

    Compared by the Bayesian information criterion with two parameters for the line and two a step for the steps.

    >>> line = np.linspace(0.0, -0.05, 20) + 0.002 * np.cos(np.arange(20))
    >>> is_slope(line, [(7, -0.02), (13, -0.02)])
    True
    >>> is_slope(np.repeat([0.0, -0.03], 10) + 0.002 * np.cos(np.arange(20)), [(10, -0.03)])
    False
    """
    place = np.nonzero(np.isfinite(values))[0]
    n = place.size
    if n < FEWEST_OF_SLOPE or not steps or len({size > 0 for _, size in steps}) > 1:
        return False
    if max(abs(size) for _, size in steps) > LARGEST_SLOPE_STEP:
        return False
    seen = values[place]
    slope, level = np.polyfit(place, seen, 1)
    of_line = float(((seen - level - slope * place) ** 2).sum())
    segment = np.searchsorted([release for release, _ in steps], place, side="right")
    of_steps = sum(float(((seen[segment == k] - seen[segment == k].mean()) ** 2).sum()) for k in np.unique(segment))
    criterion_line = n * math.log(max(of_line, 1e-300) / n) + 2 * math.log(n)
    criterion_steps = n * math.log(max(of_steps, 1e-300) / n) + (2 * len(steps) + 1) * math.log(n)
    return criterion_line + SLOPE_MARGIN < criterion_steps
