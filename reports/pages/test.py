"""The test page: one section a metric, with the step chart, its table, and the field's per-operation table. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from history.metrics import Metric, MetricRegistry
from history.model import Point, Series
from presentation import addresses
from presentation.addresses import LineKey
from presentation.headline import KIND_CLASSES, KIND_MARKS
from presentation.heat import Mark, marks_of
from presentation.number_format import ABSENT, difference, grouped, ratio, sides, signed
from presentation.operations import cells, operations_frame, relative_frame
from presentation.relative import gain, relative, versions_of
from presentation.steps import steps
from presentation.tables import records_of
from reports.details import latency, seconds
from reports.pages.line import measured_on, notes, stacked
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

if TYPE_CHECKING:
    from pandas import DataFrame

#: Blocks of one release are spread over this much of its column, so that equal values stay visible.
STRIP_WIDTH = 0.44
#: Functions in the table of the newest release.
MAX_FUNCTIONS = 15
#: Changes smaller than this stay plain.
PLAIN_GAIN = 0.01


def section_order(series: Sequence[Series], metrics: MetricRegistry) -> list[Series]:
    """Metrics that a view shows first, of these the best-covered, then the rest; ties by rank."""

    def place(member: Series) -> tuple[bool, int, tuple[int, str]]:
        name = member.key.metric
        viewed = bool(metrics[name].view)
        return not viewed, -len(member.points) if viewed else 0, metrics.rank(name)

    return sorted(series, key=place)


def strip(point: Point, position: int) -> list[float]:
    """x of every block of a release, evenly over its column."""
    count = len(point.values)
    return [position + STRIP_WIDTH * ((i + 0.5) / count - 0.5) for i in range(count)]


def epochs(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Where the set of host fingerprints of one release differs from that of the release before."""
    boundaries = []
    for position in range(1, len(points)):
        before = {(block.host, block.epoch) for block in points[position - 1].values}
        now = {(block.host, block.epoch) for block in points[position].values}
        if now and before and not now & before:
            hosts = ", ".join(sorted({host for host, _ in now}))
            boundaries.append({"p": position - 0.5, "text": f"other machine or setting from here: {hosts}"})
    return boundaries


def mark_text(mark: Mark) -> str:
    return f"{KIND_MARKS[mark.kind]} {mark.said}"


def chart_data(
    series: Series, releases: Sequence[Mapping[str, Any]], marks: Mapping[str, Mark], remarks: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the step chart draws; positions count the releases of this series."""
    points = [point for point in series.points if point.values]
    return {
        "names": [row["version"] for row in releases],
        "points": [
            {"p": i, "v": row["version"], "y": row["median"], "n": row["blocks"]} for i, row in enumerate(releases)
        ],
        "blocks": [
            {"x": round(x, 3), "v": point.version, "y": value}
            for i, point in enumerate(points)
            for x, value in zip(strip(point, i), point.numbers, strict=True)
        ],
        "steps": [
            {
                "from": stretch.start - 0.5,
                "to": stretch.end + 0.5,
                "level": stretch.level,
                "low": stretch.low,
                "high": stretch.high,
            }
            for stretch in steps(series, marks)
        ],
        "marks": stacked(
            [
                {"p": i - 0.5, "label": mark_text(mark), "kind": KIND_CLASSES[mark.kind]}
                for i, row in enumerate(releases)
                if (mark := marks.get(row["version"]))
            ],
            len(releases),
        ),
        "epochs": epochs(points),
        "notes": remarks,
    }


def release_rows(
    series: Series, releases: Sequence[Mapping[str, Any]], marks: Mapping[str, Mark], metric: Metric
) -> list[dict[str, Any]]:
    """The table below the chart: one row a release; the change from the release before in units where one of the two is
    near zero."""
    starts = {stretch.start: stretch for stretch in steps(series, marks)}
    rows = []
    for i, release in enumerate(releases):
        stretch, mark = starts.get(i), marks.get(release["version"])
        size = gain(1 + release["change_pct"] / 100, series.better)
        level, before = release["median"], releases[max(i - 1, 0)]["median"]
        near_zero = metric.is_none(level) or metric.is_none(before)
        change = difference(level - before) if near_zero else signed(release["change_pct"])
        rows.append(
            {
                **release,
                "spread": _range(release["least"], release["greatest"]) if release["blocks"] > 1 else "",
                "relative": ratio(release["relative_to_first"], 3),
                "change": change if i else "",
                "change_css": "" if near_zero or abs(size) < PLAIN_GAIN else "better" if size > 0 else "worse",
                "level": grouped(stretch.level) if stretch else "",
                "interval": _range(stretch.low, stretch.high) if stretch else "",
                "mark": mark_text(mark) if mark else "",
                "mark_css": KIND_CLASSES[mark.kind] if mark else "",
                "mark_href": addresses.of_finding(mark.finding) if mark else "",
            }
        )
    return rows


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{grouped(low)} to {grouped(high)}"


def recent(versions: Sequence[str], boundaries: Collection[str]) -> list[str]:
    """Releases shown second by second: the newest and the one before, and both sides of the newest boundary."""
    wanted = set(versions[-2:])
    inside = [version for version in versions if version in boundaries and version != versions[0]]
    if inside:
        newest = versions.index(inside[-1])
        wanted |= set(versions[newest - 1 : newest + 1])
    return [version for version in versions if version in wanted]


def functions(
    key: LineKey, test: str, series: Sequence[Series], snapshot: Snapshot, metrics: MetricRegistry
) -> dict[str, Any] | None:
    """Where the instructions of the newest counted release go, beside the one before; None without counts."""
    counted = next((member for member in series if metrics[member.key.metric].lane == "instructions"), None)
    if counted is None or snapshot.details is None or len(counted.points) < 2:
        return None
    before, after = (point.version for point in counted.points[-2:])
    changes = snapshot.details.function_changes(key, test, before, after)
    largest = sorted(changes, key=lambda change: (-max(change.before, change.after), change.function))[:MAX_FUNCTIONS]
    if not largest:
        return None
    return {
        "before": before,
        "after": after,
        "rows": [
            (
                change.function,
                *sides(change.before, change.after, change.at_most)[:2],
                ABSENT if change.at_most else ratio(relative(change.after, change.before), 3),
            )
            for change in largest
        ],
        "left": len(changes) - len(largest),
    }


def test_context(
    key: LineKey,
    test: str,
    series: Sequence[Series],
    releases: DataFrame,
    snapshot: Snapshot,
    settings: ReportSettings,
) -> dict[str, Any]:
    """Everything `test.html` shows; `releases` is the frame of the test's series."""
    metrics = settings.metrics
    series = section_order(series, metrics)
    findings = snapshot.findings_of(key)
    marks = marks_of(findings)
    by_metric = {
        metric: list(rows) for metric, rows in groupby(records_of(releases), key=lambda release: release["metric"])
    }
    versions = versions_of(series)
    table = operations_frame(series, versions, metrics)
    moved = [finding.release for finding in findings if any(move.key.test == test for move in finding.moves)]
    shown = recent(versions, moved)
    sessions = {session.id: session for session in snapshot.sessions}
    sections = []
    for member in series:
        own_marks, rows = marks.get(member.key.id, {}), by_metric.get(member.key.metric, [])
        points = [point for point in member.points if point.values]
        names = [point.version for point in points]
        remarks = notes(settings.annotations, key, names, test, measured_on(points, sessions))
        sections.append(
            {
                "metric": member.key.metric,
                "title": metrics[member.key.metric].title,
                "unit": member.unit,
                "better": member.better,
                "chart": chart_data(member, rows, own_marks, remarks),
                "rows": release_rows(member, rows, own_marks, metrics[member.key.metric]),
                "id": addresses.part(member.key.metric),
                "command": f"pointdrop {shlex.join(['explain', member.key.id])}",
            }
        )
    return {
        "key": key,
        "test": test,
        "group": series[0].group,
        "sql": settings.tests[test].sql if test in settings.tests else "",
        "sections": sections,
        "columns": list(table.columns),
        "absolute": list(zip(table.index, cells(table), strict=True)),
        "relative": list(zip(table.index, cells(relative_frame(table), 2), strict=True))[1:] if len(table) else [],
        "seconds": seconds(snapshot.details, series, test, shown, metrics),
        "latency": latency(snapshot.details, series, test, shown, metrics),
        "plans": [(finding.release, plan) for finding in findings for plan in finding.plans if plan.test == test],
        "functions": functions(key, test, series, snapshot, metrics),
        "stem": addresses.stem_of_test(key, test).rsplit("/", 1)[1],
    }
