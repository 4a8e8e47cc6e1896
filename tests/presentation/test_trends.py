"""Series over the releases of a line, as bars."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from presentation.trends import BARS, bars, trend_lines, trends
from tests.builders import RELEASES, finding, history_of, series, series_key


@given(st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), max_size=40), st.integers(0, 40))
def test_there_is_one_mark_a_release(levels: list[float | None], boundary: int) -> None:
    drawn = bars(levels, boundary)
    assert len(drawn.replace("|", "")) == len(levels) and set(drawn) <= {*BARS, "·", "|"}
    assert drawn.count("|") == (boundary < len(levels))
    present = [value for value in levels if value is not None]
    if present and max(present) > min(present):
        assert drawn.replace("|", "")[levels.index(max(present))] == BARS[-1]
    assert [mark == "·" for mark in drawn.replace("|", "")] == [value is None for value in levels]


def test_levels_are_medians_and_never_made_up() -> None:
    moved = finding(changes={"hot-points": 4.9})
    blocks = series([[100.0, 101.0, 140.0], None, [0.0, 4.0]], moved.moves[0].key, releases=("17.3", "17.4", "17.5"))
    (trend,) = trends(moved.moves, {blocks.key: blocks}, ("17.2", "17.3", "17.4", "17.5"))
    assert trend.levels == (None, 101.0, None, 2.0)


def test_a_move_whose_series_is_not_there_has_no_trend() -> None:
    moved = finding(changes={"hot-points": 4.9, "insert": 2.0})
    measured = {line.key: line for line in history_of(moved) if line.key.test == "insert"}
    assert [trend.move.key.test for trend in trends(moved.moves, measured, RELEASES)] == ["insert"]


def test_a_line_says_test_metric_server_change_and_interval() -> None:
    moved = finding(changes={"hot-points": 4.9})
    rows = trends(moved.moves, {line.key: line for line in history_of(moved)}, RELEASES)
    head, line = trend_lines(rows, RELEASES, "17.5")
    assert head.split("  ")[0] == "test" and "17.0 .. 17.6" in head and "95 % interval" in head
    assert line.split("  ")[0] == "hot-points"
    assert "▁▁▁▁▁|██" in line and "+4.9 %" in line and "+4.7 to +5.1 %" in line


def test_a_release_that_the_line_has_not_measured_has_no_stroke() -> None:
    moved = finding(changes={"hot-points": 4.9})
    rows = trends(moved.moves, {line.key: line for line in history_of(moved)}, RELEASES)
    assert not any("|" in line for line in trend_lines(rows, RELEASES, "17.9"))
    assert series_key("hot-points") == rows[0].move.key
