"""The release matrix: what it finds, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from detector.changes import release_changes
from detector.errors import InvalidSeries

Floats = NDArray[np.float64]


def suite(
    seed: int, servers: int = 2, tests: int = 12, releases: int = 14, blocks: int = 3
) -> tuple[Floats, set[tuple[int, int, int]]]:
    """A simulated suite: noise of 1 % a run and 0.5 % a release; release 5 loses 6 % on a third of the tests, release
    10 gives 5 % back on two."""
    rng = np.random.default_rng(seed)
    steps = np.zeros((servers, tests, releases))
    truth = set()
    for test in range(tests // 3):
        steps[:, test, 5:] -= 0.06
        truth |= {(server, test, 5) for server in range(servers)}
    for test in range(tests - 2, tests):
        steps[:, test, 10:] += 0.05
        truth |= {(server, test, 10) for server in range(servers)}
    shared = 0.005 * rng.standard_normal((servers, 1, releases))
    release = 0.005 * rng.standard_normal((servers, tests, releases))
    run = 0.01 * rng.standard_normal((servers, tests, releases, blocks))
    level = rng.uniform(5.0, 10.0, (servers, tests, 1, 1))
    return np.exp(level + (steps + shared + release)[..., None] + run), truth


def test_finds_the_planted_changes_and_nothing_else() -> None:
    for seed in range(3):
        qps, truth = suite(seed)
        assert set(release_changes(qps)) == truth


@settings(max_examples=15, deadline=None)
@given(exponent=st.integers(-6, 6), seed=st.integers(0, 3))
def test_the_unit_does_not_matter(exponent: int, seed: int) -> None:
    qps, _ = suite(seed)
    assert release_changes(qps * 4.0**exponent) == release_changes(qps)


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(3)), tests=st.permutations(range(12)), seed=st.integers(0, 3))
def test_the_order_of_arrival_does_not_matter(order: list[int], tests: list[int], seed: int) -> None:
    qps, _ = suite(seed)
    shuffled = qps[:, tests][..., order]
    found = {(server, tests[test], release) for server, test, release in release_changes(shuffled)}
    assert found == set(release_changes(qps))


@pytest.mark.parametrize("seed", range(4))
def test_time_reversed_the_same_boundaries(seed: int) -> None:
    qps, _ = suite(seed)
    releases = qps.shape[2]
    reversed_found = {(s, t, releases - r) for s, t, r in release_changes(qps[:, :, ::-1])}
    assert reversed_found == set(release_changes(qps))


def test_repeated_rows_are_no_evidence() -> None:
    rng = np.random.default_rng(3)
    qps = 1000 * np.exp(0.02 * rng.standard_normal((1, 10, 12, 1)))
    assert release_changes(np.repeat(qps, 5, axis=3)) == release_changes(qps)


def test_what_was_not_measured_says_nothing() -> None:
    qps, truth = suite(1)
    rng = np.random.default_rng(5)
    ragged = np.where(rng.random(qps.shape) < 0.2, np.nan, qps)
    ragged[:, 3, 7:9] = np.nan
    found = set(release_changes(ragged))
    assert truth <= found
    assert len(found - truth) <= 1


@pytest.mark.parametrize(
    "values",
    [
        [0.0] * 8,
        [5.0] * 8,
        [np.nan] * 8,
        [np.inf, 1.0, 1.0, 1.0],
        [3.0],
        [3.0, 3.1],
        [-5.0, -5.1, -4.9, -5.0, -5.05],
        [1e-300, 1e300, 1e-300, 1e300],
    ],
    ids=["zero", "constant", "absent", "infinite", "one", "two", "negative", "extreme"],
)
def test_degenerate_series_are_quiet(values: list[float]) -> None:
    found = release_changes(np.array(values).reshape(1, 1, -1, 1))
    assert len(found) <= (3 if max(values) > 1e299 else 0)


def test_from_zero_to_something_is_a_change() -> None:
    reads = np.array([0.0] * 8 + [0.857, 0.859, 0.861, 0.858, 0.857, 0.86]).reshape(1, 1, -1, 1)
    assert release_changes(reads) == [(0, 0, 8)]


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(InvalidSeries):
        release_changes(np.ones((2, 3, 4, 1)), np.ones((2, 3, 5, 1)))
    with pytest.raises(InvalidSeries):
        release_changes(np.ones((2, 3, 4)))
