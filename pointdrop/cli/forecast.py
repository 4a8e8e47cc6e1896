"""What `--dry-run` prints: the sessions a job would make, and the machine time they take."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pointdrop.jobs.measuring import Bench
    from pointdrop.jobs.picks import Work
    from runners.settings import Plan


def forecast(bench: Bench, plan: Plan, server: str, work: list[Work]) -> list[dict[str, Any]]:
    """A row for each session that would be made, those that were begun before first; minutes and MB are estimates."""
    from pointdrop.jobs.measuring import estimates, unfinished
    from pointdrop.jobs.nights import tonight

    found = estimates(bench, plan, server, work, os.cpu_count() or 1)
    rows = [
        {
            "dbms": item.measure.dbms,
            "benchmark": item.measure.benchmark,
            "lane": item.measure.lane,
            "line": item.line,
            "config": item.config,
            "profile": item.measure.profile,
            "releases": [release.version for release in item.candidates],
            "control": item.control.version,
            "blocks": estimate.blocks,
            "minutes": round(estimate.seconds / 60, 1),
            "disk_mb": estimate.disk_bytes // 1024**2,
            "resumed": False,
            "tonight": begun,
        }
        for item, estimate, begun in zip(work, found, tonight(found, plan.budget_minutes), strict=True)
    ]
    for begun in unfinished(bench.state):
        again = {
            "dbms": begun.measure.dbms, "benchmark": begun.measure.benchmark, "lane": begun.measure.lane,
            "line": begun.line, "config": begun.config,
        }  # fmt: skip
        versions = [release.version for release in begun.candidates]
        rows.insert(
            0,
            {
                **again, "profile": begun.measure.profile, "releases": versions, "control": begun.control.version,
                "blocks": None, "minutes": None, "disk_mb": None, "resumed": True, "tonight": True,
            },
        )  # fmt: skip
    return rows


def print_forecast(rows: list[dict[str, Any]], format: str) -> None:
    """The rows as text or JSON on standard output."""
    if format == "json":
        typer.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        typer.echo("Nothing to measure: the history holds everything the plan wants.")
        return
    for row in rows:
        where = f", line {row['line']}" if row["line"] else ""
        what = f"{row['benchmark']}, {row['lane']} lane, profile {row['profile']}, config {row['config']}"
        typer.echo(f"{row['dbms']}{where}, {what}")
        typer.echo(f"    {len(row['releases'])} releases: {' '.join(row['releases'])} (control {row['control']})")
        if row["resumed"]:
            typer.echo("    begun before: its missing blocks come first")
        else:
            size = f"{row['disk_mb'] / 1000:.1f} GB"
            typer.echo(f"    {row['blocks']} blocks, about {row['minutes']} minutes, up to {size} on disk")
        if not row["tonight"]:
            typer.echo("    does not fit any more: left for a later night")
    total = sum(row["minutes"] or 0 for row in rows)
    first = sum(row["minutes"] or 0 for row in rows if row["tonight"])
    within = f", {first:.0f} of them in what this night begins" if first < total else ""
    typer.echo(
        f"\nAbout {total:.0f} minutes of machine time{within}, without downloads. "
        "Suspects that the detector finds are measured again on top of that."
    )
