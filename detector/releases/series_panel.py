"""The series of one family as one dense array: [metrics, servers, tests, releases], on the log scale.

Blocks of a release become a robust mean and the variance of that mean; what was not measured is NaN. A test without
a metric, a release without a test, a server without a release: all are NaN and say nothing.

>>> import numpy as np
>>> from history.metrics import shipped_metrics
>>> panel = panel_of_blocks({shipped_metrics()["qps"]: np.array([[[[100.0, 101.0, 99.0], [90.0, 91.0, 89.0]]]])})
>>> panel.shape, np.exp(panel.values[0, 0, 0]).round(1).tolist()
((1, 1, 1, 2), [100.0, 90.0])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from detector.arrays import Bools, Floats, Ints
from detector.errors import InvalidSeries
from detector.releases.block_means import HUBER_LOSS, block_means
from detector.releases.metric_kinds import COSTS, kind_of, noise_prior
from detector.releases.repeats import BlockNoise, block_noise
from history.metrics import Metric

Joins = Mapping[tuple[int, int, int], Floats]
"""[releases, releases] by metric, server and test: covariance from joining sessions, in variances of one block."""

#: What is zero in a series that is sometimes positive is taken as this share of its median positive value.
ZERO_SHARE = 0.05
#: No size of a series is taken to be smaller, and on a linear scale no value farther off than so many sizes.
SMALLEST_SIZE = 1e-150
FARTHEST = 1e4
#: A value printed with more decimals than this is taken as not rounded.
MOST_DECIMALS = 7


class Luck(NamedTuple):
    """What the luck of single blocks, and through the joins of sessions that of the control's, does to all tests that
    were measured in them."""

    covariance: Floats
    """[metrics, servers, tests, releases, releases] of the values; its diagonal is `block_variance`. Zero where
    sessions have no scale of their own."""
    df: Floats
    """[metrics, servers, tests] degrees of freedom of the noise that it is made of."""


@dataclass(frozen=True)
class Panel:
    """One (dbms, line, configuration, benchmark): everything that was measured together."""

    metrics: tuple[Metric, ...]
    servers: tuple[str, ...]
    tests: tuple[str, ...]
    groups: tuple[str, ...]
    """Group of every test."""
    releases: tuple[str, ...]
    gaps: Floats
    """[releases] how many releases lie between a release and the measured one before it, itself included."""
    values: Floats
    """[metrics, servers, tests, releases] robust mean of the blocks on the scale below."""
    block_variance: Floats
    """The same shape: variance of that mean from the blocks' scatter inside a release; 0 where there is one block."""
    rounding: Floats
    """The same shape: variance from the digits the value was printed with."""
    counts: Ints
    """The same shape: blocks."""
    linear: Bools
    """[metrics, servers, tests] true where the series has negative values: values / scale instead of log."""
    scale: Floats
    """[metrics, servers, tests] divisor of a linear series, offset added before the log of one with zeros, else 0."""
    luck: Luck | None = None
    """None where no session has a scale of its own."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        metrics, servers, tests, releases = self.values.shape
        return metrics, servers, tests, releases

    @property
    def single(self) -> Bools:
        """[releases] true where one number must speak for a test: no second block, server or kind of measurement."""
        looks = self.counts.max(axis=0).sum(axis=0)
        kinds = np.array([kind_of(metric) for metric in self.metrics])
        for kind in COSTS:
            looks = looks + (self.counts[kinds == kind].sum(axis=(0, 1)) > 0)
        return np.asarray(np.median(looks, axis=0) < 2)


def _rounding(raw: Floats) -> Floats:
    """[metrics, servers, tests] half of the last printed digit, from the fewest decimals that print a whole series.

    `raw` is [metrics, servers, tests, slots].
    """
    half = np.zeros(raw.shape[:3])
    left = np.isfinite(raw).any(axis=-1)
    for decimals in range(MOST_DECIMALS):
        if not left.any():
            break
        exact = left & (~np.isfinite(raw) | (np.round(raw, decimals) == raw)).all(axis=-1)
        half[exact] = 0.5 * 10.0**-decimals
        left &= ~exact
    return half


def _transform(blocks: Floats) -> tuple[Floats, Floats, Bools, Floats]:
    """Blocks on the log (or linear) scale, the slope of that scale, which series are linear, and their scale.

    `blocks` is [metrics, servers, tests, slots].
    """
    low = np.where(np.isfinite(blocks), blocks, np.inf).min(axis=-1)
    scale = np.zeros(blocks.shape[:-1])
    linear = low < 0
    if low.min() > 0:
        return np.log(blocks), 1.0 / np.maximum(blocks, SMALLEST_SIZE), linear, scale
    values = np.empty_like(blocks)
    slope = np.empty_like(blocks)
    for index in np.ndindex(scale.shape):
        series = blocks[index]
        size = np.abs(series[np.isfinite(series) & (series != 0)])
        typical = max(float(np.median(size)), SMALLEST_SIZE) if size.size else 1.0
        if linear[index]:
            scale[index] = typical
            values[index] = np.clip(series, -FARTHEST * typical, FARTHEST * typical) / typical
            slope[index] = 1.0 / typical
        else:
            scale[index] = max(ZERO_SHARE * typical, SMALLEST_SIZE) if low[index] == 0 else 0.0
            values[index] = np.log(series + scale[index])
            slope[index] = 1.0 / np.maximum(series + scale[index], SMALLEST_SIZE)
    return values, slope, linear, scale


def _beside_sisters(variance: Floats, counts: Ints, metrics: Sequence[Metric], tests: Sequence[str]) -> Floats:
    """Block variance, that of tests with few repeats drawn toward their sisters': the gap of two blocks that happens to
    be wide is no noise of a test that was measured once in all other releases."""
    df = np.maximum(counts - 1, 0).sum(axis=-1).astype(np.float64)
    of_block = (variance * counts).max(axis=-1)
    prior = np.array([[noise_prior(metric, test) ** 2 for test in tests] for metric in metrics])
    shrunk = variance.copy()
    for m, s in np.argwhere((df > 0).any(axis=-1)).tolist():
        seen = df[m, s] > 0
        ratio = block_noise(of_block[m, s, seen], df[m, s, seen], prior[m, seen]).variance / of_block[m, s, seen]
        shrunk[m, s, seen] *= ratio[:, None]
    return shrunk


def _with_luck(
    variance: Floats, counts: Ints, noise: BlockNoise, linear: Bools, joins: Joins
) -> tuple[Floats, Luck | None]:
    """Block variance that is at least what `noise` says of one block, with that of the joins; and what both make."""
    own = np.isfinite(noise.variance) & ~linear
    if not own.any():
        return variance, None
    of_block = np.maximum(HUBER_LOSS * np.nan_to_num(noise.variance), (variance * counts).max(axis=-1))
    variance = np.where(own[..., None] & (counts > 0), of_block[..., None] / np.maximum(counts, 1), variance)
    luck = np.where(own[..., None], variance, 0.0)[..., None] * np.eye(variance.shape[-1])
    for place, join in joins.items():
        if own[place]:
            luck[place] += of_block[place] * join
    return np.where(own[..., None], np.diagonal(luck, axis1=-2, axis2=-1), variance), Luck(luck, noise.df)


def panel_of_blocks(blocks: Mapping[Metric, Floats], *, gaps: Floats | None = None) -> Panel:
    """A panel from arrays [servers, tests, releases, blocks] of raw values by metric; NaN is absent.

    Raises InvalidSeries where the arrays are not of one shape, or empty.
    """
    arrays = [np.asarray(array, dtype=np.float64) for array in blocks.values()]
    if not arrays or any(array.ndim != 4 or array.shape != arrays[0].shape for array in arrays):
        raise InvalidSeries("every metric needs an array [servers, tests, releases, blocks] of one and the same shape")
    servers, tests, releases, of_release = arrays[0].shape
    if min(arrays[0].shape) == 0:
        raise InvalidSeries("a panel needs at least one server, test, release and block")
    return panel_of_slots(
        list(blocks),
        np.stack(arrays).reshape(len(arrays), servers, tests, releases * of_release),
        of_release * np.arange(releases + 1),
        servers=[f"server-{i}" for i in range(servers)],
        tests=[f"test-{i}" for i in range(tests)],
        groups=[""] * tests,
        releases=[str(i) for i in range(releases)],
        gaps=np.ones(releases) if gaps is None else np.asarray(gaps, dtype=np.float64),
    )


def panel_of_slots(
    metrics: Sequence[Metric],
    raw: Floats,
    starts: Ints,
    *,
    servers: Sequence[str],
    tests: Sequence[str],
    groups: Sequence[str],
    releases: Sequence[str],
    gaps: Floats,
    noise: BlockNoise | None = None,
    joins: Joins | None = None,
) -> Panel:
    """A panel from raw values [metrics, servers, tests, slots], one slot or more a release (`block_means`).

    `noise` is what the noise of one block is known to be at least where sessions have scales of their own, NaN
    elsewhere; `joins` what their joins add.
    """
    raw = np.where(np.isfinite(raw), raw, np.nan)
    shape = (*raw.shape[:3], starts.size - 1)
    values, slope, linear, scale = _transform(raw)
    mean, variance, counts = (array.reshape(shape) for array in block_means(values.reshape(-1, raw.shape[3]), starts))
    variance = _beside_sisters(variance, counts, metrics, tests)
    luck = None
    if noise is not None:
        variance, luck = _with_luck(variance, counts, noise, linear, joins or {})
    digits = _rounding(raw)
    steepness = np.maximum.reduceat(np.where(np.isfinite(slope), slope, 0.0), starts[:-1], axis=-1)
    rounding = (digits[..., None] * steepness) ** 2 / 3.0 / np.maximum(counts, 1)
    return Panel(
        metrics=tuple(metrics),
        servers=tuple(servers),
        tests=tuple(tests),
        groups=tuple(groups),
        releases=tuple(releases),
        gaps=gaps,
        values=mean,
        block_variance=variance,
        rounding=rounding,
        counts=counts,
        linear=np.asarray(linear),
        scale=scale,
        luck=luck,
    )
