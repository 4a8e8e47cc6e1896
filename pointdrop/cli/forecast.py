"""What `--dry-run` prints: the sessions a job would make, and the machine time they take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pointdrop.jobs.measurement import MeasurementSetup
    from pointdrop.jobs.release_selection import Work
    from runners.sessions import Estimate
    from runners.settings import Plan


def forecast(
    setup: MeasurementSetup, plan: Plan, server: str, work: list[Work], budget_minutes: float | None
) -> list[dict[str, Any]]:
    """A row for each session that would be made, those that were begun before first; minutes and MB are estimates."""
    from pointdrop.jobs.measurement import estimates, remaining_estimate
    from pointdrop.jobs.night_schedule import within_budget, without_pending
    from pointdrop.jobs.session_records import unfinished_sessions
    from runners.cores import usable_cores

    cores = len(usable_cores())
    begun = unfinished_sessions(setup.state)
    first = [remaining_estimate(setup, record, cores) for record in begun]
    work = without_pending(work, [record for record in begun if record.server == server])
    estimates_of_work = estimates(setup, plan, server, work, cores)
    fits = within_budget(estimates_of_work, budget_minutes, before_s=sum(estimate.seconds for estimate in first))
    return [
        *(_row(record, estimate, resumed=True, tonight=True) for record, estimate in zip(begun, first, strict=True)),
        *(
            _row(item, estimate, resumed=False, tonight=fit)
            for item, estimate, fit in zip(work, estimates_of_work, fits, strict=True)
        ),
    ]


def _row(work: Work, estimate: Estimate, resumed: bool, tonight: bool) -> dict[str, Any]:
    from pointdrop.jobs.night_schedule import SECONDS_A_MINUTE

    return {
        "dbms": work.measure.dbms,
        "benchmark": work.measure.benchmark,
        "lane": work.measure.lane,
        "line": work.line,
        "config": work.config,
        "profile": work.measure.profile,
        "releases": [release.version for release in work.candidates],
        "control": work.control.version,
        "blocks": estimate.blocks,
        "minutes": round(estimate.seconds / SECONDS_A_MINUTE, 1),
        "disk_mb": estimate.disk_bytes // 10**6,
        "resumed": resumed,
        "tonight": tonight,
    }


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
        size = f"{row['disk_mb'] / 1000:.1f} GB"
        missing = "begun before: its missing " if row["resumed"] else ""
        typer.echo(f"    {missing}{row['blocks']} blocks, about {row['minutes']} minutes, up to {size} on disk")
        if not row["tonight"]:
            typer.echo("    does not fit any more: left for a later night")
    total = sum(row["minutes"] for row in rows)
    first = sum(row["minutes"] for row in rows if row["tonight"])
    within = f", {first:.0f} of them in what this night begins" if first < total else ""
    typer.echo(
        f"\nAbout {total:.0f} minutes of machine time{within}, without downloads. "
        "Suspects that the detector finds are measured again on top of that."
    )
