"""Which values of a series were measured together: one cell for each release in each scale. Pure.

    values    100.0  110.0 | 90.0   99.0 | 210.0
    cell        0      0   |   1      1  |   2        17.0 in s1, 17.1 in s1, 17.0 in s2

The series of a line are mostly of the same blocks. What follows from these alone is worked out once, in `Cells`; a
series adds its values.

>>> cells = Cells([("s1", "17.0"), ("s1", "17.0"), ("s1", "17.1"), ("s1", "17.1"), ("s2", "17.0")])
>>> cells.places
(('s1', '17.0'), ('s1', '17.1'), ('s2', '17.0'))
>>> cells.summaries(np.array([100.0, 110.0, 90.0, 99.0, 210.0])).median.tolist()
[105.0, 94.5, 210.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats, Ints, ascending
from detector.compilation import compiled

#: Joins kept: a line has one or two a lane, and a few more where tests came or went.
JOINS = 64


class Summaries(NamedTuple):
    """The values of each cell; arrays are [cells]."""

    median: Floats
    least: Floats
    log: Floats
    """Mean of the logs of the values that are positive, each value once; NaN where none is."""
    squares: Floats
    """Sum of the squared distances of these logs from their mean."""
    df: Floats
    """Degrees of freedom of that sum."""


class Measured(NamedTuple):
    """What a series has in its cells."""

    cells: Cells
    values: Summaries


class Cells:
    """The cells of series that have values of the same blocks; compared by identity."""

    def __init__(self, of_values: Sequence[tuple[str, str]]) -> None:
        """`of_values`: scale and version of each value."""
        self.places = tuple(sorted(set(of_values)))
        """Scale and version of each cell, sorted: what is summed over cells is the same in any order of values."""
        index = {place: number for number, place in enumerate(self.places)}
        of_value = np.array([index[place] for place in of_values], dtype=np.int64)
        self.order: Ints = np.argsort(of_value, kind="stable")
        """[values] cell by cell."""
        self.starts: Ints = np.concatenate([[0], np.cumsum(np.bincount(of_value, minlength=len(self.places)))])
        """[cells + 1] where each cell begins in `order`."""

    def summaries(self, values: Floats) -> Summaries:
        """Of `values`, [values] in the order that the cells were made in."""
        return Summaries(*_summaries(values[self.order], self.starts))


@compiled
def _summaries(values: Floats, starts: Ints) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    cells = starts.size - 1
    medians, least, logs = np.full(cells, np.nan), np.full(cells, np.nan), np.full(cells, np.nan)
    squares, freedom = np.zeros(cells), np.zeros(cells)
    ordered = np.empty(values.size)
    for c in range(cells):
        n = ascending(values[starts[c] : starts[c + 1]], ordered)
        if n == 0:
            continue
        medians[c] = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
        least[c] = ordered[0]
        different = 0
        total = 0.0
        for k in range(n):
            if ordered[k] > 0.0 and (k == 0 or ordered[k] != ordered[k - 1]):
                ordered[different] = ordered[k]
                total += np.log(ordered[k])
                different += 1
        if different > 0:
            logs[c] = total / different
            for k in range(different):
                squares[c] += (np.log(ordered[k]) - logs[c]) ** 2
            freedom[c] = different - 1
    return medians, least, logs, squares, freedom


class Joint(NamedTuple):
    """What is joined to one scale by a chain of common releases, and how."""

    scales: tuple[str, ...]
    """That scale first, the others sorted."""
    cells: Ints
    """Cells of releases that two or more of these scales measured."""
    at: tuple[Ints, Ints]
    """Their release and their scale, as numbers."""
    counts: Floats
    """[releases, scales] values."""
    covariance: Floats
    """[scales, scales] of the shifts of the scales in variances of one block; that of the first is zero."""


@lru_cache(JOINS)
def joint(cells: Cells, reference: str) -> Joint:
    """All scales that a chain of common releases leads to from `reference`."""
    measured: dict[str, set[str]] = {}
    for scale, version in cells.places:
        measured.setdefault(scale, set()).add(version)
    scales = _connected(measured, reference)
    in_scales: dict[str, int] = {}
    for scale in scales:
        for version in measured.get(scale, ()):
            in_scales[version] = in_scales.get(version, 0) + 1
    common = {version: v for v, version in enumerate(sorted(v for v, count in in_scales.items() if count > 1))}
    column = {scale: f for f, scale in enumerate(scales)}
    chosen = [c for c, (scale, version) in enumerate(cells.places) if scale in column and version in common]
    at = (
        np.array([common[cells.places[c][1]] for c in chosen], dtype=np.int64),
        np.array([column[cells.places[c][0]] for c in chosen], dtype=np.int64),
    )
    counts = np.zeros((len(common), len(scales)))
    counts[at] = np.diff(cells.starts)[chosen]
    covariance = np.zeros((len(scales), len(scales)))
    if len(scales) > 1:
        shares = counts / counts.sum(axis=1, keepdims=True)
        normal = np.diag(counts.sum(axis=0)) - counts.T @ shares
        covariance[1:, 1:] = np.linalg.inv(normal[1:, 1:])
    return Joint(tuple(scales), np.array(chosen, dtype=np.int64), at, counts, covariance)


def _connected(measured: dict[str, set[str]], reference: str) -> list[str]:
    """`reference` and, sorted, all scales that a chain of common releases leads to; `measured` is by scale."""
    known, joined = set(measured.get(reference, ())), {reference}
    waiting = set(measured) - joined
    while ready := {scale for scale in waiting if not known.isdisjoint(measured[scale])}:
        joined |= ready
        waiting -= ready
        known.update(*(measured[scale] for scale in ready))
    return [reference, *sorted(joined - {reference})]
