"""Levels, per-operation tables and sparklines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.context import context_from, context_of, level
from alerts.settings import Text
from alerts.tables import BARS, operation_lines, relative, sparkline
from history.model import BlockValue, Point
from history.store import Store
from tests.alerts.examples import RELEASES, field_series, finding, history_of, series, series_key, step

TEXT = Text()


def point(*values: float) -> Point:
    blocks = tuple(
        BlockValue(value=v, block_id=str(n), session_id="s", host="h", epoch="e") for n, v in enumerate(values)
    )
    return Point(version="1", position=0, values=blocks)


def test_a_level_is_the_geometric_mean_and_never_made_up() -> None:
    assert level(point(2.0, 8.0)) == pytest.approx(4.0)
    assert level(point(0.0, 4.0)) == 2.0
    assert level(point()) is None


def test_tables_have_the_fields_columns_and_only_those_with_values() -> None:
    one = finding(changes={"hot-points": 4.9})
    context = context_of(one, [*history_of(one), *field_series("hot-points"), *field_series("insert")], TEXT)
    (table,) = context.tables
    assert table.test == "hot-points" and table.columns == ("cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s")
    assert [row.version for row in table.rows] == list(RELEASES[1:])
    lines = operation_lines(table, "postgres")
    assert lines[1].split() == ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s", "dbms"]
    assert lines[-1].split() == ["1.04", "1.02", "1", "inf", "1.00", "0.97", "postgres", "17.6", "default"]
    partly = [one for one in field_series("hot-points") if one.key.metric in ("cs/o", "qps")]
    (table,) = context_of(one, [*history_of(one), *partly], TEXT).tables
    assert table.columns == ("cs/o", "o/s")


def test_a_lone_rate_is_no_table() -> None:
    one = finding(changes={"hot-points": 4.9})
    rate = [one for one in field_series("hot-points") if one.key.metric == "qps"]
    assert context_of(one, [*history_of(one), *rate], TEXT).tables == ()


def test_the_insert_benchmark_keeps_its_own_columns() -> None:
    one = finding(changes={"hot-points": 4.9})
    more = [
        series(series_key("hot-points", m), step(v, 3, 5))
        for m, v in {"cpupq": 153.0, "wkbpi": 5.3, "ips": 19077.0}.items()
    ]
    (table,) = context_of(one, [*history_of(one), *more], TEXT).tables
    assert table.columns == ("cpupq", "wkbpi", "o/s")


def test_rows_stay_around_the_boundary_and_keep_the_newest() -> None:
    releases = [f"17.{n}" for n in range(30)]
    one = finding("17.10", "17.9", changes={"insert": 5.0})
    context = context_of(one, [series(one.moves[0].key, step(99_500.0, 5, 10, releases), releases)], TEXT)
    assert [row.version for row in context.instructions[0].rows] == ["17.7", "17.8", "17.9", "17.10", "17.11", "17.29"]


def test_a_release_without_a_result_has_no_row() -> None:
    one = finding(changes={"insert": 5.0})
    values: list[float | None] = list(step(99_500.0, 5, 5))
    values[3] = None
    context = context_of(one, [series(one.moves[0].key, values)], TEXT)
    assert "17.3" not in [row.version for row in context.instructions[0].rows]
    assert context.releases == tuple(v for v in RELEASES if v != "17.3")


@given(st.permutations(range(4)))
def test_order_of_arrival_does_not_matter(order: list[int]) -> None:
    one = finding(changes={"hot-points": 4.9})
    known = [*history_of(one), *field_series("hot-points")[:3]]
    assert context_of(one, [known[n] for n in order], TEXT) == context_of(one, known, TEXT)


def test_the_store_gives_the_same(store: Store) -> None:
    one = finding(changes={"hot-points": 4.9})
    context = context_from(store, one, TEXT)
    assert context.releases == RELEASES and context.newest == "17.6"
    assert context.tables[0].columns == ("cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s")


@given(st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), max_size=40), st.integers(0, 40))
def test_sparklines_have_one_mark_a_release(levels: list[float | None], boundary: int) -> None:
    drawn = sparkline(levels, boundary)
    assert len(drawn.replace("|", "")) == len(levels) and set(drawn) <= {*BARS, "·", "|"}
    present = [value for value in levels if value is not None]
    if present and max(present) > min(present):
        assert drawn.replace("|", "")[levels.index(max(present))] == BARS[-1]


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_relative_is_the_fields(value: float, first: float) -> None:
    shown = relative(value, first)
    assert shown == ("1" if value == first == 0 else "inf" if first == 0 else f"{value / first:.2f}")


def test_releases_are_in_order_though_servers_count_them_differently() -> None:
    """On `majors`, a server with fewer lines has its releases at other positions."""
    one = finding("17.5", "16.9", line="majors", servers=("local", "medium"), changes={"insert": 4.9})
    places = {"local": ("14.9", "15.9", "16.9", "17.5"), "medium": ("16.9", "17.5")}
    every = [
        series(move.key, step(move.before, 4.9, places[move.key.server].index("17.5"), places[move.key.server]),
               places[move.key.server])
        for move in one.moves
    ]  # fmt: skip
    assert context_of(one, every, TEXT).releases == ("14.9", "15.9", "16.9", "17.5")
