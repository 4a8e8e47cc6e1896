"""The level of a series as a hidden state: an exact forward-backward pass over a grid of levels.

A value is its level plus noise. From one value to the next the level stays, or jumps (a changepoint) to any other
level of the grid, or, in the drift model, creeps to a neighbouring one. Beside every level there is an *excursion*
state: the value says nothing about the level, which is remembered, so a burst of outliers that comes back costs less
than two jumps. Everything is in *bins*: integers, `BINS_PER_SIGMA` to one sigma of the noise.

The recursions are those of Baum et al. (1970), scaled as in Rabiner (1989), eq. 90-92. A jump is uniform over the
grid, so a step costs O(levels) and a series O(values x levels): no pruning, nothing approximate.

>>> import numpy as np
>>> levels = np.arange(-8, 49, 2)
>>> noise = cauchy_like(1.0)
>>> bins = np.array([0] * 10 + [40] * 10)
>>> model = (0.005, 0.01, 0.4, 0.02, 0.0, 0.0)
>>> evidence, jumps, excursions = posterior(bins, levels, noise, noise, 6, model)
>>> int(jumps.argmax()), round(float(jumps[10]), 2)
(10, 0.96)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from detector.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: jump, enter and stay probabilities per value; density of a value in an excursion, per sigma; creep; phi.
Model = tuple[float, float, float, float, float, float]

#: Resolution of values and of the noise density.
BINS_PER_SIGMA = 8
#: The noise density is tabulated over plus and minus this many sigma; beyond, it is constant.
TABLE_SIGMA = 40
TABLE_ZERO = TABLE_SIGMA * BINS_PER_SIGMA
TABLE_SIZE = 2 * TABLE_ZERO + 1


def cauchy_like(scale: float) -> Floats:
    """Student's t with two degrees of freedom, `scale` in sigma: what is assumed of noise before any is seen."""
    x = (np.arange(TABLE_SIZE) - TABLE_ZERO) / (BINS_PER_SIGMA * scale)
    density: Floats = (2.0 + x * x) ** -1.5 / scale
    return density


@compiled
def _table_index(residual: float) -> int:
    index = int(residual + TABLE_ZERO + 0.5)
    if index < 0:
        return 0
    if index >= TABLE_SIZE:
        return TABLE_SIZE - 1
    return index


@compiled
def posterior(
    bins: Ints, levels: Ints, fresh: Floats, following: Floats, min_jump: int, model: Model
) -> tuple[float, Floats, Floats]:
    """Log evidence of the series, and per value the probabilities of a jump right before it and of an excursion.

    `bins` (n) are values and `levels` (k, ascending) the grid, both in bins; `fresh` is the noise density of a value
    after a jump or an excursion, `following` that of the innovation `residual - phi * previous residual` (the same
    table when phi is 0). `min_jump`, in bins, is the smallest jump there is.
    """
    jump, enter, stay, far, creep, phi = model
    n, k_levels = bins.shape[0], levels.shape[0]
    below, above = _near(levels, min_jump)
    left, right = _neighbours(levels)
    normal = np.empty((n, k_levels))
    away = np.empty((n, k_levels))
    scale = np.empty(n)
    cumulated = np.zeros(k_levels + 1)
    share = jump / k_levels

    total = 0.0
    for k in range(k_levels):
        normal[0, k] = (1.0 - enter) * fresh[_table_index(bins[0] - levels[k])] / k_levels
        away[0, k] = enter * far / k_levels
        total += normal[0, k] + away[0, k]
    scale[0] = total
    for k in range(k_levels):
        normal[0, k] /= total
        away[0, k] /= total

    for t in range(1, n):
        for k in range(k_levels):
            cumulated[k + 1] = cumulated[k] + normal[t - 1, k] + away[t - 1, k]
        everything = cumulated[k_levels]
        total = 0.0
        for k in range(k_levels):
            arrived = share * (everything - cumulated[above[k]] + cumulated[below[k]])
            stayed = normal[t - 1, k]
            if creep > 0.0:
                stayed += creep * (normal[t - 1, left[k]] + normal[t - 1, right[k]] - 2.0 * stayed)
            residual = float(bins[t] - levels[k])
            first = fresh[_table_index(residual)]
            later = first
            if phi > 0.0:
                later = following[_table_index(residual - phi * (bins[t - 1] - levels[k]))]
            back = away[t - 1, k] * (1.0 - jump)
            normal[t, k] = later * (1.0 - jump - enter) * stayed + first * (
                (1.0 - stay) * back + (1.0 - enter) * arrived
            )
            away[t, k] = far * (enter * (stayed + arrived) + stay * back)
            total += normal[t, k] + away[t, k]
        scale[t] = total
        inverse = 1.0 / total
        for k in range(k_levels):
            normal[t, k] *= inverse
            away[t, k] *= inverse

    evidence = 0.0
    for t in range(n):
        evidence += math.log(scale[t])
    jumps, excursions = _backward(
        bins, levels, fresh, following, model, normal, away, scale, (below, above), (left, right)
    )
    return evidence, jumps, excursions


@compiled
def _backward(
    bins: Ints,
    levels: Ints,
    fresh: Floats,
    following: Floats,
    model: Model,
    normal: Floats,
    away: Floats,
    scale: Floats,
    near: tuple[Ints, Ints],
    neighbours: tuple[Ints, Ints],
) -> tuple[Floats, Floats]:
    jump, enter, stay, far, creep, phi = model
    below, above = near
    left, right = neighbours
    n, k_levels = normal.shape
    share = jump / k_levels
    jumps = np.zeros(n)
    excursions = np.zeros(n)
    after_normal = np.ones(k_levels)
    after_away = np.ones(k_levels)
    stayed = np.empty(k_levels)
    back = np.empty(k_levels)
    cumulated = np.zeros(k_levels + 1)
    for t in range(n - 1, -1, -1):
        weight = 0.0
        outside = 0.0
        for k in range(k_levels):
            outside += away[t, k] * after_away[k]
            weight += normal[t, k] * after_normal[k]
        excursions[t] = outside / (weight + outside)
        if t == 0:
            break
        inverse = 1.0 / scale[t]
        for k in range(k_levels):
            residual = float(bins[t] - levels[k])
            first = fresh[_table_index(residual)]
            later = first
            if phi > 0.0:
                later = following[_table_index(residual - phi * (bins[t - 1] - levels[k]))]
            leave = enter * far * after_away[k] * inverse
            arrive = first * after_normal[k] * inverse
            stayed[k] = (1.0 - jump - enter) * later * after_normal[k] * inverse + leave
            back[k] = (1.0 - jump) * ((1.0 - stay) * arrive + stay * far * after_away[k] * inverse)
            cumulated[k + 1] = cumulated[k] + (1.0 - enter) * arrive + leave
        everything = cumulated[k_levels]
        moved = 0.0
        for k in range(k_levels):
            departed = share * (everything - cumulated[above[k]] + cumulated[below[k]])
            moved += (normal[t - 1, k] + away[t - 1, k]) * departed
            kept = stayed[k]
            if creep > 0.0:
                kept += creep * (stayed[left[k]] + stayed[right[k]] - 2.0 * kept)
            after_normal[k] = kept + departed
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


@compiled
def _neighbours(levels: Ints) -> tuple[Ints, Ints]:
    """Per level, the next grid level on either side; itself at a gap or an end."""
    k_levels = levels.shape[0]
    left = np.arange(k_levels)
    right = np.arange(k_levels)
    step = levels[1] - levels[0] if k_levels > 1 else 1
    for k in range(1, k_levels):
        step = min(step, levels[k] - levels[k - 1])
    for k in range(1, k_levels):
        if levels[k] - levels[k - 1] == step:
            left[k] = k - 1
            right[k - 1] = k
    return left, right
