"""Series with known changes, and quiet ones, to measure detectors of commit series by. Seeded, so that runs compare.

A series is a level, steps of it, and noise: `exp(level + scale * noise)`. Noise has one quartile distance, whatever
its shape, so that a scale means the same for all. `measured` is noise of our own machine (`measure_noise`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

Floats = np.ndarray
#: Quartile distance of the standard normal distribution.
NORMAL_QUARTILES = 1.349
#: Shapes of independent noise.
INDEPENDENT = ("normal", "laplace", "spikes", "two modes", "lopsided")
SCALES = (0.01, 0.02, 0.04)
LARGEST_STEP, SMALLEST_STEP = 0.15, 0.02
#: Values between two steps, and between a step and an end, at least.
SPACING = 15


@dataclass(frozen=True)
class Case:
    """A series, its noise and the first values of its new levels."""

    noise: str
    values: list[float]
    changes: tuple[int, ...] = ()


def noise(random: np.random.Generator, shape: str, n: int) -> Floats:
    """`n` values of noise of one shape, with the quartile distance of a standard normal."""
    if shape == "measured":
        return _measured(random, n)
    if shape == "autocorrelated":
        values = random.standard_normal(n)
        for t in range(1, n):
            values[t] = 0.5 * values[t - 1] + np.sqrt(0.75) * values[t]
        return values
    if shape == "wave":
        t = np.arange(n)
        return random.standard_normal(n) + 1.5 * np.cos(2 * np.pi * (t / random.uniform(60, 120) + random.random()))
    normal = random.standard_normal(n)
    if shape == "laplace":
        values = random.laplace(size=n)
    elif shape == "spikes":
        values = normal + random.choice([0.0, 1.0], n, p=[0.96, 0.04]) * random.exponential(8.0, n)
    elif shape == "two modes":
        values = 0.5 * normal + 3.0 * (random.random(n) < 0.25)
    elif shape == "lopsided":
        values = random.gamma(2.0, size=n)
    else:
        values = normal
    low, middle, high = np.quantile(_reference(shape), [0.25, 0.5, 0.75]) if shape != "normal" else (-0.6745, 0, 0.6745)
    return (values - middle) * NORMAL_QUARTILES / (high - low)


@cache
def _reference(shape: str) -> Floats:
    """Many values of a shape, to know its quartiles by."""
    random, n = np.random.default_rng(0), 200_000
    normal = random.standard_normal(n)
    if shape == "laplace":
        return random.laplace(size=n)
    if shape == "spikes":
        return normal + random.choice([0.0, 1.0], n, p=[0.96, 0.04]) * random.exponential(8.0, n)
    if shape == "two modes":
        return 0.5 * normal + 3.0 * (random.random(n) < 0.25)
    return random.gamma(2.0, size=n)


@cache
def _recordings() -> list[Floats]:
    """The noise our machine showed: log durations about their running median, in its own quartile distance."""
    with (Path(__file__).parent / "data" / "noise.csv").open() as lines:
        columns = np.log(np.array([[float(cell) for cell in row] for row in list(csv.reader(lines))[1:]])).T
    found = []
    for column in columns:
        padded = np.pad(column, 10, mode="edge")
        residuals = column - np.median(np.lib.stride_tricks.sliding_window_view(padded, 21), axis=1)
        low, high = np.quantile(residuals, [0.25, 0.75])
        found.append(residuals * NORMAL_QUARTILES / (high - low))
    return found


def _measured(random: np.random.Generator, n: int) -> Floats:
    """Runs of five values of one recording, in random order, so that what hangs together stays together."""
    recording = _recordings()[random.integers(len(_recordings()))]
    starts = random.integers(0, len(recording) - 5, n // 5 + 1)
    return np.concatenate([recording[start : start + 5] for start in starts])[:n]


def steps(seed: int, shapes: tuple[str, ...], count: int, n: int) -> Iterator[Case]:
    """`count` series of `n` values with none to three steps."""
    for number in range(count):
        random = np.random.default_rng([seed, 1, number])
        shape = shapes[number % len(shapes)]
        changes = _places(random, int(random.integers(0, 4)), n)
        level = np.zeros(n)
        for change in changes:
            size = random.uniform(SMALLEST_STEP, LARGEST_STEP)
            level[change:] += np.log1p(size if random.random() < 0.4 else -size)
        scale = SCALES[(number // len(shapes)) % len(SCALES)]
        yield Case(shape, np.exp(level + scale * noise(random, shape, n)).tolist(), changes)


def _places(random: np.random.Generator, count: int, n: int) -> tuple[int, ...]:
    while True:
        places = np.sort(random.integers(SPACING, n - SPACING, count))
        if count < 2 or np.diff(places).min() >= SPACING:
            return tuple(int(place) for place in places)


def quiet(seed: int, shape: str, count: int, n: int) -> Iterator[Case]:
    """`count` series of `n` values in which nothing happens."""
    for number in range(count):
        random = np.random.default_rng([seed, 2, number])
        yield Case(shape, np.exp(SCALES[number % len(SCALES)] * noise(random, shape, n)).tolist())


def growing(seed: int, count: int, n: int, change: int) -> Iterator[Case]:
    """`count` series of `n` values to be watched from the start; every other one drops by 5 % at `change`."""
    for number in range(count):
        random = np.random.default_rng([seed, 3, number])
        shape = ("normal", "laplace", "spikes")[number // 2 % 3]
        drops = number % 2 == 1
        level = np.where(np.arange(n) < change, 0.0, np.log(0.95)) if drops else np.zeros(n)
        scale = SCALES[number // 6 % 2]
        yield Case(shape, np.exp(level + scale * noise(random, shape, n)).tolist(), (change,) if drops else ())
