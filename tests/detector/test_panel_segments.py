"""The second opinion: ruptures on the whole panel, with a cost of its own."""

from __future__ import annotations

import numpy as np
import pytest
import ruptures
from numpy.typing import NDArray

from detector import detect
from detector.evidence import AGREES, CANNOT_TELL, DIFFERS
from detector.parts import parts_of
from detector.releases.panel_segments import PanelCost, joint_boundaries
from detector.settings import DetectorSettings
from tests.detector.test_crowds import line, series

Floats = NDArray[np.float64]
VERSIONS = [f"10.4.{number}" for number in range(1, 22)]


def panel(seed: int, *, columns: int = 20, releases: int = 18) -> Floats:
    return np.random.default_rng(seed).standard_t(5, (columns, releases))


@pytest.mark.parametrize("seed", range(8))
def test_a_quiet_panel_is_one_segment(seed: int) -> None:
    assert joint_boundaries(panel(seed)) == ()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("place", [5, 17])
def test_a_crowd_is_found_in_the_middle_and_on_the_newest_release(seed: int, place: int) -> None:
    values = panel(seed)
    values[:8, place:] += 9.0
    assert joint_boundaries(values) == (place,)


def test_a_level_may_last_one_release() -> None:
    values = panel(1)
    values[:, 9] += 9.0
    assert joint_boundaries(values) == (9, 10)
    assert joint_boundaries(values[:, 9:10]) == ()


def test_what_was_not_measured_costs_nothing() -> None:
    values = panel(2)
    values[:8, 6:] += 9.0
    gaps = np.where(np.random.default_rng(1).random(values.shape) < 0.2, np.nan, values)
    assert joint_boundaries(gaps) == (6,)
    absent = np.vstack([values, np.full((5, values.shape[1]), np.nan)])
    assert joint_boundaries(absent) == joint_boundaries(values)


@pytest.mark.parametrize("seed", range(4))
def test_the_cost_is_that_of_the_medians(seed: int) -> None:
    """Against a plain sum, and every segmentation against the exact search of ruptures (`Dynp`)."""
    values = panel(seed, columns=6, releases=10)
    values[:, 4:] += 5.0
    cost = PanelCost().fit(values.T)
    for start, stop in ((0, 10), (0, 4), (4, 10), (3, 5)):
        part = values[:, start:stop]
        far = part - np.median(part, axis=1, keepdims=True)
        assert cost.error(start, stop) == pytest.approx(2.0 * np.log1p(far**2 / 3.0).sum())
    exact = ruptures.Dynp(custom_cost=PanelCost(), min_size=1, jump=1).fit(values.T).predict(n_bkps=1)
    assert exact == [4, 10]


def test_each_finding_says_whether_the_other_method_agrees() -> None:
    many, one = line(3), line(3, tests=30)
    many[:8, 10:] -= 0.08
    one[:1, 10:] -= 0.04
    for values, sentence in ((many, AGREES), (one, DIFFERS)):
        (finding,) = [found for found in detect(series(values, VERSIONS)) if found.release == "10.4.11"]
        assert sentence in finding.evidence
        (part,) = parts_of(series(values, VERSIONS), DetectorSettings())
        assert part.disputed == (sentence == DIFFERS)


@pytest.mark.parametrize("seed", range(6))
def test_what_was_not_measured_in_between_is_no_disagreement(seed: int) -> None:
    """Tests that move were not measured at 10.4.11: whether it has their step nobody can tell."""
    values = line(seed)
    values[:8, 10:] -= 0.08
    members = series(values, VERSIONS)
    for test, member in enumerate(members[:8]):
        points = tuple(point for point in member.points if point.version != "10.4.11")
        members[test] = member.model_copy(update={"points": points})
    (finding,) = [found for found in detect(members) if found.release == "10.4.12"]
    assert (finding.previous, AGREES in finding.evidence) == ("10.4.10", True)


def test_one_test_of_many_on_the_newest_release_is_mostly_more_than_the_other_method_can_see() -> None:
    """Fifty standard deviations, in one block: no doubt about the finding, and none is to be cast."""
    told = []
    for seed in range(6):
        values = line(seed, tests=42)
        values[0, -1] -= 0.4
        told += [sentence for finding in detect(series(values, VERSIONS)) for sentence in finding.evidence]
    assert told.count(CANNOT_TELL) >= 4
    assert DIFFERS not in told
