"""The noise of every series: variance between releases, shrunk across tests and toward what is known of the metric.

Within-release scatter alone is never the error term: two builds of the same code differ by more than two runs of one.
The variance of one release's value is `between + blocks`, the second known from the blocks, the first estimated from
all releases of the series, of its sister tests, and from the prior of the metric, each with the weight of its degrees
of freedom (the empirical-Bayes variance of Smyth 2004, "Linear models and empirical Bayes methods").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from detector.arrays import MAD, Floats, median
from detector.releases.level_posterior import LevelPosterior
from detector.releases.metric_kinds import KINDS, kind_of, noise_prior
from detector.releases.series_panel import Panel

#: Degrees of freedom of the metric's prior in the sister tests' common variance.
PRIOR_DF = 8.0
#: The same where the history is noisier than the prior: a virtual machine can be, and the prior must not deny it.
PRIOR_DF_NOISY = 2.0
#: A boundary across so many releases is no place to learn noise from.
QUIET_GAP = 4.0
#: Efficiency of the median absolute deviation of differences: degrees of freedom per difference.
DF_PER_DIFFERENCE = 0.4
#: Degrees of freedom per residual around inferred levels, which were fitted to the same values.
RESIDUAL_DF = 0.6
#: Residuals, and the uncertainty of levels, count for no more than so many robust standard deviations.
FAR_SD, UNSURE_SD = 4.0, 1.0
FAR_SINGLE_SD, UNSURE_SINGLE_SD = 1e6, 1e6
#: ... and where single values speak, the variance for no more than so many times that of neighbours' differences.
MOST_OF_NEIGHBOURS = 2.5
#: A series' between-release variance is never taken below this share of its sisters'.
LEAST_SHARE = 0.05  # times the sisters' degrees of freedom
#: The sisters' typical variance is never taken below this share of the prior: identical values are no proof of none.
LEAST_RATIO = 0.02
#: No value is known better than this relative error, not even in a constant series.
LEAST_SD = 1e-4
#: A test with more than this probability of a change at a release, or at the next one, says nothing about the shift.
MOVING = 0.2
#: A larger shift (log units) is not weather: it stays in the series and is judged there.
MOST_SHIFT = 0.025
#: Fewer quiet tests than this cannot tell a shift of the machine from their own noise.
FEWEST_TESTS = 6


class Prior(NamedTuple):
    """What is known of the noise before the history is read."""

    variance: Floats
    """[metrics, tests] variance between releases."""
    sisters: Floats
    """[metrics] degrees of freedom that the sister tests' noise has in a test's own."""


def priors(panel: Panel) -> Prior:
    """The prior of every series of a panel."""
    variance = np.array([[noise_prior(metric, test) ** 2 for test in panel.tests] for metric in panel.metrics])
    return Prior(variance, np.array([KINDS[kind_of(metric)].sisters for metric in panel.metrics]))


def from_differences(values: Floats, explained: Floats, gaps: Floats, prior: Prior) -> Floats:
    """First guess of the between-release variance, [metrics, servers, tests], before any level is known.

    `values` and `explained`, the part of their variance that blocks and rounding explain, are
    [metrics, servers, tests, releases]; `gaps` is [releases].
    """
    differences = np.diff(values, axis=-1)
    differences = np.where(gaps[1:] >= QUIET_GAP, np.nan, differences)
    df = DF_PER_DIFFERENCE * np.isfinite(differences).sum(axis=-1)
    middle = median(differences)[..., None]
    total = 0.5 * (MAD * median(np.abs(differences - middle))) ** 2
    return shrink(np.nan_to_num(total), df, mean_explained(values, explained), prior)


def from_residuals(values: Floats, explained: Floats, levels: LevelPosterior, prior: Prior, *, single: bool) -> Floats:
    """The between-release variance around the inferred levels, outliers left out by their probability.

    `values` are those the levels were inferred from. Expected squared residual of the E step: the level's own
    uncertainty is part of it, or noise would be underestimated and then confirm itself. Both are bounded, or a change
    not yet seen would pass for noise and never be seen. Where `single` values speak for their releases the bound is
    what neighbours differ by, which neither a drift nor a step adds to.
    """
    measured = np.isfinite(values)
    weight = np.where(measured, 1.0 - levels.outlier, 0.0)
    residual = values - levels.level
    typical = MAD * median(np.abs(residual))[..., None]
    far, unsure = (FAR_SINGLE_SD, UNSURE_SINGLE_SD) if single else (FAR_SD, UNSURE_SD)
    residual = np.clip(residual, -far * typical, far * typical)
    spread = np.minimum(levels.spread, unsure * typical)
    square = np.where(measured, residual**2 + spread**2, 0.0)
    total = (weight * square).sum(axis=-1) / np.maximum(weight.sum(axis=-1), 1.0)
    if single:
        total = np.minimum(total, MOST_OF_NEIGHBOURS * _of_neighbours(values, weight, levels.posterior))
    df = DF_PER_DIFFERENCE * np.maximum(measured.sum(axis=-1) - 1, 0)
    return shrink(total, df, mean_explained(values, explained), prior)


def _of_neighbours(values: Floats, ordinary: Floats, moved: Floats) -> Floats:
    """[metrics, servers, tests] half the mean squared difference of neighbouring releases, far ones pulled in; infinite
    where there are none. `ordinary` is P(no outlier), `moved` P(a change), both of the shape of `values`."""
    differences = np.diff(values, axis=-1) / np.sqrt(2.0)
    weight = ordinary[..., 1:] * ordinary[..., :-1] * (1.0 - moved[..., 1:])
    weight = np.where(np.isfinite(differences), weight, 0.0)
    far = FAR_SD * MAD * median(np.abs(differences))[..., None]
    square = np.nan_to_num(np.clip(differences, -far, far)) ** 2
    total = weight.sum(axis=-1)
    return np.where(total > 0.0, (weight * square).sum(axis=-1) / np.maximum(total, 1e-9), np.inf)


def mean_explained(values: Floats, explained: Floats) -> Floats:
    """[metrics, servers, tests] mean over the measured releases of the variance that blocks and rounding explain."""
    measured = np.isfinite(values)
    return np.asarray(np.where(measured, explained, 0.0).sum(axis=-1) / np.maximum(measured.sum(axis=-1), 1))


def shrink(total: Floats, df: Floats, explained: Floats, prior: Prior) -> Floats:
    """Between-release variance from the total variance of each series, all [metrics, servers, tests].

    `total`, with `df` degrees of freedom, is the observed variance of release values around their levels, `explained`
    the part of it that blocks and rounding explain.
    """
    own = total - explained
    between = np.empty_like(total)
    for m, s in np.ndindex(total.shape[:2]):
        seen = df[m, s] > 0
        typical = float(np.median(own[m, s, seen] / prior.variance[m, seen])) if seen.any() else 1.0
        weight = df[m, s].sum()
        held = PRIOR_DF if typical < 1.0 else PRIOR_DF_NOISY
        common = prior.variance[m] * max(typical, LEAST_RATIO) ** (weight / (held + weight))
        sisters = prior.sisters[m]
        shrunk = (sisters * (common + explained[m, s]) + df[m, s] * total[m, s]) / (sisters + df[m, s])
        between[m, s] = np.maximum(shrunk - explained[m, s], LEAST_SHARE * sisters * common)
    return between


def common_shift(values: Floats, level: Floats, moved: Floats) -> Floats:
    """[metrics, servers, releases] the shift of each release common to its quiet tests, in log units.

    It is what all tests of one server and metric share at one release: the machine, the build, the weather. Only what
    passes is weather; a shift that stays is a change of every test and is left for them to show.
    All arrays are [metrics, servers, tests, releases]: values, posterior levels, posterior of a change.
    """
    following = np.zeros_like(moved)
    following[..., :-1] = moved[..., 1:]
    residual = np.where(np.maximum(moved, following) > MOVING, np.nan, values - level)
    middle = median(np.moveaxis(residual, 2, -1))
    weather = (np.isfinite(residual).sum(axis=2) >= FEWEST_TESTS) & (np.abs(middle) <= MOST_SHIFT)
    return np.where(weather, middle, 0.0)
