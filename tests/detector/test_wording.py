"""Numbers in the sentences of the detector read as they do in the titles and tables beside them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from detector import wording
from presentation import number_format

sizes = st.floats(-1e4, 1e4)


@given(sizes)
def test_a_number_reads_the_same_in_evidence_and_title(size: float) -> None:
    assert wording.unsigned(size) == number_format.percent(size)
    assert wording.signed(size) == number_format.signed(size)


@given(sizes, sizes)
def test_both_ends_read_the_same(one: float, other: float) -> None:
    low, high = sorted((one, other))
    text = wording.span([one, other], wording.signed)
    assert text in (number_format.interval(low, high), number_format.signed(low))


@given(st.integers(0, 50))
def test_a_count_reads_the_same(number: int) -> None:
    assert wording.count(number, "move") == number_format.count(number, "move")
