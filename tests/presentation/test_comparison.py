"""Side by side: summaries, the config matrix and the difference of differences, against tables that were published."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from history.model import Series
from presentation.addresses import LineKey
from presentation.comparison import (
    Subject,
    by_place,
    comparisons,
    config_matrices,
    default_pair,
    difference_of_differences,
    differences,
    newest_subjects,
    subjects_of,
    summary_frame,
)
from presentation.operations import relative_frame
from presentation.views import views

from .examples import METRICS, series

VIEWS = views(METRICS)


def lines(*every: Series) -> dict[LineKey, list[Series]]:
    found: dict[LineKey, list[Series]] = {}
    for member in every:
        found.setdefault(LineKey.of(member.key), []).append(member)
    return found


def of_configs(**configs: dict[str, float]) -> list[Series]:
    """Throughput of mysql 8.0.39 by config and test."""
    return [
        series({"8.0.39": [value]}, test, config=config)
        for config, tests in configs.items()
        for test, value in tests.items()
    ]


def test_the_config_matrix_gives_the_published_percentages() -> None:
    # Small Datum 2024-09-24, small server, fsync off: "throughput with the binlog on is (57%, 83%, 54%)"
    values = of_configs(
        bl0_sync0_dw1={"insert": 20458.0, "update-index": 5881.0, "update-noindex": 20271.0},
        bl1_sync0_dw1={"insert": 11614.0, "update-index": 4910.0, "update-noindex": 10992.0},
    )
    (compared,) = comparisons(lines(*values), subjects_of(lines(*values), VIEWS), VIEWS, METRICS, {})
    ((release, matrix),) = config_matrices(compared).items()
    assert (release, list(matrix.columns)) == ("mysql 8.0.39", ["insert", "update-index", "update-noindex"])
    assert [f"{ratio:.0%}" for ratio in relative_frame(matrix).loc["bl1_sync0_dw1"]] == ["57%", "83%", "54%"]


def test_a_config_without_a_test_leaves_the_cell_empty() -> None:
    values = lines(*of_configs(a={"insert": 1.0}, b={"insert": 2.0, "scan": 3.0}))
    (compared,) = comparisons(values, subjects_of(values, VIEWS), VIEWS, METRICS, {})
    matrix = config_matrices(compared)["mysql 8.0.39"]
    assert matrix.loc["b"].tolist() == [2.0, 3.0] and math.isnan(matrix.loc["a", "scan"])
    assert math.isnan(relative_frame(matrix).loc["b", "scan"])


def test_difference_of_differences_is_one_when_a_switch_does_the_same() -> None:
    assert difference_of_differences(pd.Series([0.9, 0.5]), pd.Series([0.9, 1.0])).tolist() == pytest.approx([1.0, 2.0])
    matrices = {
        "mysql 8": pd.DataFrame({"insert": [100.0, 105.0]}, index=["z12b", "z12c"]),
        "mysql 9": pd.DataFrame({"insert": [90.0, 108.0]}, index=["z12b", "z12c"]),
    }
    ((before, after, table),) = differences(matrices)
    assert (before, after) == ("z12b", "z12c")
    assert table.loc["insert"].tolist() == pytest.approx([1.05, 1.2, 1.2 / 1.05])
    assert differences({"mysql 8": matrices["mysql 8"]}) == []


def test_the_summary_has_the_five_rows_of_the_field() -> None:
    index = pd.MultiIndex.from_tuples([("a", str(at)) for at in range(5)], names=["group", "test"])
    row = summary_frame(pd.Series([0.90, 0.96, 0.97, 0.97, 0.98], index=index)).loc["a"]
    assert (row["median"], row["min"], row["max"], row["tests"]) == (0.97, 0.90, 0.98, 5)
    assert row["average"] == pytest.approx(0.956)
    assert row["stddev"] == pytest.approx(0.0321, abs=1e-4)


def test_a_summary_leaves_out_what_is_not_finite_and_adds_all_tests() -> None:
    index = pd.MultiIndex.from_tuples([("a", "1"), ("b", "2"), ("b", "3"), ("c", "4")], names=["group", "test"])
    table = summary_frame(pd.Series([1.0, 2.0, math.inf, math.nan], index=index))
    assert list(table.index) == ["a", "b", "all tests"]
    assert table["tests"].tolist() == [1, 1, 2] and table["stddev"].tolist()[:2] == [0.0, 0.0]
    assert summary_frame(pd.Series([math.nan], index=index[:1])).empty


def test_everything_of_one_server_and_benchmark_is_side_by_side() -> None:
    measured = lines(
        series({"8.0.28": [100], "8.0.30": [90]}),
        series({"8.0.30": [7.0]}, metric="cpu/o"),
        series({"17.0": [200]}, dbms="postgres", line="17", config="x10a"),
        series({"8.0.30": [1]}, line="majors"),
        series({"8.0.30": [1]}, server="medium"),
    )
    place = by_place(measured)["small", "sysbench"]
    subjects = subjects_of(place, VIEWS)
    assert [subject.label for subject in subjects] == ["mysql 8.0.28 z12a", "mysql 8.0.30 z12a", "postgres 17.0 x10a"]
    throughput, cpu = comparisons(place, subjects, VIEWS, METRICS, {})
    assert list(throughput.levels.columns) == subjects == list(cpu.levels.columns)
    assert throughput.ratios(subjects[0]).loc["range", "scan"].tolist() == [1.0, 0.9, 2.0]
    assert cpu.levels.loc["range", "scan"].isna().tolist() == [True, False, True]
    assert default_pair(subjects, [throughput, cpu]) == (subjects[2], subjects[1])
    assert default_pair(subjects[:2], [throughput]) == tuple(subjects[:2])


def test_the_oldest_of_the_longest_line_give_way() -> None:
    subjects = [Subject("mysql", "8.0", f"8.0.{at}", "a") for at in range(5)] + [Subject("mysql", "8.4", "8.4.0", "a")]
    assert [subject.version for subject in newest_subjects(subjects, 3)] == ["8.0.3", "8.0.4", "8.4.0"]
