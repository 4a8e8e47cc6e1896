"""The overview: what changed, how every line stands, what ran last and what did not. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from presentation import addresses
from presentation.addresses import LineKey
from presentation.heat import HeatTable, heat_table
from presentation.number_format import count, ratio, signed
from presentation.ranking import finding_order
from presentation.relative import gain
from presentation.views import offered_views, views
from reports.pages.finding_summary import FindingSummary, finding_summary
from reports.pages.verdicts import release_dates, sections_of, verdict_sections
from reports.settings import ReportSettings
from reports.snapshot import PUBLISHED, Ran, Snapshot
from reports.spark import spark

#: Findings named in the sentence about the last session.
MAX_FRESH = 4
#: What ended this long before the newest result belongs to the same night.
NIGHT = timedelta(hours=24)
#: Nightlies make this page stale after so many days.
STALE_DAYS = 3
#: Sessions shown in full.
SESSIONS = 5


@dataclass(frozen=True)
class LineRow:
    """One line in the overview's table."""

    key: LineKey
    address: str
    releases: int
    tests: int
    newest: str
    view: str
    step: str
    step_css: str
    total: str
    total_css: str
    base: str
    spark: str
    findings: int
    regressions: int


def css_of(ratio: float | None, table: HeatTable, smallest: float) -> str:
    if ratio is None or math.isnan(ratio):
        return ""
    size = gain(ratio, table.overall.better)
    return "" if abs(size) < smallest / 100 else "better" if size > 0 else "worse"


def step_ratio(table: HeatTable) -> float | None:
    """Median over tests of newest release / the release before; None where no test has both."""
    if len(table.versions) < 2:
        return None
    previous, newest = table.values.iloc[:, -2], table.values.iloc[:, -1]
    step = (newest / previous)[previous != 0].median()
    return None if math.isnan(step) else float(step)


def line_row(key: LineKey, snapshot: Snapshot, settings: ReportSettings) -> LineRow | None:
    """None for a line without any of the metrics a view shows."""
    series = snapshot.lines[key]
    offered = offered_views(series, views(settings.metrics))
    if not offered:
        return None
    table = heat_table(series, offered[0], settings.metrics, order=settings.order)
    medians = table.overall.medians
    smallest = min(settings.metrics[metric].smallest_change_pct for metric in table.tests["metric"])
    step, total = step_ratio(table), medians[-1]
    findings = snapshot.findings_of(key)
    return LineRow(
        key=key,
        address=addresses.of_line(key),
        releases=len(table.versions),
        tests=len(table.tests),
        newest=table.versions[-1],
        view=table.view.title,
        step="" if step is None else signed(100 * (step - 1)),
        step_css=css_of(step, table, smallest),
        total="" if math.isnan(total) else ratio(total, table.view.decimals),
        total_css=css_of(total, table, smallest),
        base=table.base,
        spark=spark(medians),
        findings=len(findings),
        regressions=sum(finding.kind in ("regression", "drift") for finding in findings),
    )


def line_order(row: LineRow) -> tuple[bool, LineKey]:
    """Steps between majors first: the picture a newcomer understands."""
    return row.key.line != "majors", row.key


def finding_summaries(snapshot: Snapshot, settings: ReportSettings) -> list[FindingSummary]:
    """Every finding, in the order of lists."""
    ordered = sorted(snapshot.findings, key=lambda finding: finding_order(finding, settings.metrics))
    return [
        finding_summary(finding, settings.metrics, snapshot.events_of(finding), snapshot.links_of(finding))
        for finding in ordered
    ]


def findings_context(snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `findings.html` shows."""
    return {"sections": sections_of(finding_summaries(snapshot, settings))}


def session_rows(snapshot: Snapshot, count: int | None = None) -> list[dict[str, Any]]:
    """Newest sessions with what ran, and what did not and why."""
    rows = []
    for session in snapshot.sessions[:count]:
        runs = [ran for ran in snapshot.ran if ran.session.id == session.id]
        statuses: Counter[str] = Counter()
        for ran in runs:
            statuses.update(ran.statuses)
        rows.append(
            {
                "session": session,
                "runs": runs,
                "releases": list(dict.fromkeys(ran.run.release.name for ran in runs)),
                "ok": statuses["ok"],
                "noisy": statuses["noisy"],
                "failed": statuses["failed"],
            }
        )
    return rows


def did_not_run(runs: list[Ran]) -> list[dict[str, Any]]:
    """Runs with blocks that do not count: release, how many, why; reasons that differ in their figures are one row."""
    rows = []
    for ran in runs:
        if not ran.reasons:
            continue
        reasons = sorted(ran.reasons)
        more = f" (and {count(len(reasons) - 1, 'reason')} like it)" if len(reasons) > 1 else ""
        rows.append(
            {
                "name": ran.run.release.name,
                "config": ran.run.config,
                "benchmark": ran.run.benchmark,
                "lane": ran.run.lane,
                "blocks": sum(ran.reasons.values()),
                "reason": reasons[0] + more,
            }
        )
    return rows


def overview_context(snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `overview.html` shows."""
    lines = [row for key in snapshot.lines if (row := line_row(key, snapshot, settings))]
    findings = [row for row in finding_summaries(snapshot, settings) if not row.finding.folded_under]
    dates = release_dates(member for series in snapshot.lines.values() for member in series)
    sessions = session_rows(snapshot, SESSIONS)
    newest = snapshot.newest
    latest = [ran for ran in snapshot.ran if sessions and ran.session.id == sessions[0]["session"].id]
    night = [ran for ran in snapshot.ran if newest and ran.ended and newest - ran.ended < NIGHT]
    releases = {(ran.run.release.dbms, ran.run.release.version) for ran in snapshot.ran}
    fresh = {ran.run.release.name for ran in latest}
    moved = [row for row in findings if f"{row.finding.dbms} {row.finding.release}" in fresh]
    return {
        "newest": newest.isoformat(timespec="minutes") if newest else "",
        "stale_days": STALE_DAYS,
        "blocks": sum(sum(ran.statuses.values()) for ran in snapshot.ran),
        "releases": len(releases),
        "series": sum(len(series) for series in snapshot.lines.values()),
        "findings": len(findings),
        "sections": verdict_sections(findings, dates, settings.metrics),
        "fresh": moved[:MAX_FRESH],
        "fresh_more": max(0, len(moved) - MAX_FRESH),
        "lines": sorted((row for row in lines if row.releases > 1), key=line_order),
        "single": sum(row.releases == 1 for row in lines),
        "sessions": sessions,
        "missing": did_not_run(night),
    }


def about_context(snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `about.html` shows."""
    return {
        "metrics": list(settings.metrics),
        "published": sorted({ran.run.release.source for ran in snapshot.ran if ran.run.profile == PUBLISHED})[:20],
    }
