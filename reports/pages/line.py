"""The line page: one heat table a view, the chart of group medians above it, the findings of the line. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from history.model import Better, Point, Series, Session
from presentation import addresses
from presentation.addresses import LineKey
from presentation.heat import HeatGroup, HeatTable, heat_table, marks_of
from presentation.insert import is_insert
from presentation.noise import time_to_show
from presentation.number_format import ratio as ratio_text
from presentation.number_format import short
from presentation.relative import colour_step
from presentation.views import offered_views, views
from reports.annotations import Annotation, place, place_on_host
from reports.pages.finding_summary import FindingSummary, finding_summary
from reports.settings import MAX_HEAT_CELLS, ReportSettings
from reports.snapshot import Snapshot
from reports.spark import spark

#: Links to the same line on other servers or with other configs.
MAX_SIBLINGS = 12
#: Labels that fit beside each other over a chart; closer ones stand one line lower.
LABELS_ACROSS = 14
#: Releases past which a table is set tighter.
MANY_COLUMNS = 16
MAX_LABEL_ROWS = 3


class Cell(NamedTuple):
    """One cell as the template prints it."""

    text: str
    css: str


class Column(NamedTuple):
    """One release in the head of a table."""

    version: str
    released: str
    marks: tuple[FindingSummary, ...]
    notes: tuple[Mapping[str, Any], ...] = ()
    """Annotations of this release: `label`, as on the chart, and `text`."""


def cell(ratio: float, better: Better, decimals: int, quiet_pct: float, extra: str = "") -> Cell:
    """`0.94` with its colour class: `w1`..`w5` worse, `b1`..`b5` better; `na` for NaN."""
    if math.isnan(ratio):
        return Cell(ratio_text(ratio), "na")
    colour = colour_step(ratio, better, quiet_pct)
    shade = f"w{-colour}" if colour < 0 else f"b{colour}" if colour else ""
    return Cell(ratio_text(ratio, decimals), f"{shade}{extra}".strip())


def columns(
    table: HeatTable,
    series: Sequence[Series],
    summaries: Sequence[FindingSummary],
    remarks: Sequence[Mapping[str, Any]] = (),
) -> list[Column]:
    dates = {point.version: point.released for member in series for point in member.points if point.released}
    return [
        Column(
            version,
            dates[version].strftime("%Y-%m") if version in dates else "",
            tuple(summary for summary in summaries if summary.finding.release == version),
            tuple(note for note in remarks if note["p"] == position),
        )
        for position, version in enumerate(table.versions)
    ]


def notes(
    annotations: Sequence[Annotation],
    key: LineKey,
    versions: Sequence[str],
    test: str = "",
    measured: Sequence[tuple[str, date]] = (),
) -> list[dict[str, Any]]:
    """Annotations of one chart: where, what, and the address of more; `measured` is (host, day) of each version."""
    notes: list[dict[str, Any]] = []
    for annotation in annotations:
        if annotation.test and annotation.test != test:
            continue
        position = (
            place_on_host(annotation, measured) if annotation.host else place(annotation, key.dbms, key.line, versions)
        )
        if position is not None:
            notes.append({"p": position, "text": annotation.text, "url": annotation.url})
    notes.sort(key=lambda note: (note["p"], note["text"]))
    return [{**note, "label": chr(ord("a") + i % 26)} for i, note in enumerate(notes)]


def measured_on(points: Sequence[Point], sessions: Mapping[str, Session]) -> list[tuple[str, date]]:
    """(host, day) of the first block of each point; empty where a session is not known."""
    if any(point.values[0].session_id not in sessions for point in points):
        return []
    return [(point.values[0].host, sessions[point.values[0].session_id].started.date()) for point in points]


def stacked(marks: list[dict[str, Any]], releases: int) -> list[dict[str, Any]]:
    """Labels of neighbouring marks stand one `row` lower each, on a chart of so many releases."""
    marks = sorted(marks, key=lambda mark: mark["p"])
    room = max(0.5, releases / LABELS_ACROSS)
    row = 0
    for i, mark in enumerate(marks):
        row = row + 1 if i and mark["p"] - marks[i - 1]["p"] < room and row < MAX_LABEL_ROWS else 0
        mark["row"] = row
    return marks


def chart_data(table: HeatTable, summaries: Sequence[FindingSummary], remarks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the chart of group medians draws: one row a (group, release), the findings, the annotations."""
    lines = {group.name: group.medians for group in table.groups} if len(table.groups) > 1 else {}
    lines[f"all {len(table.tests)} tests"] = table.overall.medians
    return {
        "names": table.versions,
        "medians": [
            {"g": group, "p": position, "v": table.versions[position], "r": short(ratio)}
            for group, medians in lines.items()
            for position, ratio in enumerate(medians)
            if math.isfinite(ratio)
        ],
        "marks": stacked(
            [
                {
                    "p": table.versions.index(summary.finding.release) - 0.5,
                    "label": f"{summary.shape} {summary.finding.release}",
                    "kind": summary.css,
                }
                for summary in summaries
                if summary.finding.release in table.versions
            ],
            len(table.versions),
        ),
        "notes": remarks,
    }


def script_data(table: HeatTable) -> dict[str, Any]:
    """What the page's script needs to recompute the table against another base: absolute values by row."""
    position = {version: at for at, version in enumerate(table.versions)}
    return {
        "id": table.view.id,
        "decimals": table.view.decimals,
        "base": position[table.base],
        "quiet": table.overall.quiet_pct,
        "versions": table.versions,
        "groups": [
            {
                "better": group.better,
                "quiet": group.quiet_pct,
                "rows": [
                    {
                        "better": row["better"],
                        "quiet": row["quiet_pct"],
                        "base": position[row["base"]],
                        "values": [short(value) for value in row["values"]],
                    }
                    for row in group.rows
                ],
            }
            for group in table.groups
        ],
    }


def group_cells(group: HeatGroup, decimals: int) -> list[Cell]:
    return [cell(ratio, group.better, decimals, group.quiet_pct) for ratio in group.medians]


def group_context(key: LineKey, table: HeatTable, group: HeatGroup) -> dict[str, Any]:
    """A group of the table with its tests."""
    decimals = table.view.decimals
    rows = []
    for row in group.rows:
        marks = table.marks.get(row["test"], {})
        rows.append(
            {
                "test": row["test"],
                "href": addresses.of_test(key, row["test"]).rsplit("/", 1)[1],
                "own_base": row["base"] != table.base,
                "regressed": any(mark.direction == "regression" for mark in marks.values()),
                "cells": [
                    cell(ratio, row["better"], decimals, row["quiet_pct"], " cp" if version in marks else "")
                    for version, ratio in zip(table.versions, row["ratios"], strict=True)
                ],
                "spark": spark(row["ratios"]),
            }
        )
    return {
        "name": group.name,
        "cells": group_cells(group, decimals),
        "spark": spark(group.medians),
        "rows": rows,
    }


def view_context(
    key: LineKey,
    series: Sequence[Series],
    table: HeatTable,
    summaries: Sequence[FindingSummary],
    settings: ReportSettings,
    sessions: Mapping[str, Session],
) -> dict[str, Any]:
    whole_line = (member.points for member in series if [point.version for point in member.points] == table.versions)
    measured = measured_on(next(whole_line, ()), sessions)
    remarks = notes(settings.annotations, key, table.versions, measured=measured)
    return {
        "view": table.view,
        "table": table,
        "base": table.base,
        "columns": columns(table, series, summaries, remarks),
        "overall": group_cells(table.overall, table.view.decimals),
        "overall_spark": spark(table.overall.medians),
        "groups": [group_context(key, table, group) for group in table.groups],
        "chart": chart_data(table, summaries, remarks),
        "script": script_data(table),
        "notes": remarks,
    }


def line_context(key: LineKey, snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `line.html` shows."""
    series = snapshot.lines[key]
    findings = snapshot.findings_of(key)
    summaries = [
        finding_summary(
            finding.model_copy(update={"moves": tuple(move for move in finding.moves if LineKey.of(move.key) == key)}),
            settings.metrics,
            snapshot.events_of(finding),
            snapshot.links_of(finding),
        )
        for finding in findings
    ]
    marks = marks_of(findings)
    offered = offered_views(series, views(settings.metrics))
    budget = MAX_HEAT_CELLS // max(1, len(offered))
    tables = [
        heat_table(series, view, settings.metrics, marks=marks, order=settings.order, max_cells=budget)
        for view in offered
    ]
    sessions = {session.id: session for session in snapshot.sessions}
    return {
        "key": key,
        "findings": sorted(summaries, key=lambda summary: _position(tables, summary.finding.release), reverse=True),
        "views": [
            view_context(key, series, table, _marked_on(table, summaries), settings, sessions) for table in tables
        ],
        "tests": len({member.key.test for member in series}),
        "others": others(key, series, tables),
        "releases": len({point.version for member in series for point in member.points}),
        "newest": newest_block(snapshot, key),
        "time_to_show": time_to_show(series, settings.metrics.first("throughput").name, snapshot.timed_block_s(key)),
        "many": MANY_COLUMNS,
        "insert": is_insert(key.benchmark),
        "siblings": siblings(key, snapshot),
    }


def others(key: LineKey, series: Sequence[Series], tables: Sequence[HeatTable]) -> list[tuple[str, str]]:
    """(test, address in the line's folder) of tests with none of the metrics that a view shows."""
    shown = {test for table in tables for _, test in table.tests.index}
    names = dict.fromkeys(member.key.test for member in series if member.key.test not in shown)
    return [(name, addresses.of_test(key, name).rsplit("/", 1)[1]) for name in names]


def siblings(key: LineKey, snapshot: Snapshot) -> list[tuple[str, str]]:
    """(label, address) of the same line elsewhere, where it has more than one release; single ones are for Compare."""
    return [
        (other.where, addresses.of_line(other))
        for other, series in snapshot.lines.items()
        if other[:2] == key[:2] and other != key and any(len(member.points) > 1 for member in series)
    ][:MAX_SIBLINGS]


def _marked_on(table: HeatTable, summaries: Sequence[FindingSummary]) -> list[FindingSummary]:
    """Findings that move a series of this table: a QPS finding is not marked on the instructions view."""
    shown = {mark.finding for marks in table.marks.values() for mark in marks.values()}
    return [summary for summary in summaries if summary.finding.key in shown]


def _position(tables: Sequence[HeatTable], version: str) -> int:
    return max((table.versions.index(version) for table in tables if version in table.versions), default=-1)


def newest_block(snapshot: Snapshot, key: LineKey) -> str:
    """When the newest block of this line's DBMS, server, config and benchmark ended, or empty."""
    times = [ran.ended for ran in snapshot.ran_of(key) if ran.ended]
    return max(times).isoformat(timespec="minutes") if times else ""
