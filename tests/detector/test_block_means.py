"""The robust mean of a release's blocks, against the definition written out, and with very many blocks."""

from __future__ import annotations

from itertools import combinations
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.releases.block_means import HUBER_LOSS, HUBER_SD, MEDIAN_GAP, block_means

#: Ties, tiny and large gaps, and whatever else a float can be.
VALUES = st.one_of(
    st.integers(-5, 5).map(float),
    st.floats(-1e4, 1e4),
    st.floats(1.0, 1.0 + 1e-12),
    st.just(float("nan")),
)


def plain(releases: list[list[float]]) -> tuple[list[float], list[float], list[int]]:
    """Means, variances and counts as the words say it: all pairs are made and sorted."""
    blocks = [sorted({value for value in release if value == value}) for release in releases]
    gaps = [abs(x - y) for release in blocks for x, y in combinations(release, 2)]
    scatter = max(median(gaps) / MEDIAN_GAP, 1e-9) if gaps else 0.0
    means = []
    for release in blocks:
        middle = median(release) if release else float("nan")
        reach = HUBER_SD * scatter
        pulled = [min(max(value, middle - reach), middle + reach) for value in release]
        means.append(sum(pulled) / len(pulled) if pulled else float("nan"))
    counts = [len(release) for release in blocks]
    return means, [HUBER_LOSS * scatter**2 / max(count, 1) for count in counts], counts


@given(st.lists(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=70), min_size=1, max_size=6))
def test_it_is_what_the_definition_says(releases_of_series: list[list[list[float]]]) -> None:
    """Three series whose releases have different numbers of blocks, few and many."""
    values = np.array([block for release in releases_of_series for block in release]).T
    starts = np.concatenate([[0], np.cumsum([len(release) for release in releases_of_series])])
    found = block_means(values, starts)
    for series in range(3):
        releases = [[block[series] for block in release] for release in releases_of_series]
        means, variances, counts = plain(releases)
        assert found.counts[series].tolist() == counts
        assert found.mean[series] == pytest.approx(means, rel=1e-9, abs=1e-9, nan_ok=True)
        assert found.variance[series] == pytest.approx(variances, rel=1e-12, abs=0.0)


def test_the_order_of_blocks_and_empty_slots_change_nothing() -> None:
    random = np.random.default_rng(3)
    values = random.normal(0.0, 1.0, (4, 60))
    values[:, 40:50] = np.nan
    starts = np.array([0, 50, 52, 60])
    found = block_means(values, starts)
    mixed = np.concatenate([values[:, random.permutation(50)], values[:, [51, 50]], values[:, 52:][:, ::-1]], axis=1)
    again = block_means(mixed, starts)
    for name in found._fields:
        assert getattr(found, name).tobytes() == getattr(again, name).tobytes()


def test_a_control_with_very_many_blocks_needs_no_pairs() -> None:
    """Forty thousand blocks have eight hundred million pairs; a normal sample of that size has the scatter it has."""
    values = np.random.default_rng(4).normal(6.0, 0.02, (1, 40_000))
    found = block_means(values, np.array([0, 40_000]))
    assert found.mean[0, 0] == pytest.approx(6.0, abs=0.0005)
    assert found.variance[0, 0] == pytest.approx(HUBER_LOSS * 0.02**2 / 40_000, rel=0.02)


def test_one_block_each_has_no_scatter() -> None:
    found = block_means(np.array([[1.0, np.nan, 3.0]]), np.arange(4))
    assert found.mean[0].tolist()[::2] == [1.0, 3.0] and np.isnan(found.mean[0, 1])
    assert found.variance[0].tolist() == [0.0, 0.0, 0.0]
