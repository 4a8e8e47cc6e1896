"""From the probability of a jump at every value to changepoints, and from changepoints to levels.

>>> import numpy as np
>>> jumps = np.zeros(40)
>>> jumps[19:22] = 0.2, 0.5, 0.2           # one jump, its place not quite certain
>>> jumps[30] = 0.3                        # rather none
>>> [(peak.at, round(peak.probability, 2)) for peak in peaks(jumps, 0.5)]
[(20, 0.9)]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats, Ints
from detector.compilation import compiled

#: Variance of the median of normal values, over that of their mean.
MEDIAN_VARIANCE = math.pi / 2.0
#: A peak is widened until it holds this much probability, or what is asked for if that is more, ...
COVERED = 0.9
#: ... or is this wide, in values.
WIDEST = 21
#: No peak begins at a value whose jump probability is below this.
FAINTEST = 0.02


class Peak(NamedTuple):
    """One jump: the likeliest first value of the new level, and the probability that there is one about there."""

    at: int
    probability: float


def peaks(jumps: Floats, least: float) -> list[Peak]:
    """The jumps with a probability of at least `least`, by index; their places are disjoint windows."""
    left = jumps.copy()
    jump_peaks = []
    for start in np.argsort(-jumps, kind="stable")[: np.count_nonzero(jumps >= FAINTEST)].tolist():
        if left[start] < FAINTEST:
            continue
        first, last, mass = _window(left, start, max(COVERED, least))
        if mass >= least:
            jump_peaks.append(Peak(start, min(mass, 1.0)))
        left[first : last + 1] = 0.0
    return sorted(jump_peaks)


@compiled
def _window(jumps: Floats, start: int, enough: float) -> tuple[int, int, float]:
    """The window about `start`, grown toward the likelier side until it holds `enough`, and its probability."""
    first = last = start
    mass = jumps[start]
    while mass < enough and last - first + 1 < WIDEST:
        before = jumps[first - 1] if first > 1 else -1.0
        after = jumps[last + 1] if last + 1 < jumps.shape[0] else -1.0
        if before < 0.0 and after < 0.0:
            break
        if before >= after:
            first -= 1
            mass += before
        else:
            last += 1
            mass += after
    return first, last, mass


def bounds_of(changes: list[int], n: int) -> Ints:
    """Where the segments begin, and where the last one ends."""
    return np.array([0, *changes, n], dtype=np.int64)


@compiled
def segment_levels(values: Floats, bounds: Ints) -> Floats:
    """The median of each segment."""
    levels = np.empty(bounds.shape[0] - 1)
    for i in range(bounds.shape[0] - 1):
        levels[i] = np.median(values[bounds[i] : bounds[i + 1]])
    return levels


@compiled
def fitted(values: Floats, bounds: Ints) -> Floats:
    """Per value, the level of its segment."""
    fit = np.empty(values.shape[0])
    for i in range(bounds.shape[0] - 1):
        fit[bounds[i] : bounds[i + 1]] = np.median(values[bounds[i] : bounds[i + 1]])
    return fit


@compiled
def refined(values: Floats, bounds: Ints, reach: int) -> Ints:
    """The inner `bounds`, each moved by at most `reach` to where the values change sides.

    Every value is to lie on the side whose level is nearer (least absolute error, levels kept); a tie stays.
    """
    places = bounds[1:-1].copy()
    first = 1
    for i in range(places.shape[0]):
        place = places[i]
        before = np.median(values[bounds[i] : place])
        after = np.median(values[place : bounds[i + 2]])
        low, high = max(first, bounds[i] + 1, place - reach), min(bounds[i + 2] - 1, place + reach)
        cost = 0.0
        costs = np.zeros(high - low + 1)
        for t in range(low, high):
            cost += abs(values[t] - before) - abs(values[t] - after)
            costs[t - low + 1] = cost
        best = low + np.argmin(costs)
        if costs[place - low] > costs[best - low] + 1e-12:
            places[i] = best
        first = places[i] + 1
    return places
