"""Timed values of several sessions on one scale, and the noise that this costs. Pure.

A machine is faster in one hour than in the next, by as much for the control as for a new release. Values of two
sessions are therefore compared through the releases that both measured, and through nothing else. With y[v, s] the log
level of release v in session s, from n[v, s] blocks,

    y[v, s] = level[v] + shift[s] + noise,  variance of the noise: that of one block / n[v, s]

is solved for the shifts by weighted least squares, levels eliminated (a two-way layout without interaction; Searle
1987, "Linear models for unbalanced data", ch. 9). Shifts are free, nothing draws them to zero: a session in which
everything was twice as fast says just what it would have said otherwise.

The error of a shift is that of every value of its session and, as far as it comes from the luck of a block, of every
test: `covariance_of_releases` goes with the values (`series_panel.Panel.luck`).

>>> cells = Cells([("s1", "17.0"), ("s1", "17.1"), ("s2", "17.0"), ("s2", "17.2")])
>>> values = cells.summaries(np.array([100.0, 90.0, 200.0, 190.0]))
>>> {session: round(shift, 3) for session, shift in join_sessions(Measured(cells, values), "s2").items()}
{'s2': 0.0, 's1': -0.693}
>>> joint(cells, "s2").covariance.tolist()
[[0.0, 0.0], [0.0, 2.0]]
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from detector.arrays import Floats
from detector.releases.cells import JOINS, Cells, Measured, joint


def join_sessions(measured: Measured, reference: str) -> dict[str, float]:
    """By session that a chain of common releases joins to `reference`, how far its values read above those, as a log.

    Where a release was measured with values that are not positive, which have no ratio, it joins without a shift.
    """
    scales, chosen, at, counts, covariance = joint(measured.cells, reference)
    shifts = np.zeros(len(scales))
    if len(scales) > 1:
        least = np.full(counts.shape, np.inf)
        least[at] = measured.values.least[chosen]
        positive = np.all(least > 0, axis=1)[at[0]]
        levels = np.zeros(counts.shape)
        levels[at] = np.log(np.where(positive, measured.values.median[chosen], 1.0))
        middle = (counts * levels).sum(axis=1) / counts.sum(axis=1)
        pull = (counts * (levels - middle[:, None])).sum(axis=0)
        shifts[1:] = covariance[1:, 1:] @ pull[1:]
    return dict(zip(scales, shifts.tolist(), strict=True))


@lru_cache(JOINS)
def covariance_of_releases(cells: Cells, reference: str, versions: tuple[str, ...]) -> Floats:
    """[versions, versions] what the joins add to the covariance of release values, in variances of one block.

    A shift of all releases alike means nothing, so the mean over the measured releases is taken out: only differences
    count.
    """
    scales, *_, covariance = joint(cells, reference)
    row, column = ({name: at for at, name in enumerate(names)} for names in (versions, scales))
    blocks = np.zeros((len(versions), len(scales)))
    for (scale, version), count in zip(cells.places, np.diff(cells.starts).tolist(), strict=True):
        if version in row and scale in column:
            blocks[row[version], column[scale]] = count
    total = blocks.sum(axis=1, keepdims=True)
    share = np.divide(blocks, total, out=np.zeros_like(blocks), where=total > 0)
    seen = total[:, 0] > 0
    share[seen] -= share[seen].mean(axis=0)
    return np.asarray(share @ covariance @ share.T)
