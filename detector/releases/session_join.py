"""Timed values of several sessions on one scale, and the noise that this costs. Pure.

A machine is faster in one hour than in the next, by as much for the control as for a new release. Values of two
sessions are therefore compared through the releases that both measured, and through nothing else. With y[v, s] the log
level of release v in session s, from n[v, s] blocks,

    y[v, s] = level[v] + shift[s] + noise,  variance of the noise: that of one block / n[v, s]

is solved for the shifts by weighted least squares, levels eliminated (a two-way layout without interaction; Searle
1987, "Linear models for unbalanced data", ch. 9). Shifts are free, nothing draws them to zero: a session in which
everything was twice as fast says just what it would have said otherwise.

The error of a shift is that of every value of its session and, as far as it comes from the luck of a block, of every
test: `covariance` goes with the values (`series_panel.Panel.shared`).

>>> join = join_sessions({"s1": {"17.0": [100.0], "17.1": [90.0]}, "s2": {"17.0": [200.0], "17.2": [190.0]}}, "s2")
>>> join.scales, round(math.exp(join.shifts["s1"]), 6), join.covariance.tolist()
(('s2', 's1'), 0.5, [[0.0, 0.0], [0.0, 2.0]])
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""Values by session and version."""

#: Inverses kept: the series of a line are mostly of the same blocks.
LAYOUTS = 64


class SessionJoin(NamedTuple):
    """What brings sessions together."""

    scales: tuple[str, ...]
    """The sessions that are joined, the reference first."""
    shifts: dict[str, float]
    """By session, how far its values read above the reference, as a log."""
    covariance: Floats
    """[scales, scales] covariance of the shifts in variances of one block; that of the reference is zero."""


def join_sessions(values: Values, reference: str) -> SessionJoin:
    """The sessions that a chain of common releases joins to `reference`.

    Where a release was measured with values that are not positive, which have no ratio, it joins without a shift.
    """
    scales = _connected(values, reference)
    versions = sorted({version for scale in scales for version in values.get(scale, ())})
    common = [version for version in versions if sum(version in values[scale] for scale in scales) > 1]
    counts, levels = np.zeros((len(common), len(scales))), np.zeros((len(common), len(scales)))
    for v, version in enumerate(common):
        cells = {f: values[scale][version] for f, scale in enumerate(scales) if version in values[scale]}
        positive = all(min(cell) > 0 for cell in cells.values())
        for f, cell in cells.items():
            counts[v, f] = len(cell)
            levels[v, f] = math.log(float(np.median(cell))) if positive else 0.0
    covariance = np.zeros((len(scales), len(scales)))
    shifts = np.zeros(len(scales))
    if len(scales) > 1:
        inverse = _inverse(counts.tobytes(), counts.shape)
        middle = (counts * levels).sum(axis=1) / counts.sum(axis=1)
        pull = (counts * (levels - middle[:, None])).sum(axis=0)
        covariance[1:, 1:] = inverse
        shifts[1:] = inverse @ pull[1:]
    return SessionJoin(tuple(scales), dict(zip(scales, shifts.tolist(), strict=True)), covariance)


def _connected(values: Values, reference: str) -> list[str]:
    """`reference` and, sorted, all scales that a chain of common releases leads to."""
    known, joined = set(values.get(reference, ())), {reference}
    waiting = set(values) - joined
    while ready := {scale for scale in waiting if not known.isdisjoint(values[scale])}:
        joined |= ready
        waiting -= ready
        known.update(*(values[scale] for scale in ready))
    return [reference, *sorted(joined - {reference})]


@lru_cache(LAYOUTS)
def _inverse(counts: bytes, shape: tuple[int, int]) -> Floats:
    """Of the normal equations of the shifts but the first, whose blocks by [versions, scales] are `counts`."""
    blocks = np.frombuffer(counts).reshape(shape)
    shares = blocks / blocks.sum(axis=1, keepdims=True)
    normal = np.diag(blocks.sum(axis=0)) - blocks.T @ shares
    return np.linalg.inv(normal[1:, 1:])


def covariance_of_releases(join: SessionJoin, blocks: Floats) -> Floats:
    """[releases, releases] what the joins add to the covariance of release values, in variances of one block.

    `blocks` is [releases, scales], the blocks of each release in each of `join.scales`. A shift of all releases alike
    means nothing, so the mean over the measured releases is taken out: only differences count.
    """
    total = blocks.sum(axis=1, keepdims=True)
    share = np.divide(blocks, total, out=np.zeros_like(blocks), where=total > 0)
    measured = total[:, 0] > 0
    share[measured] -= share[measured].mean(axis=0)
    return np.asarray(share @ join.covariance @ share.T)
