"""One cause, one size: a change seen surely on one server is of about the same size on the others, or not there.

The tree of `coupling` shares that a change happened, not how large it was. This last step does: where the surest
server says d, another server's step is either near d or near zero, which is a sharper question than "is there any
step", and one that removes most false hits of the less precise server.
"""

from __future__ import annotations

import math

import numpy as np

from detector.arrays import Floats

#: A server this sure of a hit is the reference; only what is not settled yet on the others is asked again.
SURE = 0.9
UNSETTLED = (0.02, 0.995)
#: Standard deviation of the ratio of the effects on two servers.
SPREAD = 0.3
#: P(the effect on another server is of a related size | it is hit).
RELATED = 0.85
#: A neighbour above this is the end of a segment.
EDGE = 0.5


def agree(hit: Floats, values: Floats, sd: Floats, transient: Floats, slab: float) -> Floats:
    """`hit` with the size of the effect taken into account.

    All arrays are [servers, tests, releases]: P(hit), values and their noise on the log scale, P(transient).
    `slab` is the width of the prior of a change that `hit` was computed with.
    """
    servers = hit.shape[0]
    if servers < 2:
        return hit
    refined = hit.copy()
    precision = np.where(np.isfinite(values), (1.0 - transient) / sd**2, 0.0)
    weighted = np.where(np.isfinite(values), values, 0.0) * precision
    for t, r in zip(*np.nonzero(hit.max(axis=0) > SURE), strict=True):
        surest = int(np.argmax(hit[:, t, r]))
        size, size_variance = _step(hit[surest, t], precision[surest, t], weighted[surest, t], r)
        for s in range(servers):
            chance = hit[s, t, r]
            if s == surest or not UNSETTLED[0] < chance < UNSETTLED[1]:
                continue
            step, variance = _step(hit[s, t], precision[s, t], weighted[s, t], r)
            if not math.isfinite(variance + size_variance):
                continue
            any_size = _normal(step, variance + slab**2)
            near = _normal(step - size, variance + size_variance + (SPREAD * size) ** 2)
            odds = chance / (1.0 - chance) * (RELATED * near / max(any_size, 1e-300) + 1.0 - RELATED)
            refined[s, t, r] = odds / (1.0 + odds)
    return refined


def _step(hit: Floats, precision: Floats, weighted: Floats, r: int) -> tuple[float, float]:
    """Step at r between the segments on either side and its variance; infinite where one was not measured."""
    start, stop = r - 1, r + 1
    while start > 0 and hit[start] < EDGE:
        start -= 1
    while stop < hit.size and hit[stop] < EDGE:
        stop += 1
    before, after = float(precision[start:r].sum()), float(precision[r:stop].sum())
    if before <= 0.0 or after <= 0.0:
        return 0.0, math.inf
    step = float(weighted[r:stop].sum()) / after - float(weighted[start:r].sum()) / before
    return step, 1.0 / before + 1.0 / after


def _normal(x: float, variance: float) -> float:
    return math.exp(-0.5 * x * x / variance) / math.sqrt(variance)
