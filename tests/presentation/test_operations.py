"""The field's per-operation table: columns, both halves, and what x/0 is."""

from __future__ import annotations

import math

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from history.metrics import shipped_metrics
from presentation import operations
from presentation.operations import aligned, cells, operations_frame, operations_text, relative_frame
from tests.builders import BASE, RELEASES, field_series, level_series, series, series_key, stepped

METRICS = shipped_metrics()


def test_columns_are_the_fields_and_throughput_is_last() -> None:
    table = operations_frame(field_series("hot-points"), RELEASES, METRICS)
    assert list(table.columns) == ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s"]
    assert list(table.index) == list(RELEASES)
    assert set(table.dtypes.astype(str)) == {"float64"}


def test_the_text_has_both_halves() -> None:
    lines = operations_text(operations_frame(field_series("hot-points"), RELEASES, METRICS), "postgres").splitlines()
    assert lines[0] == "--- absolute" and lines[9] == "--- relative to first result"
    assert lines[1].split() == ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s", "dbms"]
    assert lines[2].split() == ["0.000247", "5.015", "0", "0", "0.001", "48921", "postgres", "17.0"]
    assert lines[-1].split() == ["1.04", "1.02", "1.00", "inf", "1.00", "0.96", "postgres", "17.6"]
    assert len(lines) == 1 + 1 + 7 + 1 + 6, "the first row is the base, and has no relative row"


def test_one_release_has_no_relative_half() -> None:
    text = operations_text(operations_frame(field_series("scan"), RELEASES[:1], METRICS), "postgres", "z12a")
    assert "relative" not in text and text.endswith("postgres 17.0 z12a")


def test_a_metric_that_was_not_measured_has_no_column_and_a_release_without_values_no_row() -> None:
    gap = [5.0, None, 5.0, 5.0, 5.0, 5.0, 5.0]
    table = operations_frame([level_series(series_key("scan", "cs/o"), gap)], RELEASES, METRICS)
    assert list(table.columns) == ["cs/o"] and "17.1" not in table.index


def test_a_cell_that_was_not_measured_is_absent_and_never_zero() -> None:
    gap = [None, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    table = operations_frame([*field_series("scan"), level_series(series_key("scan", "w/o"), gap)], RELEASES, METRICS)
    at = list(table.columns).index("w/o")
    assert [row[at] for row in cells(table)][:2] == ["–", "2"]
    # The base has no value, so nothing can be relative to it.
    assert {row[at] for row in cells(relative_frame(table), 2)} == {"–"}


def test_levels_are_medians() -> None:
    blocks = series([[1.0, 2.0, 90.0]], series_key("scan", "cs/o"))
    assert operations_frame([blocks], ["17.0"], METRICS).loc["17.0", "cs/o"] == 2.0


def test_counted_instructions_have_a_column_a_test() -> None:
    counted = [level_series(series_key(test), stepped(BASE[test], 3, 5)) for test in ("hot-points", "insert")]
    table = operations.tests_frame(counted, RELEASES[3:])
    assert list(table.columns) == ["hot-points", "insert"] and list(table.index) == list(RELEASES[3:])
    assert cells(relative_frame(table), 3)[-1] == ["1.030", "1.030"]


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_relative_is_the_fields(value: float, first: float) -> None:
    table = pd.DataFrame({"cs/o": [first, value]}, index=["17.0", "17.1"], dtype="float64")
    ratio = relative_frame(table).loc["17.1", "cs/o"]
    shown = cells(relative_frame(table), 2)[1][0]
    if first == 0:
        assert (ratio, shown) == ((1.0, "1.00") if value == 0 else (math.inf, "inf"))
    elif math.isfinite(value / first):
        assert ratio == value / first and shown == f"{value / first:.2f}"


def test_another_release_can_be_the_base() -> None:
    table = pd.DataFrame({"o/s": [100.0, 50.0]}, index=["17.0", "17.1"])
    assert list(relative_frame(table, "17.1")["o/s"]) == [2.0, 1.0]


@given(
    st.lists(st.lists(st.text(max_size=9).map(lambda text: text.replace("\n", "")), min_size=3, max_size=3), min_size=1)
)
def test_columns_are_aligned(rows: list[list[str]]) -> None:
    lines = aligned(rows, 4)
    assert len(lines) == len(rows)
    starts = max(4, *(len(row[0]) + 1 for row in rows))
    for row, line in zip(rows, lines, strict=True):
        assert line.startswith(row[0].rstrip()) and line[starts:].startswith(row[1].rstrip())
