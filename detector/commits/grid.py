"""Which levels a series can have: a grid that is fine where values are and absent where there are none.

>>> import numpy as np
>>> level_grid(np.array([0, 0, 0, 0, 0, 0, 90, 90, 90, 90, 90])).tolist()
[-4, -2, 0, 2, 4, 86, 88, 90, 92, 94]
"""

from __future__ import annotations

import math

import numpy as np

from detector.commits.levels import Ints
from detector.compiled import compiled

#: Spacing of the levels, in bins.
SPACING_BINS = 2
#: Levels on either side of every running median; the medians are of five values.
MARGIN = 2
#: At most this many levels; a wider series gets a coarser grid.
MOST_LEVELS = 400


@compiled
def level_grid(bins: Ints) -> Ints:
    """Levels near the running medians of `bins` and near what the last three values say, ascending, in bins."""
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
        grid = np.empty((2 * MARGIN + 1) * (n + 3), np.int64)
        count = 0
        last = -(2**62)
        for center in centers:
            place = math.floor(center / spacing + 0.5)
            for level in range(max(place - MARGIN, last + 1), place + MARGIN + 1):
                grid[count] = level * spacing
                last = level
                count += 1
        if count <= MOST_LEVELS:
            return grid[:count]
        spacing *= 2
