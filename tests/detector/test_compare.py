"""Two releases side by side: the three verdicts, their error rates, and when to stop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.compare import compare, family_verdict


def blocks(rng: np.random.Generator, n: int, shift: float = 0.0, sd: float = 0.01) -> list[float]:
    values: list[float] = (100.0 * np.exp(shift + sd * rng.standard_normal(n))).tolist()
    return values


def test_a_difference_is_seldom_found_in_chance() -> None:
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(300):
        before, after = blocks(rng, 10), blocks(rng, 10)
        false += any(compare(before[:n], after[:n], floor_pct=1.2).verdict == "DIFFERENT" for n in (2, 4, 6, 8, 10))
    assert false <= 0.06 * 300


def test_a_real_difference_is_found_and_a_missing_one_excluded() -> None:
    rng = np.random.default_rng(2)
    different = sum(
        compare(blocks(rng, 8), blocks(rng, 8, -0.05), floor_pct=1.2, noise=0.01).verdict == "DIFFERENT"
        for _ in range(100)
    )
    same = sum(
        compare(blocks(rng, 12, sd=0.004), blocks(rng, 12, sd=0.004), floor_pct=1.2, noise=0.004).verdict == "SAME"
        for _ in range(100)
    )
    assert different >= 97
    assert same >= 90


def test_one_block_decides_only_with_known_noise_and_a_clear_step() -> None:
    assert compare([100.0], [90.0], floor_pct=1.2).verdict == "UNKNOWN"
    assert compare([100.0], [99.0], floor_pct=0.5, noise=0.001).verdict == "DIFFERENT"
    assert compare([100.0], [99.7], floor_pct=0.5, noise=0.003).verdict == "UNKNOWN"


@pytest.mark.parametrize("n", [2, 3, 6])
def test_known_noise_of_a_quiet_server_does_not_decide_on_a_busy_machine(n: int) -> None:
    rng = np.random.default_rng(4)
    pairs = [(blocks(rng, n, sd=0.15), blocks(rng, n, sd=0.15)) for _ in range(400)]
    false = sum(compare(*pair, floor_pct=1.2, noise=0.008).verdict == "DIFFERENT" for pair in pairs)
    assert false <= 0.06 * 400


def test_an_outlier_block_is_no_difference() -> None:
    assert compare([100.0, 100.5, 99.8, 100.1], [100.2, 70.0, 99.9, 100.3], floor_pct=1.2).verdict != "DIFFERENT"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.integers(-8, 8))
def test_the_unit_and_the_side_do_not_matter(seed: int, scale: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = blocks(rng, 5), blocks(rng, 5, -0.03)
    factor = 2.0**scale
    found = compare(before, after, floor_pct=1.2)
    scaled = compare([v * factor for v in before], [v * factor for v in after], floor_pct=1.2)
    swapped = compare(after, before, floor_pct=1.2)
    assert found.verdict == scaled.verdict == swapped.verdict
    assert found.change_pct == pytest.approx(scaled.change_pct)


@pytest.mark.parametrize("values", [([], [1.0]), ([0.0, 0.0], [0.0, 0.0]), ([-1.0, -1.1], [-1.0, -1.05])])
def test_odd_values_do_not_fail(values: tuple[list[float], list[float]]) -> None:
    assert compare(*values, floor_pct=1.2).verdict in ("SAME", "UNKNOWN")


def test_family_first() -> None:
    rng = np.random.default_rng(3)
    same = [compare(blocks(rng, 12, sd=0.002), blocks(rng, 12, sd=0.002), floor_pct=1.2) for _ in range(5)]
    assert family_verdict(same) == "SAME"
    slow = compare(blocks(rng, 8, sd=0.003), blocks(rng, 8, -0.08, sd=0.003), floor_pct=1.2)
    assert family_verdict([*same, slow]) == "DIFFERENT"
    unknown = compare([100.0], [99.0], floor_pct=1.2)
    assert family_verdict([*same, unknown]) == family_verdict([]) == "UNKNOWN"
