"""`pointdrop bench`: measure on this machine what a plan wants, or say what there is to measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pointdrop.cli import options
from pointdrop.cli.options import names_in, write_outputs
from pointdrop.paths import configs_dir, history_url, state_dir

if TYPE_CHECKING:
    from pointdrop.jobs.measurement import MeasurementSetup
    from pointdrop.jobs.release_selection import Work
    from runners.settings import Plan


def bench(
    plan: options.Plan = "local",
    server: Annotated[str, typer.Option(help="Servers, comma-separated; all of the plan by default.")] = "",
    dbms: Annotated[str, typer.Option(help="DBMS, comma-separated; all of the plan by default.")] = "",
    releases: Annotated[
        str, typer.Option(help="Just these versions, comma-separated, whatever the history holds.")
    ] = "",
    confirm: Annotated[
        str, typer.Option(help="Just these suspects, comma-separated, as `detect --suspects` prints them.")
    ] = "",
    benchmark: Annotated[str, typer.Option(help="Only what the plan measures of this benchmark.")] = "",
    lane: Annotated[str, typer.Option(help="Only what the plan measures in this lane: time or instructions.")] = "",
    config: Annotated[str, typer.Option(help="Only what the plan measures with this config.")] = "",
    lines: Annotated[str, typer.Option(help="Instead of the plan's lines: these, comma-separated.")] = "",
    tests: Annotated[
        str, typer.Option(help="Instead of the plan's tests: a set of the benchmark, `all`, or tests, comma-separated.")
    ] = "",
    profile: Annotated[str, typer.Option(help="Instead of the plan's profile; measures what is of its lane.")] = "",
    blocks: Annotated[
        int | None, typer.Option(min=1, help="Blocks of each release in a session, instead of the plan's.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also keep every block below this directory, as pointdrop.run/1.")
    ] = None,
    history: options.History = None,
    listing: Annotated[
        bool,
        typer.Option(
            "--list", help="Measure nothing; print the work of one night as JSON, a row a server and session."
        ),
    ] = False,
    github_output: options.GithubOutput = None,
    offline: options.Offline = False,
    budget_minutes: Annotated[
        float | None, typer.Option(min=0, help="Begin no block that would end later, unless all of it is left.")
    ] = None,
    dry_run: options.Forecast = False,
    discover: options.Discover = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure what the plan wants and the history lacks; nothing is detected and nothing filed.

    A session that was stopped goes on at its next block. Exit code 4 when something could not be measured.

    Outputs with --list: work, some.
    """
    from history.errors import BadSettings
    from history.spool import Spool
    from history.store import Store
    from pointdrop.cli.forecast import discovery_notes, forecast, print_forecast
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs.measurement import MeasurementSetup, measure_all
    from pointdrop.jobs.work_matrix import matrix_rows
    from runners.releases import Catalogue
    from runners.settings import adapted, load_plan, narrowed

    configs, state = configs_dir(), state_dir()
    wanted = adapted(
        narrowed(load_plan(plan, configs), benchmark, lane, config),
        configs, lines=names_in(lines), tests=tests, profile=profile, blocks=blocks,
    )  # fmt: skip
    servers = names_in(server) or list(wanted.servers)
    if foreign := [name for name in servers if name not in wanted.servers]:
        raise BadSettings(f"the plan {wanted.name} is for {', '.join(wanted.servers)}, not {', '.join(foreign)}")
    of_plan = dict.fromkeys(measure.dbms for measure in wanted.measure)
    if foreign := [name for name in names_in(dbms) if name not in of_plan]:
        raise BadSettings(f"the plan {wanted.name} measures {', '.join(of_plan)}, not {', '.join(foreign)}")
    if sum(map(bool, (listing, releases, confirm))) > 1:
        raise BadSettings("--list, --releases and --confirm each say what there is to measure; take one of them")
    with Store.open(history_url(history)) as store, Reporter(quiet) as reporter:
        catalogue = Catalogue(configs, state, offline=offline)
        spool = Spool([out]) if out else None
        run = MeasurementSetup(configs, state, catalogue, store, reporter.on_event, reporter.say, spool)
        if listing:
            rows, later = matrix_rows(run, wanted, servers, names_in(dbms))
            if later:
                night = f"a night holds {wanted.budget_minutes:.0f} minutes"
                typer.echo(f"left for the nights after, since {night}: {', '.join(later)}", err=True)
            typer.echo(json.dumps(rows, indent=2))
            write_outputs(github_output, work=json.dumps(rows), some="true" if rows else "false")
            return
        if len(servers) != 1:
            raise BadSettings(f"say which server this machine is: --server {' or '.join(servers)}")
        asks = discover or not dry_run
        work = _work(run, wanted, servers[0], names_in(dbms), names_in(releases), names_in(confirm), asks)
        budget = wanted.budget_minutes if budget_minutes is None else budget_minutes
        chosen = {release.version for item in work for release in item.candidates}
        lost = [
            f"{name}: no final release of that name can be measured here; see: pointdrop releases list"
            for name in names_in(releases)
            if name not in chosen
        ]
        if dry_run:
            print_forecast(forecast(run, wanted, servers[0], work, budget), "text")
            for sentence in (*discovery_notes(catalogue, work, discover), *lost):
                typer.echo(sentence, err=True)
            return
        measured = measure_all(run, wanted, servers[0], work, budget_minutes=budget)
    names = ", ".join(measured.releases) or "nothing"
    typer.echo(f"measured {names}: {measured.done} blocks, {measured.noisy} noisy, {measured.failed} failed")
    for reason in (*lost, *measured.incomplete, *catalogue.warnings):
        typer.echo(f"not done: {reason}", err=True)
    if lost or measured.incomplete:
        raise typer.Exit(4)


def _work(
    setup: MeasurementSetup,
    plan: Plan,
    server: str,
    dbms: list[str],
    releases: list[str],
    confirm: list[str],
    discover: bool,
) -> list[Work]:
    from history.errors import BadSettings
    from pointdrop.jobs.planned_work import named_work, planned_work, runnable_releases
    from pointdrop.jobs.suspects import Suspect, confirmation_work

    if not (releases or confirm):
        return planned_work(setup, plan, server, dbms, discover=discover)
    suspects = [Suspect.parse(text) for text in confirm]
    chosen = [suspect for suspect in suspects if suspect.server == server and suspect.dbms in (dbms or [suspect.dbms])]
    if suspects and not chosen:
        raise BadSettings(f"none of the suspects is of {' '.join((server, *dbms))}")
    wanted = {suspect.dbms for suspect in chosen} or set(dbms) or {measure.dbms for measure in plan.measure}
    for name in sorted(wanted) if discover else ():
        setup.catalogue.discover(name)
    if releases:
        return named_work(setup, plan, dbms, releases)
    return confirmation_work(chosen, plan, {name: runnable_releases(setup.catalogue, name) for name in wanted})
