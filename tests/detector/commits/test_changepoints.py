"""What is found in one commit series, and what is left alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from detector.commits import CommitSettings, analyse, changepoints
from tests.detector.commits.made import made


def indices(values: list[float], **settings: float) -> list[int]:
    return analyse(values, CommitSettings(**settings)).indices()  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [-0.05, 0.05, -0.3, 3.0])
@pytest.mark.parametrize("at", [15, 60, 105])
def test_a_step_is_found_where_it_is(change: float, at: int) -> None:
    found = changepoints(made(steps={at: change}))
    assert [c.tier for c in found] == ["confirmed"]
    assert abs(found[0].index - at) <= 1
    assert found[0].low_pct <= 100 * change <= found[0].high_pct
    assert found[0].probability > 0.9
    assert (found[0].after > found[0].before) == (change > 0)


def test_several_steps_are_found() -> None:
    found = indices(made(200, steps={50: -0.06, 100: 0.08, 150: -0.05}))
    assert len(found) == 3
    assert all(abs(a - b) <= 2 for a, b in zip(found, (50, 100, 150), strict=True))


def test_quiet_series_stay_quiet() -> None:
    alarms = [len(indices(made(100, seed=seed))) for seed in range(100)]
    assert sum(alarms) <= 2


def test_noise_that_hangs_together_is_no_row_of_changes() -> None:
    alarms = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        values = [0.0]
        for _ in range(99):
            values.append(0.5 * values[-1] + random.standard_normal())
        alarms += len(indices(np.exp(0.02 * np.array(values)).tolist()))
    assert alarms <= 5


def test_a_smooth_drift_is_an_event_and_no_changepoint() -> None:
    noise = np.random.default_rng(3).standard_normal(120)
    wave = 2.0 * np.sin(2 * np.pi * np.arange(120) / 80)
    analysis = analyse(np.exp(0.02 * (noise + wave)).tolist())
    assert analysis.indices(provisional=True) == []
    assert [event.kind for event in analysis.events] == ["drift"]
    assert 3.0 < abs(analysis.events[0].change_pct or 0.0) < 14.0


def test_a_burst_that_comes_back_is_a_transient() -> None:
    values = made(100)
    for t in range(50, 55):
        values[t] *= 1.3
    analysis = analyse(values)
    assert analysis.indices() == []
    for event in analysis.events:
        assert (event.kind, event.start, event.end) == ("transient", 50, 55)


def test_a_burst_right_before_a_step_does_not_hide_it() -> None:
    values = made(100, steps={55: -0.08})
    for t in range(51, 55):
        values[t] *= 0.7
    assert len(indices(values)) == 1
    assert 51 <= indices(values)[0] <= 56


def test_single_outliers_are_nothing() -> None:
    values = made(100)
    for t in (20, 45, 46, 80):
        values[t] *= 1.5
    assert indices(values) == []


def test_two_modes_are_noise() -> None:
    random = np.random.default_rng(5)
    values = (100 * (1 + 0.002 * random.standard_normal(150) + 0.05 * (random.random(150) < 0.3))).tolist()
    assert indices(values) == []


def test_a_change_below_the_smallest_of_interest_is_none() -> None:
    values = made(100, steps={50: 0.008}, scale=0.001)
    assert indices(values) == []
    assert len(indices(values, smallest_change_pct=0.5)) == 1


def test_a_new_level_is_provisional_before_it_is_confirmed() -> None:
    values = made(62, steps={60: -0.2}, seed=2)
    assert [c.tier for c in changepoints(values[:61])] == ["provisional"]
    assert analyse(values[:61]).indices(provisional=True) == [60]
    assert analyse(values[:61]).indices() == []
    assert [c.tier for c in changepoints(values, CommitSettings(confirm_values=3))] == ["provisional"]
    assert [(c.index, c.tier) for c in changepoints(values)] == [(60, "confirmed")]


def test_the_end_has_to_outlast_earlier_bursts_of_its_size() -> None:
    values = made(80)
    for t in (*range(30, 34), *range(77, 80)):
        values[t] *= 1.2
    assert indices(values) == []
    assert indices([*values, *(1.2 * v for v in made(6, seed=9))]) == [77]


def test_the_first_values_make_no_level() -> None:
    assert indices(made(100, steps={4: 0.2})) == []


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 2.0],
        [5.0] * 50,
        [0.0] * 50,
        [math.nan] * 20,
        [None] * 20,
        [1e-300] * 10 + [1e300] * 10,
        [1e308, -1e308] * 20,
        [5e-324, 1e-323] * 20,
        [0.0, math.inf, -math.inf, math.nan, None, 1.0] * 10,
    ],
)
def test_no_numbers_break_it(values: list[float | None]) -> None:
    for change in analyse(values).changepoints:
        assert math.isfinite(change.change_pct)


def test_gaps_are_left_out_and_named() -> None:
    values: list[float | None] = list(made(steps={60: -0.1}))
    values[10] = None
    values[58] = math.nan
    analysis = analyse(values)
    assert analysis.indices() == [60]
    assert analysis.warnings == ("2 of 120 values are missing or not finite and were left out",)


def test_too_few_values_are_named() -> None:
    assert analyse([1.0, 2.0]).warnings == ("2 values are too few to find a change in; 6 are the least",)
    assert analyse([1.0]).warnings == ("1 value is too few to find a change in; 6 are the least",)


def test_a_step_from_zero() -> None:
    (change,) = changepoints([0.0] * 12 + [0.077, 0.078] * 6)
    assert (change.index, change.before, change.change_pct) == (12, 0.0, pytest.approx(100.0, abs=3))
    assert change.warnings == ("from zero: the percentage is of the new level",)


def test_negative_values_are_judged_on_a_linear_scale() -> None:
    values = [value - 100.0 for value in made(steps={60: 0.1})]
    analysis = analyse(values)
    assert len(analysis.indices()) == 1
    assert analysis.warnings == ("there are zeros or negative values, so changes are judged on a linear scale",)


def test_constant_values_with_a_step() -> None:
    (change,) = changepoints([5.0] * 20 + [5.5] * 20)
    assert (change.index, round(change.change_pct, 6)) == (20, 10.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"smallest_change_pct": 0.0},
        {"probability": 1.0},
        {"probability": 0.0},
        {"fresh_probability": 1.5},
        {"confirm_values": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CommitSettings(**wrong)  # type: ignore[arg-type]
