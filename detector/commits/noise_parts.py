"""Where the noise of a series changes: a stretch of equal values, then ones that scatter.

One scale cannot serve both: by that of the quiet stretch every value of the other one is an outlier, and a step into it
goes unseen; by that of the other, steps of the quiet stretch are too small. So the series is cut where its differences
of neighbours are of another size, and each part is read with its own noise. Differences do not see levels: a step is
one large difference, a burst that comes back a few, and neither makes a part.

Whether a difference exceeds a threshold is a bit. The likeliest path of two states, quiet (few bits) and loud (most),
is compared with one state that has the share of bits there are; the recursion is that of Viterbi (1967).

>>> import numpy as np
>>> loud = np.random.default_rng(1).standard_normal(20)
>>> part_bounds(np.concatenate([np.zeros(60), 100.0 + loud]), 0.01).tolist()
[0, 60, 80]
>>> part_bounds(np.concatenate([np.zeros(40), np.full(40, 100.0)]), 0.01).tolist()
[0, 80]
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from detector.arrays import Bools, Floats, Ints
from detector.commits.noise import ROUNDING, resolution, scale_of_differences
from detector.compilation import compiled

#: The fewest values that are looked at for parts.
FEWEST_VALUES = 12
#: The fewest values of a part.
FEWEST_OF_PART = 3
#: Thresholds that are tried: the quantiles that cut the differences into so many equal shares, and the noise that does
#: not matter.
SHARES = 8
#: Log probability of a difference below the threshold and above it, in a quiet state and in a loud one.
LOG_QUIET = (math.log(0.95), math.log(0.05))
LOG_LOUD = (math.log(0.2), math.log(0.8))
#: What a change of state costs, in nats beside log n: a loud stretch in the middle needs seven differences or more, one
#: at the end four.
SWITCH = 4.5
#: Scales of noise that are nearer to each other than this are one noise: its density has room for both.
RATIO = 3.0
#: Differences by which the meeting point of two parts is moved at most to where their sizes change.
REACH = 3


def part_bounds(values: Floats, least_sigma: float) -> Ints:
    """Where the parts of `values` begin, and where the last one ends; noise below `least_sigma` does not count."""
    bounds = [0, len(values)]
    unread = [(0, len(values))]
    while unread:
        start, end = unread.pop()
        if end - start < FEWEST_VALUES:
            continue
        inner = _cuts(values[start:end], least_sigma)
        bounds += [start + place for place in inner]
        if inner:
            unread += [(start + a, start + b) for a, b in pairwise([0, *inner, end - start])]
    return np.array(sorted(bounds), dtype=np.int64)


def _cuts(values: Floats, least_sigma: float) -> list[int]:
    """Where quiet and loud parts of `values` meet; none when there is one noise."""
    sizes = np.abs(np.diff(values))
    switch = SWITCH + math.log(len(sizes))
    loud = _loud(sizes, least_sigma, switch)
    if not loud.any() or loud.all():
        return []
    quiet_scale = max(scale_of_differences(sizes[~loud]) or ROUNDING * resolution(values), least_sigma)
    loud_scale = scale_of_differences(sizes[loud])
    if loud_scale < RATIO * quiet_scale:
        return []
    # The bits have found the parts; the sizes themselves tell best where they meet.
    louder = np.cumsum(_log_density(sizes, loud_scale) - _log_density(sizes, quiet_scale))
    cuts = []
    for at in (np.flatnonzero(loud[1:] != loud[:-1]) + 1).tolist():
        first = max(1, at - REACH)
        before = louder[first - 1 : at + REACH]
        if loud[at]:  # the first loud difference ends at the first loud value
            cuts.append(first + int(np.argmin(before)) + 1)
        else:  # the last loud difference ends at the first quiet value
            cuts.append(first + int(np.argmax(before)))
    ends = [*cuts[1:], len(values)]
    return [cut for cut, end in zip(cuts, ends, strict=True) if min(cut, end - cut) >= FEWEST_OF_PART]


def _log_density(sizes: Floats, scale: float) -> Floats:
    """Of differences of noise of that scale: Student's t with two degrees of freedom, so that a step is possible."""
    density: Floats = -1.5 * np.log(2.0 + 0.5 * (sizes / scale) ** 2) - math.log(scale)
    return density


@compiled
def _loud(sizes: Floats, least_sigma: float, switch: float) -> Bools:
    """Per difference, whether it is of a loud stretch, by the threshold whose path gains most over one state; all alike
    when none does."""
    n = sizes.shape[0]
    ordered = np.sort(sizes)
    best = last = -1.0
    most = 0.0
    for part in range(SHARES):
        threshold = ordered[part * n // SHARES] if part else least_sigma
        share = (n - np.searchsorted(ordered, threshold, side="right")) / n
        if threshold == last or share == 0.0 or share == 1.0:
            continue
        last = threshold
        one_state = n * (share * math.log(share) + (1.0 - share) * math.log(1.0 - share))
        gain = _likelihood(sizes, threshold, switch) - one_state
        if gain > most:
            most = gain
            best = threshold
    if best < 0.0:
        return np.zeros(n, np.bool_)
    return _likeliest_path(sizes, best, switch)


@compiled
def _likelihood(sizes: Floats, threshold: float, switch: float) -> float:
    """Log likelihood of the likeliest path through the two states."""
    quiet = loud = 0.0
    for size in sizes:
        quiet, loud = max(quiet, loud - switch), max(loud, quiet - switch)
        above = size > threshold
        quiet += LOG_QUIET[1] if above else LOG_QUIET[0]
        loud += LOG_LOUD[1] if above else LOG_LOUD[0]
    return max(quiet, loud)


@compiled
def _likeliest_path(sizes: Floats, threshold: float, switch: float) -> Bools:
    """That path, true where it is loud."""
    n = sizes.shape[0]
    from_loud = np.zeros((n, 2), np.bool_)
    quiet = loud = 0.0
    for t in range(n):
        from_loud[t, 0] = loud - switch > quiet
        from_loud[t, 1] = loud > quiet - switch
        quiet, loud = max(quiet, loud - switch), max(loud, quiet - switch)
        above = sizes[t] > threshold
        quiet += LOG_QUIET[1] if above else LOG_QUIET[0]
        loud += LOG_LOUD[1] if above else LOG_LOUD[0]
    path = np.zeros(n, np.bool_)
    state = loud > quiet
    for t in range(n - 1, -1, -1):
        path[t] = state
        state = from_loud[t, 1] if state else from_loud[t, 0]
    return path
