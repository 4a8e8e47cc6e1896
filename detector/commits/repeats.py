"""Rows that were loaded more than once: a series in which every value comes twice says no more than one of its halves.

>>> import numpy as np
>>> once(np.repeat([5.1, 4.9, 5.0, 5.2, 4.8, 5.3, 5.1, 4.7, 5.0, 5.2, 4.9, 5.1], 2))
(2, array([ 0,  2,  4,  6,  8, 10, 12, 14, 16, 18, 20, 22]))
>>> once(np.repeat([5.0, 5.5], 20))[0]      # two levels without noise are two levels
1
"""

from __future__ import annotations

import math

import numpy as np

from detector.commits.levels import Floats, Ints

#: So many runs of equal values, all of a multiple of one length, do not come about by themselves.
FEWEST_RUNS = 10


def once(values: Floats) -> tuple[int, Ints]:
    """How often every value is there in a row, and the places of the first of each; (1, every place) as a rule.

    The first and the last run may be cut off, since a series may begin and end anywhere.
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
