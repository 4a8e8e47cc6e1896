"""The slow exact answer for a series whose noise and rounding are known; it shares no code with the detector.

Optimal partitioning (Jackson et al. 2005) over all segmentations: a value is its level plus normal noise of a known
scale, rounded to known steps; a segment costs -log likelihood at its best level, and a change a fixed price.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Floats = NDArray[np.float64]

#: Price of a change in nats: far more than noise gains by one.
PRICE = 25.0
#: Levels tried between the smallest and the largest value.
LEVELS = 400
#: The least probability of a value, so that its logarithm is a number.
LEAST = 1e-300


def exact_changes(values: Floats, sigma: Floats, step: float) -> list[int]:
    """First values of the new levels; `sigma` is the noise of every value, `step` what it is rounded to, 0 for none."""
    n = len(values)
    levels = np.unique(np.concatenate([np.linspace(values.min(), values.max(), LEVELS), np.unique(values)]))
    distance = values[:, None] - levels[None, :]
    scale = np.maximum(sigma, 1e-3 * step)[:, None]
    if step:
        cell = norm.cdf((distance + step / 2) / scale) - norm.cdf((distance - step / 2) / scale)
    else:
        cell = norm.pdf(distance / scale) / scale
    summed = np.vstack([np.zeros(len(levels)), np.cumsum(-np.log(np.maximum(cell, LEAST)), axis=0)])
    best, previous = np.zeros(n + 1), np.zeros(n + 1, dtype=int)
    for end in range(1, n + 1):
        costs = best[:end] + (summed[end] - summed[:end]).min(axis=1)
        previous[end] = int(costs.argmin())
        best[end] = costs[previous[end]] + PRICE
    changes = []
    place = int(previous[n])
    while place:
        changes.append(place)
        place = int(previous[place])
    return sorted(changes)
