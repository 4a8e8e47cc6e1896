"""What an issue shows beyond its finding: levels over the releases of the line, and per-operation tables.

`context_of` is pure over the series it is given; `context_from` asks the store for just those series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean, geometric_mean
from typing import Protocol

from alerts.settings import Text
from alerts.words import PRIMARY, headline
from history.datasets import dataset_of
from history.model import Finding, Move, Point, Row, Series, SeriesKey
from history.versions import sort_versions

#: The field's columns, each with the metrics that fill it, best first; the Insert Benchmark's have names and units of
#: their own and keep them. `o/s` is the rate, whatever is counted.
FIELD_COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cpu/o", ("cpu/o", "cpupq", "cpu_us/o")),
    ("cs/o", ("cs/o", "cspq")),
    ("r/o", ("r/o", "rpq")),
    ("rKB/o", ("rKB/o", "rkbpq")),
    ("wKB/o", ("wKB/o", "wkbpi")),
    ("o/s", ("qps", "ips", "indexed rows/s")),
)
INSTRUCTIONS, RATE = "insn/o", "o/s"


class Levels(Row):
    """One moved series: its level at each of the context's releases, None where there is no result."""

    key: SeriesKey
    change_pct: float
    unit: str
    levels: tuple[float | None, ...]


class OperationRow(Row):
    """One release in a per-operation table."""

    version: str
    values: tuple[float | None, ...]


class OperationTable(Row):
    """Releases over columns, which a column without any value has no part in.

    `tables` are of one test each in the field's columns; `instructions` have one column a test, and no `test`.
    """

    server: str
    config: str
    benchmark: str
    test: str
    columns: tuple[str, ...]
    rows: tuple[OperationRow, ...]


class Context(Row):
    """What the store knows around one finding."""

    releases: tuple[str, ...]
    """Measured releases of the line, in order."""
    moved: tuple[Levels, ...]
    """The largest changes first."""
    tables: tuple[OperationTable, ...] = ()
    instructions: tuple[OperationTable, ...] = ()
    dataset: str = ""
    """The published dataset that all results of the release come from, if they do."""

    @property
    def newest(self) -> str:
        return self.releases[-1] if self.releases else ""


class HasSeries(Protocol):
    """The part of `history.store.Store` that is read here."""

    def series(
        self,
        dbms: str | None = None,
        line: str | None = None,
        server: str | None = None,
        config: str | None = None,
        benchmark: str | None = None,
        test: str | None = None,
        metric: str | None = None,
    ) -> Iterator[Series]: ...


#: What a table is of.
Place = tuple[str, str, str, str]


def level(point: Point) -> float | None:
    """The level of one release: geometric mean of its blocks, arithmetic where a zero forbids that."""
    values = [block.value for block in point.values]
    if not values:
        return None
    return geometric_mean(values) if min(values) > 0 else fmean(values)


def shown_moves(finding: Finding, limit: int) -> list[Move]:
    """At most `limit` moves: the headline's metric first, then rates and CPU, then the rest, each the largest first."""
    lead = headline(finding)

    def rank(move: Move) -> tuple[bool, bool, float, str]:
        metric = move.key.metric
        return (lead is None or metric != lead.metric), metric not in PRIMARY, -abs(move.change_pct), move.key.id

    return sorted(finding.moves, key=rank)[:limit]


def context_of(finding: Finding, series: Iterable[Series], text: Text) -> Context:
    """Levels and tables of the finding's largest moves, from the series of the finding's line (others are ignored)."""
    moves = shown_moves(finding, text.sparklines)
    keys = {move.key for move in moves}
    places: dict[Place, None] = {}
    for move in moves:
        if len(places) < text.tables:
            places.setdefault(_place(move.key))
    kept = [one for one in series if one.key in keys or _place(one.key) in places]
    # Positions differ from server to server on the line of majors.
    releases = tuple(sort_versions(finding.dbms, {point.version for one in kept for point in one.points}))
    by_key = {one.key: {point.version: level(point) for point in one.points} for one in kept}
    moved = tuple(
        Levels(
            key=move.key,
            change_pct=move.change_pct,
            unit=move.unit,
            levels=tuple(by_key[move.key].get(version) for version in releases),
        )
        for move in moves
        if move.key in by_key
    )
    rows = _rows_around(releases, finding.previous, finding.release, text.releases)
    tables: list[OperationTable] = []
    counted: dict[tuple[str, str, str], list[tuple[str, dict[str, float | None]]]] = {}
    for place in places:
        here = {key.metric: values for key, values in by_key.items() if _place(key) == place}
        columns = [
            (name if name == RATE else metric, here[metric])
            for name, metrics in FIELD_COLUMNS
            for metric in metrics
            if metric in here and not any(other in here for other in metrics[: metrics.index(metric)])
        ]
        table = _table(place, columns, rows)
        # A lone rate is no per-operation table, and a table of nothing is none.
        if table and set(table.columns) != {RATE}:
            tables.append(table)
        if INSTRUCTIONS in here:
            counted.setdefault(place[:3], []).append((place[3], here[INSTRUCTIONS]))
    instructions = (_table((*where, ""), columns, rows) for where, columns in counted.items())
    sessions = {
        value.session_id
        for one in kept
        if one.key in keys
        for point in one.points
        if point.version == finding.release
        for value in point.values
    }
    datasets = {dataset_of(session) for session in sessions}
    return Context(
        releases=releases,
        moved=moved,
        tables=tuple(tables),
        instructions=tuple(filter(None, instructions)),
        dataset=datasets.pop() if len(datasets) == 1 else "",
    )


def _place(key: SeriesKey) -> Place:
    return key.server, key.config, key.benchmark, key.test


def _rows_around(releases: tuple[str, ...], previous: str, release: str, limit: int) -> tuple[str, ...]:
    """At most `limit` releases: the boundary's two, then the newest, then neighbours before and after in turn."""
    if previous not in releases or release not in releases:
        return releases[-limit:]
    left, right = releases.index(previous), releases.index(release)
    chosen = {left, right, len(releases) - 1}
    for step in range(1, len(releases)):
        for index in (left - step, right + step):
            if len(chosen) < limit and 0 <= index < len(releases):
                chosen.add(index)
    return tuple(releases[index] for index in sorted(chosen))


def _table(
    place: Place, columns: list[tuple[str, dict[str, float | None]]], releases: tuple[str, ...]
) -> OperationTable | None:
    filled = [(name, values) for name, values in columns if any(values.get(r) is not None for r in releases)]
    rows = tuple(
        OperationRow(version=release, values=tuple(values.get(release) for _, values in filled))
        for release in releases
        if any(values.get(release) is not None for _, values in filled)
    )
    if not rows:
        return None
    server, config, benchmark, test = place
    names = tuple(name for name, _ in filled)
    return OperationTable(server=server, config=config, benchmark=benchmark, test=test, columns=names, rows=rows)


def context_from(store: HasSeries, finding: Finding, text: Text) -> Context:
    """`context_of` over just the series of the store it needs."""
    places = dict.fromkeys(_place(move.key) for move in shown_moves(finding, text.sparklines))
    found: list[Series] = []
    for server, config, benchmark, test in places:
        found += store.series(
            dbms=finding.dbms, line=finding.line, server=server, config=config, benchmark=benchmark, test=test
        )
    return context_of(finding, found, text)
