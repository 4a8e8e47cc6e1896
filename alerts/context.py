"""What an issue shows beyond its finding: trends over the releases of the line, and per-operation tables.

`context_of` is pure over the series it is given; `context_from` asks the store for just those series.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from alerts.settings import AlertSettings
from history.datasets import dataset_of
from history.model import Finding, Move, Series, SeriesKey, carrying_moves
from history.versions import sort_versions
from presentation.findings import ordered_moves
from presentation.operations import operations_frame, tests_frame
from presentation.trends import Trend, trends

if TYPE_CHECKING:
    from pandas import DataFrame

    from history.store import Store


class Place(NamedTuple):
    """What a table is of; `test` is empty for a table with a column a test."""

    server: str
    config: str
    benchmark: str
    test: str = ""

    @classmethod
    def of(cls, key: SeriesKey) -> Place:
        return cls(key.server, key.config, key.benchmark, key.test)


class Context(NamedTuple):
    """What the store knows around one finding."""

    releases: tuple[str, ...]
    """Measured releases of the line, in order."""
    trends: tuple[Trend, ...]
    """Of the largest changes, these first."""
    tables: tuple[tuple[Place, DataFrame], ...] = ()
    """Per-operation tables, one a test."""
    counted: tuple[tuple[Place, DataFrame], ...] = ()
    """Counted instructions, a column a test."""
    dataset: str = ""
    """The published dataset that all results of the release come from, if they do."""


def context_of(finding: Finding, series: Iterable[Series], settings: AlertSettings) -> Context:
    """Trends and tables of the finding's largest moves, from the series of the finding's line (others are ignored)."""
    metrics, text = settings.metrics, settings.text
    moves = _told(finding, settings)
    places = list(dict.fromkeys(Place.of(move.key) for move in moves))
    by_key = {member.key: member for member in series if Place.of(member.key) in places}
    # Positions differ from server to server on the line of majors.
    versions = {point.version for member in by_key.values() for point in member.points}
    releases = tuple(sort_versions(finding.dbms, versions))
    rows = _rows_around(releases, finding.previous, finding.release, text.releases)
    tables: list[tuple[Place, DataFrame]] = []
    counted: dict[Place, list[Series]] = {}
    for place in places[: text.tables]:
        of_place = [by_key[key] for key in sorted(by_key, key=lambda key: key.id) if Place.of(key) == place]
        # A lone rate is no per-operation table.
        if any(metrics[member.key.metric].kind not in ("throughput", "instructions") for member in of_place):
            tables.append((place, operations_frame(of_place, rows, metrics)))
        counted.setdefault(place._replace(test=""), []).extend(
            member for member in of_place if metrics[member.key.metric].lane == "instructions"
        )
    made = ((place, tests_frame(of_place, rows)) for place, of_place in counted.items())
    values = [
        value
        for move in moves
        if move.key in by_key
        for point in by_key[move.key].points
        if point.version == finding.release
        for value in point.values
    ]
    datasets = {dataset_of(value.session_id) for value in values}
    return Context(
        releases=releases,
        trends=trends(moves, by_key, releases),
        tables=tuple((place, table) for place, table in tables if not table.empty),
        counted=tuple((place, table) for place, table in made if not table.empty),
        dataset=datasets.pop() if len(datasets) == 1 else "",
    )


def _told(finding: Finding, settings: AlertSettings) -> list[Move]:
    """The moves that the issue draws: of those that carry the finding's tier, the largest."""
    told = {move.key for move in carrying_moves(finding)}
    return [move for move in ordered_moves(finding, settings.metrics) if move.key in told][: settings.text.sparklines]


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


def context_from(store: Store, finding: Finding, settings: AlertSettings) -> Context:
    """`context_of` over just the series of the store it needs."""
    moves = _told(finding, settings)
    series: list[Series] = []
    for place in dict.fromkeys(Place.of(move.key) for move in moves):
        series += store.series(dbms=finding.dbms, line=finding.line, **place._asdict())
    return context_of(finding, series, settings)
