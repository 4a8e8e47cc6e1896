"""Addresses: stable, safe, never two names at one place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from presentation import addresses
from presentation.addresses import LineKey

NAMES = st.text(min_size=1, max_size=60)


@given(NAMES, NAMES)
def test_two_names_never_share_an_address(a: str, b: str) -> None:
    assert (addresses.part(a) == addresses.part(b)) == (a == b)


@given(st.text(max_size=400))
def test_an_address_part_is_safe_in_any_file_system_and_link(name: str) -> None:
    found = addresses.part(name)
    assert found
    assert not found.startswith(".")
    assert len(found) <= addresses.MAX_PART_CHARS
    assert set(found) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~")


def test_permalinks_are_what_issues_already_link_to() -> None:
    key = LineKey("mysql", "8.0", "small", "z12a", "sysbench")
    assert addresses.of_line(key) == "lines/mysql/8.0/small/z12a/sysbench/index.html"
    assert addresses.of_test(key, "scan") == "lines/mysql/8.0/small/z12a/sysbench/scan.html"
    assert addresses.of_test(key, "index") == "lines/mysql/8.0/small/z12a/sysbench/~index.html"
    assert addresses.of_finding("mysql/8.0/8.0.30/regression") == "findings/mysql/8.0/8.0.30/regression.html"
    assert addresses.of_compare("small", "insert") == "compare/small/insert.html"


def test_names_that_would_leave_the_folder_stay_inside() -> None:
    key = LineKey("..", "../../etc", "/root", ".", "a/b")
    assert ".." not in addresses.of_line(key).replace("~2e", "").split("/")
    assert addresses.up(addresses.of_line(key)) == "../" * 6
