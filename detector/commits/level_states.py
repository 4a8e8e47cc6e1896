"""The level of a series as a hidden state: an exact forward-backward pass over a grid of levels.

A value is its level plus noise. From one value to the next the level stays, or jumps (a changepoint) to any other
level of the grid. Beside every level there is an *excursion* state: the value says nothing about the level, which is
remembered, so a burst of outliers that comes back costs less than two jumps. Everything is in *bins*: integers,
`BINS_PER_SIGMA` to one sigma of the noise.

The recursions are those of Baum et al. (1970), scaled as in Rabiner (1989), eq. 90-92. A jump is uniform over the
grid, so a step costs O(levels) and a series O(values x levels): no pruning, nothing approximate.

>>> import numpy as np
>>> levels = np.arange(-8, 49, 2)
>>> noise = cauchy_like(1.0)
>>> bins = np.array([0] * 10 + [40] * 10)
>>> model = (0.005, 0.01, 0.4, 0.02, 0.0)
>>> evidence, *past = forward(bins, levels, noise, noise, 6, model)
>>> jumps, excursions = backward(bins, levels, noise, noise, 6, model, *past)
>>> int(jumps.argmax()), round(float(jumps[10]), 2)
(10, 0.96)
"""

from __future__ import annotations

import math

import numpy as np

from detector.arrays import Floats, Ints
from detector.compilation import compiled

#: Jump, enter and stay probabilities per value; density of a value in an excursion, per sigma; phi.
Model = tuple[float, float, float, float, float]

#: Resolution of values and of the noise density.
BINS_PER_SIGMA = 8
#: The noise density is tabulated over plus and minus this many sigma; beyond, it is constant.
TABLE_SIGMA = 40
TABLE_ZERO = TABLE_SIGMA * BINS_PER_SIGMA
TABLE_SIZE = 2 * TABLE_ZERO + 1
#: Spacing of the levels, in bins.
SPACING_BINS = 2
#: Levels on either side of every running median; the medians are of five values.
LEVELS_BESIDE = 2
#: At most this many levels; a wider series gets a coarser grid.
MOST_LEVELS = 400


@compiled
def level_grid(bins: Ints) -> Ints:
    """Levels near the running medians of `bins` and near what the last three values say, ascending, in bins.

    >>> level_grid(np.array([0, 0, 0, 0, 0, 0, 90, 90, 90, 90, 90])).tolist()
    [-4, -2, 0, 2, 4, 86, 88, 90, 92, 94]
    """
    n = bins.shape[0]
    centers = np.empty(n + 3)
    for t in range(n):
        centers[t] = np.median(bins[max(0, t - 2) : t + 3])
    centers[n] = bins[n - 1]
    centers[n + 1] = bins[max(0, n - 2)]
    centers[n + 2] = np.median(bins[max(0, n - 3) :])
    centers.sort()
    spacing = SPACING_BINS
    while True:
        grid = np.empty((2 * LEVELS_BESIDE + 1) * (n + 3), np.int64)
        count = 0
        last = -(2**62)
        for center in centers:
            place = math.floor(center / spacing + 0.5)
            for level in range(max(place - LEVELS_BESIDE, last + 1), place + LEVELS_BESIDE + 1):
                grid[count] = level * spacing
                last = level
                count += 1
        if count <= MOST_LEVELS:
            return grid[:count]
        spacing *= 2


def cauchy_like(scale: float) -> Floats:
    """Student's t with two degrees of freedom, `scale` in sigma: what is assumed of noise before any is seen."""
    x = (np.arange(TABLE_SIZE) - TABLE_ZERO) / (BINS_PER_SIGMA * scale)
    density: Floats = (2.0 + x * x) ** -1.5 / scale
    return density


@compiled
def _emissions(
    bins: Ints, levels: Ints, t: int, phi: float, fresh: Floats, following: Floats, first: Floats, later: Floats
) -> None:
    """Into `first` and `later`, per level, the density of value `t` after a jump, and of it after its predecessor."""
    for k in range(levels.shape[0]):
        first[k] = fresh[min(max(bins[t] - levels[k] + TABLE_ZERO, 0), TABLE_SIZE - 1)]
    if phi == 0.0 or t == 0:
        later[:] = first
        return
    for k in range(levels.shape[0]):
        innovation = bins[t] - levels[k] - phi * (bins[t - 1] - levels[k])
        later[k] = following[int(min(max(innovation + (TABLE_ZERO + 0.5), 0.0), TABLE_SIZE - 1.0))]


@compiled
def forward(
    bins: Ints, levels: Ints, fresh: Floats, following: Floats, min_jump: int, model: Model
) -> tuple[float, Floats, Floats, Floats]:
    """Log evidence of the series, and what `backward` needs: the two states' probabilities given the past, the scale.

    `bins` (n) are values and `levels` (k, ascending) the grid, both in bins; `fresh` is the noise density of a value
    after a jump or an excursion, `following` that of the innovation `residual - phi * previous residual` (the same
    table when phi is 0). `min_jump`, in bins, is the smallest jump there is.
    """
    jump, enter, stay, far, phi = model
    n, k_levels = bins.shape[0], levels.shape[0]
    below, above = _near(levels, min_jump)
    normal, away = np.empty((n, k_levels)), np.empty((n, k_levels))
    first, later = np.empty(k_levels), np.empty(k_levels)
    scale = np.empty(n)
    cumulated = np.zeros(k_levels + 1)
    share = jump / k_levels
    _emissions(bins, levels, 0, phi, fresh, following, first, later)
    normal[0] = (1.0 - enter) / k_levels * first
    away[0] = enter * far / k_levels
    scale[0] = normal[0].sum() + away[0].sum()
    normal[0] /= scale[0]
    away[0] /= scale[0]
    for t in range(1, n):
        _emissions(bins, levels, t, phi, fresh, following, first, later)
        everything = 0.0
        for k in range(k_levels):
            everything += normal[t - 1, k] + away[t - 1, k]
            cumulated[k + 1] = everything
        for k in range(k_levels):
            arrived = share * (everything - cumulated[above[k]] + cumulated[below[k]])
            stayed = normal[t - 1, k]
            back = away[t - 1, k] * (1.0 - jump)
            unmoved = later[k] * (1.0 - jump - enter) * stayed
            normal[t, k] = unmoved + first[k] * ((1.0 - stay) * back + (1.0 - enter) * arrived)
            away[t, k] = far * (enter * (stayed + arrived) + stay * back)
        total = 0.0
        for k in range(k_levels):
            total += normal[t, k] + away[t, k]
        scale[t] = total
        inverse = 1.0 / total
        for k in range(k_levels):
            normal[t, k] *= inverse
            away[t, k] *= inverse
    return np.log(scale).sum(), normal, away, scale


@compiled
def backward(
    bins: Ints,
    levels: Ints,
    fresh: Floats,
    following: Floats,
    min_jump: int,
    model: Model,
    normal: Floats,
    away: Floats,
    scale: Floats,
) -> tuple[Floats, Floats]:
    """Per value, the probabilities of a jump right before it and of an excursion, given the whole series."""
    jump, enter, stay, far, phi = model
    n, k_levels = normal.shape
    below, above = _near(levels, min_jump)
    share = jump / k_levels
    jumps, excursions = np.zeros(n), np.zeros(n)
    first, later = np.empty(k_levels), np.empty(k_levels)
    after_normal, after_away = np.ones(k_levels), np.ones(k_levels)
    stayed, back = np.empty(k_levels), np.empty(k_levels)
    cumulated = np.zeros(k_levels + 1)
    for t in range(n - 1, -1, -1):
        weight = (normal[t] * after_normal).sum()
        outside = (away[t] * after_away).sum()
        excursions[t] = outside / (weight + outside)
        if t == 0:
            break
        _emissions(bins, levels, t, phi, fresh, following, first, later)
        inverse = 1.0 / scale[t]
        everything = 0.0
        for k in range(k_levels):
            leave = enter * far * after_away[k] * inverse
            arrive = first[k] * after_normal[k] * inverse
            stayed[k] = (1.0 - jump - enter) * later[k] * after_normal[k] * inverse + leave
            back[k] = (1.0 - jump) * ((1.0 - stay) * arrive + stay * far * after_away[k] * inverse)
            everything += (1.0 - enter) * arrive + leave
            cumulated[k + 1] = everything
        moved = 0.0
        for k in range(k_levels):
            departed = share * (everything - cumulated[above[k]] + cumulated[below[k]])
            moved += (normal[t - 1, k] + away[t - 1, k]) * departed
            after_normal[k] = stayed[k] + departed
            after_away[k] = back[k] + departed
        jumps[t] = moved
    return jumps, excursions


@compiled
def _near(levels: Ints, min_jump: int) -> tuple[Ints, Ints]:
    """Per level, the range of levels too near to jump to."""
    k_levels = levels.shape[0]
    below = np.empty(k_levels, np.int64)
    above = np.empty(k_levels, np.int64)
    low = high = 0
    for k in range(k_levels):
        while levels[k] - levels[low] >= min_jump:
            low += 1
        while high < k_levels and levels[high] - levels[k] < min_jump:
            high += 1
        below[k] = low
        above[k] = high
    return below, above
