"""Version order and lines, as each DBMS has them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.errors import InvalidRecord
from history.versions import line_of, sort_versions, version_key

NUMBERS = st.lists(st.integers(0, 10**6), min_size=2, max_size=4)
ANYTHING = st.one_of(st.text(max_size=20), NUMBERS.map(lambda n: ".".join(map(str, n))))


@pytest.mark.parametrize(
    ("dbms", "version", "line"),
    [
        ("postgres", "9.6.24", "9.6"),
        ("postgres", "9.6rc1", "9.6"),
        ("postgres", "10.0", "10"),
        ("postgres", "17.2", "17"),
        ("postgres", "17rc1", "17"),
        ("postgres", "18beta2", "18"),
        ("postgres", "19devel", "19"),
        ("mysql", "5.6.24", "5.6"),
        ("mysql", "8.0.30", "8.0"),
        ("mysql", "8.0.4-rc", "8.0"),
        ("mysql", "9.7.0", "9.7"),
        ("mysql", "26.7", "26.7"),
        ("mysql", "26.7.1", "26.7"),
        ("mysql", "26.10.0", "26.10"),
        ("mariadb", "10.11.5", "10.11"),
        ("mariadb", "11.8.2", "11.8"),
        ("myrocks", "5.6.35", "5.6"),
        ("myrocks", "8.0.28+240331.f896415", "8.0"),
    ],
)
def test_lines(dbms: str, version: str, line: str) -> None:
    assert line_of(dbms, version) == line


@pytest.mark.parametrize(("dbms", "version"), [("mysql", "8"), ("mysql", "main"), ("postgres", ""), ("postgres", "9")])
def test_no_line_without_its_numbers(dbms: str, version: str) -> None:
    with pytest.raises(InvalidRecord, match="give the line with the release"):
        line_of(dbms, version)


@pytest.mark.parametrize(
    ("dbms", "ordered"),
    [
        ("mariadb", ["10.6.20", "10.11.5", "10.11.19", "11.4.1"]),
        ("mysql", ["5.6.51", "5.7.5-m15", "5.7.8-rc", "5.7.9", "8.0.0-dmr", "8.0.4-rc", "8.0.11", "8.0.28", "8.0.30"]),
        ("mysql", ["8.0.44", "8.1.0", "8.4.0", "8.4.10", "9.0.0", "9.7.0", "10.0.0"]),
        ("mysql", ["9.6.0", "9.7.0", "9.7.4", "26.7", "26.7.1", "26.10.0", "27.1.0"]),
        ("postgres", ["9.6.24", "10beta1", "10.0", "10.23", "17devel", "17beta1", "17beta2", "17rc1", "17.0", "17.2"]),
        ("postgres", ["17.2", "17.2+20260105.3f2a9c1", "17.2+20260106.0000000", "17.3"]),
        ("myrocks", ["5.6.35", "5.6.35+210407.f896415", "8.0.20", "8.0.28"]),
        ("x", ["main", "1.0"]),
    ],
)
def test_order(dbms: str, ordered: list[str]) -> None:
    shuffled = ordered[:]
    random.Random(1).shuffle(shuffled)
    assert sort_versions(dbms, shuffled) == ordered


@given(st.lists(ANYTHING, max_size=8))
def test_any_texts_have_one_order(versions: list[str]) -> None:
    """The order is total and does not depend on the order of arrival."""
    assert sort_versions("x", versions) == sort_versions("x", reversed(versions))


@given(ANYTHING, ANYTHING)
def test_different_texts_have_different_keys(one: str, other: str) -> None:
    assert (version_key("x", one) == version_key("x", other)) == (one == other)


@given(NUMBERS, NUMBERS)
def test_numbers_compare_as_numbers(one: list[int], other: list[int]) -> None:
    def text(numbers: list[int]) -> str:
        return ".".join(map(str, numbers))

    def trimmed(numbers: list[int]) -> list[int]:
        return trimmed(numbers[:-1]) if len(numbers) > 1 and numbers[-1] == 0 else numbers

    if trimmed(one) != trimmed(other):
        assert (version_key("x", text(one)) < version_key("x", text(other))) == (trimmed(one) < trimmed(other))


@given(NUMBERS, st.sampled_from(["alpha", "beta", "rc", "-rc", "devel", "-dmr", "-m7"]), st.integers(0, 99))
def test_a_pre_release_precedes_its_release_and_keeps_its_line(numbers: list[int], stage: str, count: int) -> None:
    release = ".".join(map(str, numbers))
    before = f"{release}{stage}{count if stage != '-m7' else ''}"
    assert version_key("mysql", before) < version_key("mysql", release)
    assert line_of("mysql", before) == line_of("mysql", release)
