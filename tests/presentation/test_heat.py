"""The heat table, from series made by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from presentation.heat import HeatTable, heat_table, marks_of
from presentation.views import views

from .examples import METRICS, finding, series

THROUGHPUT = next(view for view in views(METRICS) if view.id == "throughput")


def rows(table: HeatTable) -> dict[str, list[float]]:
    """Ratios by test; a text stands for NaN, which equals nothing."""
    return {row["test"]: ["none" if math.isnan(ratio) else ratio for ratio in row["ratios"]] for row in table.rows}


def test_cells_are_medians_relative_to_the_base() -> None:
    scan = series({"8.0.27": [100, 101, 300], "8.0.28": [95, 96, 97], "8.0.30": [50.5]})
    table = heat_table([scan], THROUGHPUT, METRICS)
    assert table.versions == ["8.0.27", "8.0.28", "8.0.30"]
    assert table.values.loc["range", "scan"].tolist() == [101, 96, 50.5]
    assert rows(table) == {"scan": [1.0, 96 / 101, 0.5]}
    assert rows(heat_table([scan], THROUGHPUT, METRICS, base="8.0.28"))["scan"][1] == 1.0


def test_frames_have_the_index_and_the_types_they_promise() -> None:
    table = heat_table([series({"1": [10], "2": [9]}), series({"2": [5]}, "insert", group="", first=1)],
                       THROUGHPUT, METRICS)  # fmt: skip
    for frame in (table.values, table.ratios, table.tests):
        assert list(frame.index) == [("range", "scan"), ("all tests", "insert")]
        assert frame.index.names == ["group", "test"]
    assert set(table.values.dtypes) == set(table.ratios.dtypes) == {pd.Series([1.0]).dtype}
    assert table.tests["base"].tolist() == ["1", "2"]


def test_a_test_without_the_base_is_relative_to_its_own_first_and_left_out_of_medians() -> None:
    old = series({"8.0.27": [100], "8.0.28": [90]})
    new = series({"8.0.28": [50], "8.0.30": [40]}, test="hot-points", first=1)
    table = heat_table([old, new], THROUGHPUT, METRICS, base="8.0.27")
    assert rows(table)["hot-points"] == ["none", 1.0, 0.8]
    medians = table.groups[0].medians
    assert medians[:2] == [1.0, 0.9] and math.isnan(medians[2])


def test_zeroes_are_as_the_field_has_them() -> None:
    nothing = series({"1": [0.0], "2": [0.0], "3": [0.5]}, metric="cpu_us/o")
    view = next(view for view in views(METRICS) if view.metrics == ("cpu_us/o",))
    table = heat_table([nothing], view, METRICS)
    assert rows(table)["scan"] == [1.0, 1.0, math.inf]
    assert math.isnan(table.overall.medians[2])  # no finite value


def test_groups_and_tests_keep_the_catalogue_order() -> None:
    tests = [series({"1": [1]}, test=name, group=group) for name, group in
             (("b10", "writes"), ("b9", "writes"), ("z", "point, part 1"), ("a", ""))]  # fmt: skip
    table = heat_table(tests, THROUGHPUT, METRICS, order={"b10": 0, "b9": 1})
    assert [group.name for group in table.groups] == ["point, part 1", "writes", "all tests"]
    assert [row["test"] for row in table.rows] == ["z", "b10", "b9", "a"]


def test_the_base_is_the_first_release_that_half_of_the_tests_have() -> None:
    first = series({"1": [10], "2": [10]}, "t0")
    others = [series({"2": [10]}, f"t{at}", first=1) for at in range(1, 4)]
    assert heat_table([first, *others], THROUGHPUT, METRICS).base == "2"


def test_an_overlong_line_drops_its_oldest_releases() -> None:
    scan = series({str(release): [float(release + 1)] for release in range(50)})
    table = heat_table([scan], THROUGHPUT, METRICS, max_cells=20)
    assert (len(table.versions), table.older, table.versions[-1]) == (20, 30, "49")


def test_marks_stand_where_a_finding_moves_that_series_only() -> None:
    scan, insert = series({"8.0.28": [100], "8.0.30": [90]}), series({"8.0.28": [5], "8.0.30": [5]}, test="insert")
    marks = marks_of([finding(scan, "8.0.30", "8.0.28")])
    table = heat_table([scan, insert], THROUGHPUT, METRICS, marks=marks)
    assert {test: list(own) for test, own in table.marks.items()} == {"scan": ["8.0.30"]}


def test_overall_is_the_median_over_all_tests() -> None:
    table = heat_table([series({"1": [10], "2": [r]}, test=f"t{r}") for r in (8, 9, 12)], THROUGHPUT, METRICS)
    assert table.overall.medians == [1.0, 0.9]


def test_a_cell_is_quiet_within_the_smallest_change_and_twice_the_noise() -> None:
    steady = heat_table([series({str(at): [100.0] for at in range(8)})], THROUGHPUT, METRICS)
    assert steady.rows[0]["quiet_pct"] == METRICS["qps"].smallest_change_pct
    noisy = {str(at): [100.0 * (1.03 if at % 2 else 1.0)] for at in range(8)}
    expected = 2 * 100 * 1.4826 * math.log(1.03) / math.sqrt(2)
    assert heat_table([series(noisy)], THROUGHPUT, METRICS).rows[0]["quiet_pct"] == pytest.approx(expected)
    majors = heat_table([series(noisy, line="majors")], THROUGHPUT, METRICS)
    assert majors.rows[0]["quiet_pct"] == METRICS["qps"].smallest_change_pct
    four = heat_table([series(noisy, f"t{at}") for at in range(4)], THROUGHPUT, METRICS)
    assert four.overall.quiet_pct == pytest.approx(expected / 2)
