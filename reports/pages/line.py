"""The line page: one heat table a view, the chart of group medians above it, the findings of the line. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from history.model import MAJORS, Better, Point, Series, Session
from presentation import addresses
from presentation.addresses import LineKey
from presentation.number_format import short
from presentation.relative import colour_step
from reports.annotations import Annotation, place, place_on_host
from reports.heat import Group, HeatTable, Row, heat_table, marks_of, overall
from reports.insert import is_insert
from reports.noise import release_noise
from reports.pages.finding_summary import FindingSummary, finding_summary
from reports.settings import MAX_HEAT_CELLS, ReportSettings
from reports.snapshot import Snapshot
from reports.spark import spark
from reports.views import offered

ABSENT = "–"
#: Links to the same line on other servers or with other configs.
MAX_SIBLINGS = 12
#: Labels that fit beside each other over a chart; closer ones stand one line lower.
LABELS_ACROSS = 14
#: Releases past which a table is set tighter.
MANY_COLUMNS = 16
MAX_LABEL_ROWS = 3
#: Standard deviations of a series within which a heat cell stays uncoloured.
QUIET_SIGMAS = 2.0
#: Where ratios may be infinite (x/0), a chart has no place for them.
_CHARTABLE = math.isfinite


@dataclass(frozen=True)
class Cell:
    """One cell as the template prints it."""

    text: str
    css: str


@dataclass(frozen=True)
class Column:
    """One release in the head of a table."""

    version: str
    released: str
    marks: tuple[FindingSummary, ...]


def cell(ratio: float | None, better: Better, decimals: int, smallest: float, extra: str = "") -> Cell:
    """`0.94` with its colour class: `w1`..`w5` worse, `b1`..`b5` better."""
    if ratio is None:
        return Cell(ABSENT, "na")
    if not math.isfinite(ratio):
        return Cell("inf", f"w5{extra}" if better == "lower" else f"b5{extra}")
    step = colour_step(ratio, better, smallest)
    shade = f"w{-step}" if step < 0 else f"b{step}" if step else ""
    return Cell(f"{ratio:.{decimals}f}", f"{shade}{extra}".strip())


def row_cells(row: Row, decimals: int) -> list[Cell]:
    return [
        cell(ratio, row.better, decimals, row.quiet_pct, " cp" if position in row.marks else "")
        for position, ratio in enumerate(row.ratios())
    ]


def group_cells(group: Group, decimals: int) -> list[Cell]:
    return [cell(ratio, group.better, decimals, group.quiet_pct) for ratio in group.medians]


def columns(table: HeatTable, series: Sequence[Series], summaries: Sequence[FindingSummary]) -> list[Column]:
    dates = {point.version: point.released for one in series for point in one.points if point.released}
    return [
        Column(
            version,
            dates[version].strftime("%Y-%m") if version in dates else "",
            tuple(one for one in summaries if one.finding.release == version),
        )
        for version in table.versions
    ]


def notes(
    annotations: Sequence[Annotation],
    key: LineKey,
    versions: Sequence[str],
    test: str = "",
    measured: Sequence[tuple[str, date]] = (),
) -> list[dict[str, Any]]:
    """Annotations of one chart: where, what, and the address of more; `measured` is (host, day) of each version."""
    found: list[dict[str, Any]] = []
    for one in annotations:
        if one.test and one.test != test:
            continue
        position = place_on_host(one, measured) if one.host else place(one, key.dbms, key.line, versions)
        if position is not None:
            found.append({"p": position, "text": one.text, "url": one.url})
    found.sort(key=lambda note: (note["p"], note["text"]))
    return [{**note, "label": chr(ord("a") + i % 26)} for i, note in enumerate(found)]


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
    whole = overall(table)
    groups = list(table.groups) if len(table.groups) > 1 else []
    if whole:
        groups.append(Group(f"all {len(table.rows)} tests", whole.better, whole.rows, whole.medians))
    medians = [
        {"g": one.name, "p": position, "v": table.versions[position], "r": short(ratio)}
        for one in groups
        for position, ratio in enumerate(one.medians)
        if ratio is not None and _CHARTABLE(ratio)
    ]
    marks = [
        {
            "p": table.versions.index(one.finding.release) - 0.5,
            "label": f"{one.shape} {one.finding.release}",
            "kind": one.css,
        }
        for one in summaries
        if one.finding.release in table.versions
    ]
    return {
        "names": list(table.versions),
        "medians": medians,
        "marks": stacked(marks, len(table.versions)),
        "notes": remarks,
    }


def script_data(table: HeatTable) -> dict[str, Any]:
    """What the page's script needs to recompute the table against another base: absolute values by row."""
    whole = overall(table)
    return {
        "id": table.view.id,
        "decimals": table.view.decimals,
        "base": table.base,
        "quiet": whole.quiet_pct if whole else 0.0,
        "versions": list(table.versions),
        "groups": [
            {
                "better": group.better,
                "quiet": group.quiet_pct,
                "rows": [
                    {
                        "better": row.better,
                        "quiet": row.quiet_pct,
                        "base": row.base,
                        "values": [short(value) for value in row.values],
                    }
                    for row in group.rows
                ],
            }
            for group in table.groups
        ],
    }


def view_context(
    key: LineKey,
    series: Sequence[Series],
    table: HeatTable,
    summaries: Sequence[FindingSummary],
    settings: ReportSettings,
    sessions: Mapping[str, Session],
) -> dict[str, Any]:
    whole = overall(table)
    decimals = table.view.decimals
    whole_line = (one.points for one in series if tuple(point.version for point in one.points) == table.versions)
    measured = measured_on(next(whole_line, ()), sessions)
    remarks = notes(settings.annotations, key, table.versions, measured=measured)
    return {
        "view": table.view,
        "table": table,
        "base": table.versions[table.base] if table.versions else "",
        "columns": columns(table, series, summaries),
        "overall": group_cells(whole, decimals) if whole else [],
        "overall_spark": spark(whole.medians) if whole else "",
        "groups": [
            {
                "name": group.name,
                "count": len(group.rows),
                "cells": group_cells(group, decimals),
                "spark": spark(group.medians),
                "rows": [
                    {
                        "test": row.test,
                        "href": addresses.of_test(key, row.test).rsplit("/", 1)[1],
                        "metric": row.metric,
                        "own_base": row.base != table.base,
                        "regressed": any(mark.direction == "regression" for mark in row.marks.values()),
                        "cells": row_cells(row, decimals),
                        "spark": spark(row.ratios()),
                    }
                    for row in group.rows
                ],
            }
            for group in table.groups
        ],
        "chart": chart_data(table, summaries, remarks),
        "script": script_data(table),
        "notes": remarks,
    }


def line_context(key: LineKey, snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `line.html` shows."""
    series = snapshot.lines[key]
    findings = snapshot.findings_of(key)
    here = [(one, [move for move in one.moves if LineKey.of(move.key) == key]) for one in findings]
    summaries = [
        finding_summary(
            one.model_copy(update={"moves": tuple(moves)}),
            settings.metrics,
            snapshot.events_of(one),
            snapshot.links_of(one),
        )
        for one, moves in here
    ]
    marks = marks_of(findings)
    views = offered(series)
    budget = MAX_HEAT_CELLS // max(1, len(views))
    tables = [heat_table(series, view, marks=marks, order=settings.order, max_cells=budget) for view in views]
    sessions = {session.id: session for session in snapshot.sessions}
    by_release = sorted(summaries, key=lambda one: _position(tables, one.finding.release), reverse=True)
    return {
        "key": key,
        "findings": by_release,
        "views": [
            view_context(key, series, table, _on(summaries, findings, table), settings, sessions) for table in tables
        ],
        "tests": len({one.key.test for one in series}),
        "others": others(key, series, tables),
        "releases": len({point.version for one in series for point in one.points}),
        "newest": newest_block(snapshot, key),
        "many": MANY_COLUMNS,
        "insert": is_insert(key.benchmark),
        "siblings": siblings(key, snapshot),
    }


def others(key: LineKey, series: Sequence[Series], tables: Sequence[HeatTable]) -> list[tuple[str, str]]:
    """(test, address in the line's folder) of tests with none of the metrics that a view shows."""
    shown = {row.test for table in tables for row in table.rows}
    names = dict.fromkeys(one.key.test for one in series if one.key.test not in shown)
    return [(name, addresses.of_test(key, name).rsplit("/", 1)[1]) for name in names]


def siblings(key: LineKey, snapshot: Snapshot) -> list[tuple[str, str]]:
    """(label, address) of the same line elsewhere, where it has more than one release; single ones are for Compare."""
    return [
        (other.where, addresses.of_line(other))
        for other, series in snapshot.lines.items()
        if other[:2] == key[:2] and other != key and any(len(one.points) > 1 for one in series)
    ][:MAX_SIBLINGS]


def _on(summaries: Sequence[FindingSummary], findings: Sequence[Any], table: HeatTable) -> list[FindingSummary]:
    """Findings that move a series of this table: a QPS finding is not marked on the instructions view."""
    shown = {mark.finding for row in table.rows for mark in row.marks.values()}
    return [one for one in summaries if one.finding.key in shown]


def _position(tables: Sequence[HeatTable], version: str) -> int:
    return max((table.versions.index(version) for table in tables if version in table.versions), default=-1)


def quiet_pct(series: Series, settings: ReportSettings) -> float:
    """What a cell of this series must pass to get a colour: the metric's smallest change, and twice its noise.

    Neighbours in `majors` differ by years of work, which is no noise.
    """
    if series.key.line == MAJORS:
        return settings.metrics[series.key.metric].smallest_change_pct
    return max(settings.metrics[series.key.metric].smallest_change_pct, QUIET_SIGMAS * (release_noise(series) or 0.0))


def newest_block(snapshot: Snapshot, key: LineKey) -> str:
    """When the newest block of this line's DBMS, server, config and benchmark ended, or empty."""
    times = [
        one.ended
        for one in snapshot.ran
        if one.ended
        and (one.run.release.dbms, one.session.server, one.run.config, one.run.benchmark)
        == (key.dbms, key.server, key.config, key.benchmark)
    ]
    return max(times).isoformat(timespec="minutes") if times else ""
