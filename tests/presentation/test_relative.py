"""The field's arithmetic, against tables that were published."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presentation.operations import cells, operations_text, relative_frame
from presentation.relative import colour_step, gain, level_frame, ratios, relative

from .examples import series

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
    table = pd.DataFrame(UPDATE_INLIST, index=RELEASES)
    # The post has 1 for 0/0, which is 1.00 here.
    assert cells(relative_frame(table), 2)[1:] == [
        ["1.08", "0.98", "1.00", "1.00", "0.99", "0.97"],
        ["0.61", "0.24", "inf", "inf", "0.37", "0.97"],
        ["0.64", "0.23", "inf", "inf", "0.36", "0.92"],
    ]
    lines = operations_text(table, "mariadb").splitlines()
    assert lines[1].split() == ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s", "dbms"]
    assert lines[2].split() == ["0.006937", "36.08", "0", "0", "90.67", "3966", "mariadb", "10.2.44"]


def test_releases_stand_in_the_order_of_the_line_and_what_was_not_measured_is_nan() -> None:
    later, first = series({"8.0.30": [3, 1, 2]}, "b", first=2), series({"8.0.28": [9], "8.0.29": []}, "a")
    table = level_frame([later, first])
    assert list(table.columns) == ["8.0.28", "8.0.30"]
    assert table.loc[0].isna().tolist() == [True, False] and table.loc[0, "8.0.30"] == 2
    assert level_frame([first], ["8.0.28", "9.0.0"]).loc[0].tolist()[0] == 9


@given(st.lists(st.lists(st.floats(min_value=0, max_value=1e9), min_size=3, max_size=3), min_size=1, max_size=4))
def test_frames_are_relative_as_numbers_are(rows: list[list[float]]) -> None:
    values = pd.DataFrame(rows)
    expected = [[relative(value, row[1]) for value in row] for row in rows]
    assert ratios(values, values.to_numpy()[:, 1, np.newaxis]).to_numpy().tolist() == expected
    assert relative_frame(values.T, 0).T.to_numpy().tolist() == [[relative(v, row[0]) for v in row] for row in rows]


@pytest.mark.parametrize(("value", "base", "ratio"), [(0, 0, 1), (0.077, 0, math.inf), (2, 2, 1), (0, 5, 0)])
def test_zero_is_as_the_field_has_it(value: float, base: float, ratio: float) -> None:
    assert relative(value, base) == ratio


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
    assert colour_step(math.nan, "lower") == 0 and colour_step(math.inf, "lower") == -5
