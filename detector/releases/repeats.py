"""The noise of timed values, learned from what this host measured twice. Pure.

A published prior is of quiet servers. Two blocks of one release in one session are the same code on the same machine in
the same hour: what they differ by is this host's own noise. Where no session has two blocks of anything, releases that
several sessions measured say it, the machine's shifts included. Where there is neither, nothing is known, and a prior
does not stand in for it.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats, median
from detector.releases.cells import Measured

#: Degrees of freedom that the typical noise of the sister tests has in a test's own.
SISTERS_DF = 4.0


class BlockNoise(NamedTuple):
    """Noise of one block of each series, [metrics, servers, tests]; NaN where no repeat of any test tells it."""

    variance: Floats
    """Of the log of its value."""
    df: Floats
    """Degrees of freedom of that variance."""


def repeats(measured: Measured) -> tuple[float, int]:
    """Variance of the log of one block's value between repeats, and its degrees of freedom.

    Blocks that are bit for bit the same count once, and those that are not positive not at all.

    >>> from detector.releases.cells import Cells
    >>> def of(places, *values):
    ...     return repeats(Measured(cells := Cells(places), cells.summaries(np.array(values))))
    >>> variance, df = of([("s1", "17.0"), ("s1", "17.0"), ("s1", "17.1"), ("s1", "17.1")], 100.0, 110.0, 90.0, 99.0)
    >>> round((2 * variance) ** 0.5, 3), df
    (0.095, 2)
    >>> of([("s1", "17.0"), ("s2", "17.0")], 100.0, 110.0)[1], of([("s1", "17.0")], 100.0)[1]
    (1, 0)
    """
    cells, values = measured
    df = int(values.df.sum())
    if df:
        return float(values.squares.sum()) / df, df
    of_version: dict[str, list[float]] = {}
    for (_, version), log in sorted(zip(cells.places, values.log.tolist(), strict=True)):
        if math.isfinite(log):
            of_version.setdefault(version, []).append(log)
    gaps = [second - first for levels in of_version.values() for first, second in pairwise(levels)]
    return (sum(gap**2 for gap in gaps) / len(gaps) / 2.0 if gaps else 0.0), len(gaps)


def block_noise(variance: Floats, df: Floats, prior: Floats) -> BlockNoise:
    """Noise of one block by test: each test's own, shrunk toward what is typical of all.

    `variance` and `df` are those of `repeats`; `prior` is the variance that tests are typical in relation to, since
    writes are noisier than reads. All are [tests]. Typical is the median over the tests, each over the median of a
    chi-squared variable with its degrees of freedom (Wilson and Hilferty 1931), so that one bad block decides nothing.

    >>> noise = block_noise(np.array([0.0004, 0.0, 0.0004]), np.array([2.0, 0.0, 2.0]), np.full(3, 0.0001))
    >>> noise.variance.round(5).tolist(), noise.df.tolist()
    ([0.00051, 0.00057, 0.00051], [6.0, 4.0, 6.0])
    """
    seen = df > 0
    if not seen.any():
        return BlockNoise(np.full(variance.shape, np.nan), np.zeros(variance.shape))
    middle = (1.0 - 2.0 / (9.0 * df[seen])) ** 3
    typical = float(median((variance[seen] / prior[seen] / middle)[None])[0]) * prior
    return BlockNoise((SISTERS_DF * typical + df * variance) / (SISTERS_DF + df), SISTERS_DF + df)
