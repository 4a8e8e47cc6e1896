"""CSV and JSON of exactly what a page draws. Pure.

JSON objects carry `schema` (`pointdrop.line/1`, `pointdrop.test/1`, `pointdrop.finding/1`, `pointdrop.compare/1`,
`pointdrop.noise/1`); numbers are the history's, not rounded.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from history.metrics import MetricRegistry
from history.model import Finding, Series
from presentation.addresses import LineKey
from presentation.findings import finding_record, moves_frame
from presentation.relative import level, relative
from presentation.steps import steps
from reports.heat import Mark

SERIES_COLUMNS = (
    "dbms", "line", "server", "config", "benchmark", "test", "group", "metric", "unit", "better",
    "version", "released", "median", "relative_to_first", "changepoint", "block", "session", "host", "epoch", "value",
)  # fmt: skip


def dump(value: Any) -> str:
    """JSON as the site writes it: one line; what is not finite (a relative value x/0) is null, since JSON has no word
    for it."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def table_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180 with a header row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def table_json(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[dict[str, object]]:
    """The same rows as objects."""
    return [dict(zip(columns, row, strict=True)) for row in rows]


def series_json(series: Sequence[Series], marks: dict[str, dict[str, Mark]]) -> list[dict[str, Any]]:
    """One object a series."""
    found = []
    for one in series:
        here = marks.get(one.key.id, {})
        points = [point for point in one.points if point.values]
        found.append(
            {
                **one.key.model_dump(),
                "group": one.group,
                "unit": one.unit,
                "better": one.better,
                "points": [
                    {
                        "version": point.version,
                        "released": point.released.isoformat() if point.released else None,
                        "median": level(point),
                        "blocks": [
                            {
                                "value": block.value,
                                "block": block.block_id,
                                "session": block.session_id,
                                "host": block.host,
                                "epoch": block.epoch,
                            }
                            for block in point.values
                        ],
                    }
                    for point in points
                ],
                "steps": [
                    {
                        "from": points[step.start].version,
                        "to": points[step.end].version,
                        "level": step.level,
                        "low": step.low,
                        "high": step.high,
                        "releases": step.releases,
                        "blocks": step.blocks,
                    }
                    for step in steps(one, here)
                ],
                "changepoints": [
                    {"release": version, "finding": mark.finding, "change_pct": mark.change_pct, "tier": mark.tier}
                    for version, mark in sorted(here.items())
                ],
            }
        )
    return found


def test_json(key: LineKey, test: str, series: Sequence[Series], marks: dict[str, dict[str, Mark]]) -> str:
    return dump({"schema": "pointdrop.test/1", **key._asdict(), "test": test, "series": series_json(series, marks)})


def series_csv(series: Sequence[Series], marks: dict[str, dict[str, Mark]], *, blocks: bool) -> str:
    """A row a block, or with `blocks=False` a row a release (the block columns stay empty)."""
    rows: list[list[object]] = []
    for one in series:
        here = marks.get(one.key.id, {})
        points = [point for point in one.points if point.values]
        values = [level(point) for point in points]
        key = one.key
        who = [key.dbms, key.line, key.server, key.config, key.benchmark, key.test, one.group, key.metric]
        for point, value in zip(points, values, strict=True):
            mark = here.get(point.version)
            head = [*who, one.unit, one.better, point.version, point.released or "", value]
            head += [relative(value, values[0]), mark.finding if mark else ""]
            if blocks:
                rows += [[*head, b.block_id, b.session_id, b.host, b.epoch, b.value] for b in point.values]
            else:
                rows.append([*head, "", "", "", "", ""])
    return table_csv(SERIES_COLUMNS, rows)


def line_json(key: LineKey, series: Sequence[Series], marks: dict[str, dict[str, Mark]]) -> str:
    """Every series of the line at release level; the test pages' files have the blocks."""
    rows = [
        {
            "test": one.key.test,
            "group": one.group,
            "metric": one.key.metric,
            "unit": one.unit,
            "better": one.better,
            "values": {point.version: level(point) for point in one.points if point.values},
            "changepoints": {v: mark.finding for v, mark in sorted(marks.get(one.key.id, {}).items())},
        }
        for one in series
    ]
    return dump({"schema": "pointdrop.line/1", **key._asdict(), "series": rows})


def finding_json(finding: Finding, metrics: MetricRegistry) -> str:
    return dump({"schema": "pointdrop.finding/1", **finding_record(finding, metrics)})


def moves_csv(finding: Finding, metrics: MetricRegistry) -> str:
    """The moves of a finding, a row each, with the finding's own columns before them."""
    table = moves_frame(finding, metrics)
    for at, name in enumerate(("finding", "kind", "tier", "cause", "previous", "release")):
        table.insert(at, name, finding.key if name == "finding" else getattr(finding, name))
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text
