"""What each metric of a test did at a boundary: levels, step, interval, and whether it moved at all.

`scan` says where a test changed. Here every metric is read for itself on its original values, segment by segment
between those boundaries, so that each figure in a report can be checked by hand: a level is the weighted mean of a
segment, a step the difference of two levels, its error the noise of the values behind them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats, median, t_quantile
from detector.releases import noise
from detector.releases.boundaries import THRESHOLD, boundaries, is_slope, segments
from detector.releases.metric_kinds import KINDS, evidence, kind_of
from detector.releases.scan import Scan
from detector.releases.series_panel import Luck

#: Residuals beyond about this many standard deviations lose weight (Cauchy weights).
FAR_SD = 3.0
#: Rounds of segment means and noise.
ROUNDS = 3
#: P(a metric moves | the test is hit) is never taken as less, so that a clear step is seen whatever the others do.
LEAST_SHOWS = 0.05
#: P(this metric moved) from which it is listed, and on the newest release, where it is only suspected.
LISTED, LISTED_NEWEST = 0.5, 0.3
#: ... nor when its step is less than so many standard errors.
LEAST_Z = 1.64
#: ... nor, however many tests show it, when the luck of a block or of a session's control can do as much: all tests
#: of a block share that, so that many of them are no more evidence than one. It does no more with this probability:
#: three standard errors, and more while noise is known from a few repeats.
LUCK = 0.99865
#: Coverage of the intervals.
COVERAGE = 0.95


@dataclass(frozen=True)
class SeriesStep:
    """One metric of one test on one server at one boundary, on the panel's scale."""

    place: tuple[int, int, int]
    """Metric, server and test, as the panel numbers them."""
    release: int
    size: float
    error: float
    """Standard error of `size`."""
    luck: float
    """What the luck of blocks and joins, which tests share, explains of `size` at most."""
    df: float
    probability: float
    before: float
    after: float
    releases_before: int
    releases_after: int
    blocks_before: int
    blocks_after: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `size`."""
        half = t_quantile(self.df, 0.5 + COVERAGE / 2.0) * self.error
        return self.size - half, self.size + half


@dataclass(frozen=True)
class PanelSteps:
    """All steps of a panel, and the noise they are judged by."""

    steps: tuple[SeriesStep, ...]
    """But those of series that are better described as a slope."""
    noise: Floats
    """[metrics, servers, tests] standard deviation of one release's value."""
    values: Floats
    """[metrics, servers, tests, releases] values without the passing common shift."""
    shift: Floats
    """[metrics, servers, releases] that shift."""
    evident: tuple[int, ...]
    """Metrics that are evidence, as the panel numbers them."""

    @cached_property
    def second_opinion(self) -> tuple[int, ...]:
        """Releases at which the panel changes by the independent method."""
        rows = list(self.evident)
        return _joint_boundaries(self.values[rows] / self.noise[rows][..., None])

    def too_small_for_second_opinion(self, releases: range) -> bool:
        """Whether the independent method would not find the steps at `releases` even if there were no noise."""
        steps = np.where(np.isfinite(self.values), 0.0, np.nan)
        for step in self.steps:
            if step.release in releases:
                steps[(*step.place, slice(releases[-1], None))] += step.size / self.noise[step.place]
        return not _joint_boundaries(steps[list(self.evident)])


def _joint_boundaries(columns: Floats) -> tuple[int, ...]:
    from detector.releases.panel_segments import joint_boundaries  # ruptures takes its time to load

    return joint_boundaries(columns.reshape(-1, columns.shape[-1]))


def read_steps(scan: Scan, threshold: float = THRESHOLD) -> PanelSteps:
    """The steps of every metric at the boundaries of `scan`."""
    panel = scan.panel
    least = max(threshold, scan.least)
    places = {(s, t): boundaries(scan.hit[s, t], least) for s, t in np.ndindex(scan.hit.shape[0], scan.hit.shape[1])}
    explained = panel.block_variance + panel.rounding
    prior = noise.priors(panel)
    between = noise.from_differences(panel.values, explained, panel.gaps, prior)
    values, shift = panel.values, np.zeros((panel.shape[0], panel.shape[1], panel.shape[3]))
    hit = np.broadcast_to(scan.hit[None], panel.shape)
    for _ in range(ROUNDS):
        sd = np.sqrt(between[..., None] + explained + noise.LEAST_SD**2)
        level, weight, used = _levels(values, sd, places)
        shift = noise.common_shift(panel.values, level, hit)
        values = panel.values - shift[:, :, None, :]
        between = _between(values, explained, level, weight, used, prior)
    sd = np.sqrt(between[..., None] + explained + noise.LEAST_SD**2)
    steps: list[SeriesStep] = []
    for m, s, t in np.ndindex(panel.shape[:3]):
        if places[s, t]:
            of_series = _of_series(scan, values[m, s, t], sd[m, s, t], places[s, t], (m, s, t))
            # The shift common to all tests is given back: a slope they share looks like one.
            if not is_slope(panel.values[m, s, t], [(step.release, step.size) for step in of_series]):
                steps += of_series
    noise_sd = np.sqrt(between + noise.mean_explained(panel.values, explained) + noise.LEAST_SD**2)
    evident = tuple(m for m, shows in enumerate(evidence(panel.metrics)) if shows)
    return PanelSteps(tuple(steps), noise_sd, values, shift, evident)


def _mean(values: Floats, sd: Floats) -> tuple[float, Floats] | None:
    """Mean of one segment and the weight of each value: precision, less where it is far from the segment's median.

    None where nothing was measured.
    """
    middle = median(values[None])[0]
    far = (values - middle) / (FAR_SD * sd)
    weight = np.where(np.isfinite(values), 1.0 / sd**2 / (1.0 + far**2), 0.0)
    total = weight.sum()
    return (float((weight * np.nan_to_num(values)).sum() / total), weight) if total > 0.0 else None


def _levels(values: Floats, sd: Floats, places: dict[tuple[int, int], list[int]]) -> tuple[Floats, Floats, Floats]:
    """Segment means, weights relative to full precision, and the number of levels of each series."""
    level = np.full(values.shape, np.nan)
    weight = np.zeros(values.shape)
    used = np.zeros(values.shape[:3])
    for (s, t), of_series in places.items():
        for start, stop in segments(of_series, values.shape[-1]):
            for m in range(values.shape[0]):
                part, error = values[m, s, t, start:stop], sd[m, s, t, start:stop]
                if (mean := _mean(part, error)) is not None:
                    level[m, s, t, start:stop] = mean[0]
                    weight[m, s, t, start:stop] = mean[1] * error**2
                    used[m, s, t] += 1
    return level, weight, used


def _between(
    values: Floats, explained: Floats, level: Floats, weight: Floats, used: Floats, prior: noise.Prior
) -> Floats:
    measured = np.isfinite(values) & np.isfinite(level)
    square = np.where(measured, weight * (values - level) ** 2, 0.0).sum(axis=-1)
    total = weight.sum(axis=-1)
    free = np.maximum(total - used, 0.0)
    variance = np.where(free > 0, square / np.maximum(free, 1e-9), 0.0)
    return noise.shrink(variance, noise.RESIDUAL_DF * free, noise.mean_explained(values, explained), prior)


def _of_series(
    scan: Scan, values: Floats, sd: Floats, places: list[int], index: tuple[int, int, int]
) -> list[SeriesStep]:
    """The steps of one series that count: a boundary at which it did not move is no end of its segments."""
    hit, counts = scan.hit[index[1:]], scan.panel.counts[index]
    shows, floor = max(float(scan.shows[index[0]]), LEAST_SHOWS), float(scan.floor[index[0]])
    kind = KINDS[kind_of(scan.panel.metrics[index[0]])]
    left_places = list(places)
    free = max(int(np.isfinite(values).sum()) - len(places) - 1, 0)
    df = max(kind.sisters + noise.RESIDUAL_DF * free, kind.interval_df)
    while True:
        steps = []
        parts = segments(left_places, values.size)
        for place, left, right in zip(left_places, parts[:-1], parts[1:], strict=True):
            before, after = _level(values, sd, left), _level(values, sd, right)
            if before is None or after is None:
                continue
            size, error = after.mean - before.mean, _error(before, after, scan.panel.luck, index)
            luck = bound_of_luck(scan.panel.luck, index, after.share - before.share)
            chance = float(max(hit[max(place - 1, 1) : place + 2].sum(), hit[place]))
            factor = _factor(size, error, kind.slab)
            moved = min(chance, 1.0) * shows * factor / (shows * factor + 1.0 - shows)
            blocks = (int(counts[start:stop].sum()) for start, stop in (left, right))
            levels, releases = (before.mean, after.mean), (before.releases, after.releases)
            steps.append(SeriesStep(index, place, size, error, luck, df, moved, *levels, *releases, *blocks))
        weak = [step for step in steps if _weak(step, floor, newest=step.release == values.size - 1)]
        absent = [place for place in left_places if place not in {step.release for step in steps}]
        if absent:
            left_places = [place for place in left_places if place not in absent]
        elif weak:
            weakest = min(weak, key=lambda step: abs(step.size) / step.error)
            left_places.remove(weakest.release)
        else:
            return steps


def _weak(step: SeriesStep, floor: float, *, newest: bool) -> bool:
    """Whether a step is too unsure, too small, or too near its error to be listed."""
    listed = LISTED_NEWEST if newest else LISTED
    return step.probability < listed or abs(step.size) < max(floor, LEAST_Z * step.error, step.luck)


class _Level(NamedTuple):
    """One segment of one series."""

    mean: float
    error: float
    """Standard error of the mean, as if no two values shared anything."""
    releases: int
    """Measured."""
    share: Floats
    """[releases of the panel] weight of each value in the mean."""


def _level(values: Floats, sd: Floats, part: tuple[int, int]) -> _Level | None:
    """The level of a segment; None where nothing was measured."""
    inside = values[slice(*part)]
    mean = _mean(inside, sd[slice(*part)])
    if mean is None:
        return None
    total = float(mean[1].sum())
    share = np.zeros(values.size)
    share[slice(*part)] = mean[1] / total
    return _Level(mean[0], total**-0.5, int(np.isfinite(inside).sum()), share)


def bound_of_luck(luck: Luck | None, index: tuple[int, int, int], contrast: Floats) -> float:
    """Largest difference of two levels that luck alone explains; `contrast` [releases] weighs the values.

    0 where sessions have no scale of their own.
    """
    variance = 0.0 if luck is None else float(contrast @ luck.covariance[index] @ contrast)
    return t_quantile(float(luck.df[index]), LUCK) * math.sqrt(variance) if luck and variance > 0.0 else 0.0


def _error(before: _Level, after: _Level, luck: Luck | None, index: tuple[int, int, int]) -> float:
    """Standard error of the difference of two levels. Values of one session share its join, values of two do not: where
    there is luck its covariance stands for its diagonal."""
    error = float(np.hypot(after.error, before.error))
    if luck is None:
        return error
    covariance, contrast = luck.covariance[index], after.share - before.share
    shared = contrast @ covariance @ contrast - (contrast**2 * np.diagonal(covariance)).sum()
    return math.sqrt(max(error**2 + float(shared), 0.0)) if shared else error


def _factor(size: float, error: float, slab: float) -> float:
    """Bayes factor of a step of any size against none."""
    wide = error**2 + slab**2
    log = 0.5 * size**2 * (1.0 / error**2 - 1.0 / wide) + 0.5 * np.log(error**2 / wide)
    return float(np.exp(min(log, 60.0)))
