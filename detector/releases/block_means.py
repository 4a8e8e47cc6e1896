"""The blocks of each release as one number: a robust mean, and the variance of that mean.

Blocks lie end to end, release by release, in as many slots as each release needs. A control with hundreds of blocks
beside releases with two then costs what it has and no more:

    values  [series, slots]      100.0  101.0  99.0 | 90.0  NaN | 92.0
    starts  [releases + 1]       0                    3           5      6

The scatter of single blocks is the median gap between two blocks of one release, over all releases of a series, because
one release has too few blocks to know its own. k blocks have k (k - 1) / 2 gaps, so these are never made: in sorted
blocks the gaps up to a size are counted in one walk, and the size that half of them reach is found by halving the range
of floats, which is that of their bits. (Counting instead of sorting: Johnson and Mizoguchi 1978, "Selecting the Kth
element in X + Y". `qn_scale` of statsmodels counts in the same way, but in one sample and for the first quarter.)

>>> means = block_means(np.array([[100.0, 101.0, 99.0, 90.0, np.nan, 92.0]]), np.array([0, 3, 5, 6]))
>>> means.mean.tolist(), means.counts.tolist(), means.variance.round(2).tolist()
([[100.0, 90.0, 92.0]], [[3, 1, 1]], [[0.4, 1.21, 1.21]])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from detector.arrays import Floats, Ints, ascending
from detector.compilation import compiled

#: Blocks further than this many deviations of a block from their median are pulled in (Huber).
HUBER_SD = 2.0
#: Median of |x - y| for two standard normal values.
MEDIAN_GAP = 0.9539
#: The pulled-in mean of three is that much less efficient than the mean at the normal.
HUBER_LOSS = 1.1
#: No scatter is taken to be smaller.
LEAST_SCATTER = 1e-9


class BlockMeans(NamedTuple):
    """What blocks come to; arrays are [series, releases]."""

    mean: Floats
    """NaN where nothing was measured."""
    variance: Floats
    """Of that mean; 0 in a series where no release has two blocks."""
    counts: Ints
    """Blocks. Those that are bit for bit the same count once: a repeated row is no evidence."""


def block_means(values: Floats, starts: Ints) -> BlockMeans:
    """Means with far blocks pulled in, in whatever order the blocks of a release are.

    `values` is [series, slots], NaN where a slot is empty; release r has the slots from `starts[r]` up to
    `starts[r + 1]`.
    """
    ordered, counts = _ordered(np.ascontiguousarray(values), starts)
    scatter = median_gaps(ordered, starts, counts) / MEDIAN_GAP
    paired = np.isfinite(scatter)
    scatter = np.where(paired, np.maximum(scatter, LEAST_SCATTER), 0.0)
    mean = _pulled_means(ordered, starts, counts, HUBER_SD * scatter)
    variance = HUBER_LOSS * scatter[:, None] ** 2 / np.maximum(counts, 1)
    return BlockMeans(mean, variance, counts)


@compiled
def _ordered(values: Floats, starts: Ints) -> tuple[Floats, Ints]:
    """The blocks of each release ascending from its first slot on, each value once, and their numbers."""
    ordered = np.full(values.shape, np.nan)
    counts = np.zeros((values.shape[0], starts.size - 1), dtype=np.int64)
    for i in range(values.shape[0]):
        for r in range(starts.size - 1):
            first = starts[r]
            n = ascending(values[i, first : starts[r + 1]], ordered[i, first:])
            different = min(n, 1)
            for at in range(first + 1, first + n):
                if ordered[i, at] > ordered[i, first + different - 1]:
                    ordered[i, first + different] = ordered[i, at]
                    different += 1
            counts[i, r] = different
    return ordered, counts


@compiled
def _pairs_within(blocks: Floats, starts: Ints, counts: Ints, gap: float) -> int:
    """How many pairs of blocks of one release are at most `gap` apart, in one series."""
    pairs = 0
    for r in range(counts.size):
        left = starts[r]
        for right in range(left + 1, left + counts[r]):
            while blocks[right] - blocks[left] > gap:
                left += 1
            pairs += right - left
    return pairs


@compiled
def _next_gap(blocks: Floats, starts: Ints, counts: Ints, gap: float) -> float:
    """The smallest gap above `gap`; infinite where there is none."""
    smallest = np.inf
    for r in range(counts.size):
        first = starts[r]
        left = first
        for right in range(first + 1, first + counts[r]):
            while blocks[right] - blocks[left] > gap:
                left += 1
            if left > first:
                smallest = min(smallest, blocks[right] - blocks[left - 1])
    return smallest


@compiled
def median_gaps(ordered: Floats, starts: Ints, counts: Ints) -> Floats:
    """[series] the median of |x - y| over all pairs of blocks of one release; NaN where there is no pair.

    `ordered` is [series, slots], `counts` [series, releases]: the blocks of each release ascend from its first slot.
    """
    medians = np.full(ordered.shape[0], np.nan)
    bits = np.zeros(1, dtype=np.int64)
    gap = bits.view(np.float64)  # the order of floats that are not negative is that of their bits
    for i in range(ordered.shape[0]):
        pairs = 0
        widest = 0.0
        for r in range(counts.shape[1]):
            pairs += counts[i, r] * (counts[i, r] - 1) // 2
            if counts[i, r] > 1:
                widest = max(widest, ordered[i, starts[r] + counts[i, r] - 1] - ordered[i, starts[r]])
        if pairs == 0:
            continue
        half = (pairs + 1) // 2
        gap[0] = widest
        high = bits[0]
        low = 0
        while low < high:
            middle = low + (high - low) // 2
            bits[0] = middle
            if _pairs_within(ordered[i], starts, counts[i], gap[0]) >= half:
                high = middle
            else:
                low = middle + 1
        bits[0] = low
        lower = gap[0]
        upper = lower
        if pairs % 2 == 0 and _pairs_within(ordered[i], starts, counts[i], lower) == half:
            upper = _next_gap(ordered[i], starts, counts[i], lower)
        medians[i] = 0.5 * (lower + upper)
    return medians


@compiled
def _pulled_means(ordered: Floats, starts: Ints, counts: Ints, reach: Floats) -> Floats:
    """[series, releases] mean of the blocks, those further than `reach` [series] from their median pulled in to it."""
    means = np.full(counts.shape, np.nan)
    for i in range(counts.shape[0]):
        for r in range(counts.shape[1]):
            n = counts[i, r]
            if n == 0:
                continue
            blocks = ordered[i, starts[r] : starts[r] + n]
            middle = 0.5 * (blocks[(n - 1) // 2] + blocks[n // 2])
            total = 0.0
            for value in blocks:
                total += min(max(value - middle, -reach[i]), reach[i])
            means[i, r] = middle + total / n
    return means
