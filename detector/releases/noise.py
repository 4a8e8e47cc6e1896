"""The noise of every series: variance between releases, shrunk across tests and toward what is known of the metric.

Within-release scatter alone is never the error term: two builds of the same code differ by more than two runs of one.
The variance of one release's value is `between + blocks`, the second known from the blocks, the first estimated from
all releases of the series, of its sister tests, and from the prior of the metric, each with the weight of its degrees
of freedom (the empirical-Bayes variance of Smyth 2004, "Linear models and empirical Bayes methods").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detector import robust
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


def priors(panel: Panel) -> Floats:
    """[metrics, tests] prior variance between releases."""
    return np.array([[noise_prior(metric, test) ** 2 for test in panel.tests] for metric in panel.metrics])


def from_differences(values: Floats, known: Floats, gaps: Floats, prior: Floats) -> Floats:
    """First guess of the between-release variance, [metrics, servers, tests], before any level is known.

    `values` and `known`, the part of their variance that blocks and rounding explain, are
    [metrics, servers, tests, releases]; `gaps` is [releases], `prior` [metrics, tests].
    """
    differences = np.diff(values, axis=-1)
    differences = np.where(gaps[1:] >= QUIET_GAP, np.nan, differences)
    df = DF_PER_DIFFERENCE * np.isfinite(differences).sum(axis=-1)
    middle = robust.median(differences)[..., None]
    total = 0.5 * (robust.MAD * robust.median(np.abs(differences - middle))) ** 2
    return shrink(np.nan_to_num(total), df, mean_known(values, known), prior)


def from_residuals(values: Floats, known: Floats, levels: Levels, prior: Floats) -> Floats:
    """The between-release variance around the inferred levels, outliers left out by their probability.

    `values` are those the levels were inferred from. Expected squared residual of the E step: the level's own
    uncertainty is part of it, or noise would be underestimated and then confirm itself.
    """
    measured = np.isfinite(values)
    weight = np.where(measured, 1.0 - levels.outlier, 0.0)
    square = np.where(measured, (values - levels.level) ** 2 + levels.spread**2, 0.0)
    total = (weight * square).sum(axis=-1) / np.maximum(weight.sum(axis=-1), 1.0)
    df = DF_PER_DIFFERENCE * np.maximum(measured.sum(axis=-1) - 1, 0)
    return shrink(total, df, mean_known(values, known), prior)


def mean_known(values: Floats, known: Floats) -> Floats:
    """[metrics, servers, tests] mean over the measured releases of the variance that blocks and rounding explain."""
    measured = np.isfinite(values)
    return np.asarray(np.where(measured, known, 0.0).sum(axis=-1) / np.maximum(measured.sum(axis=-1), 1))


def shrink(total: Floats, df: Floats, known: Floats, prior: Floats) -> Floats:
    """Between-release variance from the total variance of each series, all [metrics, servers, tests].

    `total`, with `df` degrees of freedom, is the observed variance of release values around their levels, `known` the
    part of it that blocks and rounding explain; `prior` is [metrics, tests].
    """
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
