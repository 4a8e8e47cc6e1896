"""The field's arithmetic, against tables that were published."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presentation.relative import colour_step, gain, relative, relative_text, summarize
from reports.matrix import config_matrix, difference_of_differences
from reports.peroperation import per_operation, per_operation_text

POSITIVE = st.floats(min_value=1e-6, max_value=1e9)

# Small Datum 2024-04-11, sb.met.update-inlist.range100.pk1.dop1 on ser4: absolute values of four MariaDB releases
UPDATE_INLIST = {
    "cpu/o": [0.006937, 0.007467, 0.004253, 0.004430],
    "cs/o": [36.076, 35.345, 8.595, 8.462],
    "r/o": [0, 0, 0.077, 0.034],
    "rKB/o": [0, 0, 0.306, 0.136],
    "wKB/o": [90.665, 89.534, 33.099, 32.22],
    "o/s": [3966, 3845, 3856, 3650],
}
RELEASES = ["10.2.44", "10.3.39", "10.11.7", "11.4.1"]


def test_the_per_operation_table_prints_what_was_published() -> None:
    table = per_operation(list(UPDATE_INLIST.items()), RELEASES)
    assert table.metrics == ("cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s")
    assert table.relative == [
        ["1.08", "0.98", "1", "1", "0.99", "0.97"],
        ["0.61", "0.24", "inf", "inf", "0.37", "0.97"],
        ["0.64", "0.23", "inf", "inf", "0.36", "0.92"],
    ]
    text = per_operation_text(table)
    assert text.splitlines()[1].split() == ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s", "dbms"]
    assert text.splitlines()[2].split() == ["0.006937", "36.08", "0", "0", "90.67", "3966", "10.2.44"]


def test_the_config_matrix_gives_the_published_percentages() -> None:
    # Small Datum 2024-09-24, small server, fsync off: "throughput with the binlog on is (57%, 83%, 54%)"
    values = {
        "bl0_sync0_dw1": {"insert": 20458.0, "update-index": 5881.0, "update-noindex": 20271.0},
        "bl1_sync0_dw1": {"insert": 11614.0, "update-index": 4910.0, "update-noindex": 10992.0},
    }
    rows = config_matrix(values, ["insert", "update-index", "update-noindex"])
    assert [f"{ratio:.0%}" for ratio in rows[1].relative if ratio is not None] == ["57%", "83%", "54%"]


def test_a_config_without_a_test_leaves_the_cell_empty() -> None:
    rows = config_matrix({"a": {"insert": 1.0}, "b": {"insert": 2.0, "scan": 3.0}}, ["insert", "scan"])
    assert rows[1].absolute == (2.0, 3.0)
    assert rows[1].relative == (2.0, None)


def test_difference_of_differences_is_one_when_a_switch_does_the_same() -> None:
    assert difference_of_differences(100, 90, 200, 180) == pytest.approx(1.0)
    assert difference_of_differences(100, 50, 200, 200) == pytest.approx(2.0)


@pytest.mark.parametrize(("value", "base", "text"), [(0, 0, "1"), (0.077, 0, "inf"), (2, 2, "1.00"), (0, 5, "0.00")])
def test_zero_is_printed_as_the_field_does(value: float, base: float, text: str) -> None:
    assert relative_text(value, base) == text


@given(POSITIVE, POSITIVE)
def test_gain_has_the_sign_of_what_is_better(value: float, base: float) -> None:
    ratio = relative(value, base)
    assert gain(ratio, "higher") == -gain(ratio, "lower")
    assert (gain(ratio, "higher") > 0) == (ratio > 1)


@given(st.floats(min_value=0.05, max_value=20), st.floats(min_value=0.1, max_value=9))
def test_colours_do_not_favour_a_direction(ratio: float, smallest: float) -> None:
    for better in ("higher", "lower"):
        assert abs(colour_step(ratio, better, smallest)) <= 5
        if abs(abs(math.log(ratio)) - math.log1p(smallest / 100)) > 1e-9:
            assert abs(colour_step(ratio, better, smallest) + colour_step(1 / ratio, better, smallest)) <= 1


def test_a_change_within_the_quiet_zone_has_no_colour() -> None:
    assert colour_step(0.985, "higher", 2.0) == 0
    assert colour_step(0.985, "higher", 1.0) == -1
    assert colour_step(1.3, "higher", 25.0) == 5


def test_the_summary_has_the_five_rows_of_the_field() -> None:
    one = summarize([0.90, 0.96, 0.97, 0.97, 0.98])
    assert (one.median, one.min, one.max, one.tests) == (0.97, 0.90, 0.98, 5)
    assert one.average == pytest.approx(0.956)
    assert one.stddev == pytest.approx(0.0321, abs=1e-4)
    assert summarize([1.0]).stddev == 0.0
    with pytest.raises(ValueError, match="at least one"):
        summarize([])
