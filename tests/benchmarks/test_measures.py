"""What the benchmarks measure with: cases with exact truth, and scores."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import scale, series
from tests.benchmarks.scores import Score, matched, watch

SHAPES = (*series.INDEPENDENT, "autocorrelated", "measured")


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_has_the_same_quartile_distance_whatever_its_shape(shape: str) -> None:
    values = np.concatenate([series.noise(np.random.default_rng(seed), shape, 2000) for seed in range(20)])
    low, high = np.quantile(values, [0.25, 0.75])
    assert (high - low) / series.NORMAL_QUARTILES == pytest.approx(1.0, abs=0.2)


def test_cases_are_the_same_for_the_same_seed_and_only_then() -> None:
    first, again, other = (list(series.steps(seed, ("normal",), 4, 120)) for seed in (1, 1, 2))
    assert first == again != other


def test_steps_are_where_the_cases_say() -> None:
    for case in series.steps(3, ("normal",), 12, 200):
        levels = [np.median(part) for part in np.split(np.log(case.values), list(case.changes))]
        assert all(abs(step) > 0.002 for step in np.diff(levels))


def test_a_change_is_matched_once() -> None:
    assert matched([10, 12, 50], [11, 49, 90]) == 2
    assert matched([10], [4, 16]) == 0
    score = Score()
    score.add([10, 50], [12, 80, 90])
    assert (score.precision, score.recall, score.f1) == (pytest.approx(1 / 3), 0.5, pytest.approx(0.4))


def test_watching_counts_alarms_once_and_delays() -> None:
    cases = [([0.0] * 20, (10,)), ([0.0] * 20, ())]
    seen = watch(cases, lambda values: [10] if len(values) >= 13 else [], 5)
    assert seen.delay == 3.0
    assert seen.false_per_1000 == pytest.approx(1000 / 30)


def test_a_batch_counts_what_it_judged() -> None:
    counts = scale.batch((1, 40, 60))
    assert counts.series == 40
    assert counts.found + counts.missed == 20
    assert counts.found >= 18
