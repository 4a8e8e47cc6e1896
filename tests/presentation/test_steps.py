"""Stretches between changepoints."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from presentation.steps import steps

from .examples import series

LEVELS = st.lists(st.lists(st.floats(min_value=1, max_value=1e6), min_size=1, max_size=4), min_size=1, max_size=12)


@given(LEVELS, st.sets(st.integers(min_value=0, max_value=11)))
def test_stretches_partition_the_releases_and_hold_their_level(blocks: list[list[float]], cuts: set[int]) -> None:
    stretches = steps(series({str(i): values for i, values in enumerate(blocks)}), {str(cut) for cut in cuts})
    covered = [i for stretch in stretches for i in range(stretch.start, stretch.end + 1)]
    assert covered == list(range(len(blocks)))
    assert sum(stretch.blocks for stretch in stretches) == sum(len(values) for values in blocks)
    for stretch in stretches:
        assert stretch.start == 0 or stretch.start in cuts
        if stretch.low is not None and stretch.high is not None:
            assert stretch.low <= stretch.level * (1 + 1e-9)
            assert stretch.level <= stretch.high * (1 + 1e-9)


def test_the_interval_is_the_textbook_one() -> None:
    first, second = steps(series({"1": [100], "2": [102], "3": [98], "4": [50], "5": [51]}), {"4"})
    logs = [math.log(v) for v in (100, 102, 98)]
    mean = sum(logs) / 3
    scatter = sum((x - mean) ** 2 for x in logs) + (math.log(51) - math.log(50)) ** 2 / 2
    half = 3.182446305 * math.sqrt(scatter / 3 / 3)  # t(0.975, 3) of any table
    assert math.isclose(first.low or 0, math.exp(mean - half), rel_tol=1e-8)
    assert math.isclose(second.level, math.sqrt(50 * 51), rel_tol=1e-12)


def test_one_release_a_stretch_has_no_interval() -> None:
    assert steps(series({"1": [100], "2": [90]}), {"2"})[0].low is None


def test_zeroes_take_arithmetic_means() -> None:
    assert steps(series({"1": [0], "2": [4]}, metric="r/o"), set())[0].level == 2
