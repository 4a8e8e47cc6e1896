"""Exact inference of one series' levels: where it changes, how surely, and which releases are outliers.

The model of a series over releases 0..R-1, on log values:

    level[0] ~ slab;  at every release r > 0 the level is drawn anew from the slab with probability `change[r]`,
    else it stays;  value[r] = level[r] + noise, normal with sd `sd[r]`, or with probability `outlier[r]` heavy-tailed.

The slab is a Cauchy distribution around the series' median: its tail is heavier than that of an outlier, or a step
would be the more an outlier the larger it is. Levels live on a lattice of half a standard deviation that covers
only the neighbourhood of the values, so that the forward-backward recursion over all 2^(R-1) segmentations costs
releases x cells and needs no logarithms. A missing value (NaN) says nothing.

The same posterior over segmentations as Fearnhead (2006), "Exact and efficient Bayesian inference for multiple
changepoint problems", written as a hidden Markov model because the noise is not normal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats
from detector.compilation import compiled

#: Lattice step in standard deviations of the most precise value of the series.
STEP_SD = 0.5
#: How far around a value the lattice reaches, in standard deviations of that value.
REACH_SD = 4.0
#: No series needs more cells; a wider one gets a coarser lattice.
MOST_CELLS = 1200
#: Width of the heavy tail, in standard deviations: Student t with 2 degrees of freedom.
TAIL_SD = 3.0
#: The table of densities: entries per standard deviation, and where it ends (8 standard deviations).
TABLE_PER_SD = 128.0
TABLE_CELLS = 1024


class LevelPosterior(NamedTuple):
    """Posterior quantities of every series; arrays are [metrics, servers, tests, releases]."""

    bayes_factor: Floats
    """Evidence of this series alone for a change at r: P(values | change at r) / P(values | none at r)."""
    posterior: Floats
    """P(the level changes at r | values)."""
    level: Floats
    """Posterior mean of the level."""
    spread: Floats
    """Posterior standard deviation of the level."""
    outlier: Floats
    """P(the value at r is from the heavy tail | values)."""


@compiled
def _lattice(values: Floats, sd: Floats, cells: Floats) -> tuple[int, float]:
    """Fill `cells` with the lattice of one series, ascending; returns their number and the lattice step."""
    low = np.inf
    high = -np.inf
    finest = np.inf
    widest = 0.0
    for r in range(values.size):
        if not np.isnan(values[r]):
            low = min(low, values[r])
            high = max(high, values[r])
            finest = min(finest, sd[r])
            widest = max(widest, sd[r])
    if high < low:
        return 0, 0.0
    step = STEP_SD * finest
    bottom = low - REACH_SD * widest
    span = high - low + 2 * REACH_SD * widest
    if span / step > 60.0 * MOST_CELLS:
        step = span / (60.0 * MOST_CELLS)
    while True:
        wanted = np.zeros(int(span / step) + 3, dtype=np.bool_)
        count = 0
        for r in range(values.size):
            if np.isnan(values[r]):
                continue
            first = max(0, int((values[r] - REACH_SD * sd[r] - bottom) / step))
            last = min(wanted.size - 1, int((values[r] + REACH_SD * sd[r] - bottom) / step) + 1)
            for k in range(first, last + 1):
                if not wanted[k]:
                    wanted[k] = True
                    count += 1
        if count <= cells.size:
            break
        step *= 1.6
    n = 0
    for k in range(wanted.size):
        if wanted[k]:
            cells[n] = bottom + k * step
            n += 1
    return n, step


@compiled
def _median(values: Floats) -> float:
    measured = values[~np.isnan(values)]
    return float(np.median(measured))


@compiled
def _slab(cells: Floats, n: int, step: float, centre: float, scale: float, out: Floats) -> None:
    """Probability of each lattice cell for a new level: a Cauchy density."""
    for k in range(n):
        z = (cells[k] - centre) / scale
        out[k] = step / (math.pi * scale) / (1.0 + z * z)


def _table() -> Floats:
    """Rows: density of a standard normal, of the transient's Student t, at 0, 1/128, 2/128, ... sd."""
    z = np.arange(TABLE_CELLS + 2) / TABLE_PER_SD
    core = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    tail = 1.0 / (2.0 * math.sqrt(2.0) * TAIL_SD) / (1.0 + z * z / (2.0 * TAIL_SD**2)) ** 1.5
    return np.stack([core, tail], axis=1)


DENSITIES = _table()


@compiled
def _likelihoods(value: float, sd: float, cells: Floats, n: int, core: Floats, tail: Floats) -> None:
    """Density of one value at each level in units of its sd, as ordinary noise and as a transient.

    Interpolated in a table; past its end ordinary noise is impossible.
    """
    if np.isnan(value):
        for k in range(n):
            core[k] = 1.0
            tail[k] = 1.0
        return
    per_unit = TABLE_PER_SD / sd
    for k in range(n):
        place = abs(value - cells[k]) * per_unit
        if place < TABLE_CELLS:
            j = int(place)
            part = place - j
            core[k] = DENSITIES[j, 0] + part * (DENSITIES[j + 1, 0] - DENSITIES[j, 0])
            tail[k] = DENSITIES[j, 1] + part * (DENSITIES[j + 1, 1] - DENSITIES[j, 1])
        else:
            z = place / TABLE_PER_SD
            x = 1.0 + z * z / (2.0 * TAIL_SD * TAIL_SD)
            core[k] = 0.0
            tail[k] = 0.35355339059327373 / TAIL_SD / (x * math.sqrt(x))


@compiled
def _beyond(weights: Floats, cells: Floats, n: int, floor: float, out: Floats) -> None:
    """out[k] = sum of `weights` over the cells at least `floor` away from cell k: two running windows."""
    total = 0.0
    for k in range(n):
        total += weights[k]
    inside = 0.0
    left = 0
    right = 0
    for k in range(n):
        while right < n and cells[right] - cells[k] < floor:
            inside += weights[right]
            right += 1
        while cells[k] - cells[left] >= floor:
            inside -= weights[left]
            left += 1
        out[k] = max(total - inside, 0.0)


@compiled
def _pass(
    values: Floats, sd: Floats, change: Floats, transient: Floats, stick: Floats, scale: Floats, floor: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    series, releases = values.shape
    factor = np.ones((series, releases))
    posterior = np.zeros((series, releases))
    level = np.full((series, releases), np.nan)
    spread = np.full((series, releases), np.nan)
    away = np.zeros((series, releases))
    cells = np.empty(MOST_CELLS)
    slab = np.empty(MOST_CELLS)
    core = np.empty((releases, MOST_CELLS))
    tail = np.empty((releases, MOST_CELLS))
    usual = np.empty((releases, MOST_CELLS))  # forward weight of "at level k, ordinary noise"
    excused = np.empty((releases, MOST_CELLS))  # forward weight of "at level k, in a transient"
    back_usual = np.empty(MOST_CELLS)
    back_excused = np.empty(MOST_CELLS)
    either = np.empty(MOST_CELLS)
    moved = np.empty(MOST_CELLS)
    for i in range(series):
        n, step = _lattice(values[i], sd[i], cells)
        if n == 0:
            continue
        _slab(cells, n, step, _median(values[i]), scale[i], slab)
        for r in range(releases):
            _likelihoods(values[i, r], sd[i, r], cells, n, core[r], tail[r])
        for r in range(releases):
            p = change[i, r]
            e = transient[i, r]
            stays = stick[r]
            total = 0.0
            if r == 0:
                for k in range(n):
                    usual[0, k] = (1.0 - e) * slab[k] * core[0, k]
                    excused[0, k] = e * slab[k] * tail[0, k]
                    total += usual[0, k] + excused[0, k]
            else:
                for k in range(n):
                    either[k] = usual[r - 1, k] + excused[r - 1, k]
                _beyond(either, cells, n, floor[i], moved)
                for k in range(n):
                    fresh = p * slab[k] * moved[k]
                    a = usual[r - 1, k]
                    b = excused[r - 1, k]
                    usual[r, k] = core[r, k] * ((1.0 - p) * ((1.0 - e) * a + (1.0 - stays) * b) + (1.0 - e) * fresh)
                    excused[r, k] = tail[r, k] * ((1.0 - p) * (e * a + stays * b) + e * fresh)
                    total += usual[r, k] + excused[r, k]
            for k in range(n):
                usual[r, k] /= total
                excused[r, k] /= total
        for k in range(n):
            back_usual[k] = 1.0
            back_excused[k] = 1.0
        for r in range(releases - 1, -1, -1):
            mass = 0.0
            first = 0.0
            second = 0.0
            heavy = 0.0
            for k in range(n):
                b = excused[r, k] * back_excused[k]
                weight = usual[r, k] * back_usual[k] + b
                d = cells[k] - cells[0]
                mass += weight
                heavy += b
                first += weight * d
                second += weight * d * d
            level[i, r] = cells[0] + first / mass
            spread[i, r] = math.sqrt(max(second / mass - (first / mass) ** 2, 0.0))
            if not np.isnan(values[i, r]):
                away[i, r] = heavy / mass
            if r == 0:
                break
            p = change[i, r]
            e = transient[i, r]
            stays = stick[r]
            same = 0.0
            for k in range(n):
                back_usual[k] *= core[r, k]
                back_excused[k] *= tail[r, k]
                either[k] = slab[k] * ((1.0 - e) * back_usual[k] + e * back_excused[k])
            _beyond(either, cells, n, floor[i], moved)
            fresh = 0.0
            top = 0.0
            for k in range(n):
                from_usual = (1.0 - e) * back_usual[k] + e * back_excused[k]
                from_excused = (1.0 - stays) * back_usual[k] + stays * back_excused[k]
                a = usual[r - 1, k]
                b = excused[r - 1, k]
                same += a * from_usual + b * from_excused
                fresh += (a + b) * moved[k]
                back_usual[k] = (1.0 - p) * from_usual + p * moved[k]
                back_excused[k] = (1.0 - p) * from_excused + p * moved[k]
                top = max(top, back_usual[k], back_excused[k])
            for k in range(n):
                back_usual[k] /= top
                back_excused[k] /= top
            factor[i, r] = fresh / same
            posterior[i, r] = p * fresh / (p * fresh + (1.0 - p) * same)
    return factor, posterior, level, spread, away


def infer(
    values: Floats, sd: Floats, change: Floats, transient: Floats, stick: Floats, scale: Floats, floor: Floats
) -> LevelPosterior:
    """Forward-backward over every series.

    `values`, `sd`, `change`, `transient` are [metrics, servers, tests, releases]: log value (NaN where absent), noise
    sd of that value, prior probability of a change at that release, prior probability that a transient begins there;
    `stick` is [releases]: probability that a transient of the release before lasts.
    `scale` is [metrics]: width of the slab in log units; `floor` is [metrics]: a smaller step is no change.
    """
    _, servers, tests, releases = values.shape
    series = [np.ascontiguousarray(array.reshape(-1, releases)) for array in (values, sd, change, transient)]
    of_series = [np.repeat(array, servers * tests) for array in (scale, floor)]
    return LevelPosterior(*(array.reshape(values.shape) for array in _pass(*[*series, stick, *of_series])))
