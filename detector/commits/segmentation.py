"""One commit series to its events: noise, probability of a jump at every value, rules; see docs/detector.md.

1. Two rounds of *segment, learn the noise*: the first assumes heavy tails, the second knows the residuals.
2. If anything moved, the other explanations get their chance: noise that hangs together, a level that drifts. What
   has the higher evidence decides which jumps are left.
3. Rules take out what is too small, comes back, or has not lasted long enough yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from detector.arrays import MAD, Floats, Ints
from detector.commits import drift, events, noise
from detector.commits.level_states import BINS_PER_SIGMA, Model, backward, cauchy_like, forward, level_grid
from detector.commits.segments import Peak, bounds_of, fitted, peaks, refined

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
#: Noise below this share of the smallest change of interest does not matter.
NOISE_FLOOR = 0.1
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
#: Probability of a change in the last values from which it is provisional, and that of a change one value old.
PROVISIONAL = 0.08
PROVISIONAL_SINGLE = 0.12
#: A changepoint is moved by at most so many values to where the values change sides.
REFINE_VALUES = 3


@dataclass(frozen=True, slots=True)
class CommitSettings:
    """What is worth a changepoint. The defaults are those that `docs/detector.md` reports figures for."""

    smallest_change_pct: float = 1.0
    probability: float = 0.85
    """A change has to be as likely as this, ..."""
    fresh_probability: float = 0.5
    """... but only this likely while it is eight values old or younger: the next ones will tell, and it may be news."""
    confirm_values: int = 2
    """A level needs this many values before its change is confirmed; until then it is provisional."""

    def __post_init__(self) -> None:
        if not 0.0 < self.smallest_change_pct < 100.0:
            raise ValueError(f"smallest_change_pct must be between 0 and 100, got {self.smallest_change_pct}")
        for name in ("probability", "fresh_probability"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if self.confirm_values < 1:
            raise ValueError(f"confirm_values must be at least 1, got {self.confirm_values}")


@dataclass
class Segmentation:
    """What the engine knows when it is done; indices count the values it was given."""

    changes: list[Peak] = field(default_factory=list)
    provisional: list[Peak] = field(default_factory=list)
    transients: list[tuple[int, int]] = field(default_factory=list)
    drift: Floats | None = None
    """The smooth curve when the level drifts, in the unit of the values."""
    sigma: float = 0.0
    """Scale of the noise, in the unit of the values."""
    phi: float = 0.0
    """Autocorrelation of the noise."""


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


def segment(values: Floats, smallest: float, settings: CommitSettings) -> Segmentation:
    """`values` (finite, log or linear) into levels; `smallest` is the least size of a change in their unit."""
    result = Segmentation()
    if len(values) < 3:
        return result
    sigma = max(noise.difference_scale(values), NOISE_FLOOR * smallest)
    center = float(np.median(values))
    scaled = np.clip((values - center) / sigma, -FURTHEST_SIGMA, FURTHEST_SIGMA)
    bins = np.rint(scaled * BINS_PER_SIGMA).astype(np.int64)
    grid = level_grid(bins)
    learnt = _learn(scaled, bins, grid)
    verdict = _explain(scaled, bins, grid, learnt)
    result.sigma = sigma * learnt.scale
    result.phi = verdict.phi
    if verdict.curve is not None:
        result.drift = center + sigma * verdict.curve
        return result
    _apply_rules(result, values, verdict.jumps, smallest, settings)
    return result


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
    if not peaks(jumps, PROVISIONAL):
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


def _likely(jumps: Floats, settings: CommitSettings) -> list[Peak]:
    """The jumps that are likely enough for their age."""
    old, fresh = settings.probability, settings.fresh_probability
    first_fresh = len(jumps) - events.END_VALUES
    return [p for p in peaks(jumps, min(old, fresh)) if p.probability >= (fresh if p.at >= first_fresh else old)]


def _apply_rules(
    result: Segmentation, values: Floats, jumps: Floats, smallest: float, settings: CommitSettings
) -> None:
    """Sorts the jumps into changes, provisional changes, transients, and nothing."""
    n = len(values)
    changes = _likely(jumps, settings)
    while changes:
        places = [peak.at for peak in changes]
        weak = events.too_small(values, places, smallest)
        if weak is not None:
            del changes[weak]
            continue
        passing = events.transient(values, places, result.sigma)
        if passing is not None:
            start = passing.position
            result.transients.append((places[start], places[start + 1]))
            changes[start : start + 2] = [changes[start + passing.which]] if passing.moved else []
            continue
        if places[0] < min(events.FIRST_VALUES, events.FIRST_SHARE * n):  # too few values to make a level
            del changes[0]
            continue
        if n - places[-1] < max(settings.confirm_values, events.end_needs(values, places, result.sigma)):
            del changes[-1]
            continue
        break
    bounds = bounds_of([peak.at for peak in changes], n)
    moved = refined(values, bounds, REFINE_VALUES).tolist()
    result.changes = [Peak(at, peak.probability) for at, peak in zip(moved, changes, strict=True)]
    result.provisional = _provisional(result, values, jumps, smallest)


def _provisional(result: Segmentation, values: Floats, jumps: Floats, smallest: float) -> list[Peak]:
    """What may be the beginning of a change: likely enough to measure again, not to tell anyone.

    A single value is one only when the series has never shown an excursion of its size.
    """
    n = len(values)
    places = [peak.at for peak in result.changes]
    last = places[-1] if places else 0
    for peak in reversed(peaks(jumps, PROVISIONAL)):
        length = n - peak.at
        if length > events.END_VALUES or peak.at <= last + REFINE_VALUES:
            break
        enough = PROVISIONAL_SINGLE if length == 1 else PROVISIONAL
        height = float(np.median(values[peak.at :]) - np.median(values[last : peak.at]))
        if peak.probability < enough or abs(height) < smallest:
            continue
        if length > 1 or events.end_needs(values, [*places, peak.at], result.sigma) == 1:
            return [peak]
    return []
