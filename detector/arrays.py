"""The arrays of the detector: their types, medians that ignore what is absent, and the quantile of a t."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detector.compilation import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: One standard deviation from a median absolute deviation, at the normal.
MAD = 1.4826
#: So many values are quickest sorted by insertion; it takes the square of their number.
FEW = 32


@compiled
def ascending(values: Floats, ordered: Floats) -> int:
    """Fill `ordered` with those of `values` that are no NaN, ascending; returns their number."""
    n = 0
    for value in values:
        if not np.isnan(value):
            ordered[n] = value
            n += 1
    if n > FEW:
        ordered[:n].sort()
        return n
    for j in range(1, n):
        value = ordered[j]
        k = j
        while k > 0 and ordered[k - 1] > value:
            ordered[k] = ordered[k - 1]
            k -= 1
        ordered[k] = value
    return n


@compiled
def _medians(rows: Floats) -> Floats:
    medians = np.full(rows.shape[0], np.nan)
    ordered = np.empty(rows.shape[1])
    for i in range(rows.shape[0]):
        n = ascending(rows[i], ordered)
        if n > 0:
            medians[i] = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    return medians


def median(values: Floats) -> Floats:
    """Median over the last axis without NaN; NaN where nothing is left. For many short rows, on which numpy's is slow.

    >>> median(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])).tolist()
    [2.0, nan]
    """
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    rows = np.ascontiguousarray(values).reshape(-1, values.shape[-1])
    return _medians(rows).reshape(values.shape[:-1])


def t_quantile(df: float, probability: float) -> float:
    """The quantile of Student's t; scipy is loaded for it, and for nothing else in the detection between releases.

    >>> round(t_quantile(10.0, 0.975), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))
