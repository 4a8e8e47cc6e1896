"""The Insert Benchmark report of a line: throughput and SLA by step, efficiency, and steps second by second. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from history.metrics import Metric, MetricRegistry
from history.model import Series
from history.sla import SLA_SHARE
from presentation import addresses
from presentation.addresses import LineKey
from presentation.insert import InsertSummary, efficiency, insert_series, insert_summary, sla_text
from presentation.number_format import ABSENT, grouped
from presentation.operations import cells, relative_frame
from reports.details import Details, seconds
from reports.pages.line import Cell, cell
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

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
#: Releases whose steps are on the page second by second: the newest and the one before it.
RELEASES_BY_SECOND = 2


def about_step(step: str) -> str:
    return next((text for prefix, text in STEPS if step.startswith(prefix)), "")


def throughput_rows(summary: InsertSummary, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """A row a release, absolute and relative; `metrics` of the steps."""
    rows = []
    for version, *numbers in zip(
        summary.throughput.index,
        *(table.to_numpy().tolist() for table in (summary.throughput, summary.ratios, summary.shares, summary.void)),
        strict=True,
    ):
        row: dict[str, Any] = {"version": version, "cells": [], "ratios": []}
        for metric, value, ratio, share, void in zip(metrics, *numbers, strict=True):
            sla = Cell(sla_text(share), "void")
            row["cells"].append(sla if void else Cell(ABSENT if math.isnan(value) else grouped(value), ""))
            row["ratios"].append(sla if void else cell(ratio, "higher", 2, metric.smallest_change_pct))
        rows.append(row)
    return rows


def failures(summary: InsertSummary) -> list[dict[str, str]]:
    """Steps that missed their insert rate, release by release."""
    shares = summary.shares.where(summary.void)
    return [
        {"version": version, "step": step, "share": f"{100 * share:.0f} %"}
        for version, row in zip(shares.index, shares.to_numpy().tolist(), strict=True)
        for step, share in zip(shares.columns, row, strict=True)
        if not math.isnan(share)
    ]


def efficiency_tables(
    series: Sequence[Series], summary: InsertSummary, metrics: MetricRegistry
) -> list[dict[str, Any]]:
    """A table a metric other than throughput: releases x steps, absolute and relative."""
    of_metric = {member.key.metric: member for member in series}
    versions = list(summary.throughput.index)
    tables = []
    for name, measured in efficiency(series, metrics, versions).items():
        table = measured.reindex(versions)
        ratios = relative_frame(table, summary.base).to_numpy().tolist()
        better = of_metric[name].better
        rows = [
            (
                version,
                [(text, cell(ratio, better, 2, 2.5)) for text, ratio in zip(texts, row, strict=True)],
            )
            for version, texts, row in zip(versions, cells(table), ratios, strict=True)
        ]
        tables.append({"metric": name, "unit": of_metric[name].unit, "steps": list(table.columns), "rows": rows})
    return tables


def insert_context(
    key: LineKey, snapshot: Snapshot, settings: ReportSettings, details: Details | None
) -> dict[str, Any]:
    """Everything `insert.html` shows."""
    series, metrics = snapshot.lines[key], settings.metrics
    summary = insert_summary(series, metrics)
    if summary is None:
        return {"key": key, "summary": None}
    versions = list(summary.throughput.index)
    shown = [member for member in insert_series(series, metrics) if member.key.test in summary.throughput]
    return {
        "key": key,
        "summary": summary,
        "releases": len(versions),
        "steps": [
            {
                "name": member.key.test,
                "metric": member.key.metric,
                "about": about_step(member.key.test),
                "href": addresses.of_test(key, member.key.test).rsplit("/", 1)[1],
            }
            for member in shown
        ],
        "rows": throughput_rows(summary, [metrics[member.key.metric] for member in shown]),
        "failures": failures(summary),
        "judged": bool(summary.shares.notna().to_numpy().any()),
        "sla_pct": f"{100 * SLA_SHARE:.0f}",
        "efficiency": efficiency_tables(series, summary, metrics),
        "seconds": [
            {"step": member.key.test, **entry}
            for member in shown
            for entry in seconds(
                details,
                [other for other in series if other.key.test == member.key.test],
                member.key.test,
                versions[-RELEASES_BY_SECOND:],
                metrics,
            )
        ],
    }
