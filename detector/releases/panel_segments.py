"""A second opinion: the panel as one signal of many columns, cut into levels by `ruptures`.

It shares no inference with `scan`: no prior, no probabilities, no coupling; only the noise, and what all tests have in
common, are taken from there. One cost function says how badly a level fits some releases of all columns, and
`ruptures.Pelt` finds the cheapest cut under a penalty per boundary. What both methods say is surer than what one says.

>>> columns = np.zeros((9, 12))
>>> columns[:4, 7:] = 9.0
>>> joint_boundaries(columns)
(7,)
"""

from __future__ import annotations

import math

import numpy as np
import ruptures
from ruptures.base import BaseCost

from detector.arrays import Floats
from detector.compilation import compiled

#: Degrees of freedom of the noise: two values far off cost about as much as four standard deviations each.
HEAVY_DF = 3.0
#: A boundary gives every column a new level. By chance alone that gains half a nat a column; the penalty is this and so
#: many times its root more, and the log of the releases. None of 24 simulated quiet lines of 84 series reached it.
CHANCE_GAIN, PENALTY_SD = 0.5, 3.0


class PanelCost(BaseCost):  # type: ignore[misc]
    """Minus the log likelihood of a level for each column, as `ruptures` wants it.

    The signal is [releases, columns] in standard deviations of each column's noise, which is known; NaN is absent. The
    level is the median, the noise a Student t.
    """

    model = "panel"
    min_size = 1

    def fit(self, signal: Floats) -> PanelCost:
        self.signal = signal
        self._costs = _costs(np.ascontiguousarray(signal.T))
        return self

    def error(self, start: int, end: int) -> float:
        return float(self._costs[start, end])


@compiled
def _costs(columns: Floats) -> Floats:
    """[releases + 1, releases + 1] cost of each range of releases, from (inclusive) and to (exclusive)."""
    count, releases = columns.shape
    costs = np.zeros((releases + 1, releases + 1))
    ordered = np.empty(releases)
    for i in range(count):
        for start in range(releases):
            n = 0
            for stop in range(start + 1, releases + 1):
                value = columns[i, stop - 1]
                if not np.isnan(value):
                    k = n
                    while k > 0 and ordered[k - 1] > value:
                        ordered[k] = ordered[k - 1]
                        k -= 1
                    ordered[k] = value
                    n += 1
                if n > 0:
                    level = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
                    for k in range(n):
                        costs[start, stop] += 0.5 * (HEAVY_DF + 1.0) * math.log1p((ordered[k] - level) ** 2 / HEAVY_DF)
    return costs


def joint_boundaries(columns: Floats) -> tuple[int, ...]:
    """Releases at which the panel [columns, releases], in standard deviations, changes as a whole."""
    releases = columns.shape[1]
    if releases < 2:
        return ()
    measured = int(np.isfinite(columns).any(axis=1).sum())
    penalty = CHANCE_GAIN * measured + PENALTY_SD * math.sqrt(CHANCE_GAIN * measured) + math.log(releases)
    search = ruptures.Pelt(custom_cost=PanelCost(), min_size=1, jump=1).fit(columns.T)
    return tuple(int(release) for release in search.predict(pen=penalty)[:-1])
