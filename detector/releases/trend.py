"""Whether the steps of a series are a slope cut into pieces: small, all one way, and a straight line fits better."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Fewer releases than this show no slope.
FEWEST_RELEASES = 8
#: A step larger than this (log units) is a step, whatever lies around it.
LARGEST_STEP = 0.04
#: By so much the line's information criterion must be the better one.
MARGIN = 6.0


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
    if n < FEWEST_RELEASES or not steps or len({size > 0 for _, size in steps}) > 1:
        return False
    if max(abs(size) for _, size in steps) > LARGEST_STEP:
        return False
    seen = values[place]
    slope, level = np.polyfit(place, seen, 1)
    of_line = float(((seen - level - slope * place) ** 2).sum())
    segment = np.searchsorted([release for release, _ in steps], place, side="right")
    of_steps = sum(float(((seen[segment == k] - seen[segment == k].mean()) ** 2).sum()) for k in np.unique(segment))
    criterion_line = n * math.log(max(of_line, 1e-300) / n) + 2 * math.log(n)
    criterion_steps = n * math.log(max(of_steps, 1e-300) / n) + (2 * len(steps) + 1) * math.log(n)
    return criterion_line + MARGIN < criterion_steps
