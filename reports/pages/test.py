"""The test page: one section a metric, with the step chart, its table, and the field's per-operation table. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from history.model import Point, Series
from presentation import addresses
from presentation.addresses import LineKey
from presentation.headline import KIND_CLASSES, KIND_MARKS
from presentation.number_format import grouped, signed
from presentation.relative import change_pct, gain, level, relative_text
from presentation.steps import Step, steps
from reports.details import latency, seconds
from reports.heat import Mark, marks_of
from reports.pages.line import measured_on, notes, stacked
from reports.peroperation import ABSENT, column_order, of_series
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

#: Blocks of one release are spread over this much of its column, so that equal values stay visible.
STRIP_WIDTH = 0.44
#: Metrics whose section comes first, in this order; the others follow as in the per-operation table.
COUNTED = "insn/o"
#: Functions in the table of the newest release.
MAX_FUNCTIONS = 15
FIRST = ("qps", "ips", "indexed rows/s", "insn/o", "cpu_us/o", "cpu/o", "cpupq")


def metric_order(series: Sequence[Series]) -> list[Series]:
    """The best-covered of the leading metrics first, then the rest in the field's order."""
    cover = {one.key.metric: len(one.points) for one in series}
    other = column_order(one.key.metric for one in series)

    def rank(one: Series) -> tuple[int, int, int]:
        name = one.key.metric
        if name in FIRST:
            return 0, -cover[name], FIRST.index(name)
        return 1, 0, other.index(name)

    return sorted(series, key=rank)


def strip(point: Point, position: int) -> list[float]:
    """x of every block of a release, evenly over its column."""
    count = len(point.values)
    return [position + STRIP_WIDTH * ((i + 0.5) / count - 0.5) for i in range(count)]


def epochs(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Where the set of host fingerprints of one release differs from that of the release before."""
    found = []
    for position in range(1, len(points)):
        before = {(block.host, block.epoch) for block in points[position - 1].values}
        now = {(block.host, block.epoch) for block in points[position].values}
        if now and before and not now & before:
            hosts = ", ".join(sorted({host for host, _ in now}))
            found.append({"p": position - 0.5, "text": f"other machine or setting from here: {hosts}"})
    return found


def chart_data(
    series: Series, marks: Mapping[str, Mark], kinds: Mapping[str, str], remarks: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the step chart draws; positions count the releases of this series."""
    points = [point for point in series.points if point.values]
    values = [level(point) for point in points]
    return {
        "names": [point.version for point in points],
        "points": [
            {"p": i, "v": point.version, "y": values[i], "n": len(point.values)} for i, point in enumerate(points)
        ],
        "blocks": [
            {"x": round(x, 3), "v": point.version, "y": block.value}
            for i, point in enumerate(points)
            for x, block in zip(strip(point, i), point.values, strict=True)
        ],
        "steps": [
            {"from": one.start - 0.5, "to": one.end + 0.5, "level": one.level, "low": one.low, "high": one.high}
            for one in steps(series, marks)
        ],
        "marks": stacked(
            [
                {
                    "p": i - 0.5,
                    "label": f"{KIND_MARKS[kinds[mark.finding]]} {signed(mark.change_pct)}",
                    "kind": KIND_CLASSES[kinds[mark.finding]],
                }
                for i, point in enumerate(points)
                if (mark := marks.get(point.version))
            ],
            len(points),
        ),
        "epochs": epochs(points),
        "notes": remarks,
    }


def _direction(series: Series, value: float, base: float) -> str:
    """CSS class of a change worth a second look; small ones stay plain."""
    size = gain(value / base, series.better) if base and value > 0 else 0.0
    return "" if abs(size) < 0.01 else "better" if size > 0 else "worse"


def rows(series: Series, marks: Mapping[str, Mark], kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """The table below the chart: one row a release."""
    points = [point for point in series.points if point.values]
    values = [level(point) for point in points]
    stretches = steps(series, marks)
    found = []
    for i, point in enumerate(points):
        here = next(one for one in stretches if i <= one.end)
        value, first = values[i], values[0]
        previous = values[i - 1] if i else None
        mark = marks.get(point.version)
        found.append(
            {
                "version": point.version,
                "released": point.released.isoformat() if point.released else "",
                "blocks": len(point.values),
                "value": grouped(value),
                "spread": _spread(point),
                "relative": relative_text(value, first, 3),
                "change": signed(change_pct(value, previous)) if previous is not None else "",
                "change_css": _direction(series, value, previous) if previous is not None else "",
                "step": grouped(here.level) if here.start == i else "",
                "interval": _interval(here) if here.start == i else "",
                "span": here.end - here.start + 1 if here.start == i else 0,
                "mark": mark,
                "mark_text": f"{KIND_MARKS[kinds[mark.finding]]} {signed(mark.change_pct)}" if mark else "",
                "mark_css": KIND_CLASSES[kinds[mark.finding]] if mark else "",
                "mark_href": addresses.of_finding(mark.finding) if mark else "",
            }
        )
    return found


def _spread(point: Point) -> str:
    values = [block.value for block in point.values]
    return f"{grouped(min(values))} to {grouped(max(values))}" if len(values) > 1 else ""


def _interval(step: Step) -> str:
    return "" if step.low is None or step.high is None else f"{grouped(step.low)} to {grouped(step.high)}"


def recent(versions: Sequence[str], boundaries: Sequence[str]) -> list[str]:
    """Releases whose courses are compared: the newest and the one before, and both sides of the newest boundary."""
    wanted = set(versions[-2:])
    inside = [version for version in versions if version in boundaries and version != versions[0]]
    if inside:
        at = versions.index(inside[-1])
        wanted |= set(versions[at - 1 : at + 1])
    return [version for version in versions if version in wanted]


def functions(key: LineKey, test: str, series: Sequence[Series], snapshot: Snapshot) -> dict[str, Any] | None:
    """Where the instructions of the newest counted release go, beside the one before; None without counts."""
    counted = next((one for one in series if one.key.metric == COUNTED), None)
    if counted is None or snapshot.details is None or len(counted.points) < 2:
        return None
    before, after = (point.version for point in counted.points[-2:])
    changes = snapshot.details.function_changes(key, test, before, after)
    rows = sorted(changes, key=lambda one: (-max(one.before, one.after), one.function))[:MAX_FUNCTIONS]
    if not rows:
        return None
    return {
        "before": before,
        "after": after,
        "rows": [
            (one.function, grouped(one.before), grouped(one.after), relative_text(one.after, one.before, 3))
            for one in rows
        ],
        "left": len(changes) - len(rows),
    }


def test_context(key: LineKey, test: str, snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `test.html` shows."""
    series = metric_order([one for one in snapshot.lines[key] if one.key.test == test])
    findings = snapshot.findings_of(key)
    marks = marks_of(findings)
    kinds = {one.key: one.kind for one in findings}
    versions = list(dict.fromkeys(point.version for one in series for point in one.points))
    position = {point.version: point.position for one in series for point in one.points}
    table = of_series(series, sorted(versions, key=lambda version: position[version]))
    shown = recent(table.names, [one.release for one in findings if any(move.key.test == test for move in one.moves)])
    sessions = {session.id: session for session in snapshot.sessions}
    sections = []
    for one in series:
        here = marks.get(one.key.id, {})
        points = [point for point in one.points if point.values]
        names = [point.version for point in points]
        remarks = notes(settings.annotations, key, names, test, measured_on(points, sessions))
        sections.append(
            {
                "metric": one.key.metric,
                "title": settings.metrics[one.key.metric].title,
                "unit": one.unit,
                "better": one.better,
                "chart": chart_data(one, here, kinds, remarks),
                "rows": rows(one, here, kinds),
                "id": addresses.part(one.key.metric),
                "command": f"pointdrop {shlex.join(['explain', one.key.id])}",
            }
        )
    return {
        "key": key,
        "test": test,
        "group": series[0].group,
        "sql": settings.tests[test].sql if test in settings.tests else "",
        "sections": sections,
        "per_operation": table,
        "courses": seconds(snapshot.details, series, test, shown),
        "latency": latency(snapshot.details, series, test, shown),
        "plans": [(one.release, plan) for one in findings for plan in one.plans if plan.test == test],
        "functions": functions(key, test, series, snapshot),
        "absent": ABSENT,
        "stem": addresses.stem_of_test(key, test).rsplit("/", 1)[1],
    }
