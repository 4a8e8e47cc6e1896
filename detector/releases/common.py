"""What all tests of one server and metric share at one release: the machine, the build, the weather.

The shared shift is the median residual over the tests that do not move near that release. Only its passing part is
taken away from the series; a shift that stays is a change of every test, is left for them to show, and is reported as
common-mode by the decision layer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: A test with more than this probability of a change at a release, or at the next one, says nothing about the shift.
MOVES = 0.2
#: A larger shift (log units) is not weather: it stays in the series and is judged there.
MOST = 0.025
#: Fewer quiet tests than this cannot tell a shift of the machine from their own noise.
FEWEST_TESTS = 6


def shift(values: Floats, level: Floats, moved: Floats) -> Floats:
    """[metrics, servers, releases] the shift of each release common to its quiet tests, in log units.

    All arrays are [metrics, servers, tests, releases]: values, posterior levels, posterior of a change.
    """
    following = np.zeros_like(moved)
    following[..., :-1] = moved[..., 1:]
    residual = np.where(np.maximum(moved, following) > MOVES, np.nan, values - level)
    quiet = np.isfinite(residual)
    count = quiet.sum(axis=2)
    ordered = np.sort(residual, axis=2)  # NaN sorts last
    middle = np.maximum(count - 1, 0)
    low = np.take_along_axis(ordered, (middle // 2)[:, :, None], axis=2)[:, :, 0]
    high = np.take_along_axis(ordered, (count // 2).clip(max=ordered.shape[2] - 1)[:, :, None], axis=2)[:, :, 0]
    median = 0.5 * (low + high)
    weather = (count >= FEWEST_TESTS) & (np.abs(median) <= MOST)
    return np.where(weather, np.nan_to_num(median), 0.0)
