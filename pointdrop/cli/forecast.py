"""What `--dry-run` prints: the sessions a job would make, and the machine time they take."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pointdrop.jobs.measurement import MeasurementSetup
    from pointdrop.jobs.release_selection import Work
    from runners.releases import Catalogue
    from runners.sessions import Estimate
    from runners.settings import Plan


def forecast(
    setup: MeasurementSetup, plan: Plan, server: str, work: list[Work], budget_minutes: float | None
) -> list[dict[str, Any]]:
    """A row for each session that would be made, those that were begun before first; minutes and MB are estimates."""
    from pointdrop.jobs.night_schedule import within_budget, without_pending
    from pointdrop.jobs.session_estimates import estimates, remaining_estimate
    from pointdrop.jobs.session_records import sessions_under_way, unfinished_sessions
    from runners.cores import usable_cores

    cores = len(usable_cores())
    begun = unfinished_sessions(setup.state)
    first = [remaining_estimate(setup, record, cores) for record in begun]
    elsewhere = sessions_under_way(setup.state)
    work = without_pending(work, [record for record in (*begun, *elsewhere) if record.server == server])
    estimates_of_work = estimates(setup, plan, server, work, cores)
    fits = within_budget(estimates_of_work, budget_minutes, before_s=sum(estimate.middle_s for estimate in first))
    cached = {
        (dbms, state.release.version)
        for dbms in {item.measure.dbms for item in (*begun, *work)}
        for state in setup.catalogue.list(dbms)
        if state.cached
    }
    return [
        *(_row(record, estimate, cached, True, True) for record, estimate in zip(begun, first, strict=True)),
        *(
            _row(item, estimate, cached, False, fit)
            for item, estimate, fit in zip(work, estimates_of_work, fits, strict=True)
        ),
    ]


def _row(
    work: Work, estimate: Estimate, cached: Collection[tuple[str, str]], resumed: bool, tonight: bool
) -> dict[str, Any]:
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
        "beside": [release.version for release in work.beside],
        "blocks": estimate.blocks,
        "minutes_low": math.floor(10 * estimate.low_s / SECONDS_A_MINUTE) / 10,
        "minutes_high": math.ceil(10 * estimate.high_s / SECONDS_A_MINUTE) / 10,
        "known_blocks": estimate.known,
        "downloads": [r.version for r in work.releases if (r.dbms, r.version) not in cached],
        "disk_mb": estimate.disk_bytes // 10**6,
        "resumed": resumed,
        "tonight": tonight,
    }


def discovery_notes(catalogue: Catalogue, work: Iterable[Work], discovered: bool) -> list[str]:
    """What a dry run that asked no source has to say about that, a sentence a DBMS."""
    notes = []
    for dbms in dict.fromkeys(item.measure.dbms for item in work if not discovered):
        asked = catalogue.discovered_at(dbms)
        known = (
            f"as its sources offered them on {asked:%Y-%m-%d}" if asked else "as pinned, since no source was asked yet"
        )
        notes.append(f"Releases of {dbms} {known}; --discover asks the sources.")
    return notes


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
        releases = row["releases"]
        many = "1 release" if len(releases) == 1 else f"{len(releases)} releases"
        beside = f", beside {' '.join(row['beside'])}" if row["beside"] else ""
        typer.echo(f"    {many}: {' '.join(releases)} (control {row['control']}{beside})")
        size = f"{row['disk_mb'] / 1000:.1f} GB"
        missing = "begun before: its missing " if row["resumed"] else ""
        typer.echo(f"    {missing}{row['blocks']} blocks, {_minutes([row])} ({_source(row)}), up to {size} on disk")
        if row["downloads"]:
            typer.echo(f"    to download first: {' '.join(row['downloads'])}")
        if not row["tonight"]:
            typer.echo("    does not fit any more: left for a later night")
    first = [row for row in rows if row["tonight"]]
    within = f", {_minutes(first)} of it in what this night begins" if first else ", none of it begun this night"
    within = within if len(first) < len(rows) else ""
    typer.echo(
        f"\nTogether {_minutes(rows)} of machine time{within}, downloads not included. "
        "Suspects that the detector finds are measured again on top of that."
    )


def _minutes(rows: list[dict[str, Any]]) -> str:
    from pointdrop.jobs.night_schedule import SECONDS_A_MINUTE
    from presentation.durations import duration_range

    low, high = (sum(row[name] for row in rows) * SECONDS_A_MINUTE for name in ("minutes_low", "minutes_high"))
    return duration_range(low, high)


def _source(row: dict[str, Any]) -> str:
    if not row["known_blocks"]:
        return "no such block of this host yet"
    return f"learned from {row['known_blocks']} block{'s' if row['known_blocks'] > 1 else ''} of this host"
