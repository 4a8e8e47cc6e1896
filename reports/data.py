"""CSV and JSON of exactly what a page draws, from the frames that it is drawn from. Pure.

JSON objects carry `schema` (`pointdrop.line/1`, `pointdrop.test/1`, `pointdrop.finding/1`, `pointdrop.compare/1`,
`pointdrop.noise/1`); numbers are the history's, not rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from history.metrics import MetricRegistry
from history.model import Finding, Series
from presentation.addresses import LineKey
from presentation.findings import finding_record, moves_frame
from presentation.heat import Marks
from presentation.relative import levels
from presentation.releases import SERIES_COLUMNS, block_rows
from presentation.steps import steps
from presentation.tables import csv_text, frame_csv, json_line, rows_of

if TYPE_CHECKING:
    from pandas import DataFrame

#: What a file has of a finding, after its key and before each of its moves.
FINDING_COLUMNS = ("kind", "tier", "cause", "previous", "release")


def series_json(series: Series, marks: Marks) -> dict[str, Any]:
    """One series: its releases with their blocks, the stretches between changepoints, and the changepoints."""
    changepoints = marks.get(series.key.id, {})
    points = [point for point in series.points if point.values]
    by_version = levels(series)
    return {
        **series.key.model_dump(),
        "group": series.group,
        "unit": series.unit,
        "better": series.better,
        "points": [
            {
                "version": point.version,
                "released": point.released.isoformat() if point.released else None,
                "median": by_version[point.version],
                "blocks": [
                    {"value": value, "block": block, "session": session, "host": host, "epoch": epoch}
                    for value, block, session, host, epoch in point.values
                ],
            }
            for point in points
        ],
        "steps": [
            {
                "from": points[stretch.start].version,
                "to": points[stretch.end].version,
                "level": stretch.level,
                "low": stretch.low,
                "high": stretch.high,
                "releases": stretch.releases,
                "blocks": stretch.blocks,
            }
            for stretch in steps(series, changepoints)
        ],
        "changepoints": [
            {"release": version, "finding": mark.finding, "change_pct": mark.change_pct, "tier": mark.tier}
            for version, mark in sorted(changepoints.items())
        ],
    }


def test_json(key: LineKey, test: str, series: Sequence[Series], marks: Marks) -> str:
    rows = [series_json(member, marks) for member in series]
    return json_line({"schema": "pointdrop.test/1", **key._asdict(), "test": test, "series": rows})


def test_csv(series: Sequence[Series], releases: DataFrame) -> str:
    """A row a block."""
    return csv_text(SERIES_COLUMNS, block_rows(series, releases))


def line_csv(releases: DataFrame) -> str:
    """A row a release of each series; the columns of a block stay empty."""
    return frame_csv(releases.reindex(columns=SERIES_COLUMNS))


def line_json(key: LineKey, series: Sequence[Series], marks: Marks) -> str:
    """Every series of the line at release level; the test pages' files have the blocks."""
    rows = [
        {
            "test": member.key.test,
            "group": member.group,
            "metric": member.key.metric,
            "unit": member.unit,
            "better": member.better,
            "values": levels(member),
            "changepoints": {version: mark.finding for version, mark in sorted(marks.get(member.key.id, {}).items())},
        }
        for member in series
    ]
    return json_line({"schema": "pointdrop.line/1", **key._asdict(), "series": rows})


def finding_json(finding: Finding, metrics: MetricRegistry) -> str:
    return json_line({"schema": "pointdrop.finding/1", **finding_record(finding, metrics)})


def moves_csv(finding: Finding, metrics: MetricRegistry) -> str:
    """The moves of a finding, a row each, with the finding's own columns before them."""
    own = [finding.key, *(getattr(finding, name) for name in FINDING_COLUMNS)]
    table = moves_frame(finding, metrics)
    return csv_text(["finding", *FINDING_COLUMNS, *table.columns], ([*own, *row] for row in rows_of(table)))
