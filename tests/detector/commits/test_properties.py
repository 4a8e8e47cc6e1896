"""What must hold for every series."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.commits import CommitSettings, Monitor, analyse
from tests.detector.commits.made import made

VALUES = st.lists(
    st.one_of(st.none(), st.floats(), st.floats(1.0, 2.0), st.sampled_from([0.0, 1.0, 1.05])), max_size=80
)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_any_values_get_an_answer_that_makes_sense(values: list[float | None]) -> None:
    analysis = analyse(values)
    places = analysis.indices(provisional=True)
    assert places == sorted(set(places))
    for change in analysis.changepoints:
        assert 0 < change.index < len(values)
        value = values[change.index]
        assert value is not None and math.isfinite(value)
        assert 0.0 < change.probability <= 1.0
        assert change.low_pct <= change.change_pct <= change.high_pct
    assert analyse(values) == analysis


@given(seed=st.integers(0, 10_000), unit=st.sampled_from([1e-6, 0.25, 64.0, 1e9]))
@settings(max_examples=25, deadline=None)
def test_the_unit_does_not_matter(seed: int, unit: float) -> None:
    values = made(seed=seed, steps={70: -0.06})
    scaled = analyse([value * unit for value in values])
    assert scaled.indices() == analyse(values).indices()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_a_clear_step_is_found_in_either_direction_of_time(seed: int) -> None:
    values = made(100, seed=seed, steps={40: 0.1})
    assert any(abs(i - 40) <= 1 for i in analyse(values).indices())
    assert any(abs(i - 60) <= 1 for i in analyse(values[::-1]).indices())


@given(seed=st.integers(0, 10_000), repeats=st.integers(2, 6), cut=st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_repeated_rows_make_nothing_more_certain(seed: int, repeats: int, cut: int) -> None:
    values = made(60, seed=seed, steps={40: -0.06})
    once = analyse(values)
    again = analyse([value for value in values for _ in range(repeats)][min(cut, repeats - 1) :])
    shift = min(cut, repeats - 1)
    assert again.indices() == [max(0, i * repeats - shift) for i in once.indices()]
    assert [(c.probability, c.low_pct) for c in again.changepoints] == [
        (c.probability, c.low_pct) for c in once.changepoints
    ]
    assert again.warnings == (f"every value is there {repeats} times in a row; they count once",)


@given(seed=st.integers(0, 1000), gap=st.integers(1, 98))
@settings(max_examples=25, deadline=None)
def test_a_gap_moves_nothing(seed: int, gap: int) -> None:
    values: list[float | None] = list(made(100, seed=seed))
    without = analyse(values[:gap] + values[gap + 1 :]).indices()
    values[gap] = None
    assert analyse(values).indices() == [i if i < gap else i + 1 for i in without]


@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_a_growing_series_keeps_what_it_settled(seed: int) -> None:
    values = made(330, seed=seed, steps={60: 0.1, 200: -0.1})
    monitor = Monitor(values[:300], CommitSettings())
    for value in values[300:]:
        monitor.append(value)
    confirmed = [c.index for c in monitor.changepoints if c.tier == "confirmed"]
    assert len(confirmed) >= 2
    assert min(abs(i - 60) for i in confirmed) <= 1
    assert min(abs(i - 200) for i in confirmed) <= 1


def test_appending_one_by_one_finds_what_the_whole_series_shows() -> None:
    values = made(160, steps={90: -0.08})
    monitor = Monitor(values[:40])
    for value in values[40:]:
        found = monitor.append(value)
    assert [c.index for c in found] == analyse(values).indices(provisional=True)
    assert np.allclose([c.change_pct for c in found], [c.change_pct for c in analyse(values).changepoints])
