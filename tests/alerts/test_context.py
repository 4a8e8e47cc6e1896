"""Which trends and per-operation tables an issue has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from alerts.context import Context, context_from, context_of
from alerts.settings import AlertSettings
from history.store import Store
from tests.builders import (
    RELEASES,
    field_series,
    finding,
    history_of,
    level_series,
    series_key,
    stepped,
)

SETTINGS = AlertSettings()
COUNTED_AND_FIELD = ["insn/o", "cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s"]


def test_tables_have_the_fields_columns_and_only_those_with_values() -> None:
    moved = finding(changes={"hot-points": 4.9})
    context = context_of(moved, [*history_of(moved), *field_series("hot-points"), *field_series("insert")], SETTINGS)
    ((place, table),) = context.tables
    assert place.test == "hot-points" and list(table.columns) == COUNTED_AND_FIELD
    assert list(table.index) == list(RELEASES[1:])
    partly = [series for series in field_series("hot-points") if series.key.metric in ("cs/o", "qps")]
    ((_, table),) = context_of(moved, [*history_of(moved), *partly], SETTINGS).tables
    assert list(table.columns) == ["insn/o", "cs/o", "o/s"]


def test_a_lone_rate_is_no_table() -> None:
    moved = finding(changes={"hot-points": 4.9})
    rate = [series for series in field_series("hot-points") if series.key.metric == "qps"]
    assert context_of(moved, [*history_of(moved), *rate], SETTINGS).tables == ()


def test_the_insert_benchmark_keeps_its_own_columns() -> None:
    moved = finding(changes={"hot-points": 4.9})
    more = [
        level_series(series_key("hot-points", metric), stepped(level, 3, 5))
        for metric, level in {"cpupq": 153.0, "wkbpi": 5.3, "ips": 19077.0}.items()
    ]
    ((_, table),) = context_of(moved, [*history_of(moved), *more], SETTINGS).tables
    assert list(table.columns) == ["insn/o", "cpupq", "wkbpi", "ips"]


def test_rows_stay_around_the_boundary_and_keep_the_newest() -> None:
    releases = [f"17.{point}" for point in range(30)]
    moved = finding("17.10", "17.9", changes={"insert": 5.0})
    series = level_series(moved.moves[0].key, stepped(99_500.0, 5, 10, releases), releases)
    ((_, table),) = context_of(moved, [series], SETTINGS).counted
    assert list(table.index) == ["17.7", "17.8", "17.9", "17.10", "17.11", "17.29"]


def test_a_release_without_a_result_has_no_row() -> None:
    moved = finding(changes={"insert": 5.0})
    levels: list[float | None] = list(stepped(99_500.0, 5, 5))
    levels[3] = None
    context = context_of(moved, [level_series(moved.moves[0].key, levels)], SETTINGS)
    assert "17.3" not in context.counted[0][1].index
    assert context.releases == tuple(version for version in RELEASES if version != "17.3")


def as_values(context: Context) -> object:
    tables = [(place, table.to_dict("tight")) for place, table in (*context.tables, *context.counted)]
    return context.releases, context.trends, context.dataset, repr(tables)


@given(st.permutations(range(4)))
def test_order_of_arrival_does_not_matter(order: list[int]) -> None:
    moved = finding(changes={"hot-points": 4.9})
    series = [*history_of(moved), *field_series("hot-points")[:3]]
    shuffled = context_of(moved, [series[at] for at in order], SETTINGS)
    assert as_values(shuffled) == as_values(context_of(moved, series, SETTINGS))


def test_the_store_gives_the_same(store: Store) -> None:
    context = context_from(store, finding(changes={"hot-points": 4.9}), SETTINGS)
    assert context.releases == RELEASES
    assert list(context.tables[0][1].columns) == COUNTED_AND_FIELD


def test_releases_are_in_order_though_servers_count_them_differently() -> None:
    """On `majors`, a server with fewer lines has its releases at other positions."""
    moved = finding("17.5", "16.9", line="majors", servers=("local", "medium"), changes={"insert": 4.9})
    places = {"local": ("14.9", "15.9", "16.9", "17.5"), "medium": ("16.9", "17.5")}
    series = []
    for move in moved.moves:
        releases = places[move.key.server]
        series.append(level_series(move.key, stepped(move.before, 4.9, releases.index("17.5"), releases), releases))
    assert context_of(moved, series, SETTINGS).releases == ("14.9", "15.9", "16.9", "17.5")
