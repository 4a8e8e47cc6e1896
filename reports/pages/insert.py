"""The Insert Benchmark report of a line: throughput and SLA by step, efficiency, courses by the second. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from history.model import Series
from presentation import addresses
from presentation.addresses import LineKey
from presentation.number_format import grouped, plain
from presentation.ordering import step_order
from presentation.relative import levels
from reports.details import Details, seconds
from reports.insert import SLA_SHARE, InsertSummary, StepCell, insert_summary
from reports.pages.line import cell
from reports.settings import ReportSettings
from reports.snapshot import Snapshot
from reports.views import VIEWS, pick

ABSENT = "–"
#: What each step does, as the benchmark's author describes it; the prefix decides.
STEPS = (
    ("l.i0", "insert in key order, no secondary index"),
    ("l.x", "create the secondary indexes"),
    ("l.i1", "insert and delete, many rows a transaction"),
    ("l.i2", "insert and delete, few rows a transaction"),
    ("qr", "range queries on a covering secondary index, with inserts and deletes behind at the rate in the name"),
    ("qp", "point queries on the primary key, with inserts and deletes behind at the rate in the name"),
    ("q", "queries, with inserts and deletes behind at the rate in the name"),
)
#: Steps whose course by the second is on the page, and releases in each: the newest and the one before it.
RELEASES_BY_SECOND = 2


def about_step(step: str) -> str:
    return next((text for prefix, text in STEPS if step.startswith(prefix)), "")


def sla_text(one: StepCell) -> str:
    """`SLA 80 %` for a void step."""
    return f"SLA {100 * (one.sla_share or 0):.0f} %"


def throughput_rows(made: InsertSummary, better: Sequence[str], smallest: Sequence[float]) -> list[dict[str, Any]]:
    rows = []
    for version, row in zip(made.versions, made.rows, strict=True):
        cells = [
            {"text": sla_text(one), "css": "void"}
            if one.void
            else {"text": ABSENT if one.value is None else grouped(one.value), "css": ""}
            for one in row
        ]
        ratios = [
            {"text": sla_text(one), "css": "void"} if one.void else cell(one.ratio, "higher", 2, small).__dict__
            for one, small in zip(row, smallest, strict=True)
        ]
        rows.append({"version": version, "cells": cells, "ratios": ratios})
    return rows


def efficiency(series: Sequence[Series], versions: Sequence[str], base: str) -> list[dict[str, Any]]:
    """A table a metric other than throughput: releases x steps, absolute and relative."""
    throughput = {one.key.id for one in pick(series, VIEWS[0])}
    by_metric: dict[str, list[Series]] = {}
    for one in series:
        if one.key.id not in throughput and one.key.metric != "target_ips":
            by_metric.setdefault(one.key.metric, []).append(one)
    found = []
    for metric in sorted(by_metric):
        steps = sorted(by_metric[metric], key=lambda one: step_order(one.key.test))
        known = [levels(one) for one in steps]
        rows = []
        for version in versions:
            cells = []
            for one, values in zip(steps, known, strict=True):
                value, first = values.get(version), values.get(base)
                ratio = None if value is None or not first else value / first
                cells.append(
                    {
                        "text": ABSENT if value is None else plain(value),
                        "ratio": "" if ratio is None else f"{ratio:.2f}",
                        "css": cell(ratio, one.better, 2, 2.5).css if ratio is not None else "",
                    }
                )
            rows.append((version, cells))
        found.append({"metric": metric, "unit": steps[0].unit, "steps": [one.key.test for one in steps], "rows": rows})
    return found


def insert_context(
    key: LineKey, snapshot: Snapshot, settings: ReportSettings, details: Details | None
) -> dict[str, Any]:
    """Everything `insert.html` shows."""
    series = snapshot.lines[key]
    made = insert_summary(series)
    picked = sorted(pick(series, VIEWS[0]), key=lambda one: step_order(one.key.test))
    recent = list(made.versions[-RELEASES_BY_SECOND:])
    courses = []
    for one in picked:
        here = [other for other in series if other.key.test == one.key.test]
        for entry in seconds(details, here, one.key.test, recent):
            courses.append({"step": one.key.test, **entry})
    return {
        "key": key,
        "summary": made,
        "steps": [
            {
                "name": step,
                "metric": metric,
                "about": about_step(step),
                "href": addresses.of_test(key, step).rsplit("/", 1)[1],
            }
            for step, metric in zip(made.steps, made.metrics, strict=True)
        ],
        "rows": throughput_rows(
            made,
            [one.better for one in picked],
            [settings.metrics[one.key.metric].smallest_change_pct for one in picked],
        ),
        "failures": [
            {"version": version, "step": step, "share": f"{100 * (one.sla_share or 0):.0f} %"}
            for version, row in zip(made.versions, made.rows, strict=True)
            for step, one in zip(made.steps, row, strict=True)
            if one.void
        ],
        "judged": any(one.sla_share is not None for row in made.rows for one in row),
        "sla_pct": f"{100 * SLA_SHARE:.0f}",
        "efficiency": efficiency(series, made.versions, made.base),
        "courses": courses,
    }
