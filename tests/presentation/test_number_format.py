"""How numbers are written."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presentation.number_format import (
    count,
    difference,
    grouped,
    interval,
    listing,
    percent,
    plain,
    probability,
    ratio,
    short,
    signed,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)


@given(NUMBERS)
def test_a_number_is_read_back_to_four_digits(value: float) -> None:
    assert float(plain(value)) == pytest.approx(value, rel=5.1e-4, abs=0)
    assert float(grouped(value).replace(",", "")) == float(plain(value))


@given(NUMBERS)
def test_a_percentage_is_read_back_with_its_sign(value: float) -> None:
    number = float(signed(value).removesuffix(" %").replace("−", "-"))
    tolerance = 0.5 if abs(value) >= 99.95 else 0.05 if abs(value) >= 0.995 else 0.005
    assert number == pytest.approx(value, abs=tolerance * 1.001)
    assert float(percent(value).removesuffix(" %")) == abs(number)
    assert "-" not in signed(value), "a real minus sign"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00 %"), (-0.004, "0.00 %"), (0.994, "+0.99 %"), (0.996, "+1.0 %"), (99.94, "+99.9 %"), (99.96, "+100 %"),
     (-1234.5, "−1234 %"), (math.inf, "+inf %"), (-math.inf, "−inf %")],
)  # fmt: skip
def test_the_edges_of_percentages(value: float, text: str) -> None:
    assert signed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (9999.4, "9999"), (9999.6, "10000"), (1e-12, "1.000e-12"), (-0.25, "-0.25"), (math.inf, "inf")],
)
def test_the_edges_of_numbers(value: float, text: str) -> None:
    assert plain(value) == text


def test_intervals_ratios_and_probabilities() -> None:
    assert interval(-12.34, 3.0) == "−12.3 to +3.0 %"
    assert [ratio(value) for value in (1.0, 0.949, math.inf, math.nan, None)] == ["1.00", "0.95", "inf", "–", "–"]
    assert [probability(value) for value in (1.0, 0.9995, 0.9993, 0.5)] == [
        "p > 0.999", "p > 0.999", "p 0.999", "p 0.500",
    ]  # fmt: skip
    assert [difference(value) for value in (1200.0, -3.25, 0.0, 12000.0)] == ["+1200", "−3.25", "+0", "+12,000"]


def test_counts_and_lists_of_names() -> None:
    assert [count(number, "test") for number in (0, 1, 2, 3200)] == ["0 tests", "1 test", "2 tests", "3,200 tests"]
    assert count(2, "tests") == "2 tests"
    assert [listing(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


@given(NUMBERS)
def test_shortened_numbers_differ_by_less_than_a_page_shows(value: float) -> None:
    assert short(value) == pytest.approx(value, rel=1e-6)


def test_what_is_not_finite_is_no_number_in_a_page() -> None:
    assert short(math.inf) is None and short(math.nan) is None and short(None) is None
