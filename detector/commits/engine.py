"""One commit series to its events: noise, probability of a jump at every value, rules; see docs/detector.md.

1. Two rounds of *segment, learn the noise*: the first assumes heavy tails, the second knows the residuals.
2. If anything moved, the other explanations get their chance: noise that hangs together (AR(1)), a level that creeps,
   a smooth curve. The one with the higher evidence decides which jumps are left.
3. Rules take out what is too small, comes back, or has not lasted long enough yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from detector.commits import events, noise
from detector.commits.levels import BINS_PER_SIGMA, Floats, Ints, Model, cauchy_like, posterior
from detector.commits.segments import Peak, bounds_of, fitted, peaks

#: A jump of the level per value, before any evidence.
JUMP = 0.005
#: An excursion per value, the share of excursions that go on, and the values these guesses count for.
ENTER, ENTER_WEIGHT = 0.01, 50.0
STAY, STAY_WEIGHT = 0.4, 4.0
#: A value in an excursion is anywhere within this many sigma.
EXCURSION_SIGMA = 25.0
#: Spacing of the grid of levels, and the smallest jump on it, in bins.
LEVEL_BINS = 2
MIN_JUMP_BINS = 6
#: The grid is made of the running medians of this many values, and this many levels on either side of each.
MEDIAN_VALUES = 5
GRID_MARGIN = 2
#: At most this many levels; a wider series gets a coarser grid.
MOST_LEVELS = 400
#: Noise below this share of the smallest change of interest does not matter.
NOISE_FLOOR = 0.1
#: Rounds of segmenting and learning the noise before the last segmentation.
ROUNDS = 2
#: Autocorrelations that are tried, and what the evidence of one has to be better by (nats).
AUTOCORRELATIONS = (0.3, 0.5, 0.7)
AUTOCORRELATION_PRICE = 1.0


@dataclass
class Segmentation:
    """What the engine knows when it is done; indices count the values it was given."""

    changes: list[Peak] = field(default_factory=list)
    provisional: list[Peak] = field(default_factory=list)
    transients: list[tuple[int, int]] = field(default_factory=list)
    sigma: float = 0.0
    """Scale of the noise, in the unit of the values."""
    phi: float = 0.0


def segment(values: Floats, smallest: float, *, least: float, confirm: int) -> Segmentation:
    """`values` (finite, log or linear) into levels; `smallest` is the smallest change of interest, in their unit.

    `least` is the probability a change needs, `confirm` the values its level needs before it is confirmed.
    """
    result = Segmentation()
    if len(values) < 3:
        return result
    sigma = max(noise.difference_scale(values), NOISE_FLOOR * smallest)
    scaled = (values - np.median(values)) / sigma
    jumps, phi, residual_scale = _jumps(scaled, least)
    result.phi = phi
    result.sigma = sigma * residual_scale
    _apply_rules(result, values, peaks(jumps, least), smallest, confirm)
    return result


def _jumps(scaled: Floats, least: float) -> tuple[Floats, float, float]:
    bins = np.rint(np.clip(scaled, -1e6, 1e6) * BINS_PER_SIGMA).astype(np.int64)
    grid = _grid(bins)
    density = cauchy_like(1.0)
    enter, stay = ENTER, STAY
    far = 0.5 / EXCURSION_SIGMA
    for turn in range(ROUNDS + 1):
        model: Model = (JUMP, enter, stay, far, 0.0, 0.0)
        evidence, jumps, excursions = posterior(bins, grid, density, density, MIN_JUMP_BINS, model)
        found = peaks(jumps, least)
        if turn == ROUNDS:
            break
        residuals = scaled - fitted(scaled, bounds_of([peak.at for peak in found], len(scaled)))
        outside = excursions > 0.5
        density = noise.learn_density(residuals[~outside])
        entries = int(np.count_nonzero(outside[1:] & ~outside[:-1]))
        spent = int(np.count_nonzero(outside[1:]))
        enter = (ENTER * ENTER_WEIGHT + entries) / (ENTER_WEIGHT + len(scaled))
        stay = (STAY * STAY_WEIGHT + spent - entries) / (STAY_WEIGHT + spent)
    scale = noise.MAD_TO_SIGMA * float(np.median(np.abs(residuals)))
    best, phi = evidence, 0.0
    if found:
        for candidate in AUTOCORRELATIONS:
            following = noise.learn_density(residuals[1:] - candidate * residuals[:-1])
            model = (JUMP, enter, stay, far, 0.0, candidate)
            rival, rival_jumps, _ = posterior(bins, grid, density, following, MIN_JUMP_BINS, model)
            if rival - AUTOCORRELATION_PRICE > best:
                best, phi, jumps = rival - AUTOCORRELATION_PRICE, candidate, rival_jumps
    return jumps, phi, scale


def _grid(bins: Ints) -> Ints:
    """The levels worth trying: near a running median, and near what the last three values say."""
    half = MEDIAN_VALUES // 2
    padded = np.pad(bins, half, mode="edge")
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_VALUES), axis=1)
    centers = np.concatenate([medians, bins[-2:], [np.median(bins[-3:])]])
    step = LEVEL_BINS
    while True:
        occupied = np.unique(np.rint(centers / step).astype(np.int64))
        grid = np.unique(occupied[:, None] + np.arange(-GRID_MARGIN, GRID_MARGIN + 1)[None, :])
        if len(grid) <= MOST_LEVELS:
            return np.asarray(grid * step, dtype=np.int64)
        step *= 2


def _apply_rules(result: Segmentation, values: Floats, found: list[Peak], smallest: float, confirm: int) -> None:
    """Sorts the jumps found into changes, provisional changes, transients, and nothing."""
    kept = list(found)
    while kept:
        places = [peak.at for peak in kept]
        weak = events.too_small(values, places, smallest)
        if weak is not None:
            del kept[weak]
            continue
        start = events.transient(values, places)
        if start is not None:
            result.transients.append((places[start], places[start + 1]))
            del kept[start : start + 2]
            continue
        if events.first_too_short(places, len(values)):
            del kept[0]
            continue
        length = len(values) - places[-1]
        if length < max(confirm, events.end_needs(values, places)):
            result.provisional.append(kept.pop())
            continue
        break
    result.changes = kept
