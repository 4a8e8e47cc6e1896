"""`pointdrop nightly`: the main job on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pointdrop.cli import options
from pointdrop.paths import configs_dir, history_url, state_dir

if TYPE_CHECKING:
    from runners.settings import Plan


def nightly(
    plan: options.Plan = "local",
    server: Annotated[str, typer.Option(help="Server that this machine is; the plan's only one by default.")] = "",
    history: options.History = None,
    site: Annotated[Path | None, typer.Option(help="Where the site is built; STATE/site by default.")] = None,
    offline: options.Offline = False,
    confirm: Annotated[
        bool, typer.Option("--confirm/--no-confirm", help="Measure suspects again before they are filed.")
    ] = True,
    dry_run: options.Forecast = False,
    discover: options.Discover = False,
    quiet: options.Quiet = False,
    format: options.TextOrJson = "text",
) -> None:
    """Measure what is new, look for changes, confirm them, file findings, draw the site.

    Discovers releases, fetches and verifies them, measures those the history lacks in interleaved blocks beside the
    control, appends every block as it finishes, detects, measures suspects again, files what is confirmed with the
    tracker (GitHub with GITHUB_TOKEN and GITHUB_REPOSITORY, else Markdown files below STATE/issues) and builds the
    site. A second run does only what is new; a run that was stopped goes on at the next block.

    Exit code 4 when something could not be done; the summary says what.

    JSON keys: plan, releases, blocks, noisy, failed, series, findings, issues, incomplete, notes, minutes, history,
    site, issues_at. With --dry-run an array of dbms, benchmark, lane, line, config, profile, releases, control, beside
    (the newest release of the line before, measured with them), blocks, minutes_low, minutes_high, known_blocks (of
    this host, that the minutes are learned from), downloads, disk_mb, resumed and tonight.
    """
    from alerts import load_settings
    from alerts.trackers.choose import tracker_for
    from history.store import Store
    from pointdrop.cli.forecast import discovery_notes, forecast, print_forecast
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs.measurement import MeasurementSetup
    from pointdrop.jobs.planned_work import planned_work
    from pointdrop.jobs.summary import lines
    from runners.releases import Catalogue
    from runners.settings import load_plan

    configs, state = configs_dir(), state_dir()
    wanted = load_plan(plan, configs)
    this_server = _server(wanted, server)
    with Store.open(history_url(history)) as store, Reporter(quiet) as reporter:
        catalogue = Catalogue(configs, state, offline=offline)
        setup = MeasurementSetup(configs, state, catalogue, store, reporter.on_event, reporter.say)
        if dry_run:
            work = planned_work(setup, wanted, this_server, discover=discover)
            print_forecast(forecast(setup, wanted, this_server, work, wanted.budget_minutes), format)
            for sentence in discovery_notes(catalogue, work, discover):
                typer.echo(sentence, err=True)
            return
        from pointdrop.jobs.nightly import nightly as run

        tracker = tracker_for("auto", os.environ, state / "issues", load_settings(configs))
        summary = run(setup, wanted, this_server, tracker, site or state / "site", confirm)
    if format == "json":
        typer.echo(summary.model_dump_json(indent=2))
    else:
        typer.echo("\n".join(lines(summary)))
    raise typer.Exit(summary.exit_code)


def _server(plan: Plan, named: str) -> str:
    if named in plan.servers or (not named and len(plan.servers) == 1):
        return named or plan.servers[0]
    raise typer.BadParameter(
        f"the plan {plan.name} is for {', '.join(plan.servers)}; say which of them this machine is",
        param_hint="--server",
    )
