"""Constant, rounded, two-valued and saturating series: what a slow exact search finds is found, and nothing else.

Every series is of one family, seeded, and has known noise: a step is *large* when it is ten standard deviations of the
noise on both sides, rounding included, and both levels last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from detector.commits import analyse
from tests.detector.commits.exact import exact_changes

Floats = NDArray[np.float64]

#: What a large step is, in standard deviations of the noise, and how long its levels last.
LARGE = 10.0
LASTS = 14
#: A step found so many values off is found.
MARGIN = 3


@dataclass(frozen=True)
class Known:
    """A series with its noise: the scale at every value, and the step it is rounded to (0: none)."""

    values: Floats
    sigma: Floats
    step: float = 0.0


def levels(random: np.random.Generator, largest_noise: float) -> tuple[Floats, int]:
    """Levels of 14 to 60 values that lie ten standard deviations apart or more, per value; and how many changes."""
    lengths = random.integers(LASTS, 60, random.integers(1, 4))
    steps = random.choice([-1.0, 1.0], len(lengths)) * random.uniform(1.2, 4.0, len(lengths)) * LARGE * largest_noise
    level = 100.0 + np.cumsum(np.concatenate([[0.0], steps[1:]]))
    return np.repeat(level - min(0.0, level.min() - 100.0), lengths), len(lengths) - 1


def constant(random: np.random.Generator) -> Known:
    level, _ = levels(random, random.uniform(0.2, 2.0))
    return Known(level, np.full(len(level), 1e-6))


def quiet_then_loud(random: np.random.Generator) -> Known:
    """Noise of another scale from some place on, up to a hundredfold, or no noise at all before."""
    loud = random.uniform(0.5, 3.0)
    level, _ = levels(random, loud)
    quiet = loud * random.choice([0.0, 0.01, 0.1, 0.3])
    place = random.integers(LASTS, max(LASTS + 1, len(level) - LASTS))
    sigma = np.where(np.arange(len(level)) < place, quiet, loud)
    if random.random() < 0.3:
        sigma = sigma[::-1].copy()
    return Known(level + sigma * random.standard_normal(len(level)), np.maximum(sigma, 1e-6))


def rounded(random: np.random.Generator) -> Known:
    """Normal noise rounded to steps from a fifth to ten times its scale, mostly identical where they are wide."""
    step = float(random.choice([0.5, 1.0, 5.0, 10.0]))
    scale = step * random.uniform(0.1, 2.0)
    level, _ = levels(random, np.hypot(scale, step / np.sqrt(12)))
    values = np.round((level + scale * random.standard_normal(len(level))) / step) * step
    return Known(np.maximum(values, step), np.full(len(level), scale), step)


def two_valued(random: np.random.Generator) -> Known:
    """One of two values, the other one a given share of the time."""
    apart, share = random.uniform(0.5, 5.0), random.choice([0.02, 0.1, 0.3, 0.5])
    scale = apart * max(np.sqrt(share * (1.0 - share)), 0.2)
    level, _ = levels(random, scale)
    return Known(level + apart * (random.random(len(level)) < share), np.full(len(level), scale))


def saturating(random: np.random.Generator) -> Known:
    """Normal noise that is cut off at a limit, which most values of one level reach."""
    scale = random.uniform(0.5, 3.0)
    level, _ = levels(random, scale)
    limit = random.choice(np.unique(level)) + scale * random.uniform(-0.5, 1.0)
    values = level + scale * random.standard_normal(len(level))
    return Known(np.where(level <= limit + scale, np.minimum(values, limit), values), np.full(len(level), scale))


FAMILIES = (constant, quiet_then_loud, rounded, two_valued, saturating)


def spread(known: Known, start: int, end: int) -> float:
    """The largest standard deviation of the noise in a stretch, rounding included."""
    return float(np.hypot(known.sigma[start:end].max(), known.step / np.sqrt(12)))


def large_steps(known: Known) -> list[int]:
    """The large steps of the exact segmentation."""
    n = len(known.values)
    changes = exact_changes(known.values, known.sigma, known.step)
    bounds = [0, *changes, n]
    large = []
    for i, place in enumerate(changes):
        before, after = known.values[bounds[i] : place], known.values[place : bounds[i + 2]]
        height = abs(float(np.median(after) - np.median(before)))
        if min(len(before), len(after)) >= LASTS - 1 and height >= LARGE * spread(known, bounds[i], bounds[i + 2]):
            large.append(place)
    return large


@pytest.mark.parametrize("family", FAMILIES)
def test_no_large_step_is_missed_silently(family: Callable[[np.random.Generator], Known]) -> None:
    steps = 0
    for seed in range(60):
        known = family(np.random.default_rng([17, seed]))
        confirmed = analyse(known.values.tolist()).indices()
        for place in large_steps(known):
            steps += 1
            assert any(abs(place - index) <= MARGIN for index in confirmed), (seed, place, confirmed)
    assert steps > 30


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_found_where_the_exact_segmentation_has_nothing(
    family: Callable[[np.random.Generator], Known],
) -> None:
    quiet = false = 0
    for seed in range(120):
        known = family(np.random.default_rng([18, seed]))
        if not exact_changes(known.values, known.sigma, known.step):
            quiet += 1
            false += len(analyse(known.values.tolist()).indices())
    assert quiet >= 20
    assert false <= quiet // 20


def test_a_level_with_noise_is_found_after_one_without() -> None:
    for seed in range(40):
        noise = 100.0 + np.random.default_rng(seed).standard_normal(60)
        for after in (4, 6, 12, 60):
            assert 60 in analyse([50.0] * 60 + noise[:after].tolist()).indices(), (seed, after)
        for after in (4, 12, 60):
            assert 60 in analyse(noise.tolist() + [50.0] * after).indices(), (seed, after)


def test_a_step_of_mostly_identical_rounded_values_is_found() -> None:
    for seed in range(40):
        random = np.random.default_rng(seed)
        for unit, level in ((1.0, 100.0), (0.1, 1.0), (5.0, 25.0)):
            off = np.where(random.random(100) < 0.25, random.choice([-1.0, 1.0], 100), 0.0)
            values = level * np.where(np.arange(100) < 50, 1.0, 1.2) + unit * off * np.where(
                level / unit > 20, 1.0, 0.0
            )
            assert analyse(values.tolist()).indices() == [50], (seed, unit)


def test_zeros_and_then_noise_about_zero_are_no_step() -> None:
    false = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        for scale in (0.01, 1.0, 1000.0):
            noise = (scale * random.standard_normal(80)).tolist()
            false += len(analyse([0.0] * 60 + noise).indices()) + len(analyse([*noise, *[0.0] * 60]).indices())
    assert false <= 2  # as in noise without zeros


def test_noise_that_grows_is_no_step() -> None:
    false = 0
    for seed in range(60):
        sigma = np.where(np.arange(120) < 60, 0.002, 0.04)
        values = 100.0 * np.exp(sigma * np.random.default_rng(seed).standard_normal(120))
        false += len(analyse(values.tolist()).indices())
    assert false <= 1
