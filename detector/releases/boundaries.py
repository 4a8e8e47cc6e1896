"""From beliefs to boundaries: the releases at which a test changed, each exactly once.

Evidence for one change can be spread over two neighbouring releases; the neighbours' probability counts for the
stronger one, and a boundary is where that sum clears the bar and the step itself is worth a word.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: P(a change at r or at a neighbour) from which it is one.
THRESHOLD = 0.62
#: Two neighbours that sum to more than this are two changes, not one whose place is uncertain.
BOTH = 1.3
#: P(a change exactly at r) below which no boundary is placed there.
EXACT = 0.3


def boundaries(probability: Floats, threshold: float = THRESHOLD) -> list[int]:
    """Releases where one series changes, ascending; `probability` is [releases].

    >>> boundaries(np.array([0.0, 0.02, 0.55, 0.4, 0.0, 0.9, 0.1]))
    [2, 5]
    """
    left = probability.copy()
    left[0] = 0.0
    found: list[int] = []
    while True:
        r = int(np.argmax(left))
        low = max(1, r - 1)
        if left[r] < EXACT or left[low : r + 2].sum() < threshold:
            return sorted(found)
        found.append(r)
        peak = float(left[r])
        for neighbour in range(low, min(r + 2, left.size)):
            if neighbour == r or left[neighbour] < threshold or left[neighbour] + peak < BOTH:
                left[neighbour] = 0.0


def segments(found: list[int], releases: int) -> list[tuple[int, int]]:
    """Half-open ranges of releases between boundaries.

    >>> segments([2, 5], 7)
    [(0, 2), (2, 5), (5, 7)]
    """
    edges = [0, *found, releases]
    return list(pairwise(edges))


def step(values: Floats, left: tuple[int, int], right: tuple[int, int]) -> float:
    """Difference of the medians of two segments of one series, NaN where one of them was not measured."""
    before = _median([v for v in values[left[0] : left[1]].tolist() if v == v])
    after = _median([v for v in values[right[0] : right[1]].tolist() if v == v])
    return after - before


def _median(values: list[float]) -> float:
    """The median of a few numbers, NaN of none; quicker than numpy at this size."""
    values.sort()
    n = len(values)
    return 0.5 * (values[(n - 1) // 2] + values[n // 2]) if n else math.nan
