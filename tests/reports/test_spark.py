"""Sparklines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reports.spark import HEIGHT, spark


@given(st.lists(st.one_of(st.none(), st.just(float("nan")), st.floats(min_value=0.01, max_value=100)), max_size=30))
def test_sparklines_stay_in_their_box(ratios: list[float | None]) -> None:
    for pair in spark(ratios).split():
        x, y = (float(part) for part in pair.split(","))
        assert 0 <= x <= 5 * len(ratios)
        assert 0 <= y <= HEIGHT
