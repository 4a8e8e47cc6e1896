"""The values of one part of a series, which have one noise, to the probability of a jump at every value.

1. Two rounds of *segment, learn the noise*: the first assumes heavy tails, the second knows the residuals.
2. If anything moved, the other explanations get their chance: noise that hangs together, a level that drifts. What
   has the higher evidence decides which jumps are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from detector.arrays import MAD, Floats, Ints
from detector.commits import drift, noise
from detector.commits.level_states import BINS_PER_SIGMA, Model, backward, cauchy_like, forward, level_grid
from detector.commits.segments import MEDIAN_VARIANCE, bounds_of, fitted, peaks

#: A jump of the level per value, before any evidence.
JUMP = 0.003
#: An excursion per value, the share of excursions that go on, and the values these guesses count for.
ENTER, ENTER_WEIGHT = 0.01, 50.0
STAY, STAY_WEIGHT = 0.4, 4.0
#: Density of a value in an excursion, per sigma: anywhere within 25 sigma.
FAR = 0.02
#: The smallest jump, in bins.
MIN_JUMP_BINS = 4
#: No value is further from the median than this, in sigma.
FURTHEST_SIGMA = 1e6
#: Rounds of segmenting and learning the noise before the last segmentation.
ROUNDS = 2
#: Jumps of this probability are taken out before the noise is learnt from what is left, ...
LEARN = 0.3
#: ... and so are the last values, which may be the beginning of a change.
UNSETTLED = 6
#: Every so many levels of the grid are enough for it.
COARSE = 2
#: Autocorrelations that are tried, and what the evidence of one has to be better by (nats).
AUTOCORRELATIONS = (0.3, 0.5, 0.7)
AUTOCORRELATION_PRICE = 1.0
#: They are not tried when neighbouring residuals are less alike than this.
LEAST_AUTOCORRELATION = 0.05
#: Stickiness below this does not matter.
STICKY = 1.08
#: The fewest values a drift needs.
DRIFT_VALUES = 30
#: Outliers are clipped at this many residual scales before a curve is drawn through the values.
CLIP = 2.5
#: A jump this likely calls for another explanation.
NOTEWORTHY = 0.08


class Reading(NamedTuple):
    """What was read in a part. The arrays have a number per value of it."""

    jumps: Floats
    """Probability of a jump of the level right before each value; 0 where the level drifts."""
    curve: Floats | None
    """The smooth curve when the level drifts, in the unit of the values."""
    sigma: float
    """Scale of the noise, in the unit of the values."""
    phi: float
    """Autocorrelation of the noise."""

    @property
    def median_variance(self) -> float:
        """Variance of the median of values at one level, times their number."""
        return MEDIAN_VARIANCE * self.sigma**2 * (1.0 + self.phi) / (1.0 - self.phi)


class _Noise(NamedTuple):
    """What a first segmentation taught about the noise, in sigma."""

    density: Floats
    enter: float
    stay: float
    fit: Floats
    residuals: Floats
    scale: float


class _Verdict(NamedTuple):
    """The explanation that won: jumps with their probabilities, or a drifting curve."""

    jumps: Floats
    curve: Floats | None
    phi: float


def read(values: Floats, least_sigma: float) -> Reading:
    """The reading of `values` (finite, log or linear); noise below `least_sigma`, in their unit, does not matter."""
    sigma = max(noise.noise_scale(values), least_sigma)
    center = float(np.median(values))
    scaled = np.clip((values - center) / sigma, -FURTHEST_SIGMA, FURTHEST_SIGMA)
    bins = np.rint(scaled * BINS_PER_SIGMA).astype(np.int64)
    grid = level_grid(bins)
    learnt = _learn(scaled, bins, grid)
    verdict = _explain(scaled, bins, grid, learnt)
    if verdict.curve is None:
        return Reading(verdict.jumps, None, sigma * learnt.scale, verdict.phi)
    return Reading(np.zeros(len(values)), center + sigma * verdict.curve, sigma * learnt.scale, verdict.phi)


def _learn(scaled: Floats, bins: Ints, grid: Ints) -> _Noise:
    """Two rounds of segmenting, on a coarse grid, and learning the noise from the residuals."""
    n = len(scaled)
    coarse = grid[::COARSE]
    density = cauchy_like(1.0)
    enter, stay = ENTER, STAY
    for _ in range(ROUNDS):
        jumps, excursions, _ = _posterior(bins, coarse, density, (JUMP, enter, stay, FAR, 0.0))
        fit = fitted(scaled, bounds_of([peak.at for peak in peaks(jumps, LEARN)], n))
        residuals = scaled - fit
        outside = excursions > 0.5
        settled = n if n < 3 * UNSETTLED else n - UNSETTLED
        density = noise.learn_density(residuals[:settled][~outside[:settled]])
        entries = int(np.count_nonzero(outside[1:] & ~outside[:-1]))
        spent = int(np.count_nonzero(outside[1:]))
        enter = (ENTER * ENTER_WEIGHT + entries) / (ENTER_WEIGHT + n)
        stay = (STAY * STAY_WEIGHT + spent - entries) / (STAY_WEIGHT + spent)
    scale = max(MAD * float(np.median(np.abs(residuals))), noise.SCALE_BOUNDS[0])
    return _Noise(density, enter, stay, fit, residuals, scale)


def _explain(scaled: Floats, bins: Ints, grid: Ints, learnt: _Noise) -> _Verdict:
    """Jumps in independent noise, unless noise that hangs together or a drift explains the values better."""
    density, enter, stay, fit, residuals, scale = learnt
    jumps, _, evidence = _posterior(bins, grid, density, (JUMP, enter, stay, FAR, 0.0))
    if not peaks(jumps, NOTEWORTHY):
        return _Verdict(jumps, None, 0.0)

    clipped = np.clip(residuals, -CLIP * scale, CLIP * scale)
    rival = None
    if float(clipped[1:] @ clipped[:-1]) > LEAST_AUTOCORRELATION * float(clipped @ clipped):
        rival = _autocorrelated(bins, grid, density, residuals, (enter, stay))
        if rival.evidence - AUTOCORRELATION_PRICE <= evidence:
            rival = None
    if len(scaled) >= DRIFT_VALUES:
        drift_evidence, curve = drift.drift_evidence(scaled, fit + clipped)
        if drift_evidence > (evidence if rival is None else rival.evidence - AUTOCORRELATION_PRICE):
            return _Verdict(jumps, curve, 0.0 if rival is None else rival.phi)
    if rival is not None:
        # The first residuals come from a segmentation that took what hangs together for steps: learn once more.
        bounds = bounds_of([peak.at for peak in peaks(rival.jumps(bins, grid), LEARN)], len(scaled))
        residuals = scaled - fitted(scaled, bounds)
        rival = _autocorrelated(bins, grid, noise.learn_density(residuals), residuals, (enter, stay))
        return _Verdict(rival.jumps(bins, grid), None, rival.phi)
    sticky = noise.stickiness(residuals, density)
    if sticky > STICKY:
        tempered: Model = (JUMP, enter, stay, FAR ** (1.0 / sticky), 0.0)
        jumps, _, _ = _posterior(bins, grid, density ** (1.0 / sticky), tempered)
    return _Verdict(jumps, None, 0.0)


class _Autocorrelated(NamedTuple):
    """The likeliest autocorrelation of the noise, and the forward pass with it."""

    evidence: float
    phi: float
    densities: tuple[Floats, Floats]
    model: Model
    past: tuple[Floats, Floats, Floats]

    def jumps(self, bins: Ints, grid: Ints) -> Floats:
        return backward(bins, grid, *self.densities, MIN_JUMP_BINS, self.model, *self.past)[0]


def _autocorrelated(
    bins: Ints, grid: Ints, density: Floats, residuals: Floats, excursions: tuple[float, float]
) -> _Autocorrelated:
    """The best of `AUTOCORRELATIONS`; `excursions` are the probabilities of entering one and of staying in it."""
    tried = []
    for phi in AUTOCORRELATIONS:
        innovations = noise.learn_density(residuals[1:] - phi * residuals[:-1])
        model: Model = (JUMP, *excursions, FAR, phi)
        evidence, *past = forward(bins, grid, density, innovations, MIN_JUMP_BINS, model)
        tried.append(_Autocorrelated(evidence, phi, (density, innovations), model, (past[0], past[1], past[2])))
    return max(tried, key=lambda candidate: candidate.evidence)


def _posterior(bins: Ints, grid: Ints, density: Floats, model: Model) -> tuple[Floats, Floats, float]:
    """Probabilities of a jump and of an excursion per value, and the log evidence, in independent noise."""
    evidence, *past = forward(bins, grid, density, density, MIN_JUMP_BINS, model)
    jumps, excursions = backward(bins, grid, density, density, MIN_JUMP_BINS, model, *past)
    return jumps, excursions, evidence
