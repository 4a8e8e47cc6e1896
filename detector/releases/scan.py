"""The whole inference over one panel: levels, noise, shared shifts and coupled evidence, in a fixed number of rounds.

A round runs the exact recursion of `levels` over every series, exchanges evidence between tests, servers and metrics
(`coupling`), takes away what a release did to all tests alike (`common`), and re-estimates the noise (`noise`) and how
often releases have outliers. The number of rounds is fixed, so the same panel always gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.arrays import Bools, Floats
from detector.releases import agreement, coupling, noise, pairing
from detector.releases.level_posterior import LevelPosterior, infer
from detector.releases.metric_kinds import KINDS, evidence, kind_of
from detector.releases.series_panel import Panel

#: When more than this share of the series starts off the second release, the first one is not the outlier.
MOST_TESTS = 0.5
#: Rounds of inference; more change nothing that is reported.
ROUNDS = 6
#: Rounds after which the noise is no longer re-estimated.
NOISE_ROUNDS = (1, 4)
#: P(a change) at one point release before anything is known of it: where blocks or servers bear a value out, and
#: where a single value must speak for its release.
CHANGE = 0.02
CHANGE_SINGLE = 0.003
#: The same on the newest release where a single value speaks: it is suspected, and measured again.
CHANGE_NEWEST = 0.06
#: A smaller relative step is none where single values speak: a build's layout alone can do as much.
SMALLEST_SINGLE = 0.018
#: From so many releases on, a line of single values has noise enough of its own to take residuals at their word.
LONG_LINE = 12
#: A group of fewer tests learns its P(a change at r) with all the others.
FEWEST_OF_GROUP = 4
#: ... and P(a change) that it takes there at least.
PROBABILITY_SINGLE = 0.75
#: No gap makes a change more likely than this.
CHANGE_MOST = 0.4
#: P(an outlier that the next release does not share), single values, and that an outlier stays one release more.
TRANSIENT_SINGLE = 8.0  # times the metric's own prior
STICK = 0.2
STICK_SINGLE = 0.6
#: Weight of the prior of the outlier rate, in values; and of the overall rate in that of one release, in tests.
TRANSIENT_WEIGHT = 100.0
TRANSIENT_RELEASE_WEIGHT = 12.0
#: More outliers at one release than this, and than this times as many as usual, are a crowd; the rate then.
SPORADIC = 2.0
CROWDED = 1e-4
#: Bounds of a learned outlier rate.
TRANSIENTS = (0.001, 0.5)
#: The round after which throughput and CPU are paired anew, with the response that the first changes taught.
PAIRING_ROUND = 1


@dataclass(frozen=True)
class Scan:
    """What is believed of a panel; arrays are [metrics, servers, tests, releases] if not said otherwise."""

    panel: Panel
    hit: Floats
    """[servers, tests, releases] P(the release moves this test on this server)."""
    shows: Floats
    """[metrics] P(a change of a test shows in this metric), learned."""
    beliefs: coupling.Beliefs
    values: Floats
    """The panel's values without the passing common shift."""
    transient: Floats
    """P(the value at r is an outlier that its neighbours do not share)."""
    floor: Floats
    """[metrics] smallest log step that counts as a change."""
    least: float
    """P(a change) below which none may be placed: higher where single values speak for their releases."""


def doubtful(panel: Panel) -> Bools:
    """[releases] true where a passing oddity is likelier than a change: a single value.

    How much was released before it is no reason to trust a value: it raises P(a change) in `change_prior`, and nothing
    else depends on how versions are spelt. The newest release gets the benefit of the doubt: there is nothing yet to
    tell the two apart, and saying nothing would be worse than asking for a second run.
    """
    likely_odd = panel.single.copy()
    likely_odd[-1] = False
    return likely_odd


def change_prior(panel: Panel) -> tuple[Floats, Bools]:
    """[releases] P(a change at r) before any evidence, and where it must not be learned.

    The more releases lie in between, the more could have happened. Where the first release has a single value, a
    change right after it looks like an outlier, however many tests show it: there the prior decides.
    """
    base = np.where(doubtful(panel), CHANGE_SINGLE, CHANGE)
    if panel.single[-1]:
        base[-1] = CHANGE_NEWEST
    prior = np.minimum(1.0 - (1.0 - base) ** panel.gaps, CHANGE_MOST)
    fixed = np.zeros(prior.size, dtype=np.bool_)
    fixed[1:2] = panel.single[0]
    return prior, fixed


def scan_panel(panel: Panel) -> Scan:
    """The beliefs about `panel`."""
    names = [kind_of(metric) for metric in panel.metrics]
    kinds = [KINDS[name] for name in names]
    least = [metric.smallest_change_pct / 100.0 for metric in panel.metrics]
    slab = np.array([kind.slab for kind in kinds])
    single = doubtful(panel)
    alone = bool(single.mean() > 0.5)
    floor = np.log1p(np.maximum(least, SMALLEST_SINGLE) if alone else least)
    stick = np.where(single & alone, STICK_SINGLE, STICK)
    rate, fixed = change_prior(panel)
    groups = _groups(panel)
    prior = noise.priors(panel)
    explained = panel.block_variance + panel.rounding
    between = noise.from_differences(panel.values, explained, panel.gaps, prior)
    variance = between + noise.mean_explained(panel.values, explained)
    pair = pairing.pair_of(panel, variance)
    evident = np.where(np.array(evidence(panel.metrics))[:, None, None, None], panel.values, np.nan)
    raw, raw_explained = evident, explained
    if pair is not None:
        raw, raw_explained = pairing.together(pair, evident, explained)
        between = noise.from_differences(raw, raw_explained, panel.gaps, prior)
    outlier = np.array([kind.transient for kind in kinds])[:, None] * np.where(single, TRANSIENT_SINGLE, 1.0)
    transient = np.broadcast_to(outlier[:, None, None, :], panel.shape).copy()
    shows = np.array([kind.shows for kind in kinds])
    if pair is not None:
        shows[pair.cpu] = pairing.APART_SHOWS
    beliefs = coupling.start(panel.shape, rate, shows)
    values = raw
    for turn in range(ROUNDS):
        sd = np.sqrt(between[..., None] + raw_explained + noise.LEAST_SD**2)
        levels = infer(values, sd, beliefs.prior, transient, stick, slab, floor)
        last = turn == ROUNDS - 1
        beliefs = coupling.exchange(levels.bayes_factor, beliefs, None if last else (rate, fixed, groups, shows))
        if last:
            break
        if fixed.any() and _starts_apart(levels, panel) > MOST_TESTS:
            rate, fixed = rate.copy(), np.zeros_like(fixed)
            rate[1] = CHANGE_MOST
        transient = _transients(panel, outlier, levels.outlier, single)
        if turn >= NOISE_ROUNDS[0]:
            shift = noise.common_shift(raw, levels.level, levels.posterior)
            values = raw - shift[:, :, None, :]
            if turn < NOISE_ROUNDS[1]:
                between = noise.from_residuals(
                    values, raw_explained, levels, prior, single=alone and len(panel.releases) >= LONG_LINE
                )
        if pair is not None and turn == PAIRING_ROUND:
            pair = pairing.taught(pair, panel, variance, beliefs.hit)
            raw, raw_explained = pairing.together(pair, evident, explained)
            values = raw
            between = noise.from_differences(raw, raw_explained, panel.gaps, prior)
    shown = beliefs.metrics.copy()
    if pair is not None:
        shown[pair.cpu] = kinds[pair.cpu].shows * min(float(np.median(pair.response)), 1.0)
    hit = beliefs.hit
    if "throughput" in names:
        q = names.index("throughput")
        hit = agreement.agree(hit, values[q], sd[q], levels.outlier[q], float(slab[q]))
    return Scan(
        panel=panel,
        hit=hit,
        shows=shown,
        beliefs=beliefs,
        values=values,
        transient=levels.outlier,
        floor=floor,
        least=PROBABILITY_SINGLE if alone else 0.0,
    )


def _starts_apart(levels: LevelPosterior, panel: Panel) -> float:
    """Share of the series whose first release lies off the second, as a change or as an outlier."""
    measured = (panel.counts[..., 0] > 0) & (panel.counts[..., 1] > 0)
    apart = np.maximum(levels.outlier[..., 0], levels.posterior[..., 1])
    return float(apart[measured].mean()) if measured.any() else 0.0


def _transients(panel: Panel, prior: Floats, seen: Floats, single: Bools) -> Floats:
    """Outlier rates learned per metric and release; `prior` is [metrics, releases], `seen` the probabilities."""
    measured = panel.counts > 0
    by_release = np.where(measured, seen, 0.0).sum(axis=(1, 2))
    values = measured.sum(axis=(1, 2))
    # Where a second look exists, outliers are sporadic: tests that leave together do so because of the product.
    crowd = ~single & (by_release > SPORADIC * (1.0 + prior * values))
    counted = np.where(crowd, 0.0, by_release).sum(axis=1, keepdims=True)
    of_values = np.where(crowd, 0, values).sum(axis=1, keepdims=True)
    typical = (TRANSIENT_WEIGHT * prior + counted) / (TRANSIENT_WEIGHT + of_values)
    together = (TRANSIENT_RELEASE_WEIGHT * typical + by_release) / (TRANSIENT_RELEASE_WEIGHT + values)
    rate = np.where(single, np.clip(together, *TRANSIENTS), np.where(crowd, CROWDED, typical))
    if panel.single[0]:
        rate[:, 0] = np.maximum(rate[:, 0], prior[:, 0])
    return np.broadcast_to(rate[:, None, None, :], panel.shape).copy()


def _groups(panel: Panel) -> list[list[int]]:
    """The tests of every named group that is large enough to speak for itself."""
    named = dict.fromkeys(filter(None, panel.groups))
    members = ([index for index, group in enumerate(panel.groups) if group == name] for name in named)
    return [tests for tests in members if len(tests) >= FEWEST_OF_GROUP]
