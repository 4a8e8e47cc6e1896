"""The noise of every series: variance between releases, shrunk across tests and toward what is known of the metric.

Within-release scatter alone is never the error term: two builds of the same code differ by more than two runs of one.
The variance of one release's value is `between + blocks`, the second known from the blocks, the first estimated from
all releases of the series, of its sister tests, and from the prior of the metric, each with the weight of its degrees
of freedom (the empirical-Bayes variance of Smyth 2004, "Linear models and empirical Bayes methods").
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from detector.releases.kinds import noise_prior
from detector.releases.levels import Levels
from detector.releases.panel import Panel

Floats = NDArray[np.float64]

#: Degrees of freedom that the sister tests' common variance has in a series' own.
SISTERS_DF = 5.0
#: Degrees of freedom of the metric's prior in the sister tests' common variance.
PRIOR_DF = 8.0
#: A boundary across so many releases is no place to learn noise from.
QUIET_GAP = 4.0
#: Efficiency of the median absolute deviation of differences: degrees of freedom per difference.
DF_PER_DIFFERENCE = 0.4
#: A series' between-release variance is never taken below this share of its sisters'.
LEAST_SHARE = 0.25
#: The sisters' typical variance is never taken below this share of the prior: identical values are no proof of none.
LEAST_RATIO = 0.02
#: No value is known better than this relative error, not even in a constant series.
LEAST_SD = 1e-4
#: One standard deviation from a median absolute deviation, at the normal.
MAD = 1.4826


def priors(panel: Panel) -> Floats:
    """[metrics, tests] prior variance between releases."""
    return np.array([[noise_prior(metric, test) ** 2 for test in panel.tests] for metric in panel.metrics])


def from_differences(panel: Panel, prior: Floats) -> Floats:
    """First guess of the between-release variance, [metrics, servers, tests], before any level is known."""
    differences = np.diff(panel.values, axis=-1)
    differences = np.where(panel.gaps[1:] >= QUIET_GAP, np.nan, differences)
    df = DF_PER_DIFFERENCE * np.isfinite(differences).sum(axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an all-NaN slice is an absent series
        middle = np.nanmedian(differences, axis=-1, keepdims=True)
        total = 0.5 * (MAD * np.nanmedian(np.abs(differences - middle), axis=-1)) ** 2
    return shrink(panel, np.nan_to_num(total), df, prior)


def shrink(panel: Panel, total: Floats, df: Floats, prior: Floats) -> Floats:
    """Between-release variance from the total variance of a series, all [metrics, servers, tests].

    `total` with `df` degrees of freedom is the observed variance of release values around their levels, `prior` is
    [metrics, tests].
    """
    known = mean_block_variance(panel)
    own = total - known
    between = np.empty_like(total)
    for m, s in np.ndindex(total.shape[:2]):
        seen = df[m, s] > 0
        typical = float(np.median(own[m, s, seen] / prior[m, seen])) if seen.any() else 1.0
        weight = df[m, s].sum()
        common = prior[m] * max(typical, LEAST_RATIO) ** (weight / (PRIOR_DF + weight))
        shrunk = (SISTERS_DF * (common + known[m, s]) + df[m, s] * total[m, s]) / (SISTERS_DF + df[m, s])
        between[m, s] = np.maximum(shrunk - known[m, s], LEAST_SHARE * common)
    return between


def mean_block_variance(panel: Panel) -> Floats:
    known = np.where(panel.counts > 0, panel.block_variance, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nan_to_num(np.nanmean(known, axis=-1)))


def from_residuals(panel: Panel, values: Floats, levels: Levels, prior: Floats) -> Floats:
    """The between-release variance around the inferred levels, outliers left out by their probability.

    `values` are those the levels were inferred from. Expected squared residual of the E step: the level's own
    uncertainty is part of it, or noise would be underestimated and then confirm itself.
    """
    measured = np.isfinite(values)
    weight = np.where(measured, 1.0 - levels.outlier, 0.0)
    square = np.where(measured, (values - levels.level) ** 2 + levels.spread**2, 0.0)
    total = (weight * square).sum(axis=-1) / np.maximum(weight.sum(axis=-1), 1.0)
    df = DF_PER_DIFFERENCE * np.maximum(measured.sum(axis=-1) - 1, 0)
    return shrink(panel, total, df, prior)
