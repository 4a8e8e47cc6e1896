"""A series as people have it (gaps, zeros, rows loaded twice, any unit) as values that can be judged.

>>> series = on_scale([100.0, None, 110.0, 121.0])
>>> series.places.tolist(), series.values.round(3).tolist(), series.warnings
([0, 2, 3], [4.605, 4.7, 4.796], ('1 of 4 values are missing or not finite and were left out',))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detector.arrays import Floats, Ints

#: A series without percentages (zeros, negatives) is measured in medians of |values|, or in this share of the largest.
SMALLEST_UNIT = 1e-3
#: Numbers beyond this are taken for no measurement, so that sums of them stay numbers.
LARGEST_VALUE = 1e300
#: So many runs of equal values, all of a multiple of one length, do not come about by themselves.
FEWEST_RUNS = 10


@dataclass(frozen=True, slots=True)
class ScaledSeries:
    """The values of a series that count, each once. The arrays have a number per value."""

    raw: Floats
    values: Floats
    """Logs of `raw` where all are positive; else `raw` in `unit`."""
    places: Ints
    """Where each stands among the values given."""
    unit: float | None
    """The divisor of a linear scale; None on the log scale."""
    warnings: tuple[str, ...]

    def size_of(self, percentage: float) -> float:
        """A change of so many percent, on the scale of `values`."""
        return math.log1p(percentage / 100.0) if self.unit is None else percentage / 100.0


def on_scale(values: Sequence[float | None]) -> ScaledSeries:
    """`values` on a log scale when all are positive, else on a linear scale, with a warning. None, NaN and infinities
    are gaps: left out, with a warning; values that are all there two, three times in a row count once."""
    given = np.array(values, dtype=np.float64)  # None becomes NaN
    places = np.flatnonzero(np.abs(given) < LARGEST_VALUE)
    raw: Floats = given[places]
    warnings = []
    if len(raw) < len(given):
        absent = len(given) - len(raw)
        warnings.append(f"{absent} of {len(given)} values are missing or not finite and were left out")
    repeats, firsts = _without_repeats(raw)
    if repeats > 1:
        warnings.append(f"every value is there {repeats} times in a row; they count once")
        raw, places = raw[firsts], places[firsts]
    if not len(raw) or raw.min() > 0.0:
        return ScaledSeries(raw, np.log(raw), places, None, tuple(warnings))
    warnings.append("there are zeros or negative values, so changes are judged on a linear scale")
    sizes = np.abs(raw)
    unit = max(float(np.median(sizes)), float(sizes.max()) * SMALLEST_UNIT) or 1.0
    return ScaledSeries(raw, raw / unit, places, unit, tuple(warnings))


def _without_repeats(values: Floats) -> tuple[int, Ints]:
    """How often every value is there in a row, and the places of the first of each; (1, every place) as a rule.

    The first and the last run may be cut off, since a series may begin and end anywhere.

    >>> _without_repeats(np.repeat([5.1, 4.9, 5.0, 5.2, 4.8, 5.3, 5.1, 4.7, 5.0, 5.2, 4.9, 5.1], 2))
    (2, array([ 0,  2,  4,  6,  8, 10, 12, 14, 16, 18, 20, 22]))
    >>> _without_repeats(np.repeat([5.0, 5.5], 20))[0]      # two levels without noise are two levels
    1
    """
    n = len(values)
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1]) if n else np.arange(0)
    if 2 * len(starts) > n + 2 or len(starts) < FEWEST_RUNS + 2:
        return 1, np.arange(n)
    lengths = np.diff(np.append(starts, n))
    repeats = math.gcd(*lengths[1:-1].tolist())
    if repeats == 1:
        return 1, np.arange(n)
    places = [np.arange(start, start + length, repeats) for start, length in zip(starts, lengths, strict=True)]
    return repeats, np.concatenate(places)
