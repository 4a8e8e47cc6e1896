"""Tests that leave their level together: a change where they stay, an outlier where they come back; and what may not
decide which: how versions are spelt, the size of the step, the quiet of the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from detector.changes import pooled_changes, release_changes
from detector.releases.boundaries import NEWEST, THRESHOLD, boundaries
from history.model import BlockValue, Point, Series
from tests.builders import METRICS, series_key

Floats = NDArray[np.float64]
#: Noise of one release's value.
NOISE = 0.008


def line(seed: int, *, tests: int = 12, releases: int = 21, drift: float = 0.0) -> Floats:
    """[tests, releases] log values of a quiet line of single blocks, heavy-tailed; `drift` is how far each test moves
    slowly from the first release to the last, at most."""
    rng = np.random.default_rng(seed)
    slope = drift * rng.uniform(0.3, 1.0, (tests, 1)) * np.linspace(0.0, 1.0, releases)
    return 7.0 + slope + NOISE * rng.standard_t(4, (tests, releases)) / 1.4 + 0.004 * rng.standard_normal(releases)


def found(values: Floats, gaps: Floats | None = None) -> set[tuple[int, int]]:
    """(test, release) of the changes of single blocks."""
    return {(test, release) for _, test, release in release_changes(np.exp(values)[None, :, :, None], gaps=gaps)}


@pytest.mark.parametrize("seed", range(6))
def test_three_tests_that_leave_on_the_newest_release_are_suspected(seed: int) -> None:
    values = line(seed)
    values[:3, -1] += 0.15
    assert {(test, 20) for test in range(3)} <= found(values)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tests", [12, 27])
def test_the_larger_a_step_on_the_newest_release_the_surer(seed: int, tests: int) -> None:
    """A step of two thirds was the likelier an outlier the larger it was."""
    values = line(seed, tests=tests)
    values[:2, -1] -= 1.2
    assert {(0, 20), (1, 20)} <= found(values)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stay", [4, 11])
def test_four_tests_that_leave_in_the_middle_and_stay_have_changed(seed: int, stay: int) -> None:
    values = line(seed)
    values[:4, 10 : 10 + stay] -= 0.07
    assert {(test, 10) for test in range(4)} <= found(values)


@pytest.mark.parametrize("seed", range(6))
def test_a_crowd_that_comes_back_at_once_has_not(seed: int) -> None:
    values = line(seed)
    values[:4, 10] -= 0.07
    assert not {(test, release) for test in range(4) for release in (10, 11)} & found(values)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tests", [12, 42, 60])
def test_the_quiet_of_the_others_never_outweighs_a_clear_step(seed: int, tests: int) -> None:
    values = line(seed, tests=tests)
    values[0, 10:] -= 0.07
    assert (0, 10) in found(values)


@pytest.mark.parametrize("seed", range(6))
def test_steps_in_a_line_that_drifts_are_found(seed: int) -> None:
    values = line(seed, drift=-0.08)
    values[:3, 10:] -= 0.06
    assert {(test, 10) for test in range(3)} <= found(values)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 40), gap=st.sampled_from([2.0, 4.0, 12.0]))
def test_how_many_releases_lie_in_between_does_not_make_changes(seed: int, gap: float) -> None:
    """Outliers of single blocks were taken for changes where labels told of four releases in between."""
    quiet, rng = line(seed, tests=20), np.random.default_rng(seed)
    odd = rng.random(quiet.shape) < 0.03
    quiet[odd] -= rng.uniform(0.05, 0.1, int(odd.sum()))
    quiet[:, -1] = line(seed, tests=20)[:, -1]
    told = np.where(np.arange(21) % 3, gap, 1.0)
    assert len(found(quiet, told) - found(quiet)) <= 3


def series(values: Floats, labels: list[str]) -> list[Series]:
    members = []
    for test, row in enumerate(np.exp(values)):
        points = tuple(
            Point(
                version=label,
                position=place,
                values=(BlockValue(value=value, block_id=label, session_id="s", host="h", epoch="e"),),
            )
            for place, (label, value) in enumerate(zip(labels, row.tolist(), strict=True))
        )
        key = series_key(f"test-{test:02}", "qps", dbms="mariadb", line="all")
        members.append(Series(key=key, group="", unit="/s", better=METRICS["qps"].better, points=points))
    return members


@pytest.mark.parametrize("seed", range(3))
def test_tags_and_versions_of_one_line_give_nearly_the_same(seed: int) -> None:
    values = line(seed, tests=20)
    values[:5, 6:] -= 0.06
    values[5:8, 15:] += 0.05
    versions = [f"10.{major}.{point}" for major in range(2, 9) for point in (3, 12, 30)]
    tags = [f"ma{version.replace('.', '')}_rel" for version in versions]
    by_label = [
        {(change.series, change.position) for change in pooled_changes(series(values, labels))}
        for labels in (versions, tags)
    ]
    assert len(by_label[0] & by_label[1]) >= 8
    assert len(by_label[0] ^ by_label[1]) <= 3


def test_the_newest_release_has_a_bar_of_its_own() -> None:
    sure, unsure = (THRESHOLD + NEWEST) / 2.0, NEWEST - 0.01
    assert boundaries(np.array([0.0, 0.0, sure, 0.0, sure])) == [4]
    assert boundaries(np.array([0.0, 0.0, 0.9, 0.0, unsure])) == [2]
    assert boundaries(np.array([0.0, 0.0, 0.0, 0.9, sure])) == [3, 4]
