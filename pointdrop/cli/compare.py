"""`pointdrop compare` and `pointdrop repeat`: measure something again, side by side."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pointdrop.cli import options
from pointdrop.cli.options import tests_in
from pointdrop.cli.rows import emit, rows_text
from pointdrop.paths import configs_dir, history_url, state_dir

if TYPE_CHECKING:
    from pointdrop.jobs.compare import CompareReport
    from runners.settings import Profile

#: The profile of each lane that answers in minutes.
QUICKEST = {"instructions": "instructions", "time": "quick"}
GATE_HIT = 3
#: Columns in CSV.
COMPARED = (
    "test", "group", "metric", "verdict", "direction", "before", "after", "change_pct", "low_pct", "high_pct", "blocks",
)  # fmt: skip


def compare(
    base: Annotated[str, typer.Argument(help="DBMS@VERSION, @git:REV, @tree:DIR[+FILE.patch] or @prefix:DIR.")],
    candidate: Annotated[str, typer.Argument(help="The same forms; #CONFIG after any of them.")],
    lane: options.Lane = "instructions",
    server: options.MeasuredServer = "local",
    config: Annotated[str, typer.Option(help="Config of both sides.")] = "default",
    benchmark: options.BenchmarkCatalogue = "sysbench",
    tests: options.Tests = "local",
    profile: options.Profile = "",
    budget_minutes: options.BudgetMinutes = 30.0,
    rounds: options.Rounds = 6,
    split_settings: Annotated[
        bool,
        typer.Option(
            "--split-settings",
            help="Measure the candidate with the settings of the base besides: what is settings, what is code.",
        ),
    ] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Build and run inside bubblewrap: patches of strangers.")
    ] = False,
    format: Annotated[
        Literal["text", "json", "csv", "markdown", "junit"],
        typer.Option(help="Of the report on standard output; csv: a row for each test and metric."),
    ] = "text",
    out: options.Out = None,
    fail_on: Annotated[
        Literal["nothing", "regression", "difference"], typer.Option(help="Exit with 3 when there is one.")
    ] = "nothing",
    seed: options.Seed = 1,
    offline: options.Offline = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure two releases, configs or builds in interleaved blocks until it is clear whether they differ.

    Each test is SAME, DIFFERENT or UNKNOWN, the family's verdict first. Only tests that are not clear are measured
    again. With --split-settings the difference is told in two parts, settings and code, whose product it is: the
    servers are asked for what differs, and the candidate is measured with the values of the base besides. Nothing is
    written to the history. Exit code 3 with `--fail-on`, 4 when it stopped before all was clear.

    JSON keys: base, candidate, server, lane, profile, verdict, rounds, blocks, minutes, stopped, tests, warnings. Each
    of the tests has the CSV columns and functions. CSV columns: test, group, metric, verdict, direction, before, after,
    change_pct, low_pct, high_pct, blocks. --split-settings adds split: cause (config, product, both), settings, code,
    metric, held, left, tests.
    """
    from history.metrics import load_metrics
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs.compare import ComparisonSetup, compare_sides
    from pointdrop.jobs.comparison_sides import parse_side, resolve
    from runners.releases import Catalogue
    from runners.settings import load_benchmark, load_server

    configs, state = configs_dir(), state_dir()
    sides = [parse_side(text, config) for text in (base, candidate)]
    catalogue_of_tests = load_benchmark(benchmark, configs)
    with Reporter(quiet) as reporter:
        catalogue = Catalogue(configs, state, offline=offline)
        installed = []
        for side in sides:
            reporter.say(f"getting {side}")
            installed.append(resolve(side, catalogue, sandbox))
        job = ComparisonSetup(
            base=(sides[0], installed[0]),
            candidate=(sides[1], installed[1]),
            server=load_server(server, configs),
            benchmark=catalogue_of_tests,
            tests=tests_in(tests, catalogue_of_tests),
            profile=pick_profile(profile, lane, configs),
            metrics=load_metrics(configs),
            configs=configs,
            state=state,
            budget_minutes=budget_minutes,
            most_rounds=rounds,
            seed=seed,
            sandbox=sandbox,
            split_settings=split_settings,
            on_event=reporter.on_event,
        )
        report = compare_sides(job)
    _print(report, format, out)
    if fail_on != "nothing" and (report.regressions or (fail_on == "difference" and report.verdict == "DIFFERENT")):
        raise typer.Exit(GATE_HIT)
    raise typer.Exit(0 if report.clear else 4)


def pick_profile(name: str, lane: str, configs: Path) -> Profile:
    """The profile of that name, or the quickest of the lane; BadSettings when it is of the other lane."""
    from history.errors import BadSettings
    from runners.settings import load_profile

    profile = load_profile(name or QUICKEST[lane], configs)
    if profile.lane != lane:
        raise BadSettings(f"the profile {profile.name} is of the {profile.lane} lane, not {lane}")
    return profile


def _print(report: CompareReport, format: str, out: Path | None) -> None:
    from pointdrop.jobs.compare_views import junit, markdown, text_lines

    if format == "json":
        text = report.model_dump_json(indent=2) + "\n"
    elif format == "markdown":
        text = markdown(report)
    elif format == "csv":
        text = rows_text([row.model_dump() for row in report.tests], format, COMPARED)
    elif format == "junit":
        text = junit(report)
    else:
        text = "\n".join(text_lines(report)) + "\n"
    emit(text, out)


def repeat(
    run_id: Annotated[str, typer.Argument(help="A run, as `history query` and the pages name it.")],
    blocks: Annotated[int | None, typer.Option(min=1, help="Blocks; as many as the run had by default.")] = None,
    history: options.History = None,
    offline: options.Offline = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure a run again as it was measured, from its bundle: same release by digest, options, scale, seeds, commands.

    The results go into the history as a session of their own. Exit code 4 when something could not be measured.
    """
    from history.errors import UnknownSeries
    from history.model import Block, Run, Session
    from history.store import Store
    from pointdrop.cli.progress import Reporter
    from runners.releases import Catalogue
    from runners.sessions import repeat_plan, run_session

    configs, state = configs_dir(), state_dir()
    with Store.open(history_url(history)) as store, Reporter(quiet) as reporter:
        runs = store.runs(id=run_id)
        if not runs:
            raise UnknownSeries(f"there is no run {run_id!r}; see: pointdrop history query")
        session = next(session for session in store.sessions() if session.id == runs[0].session_id)
        plan = repeat_plan(runs[0], session, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-repeat", blocks)

        def sink(row: Session, run: Run, block: Block) -> None:
            store.append_session(row)
            store.append_run(run)
            store.append_block(block)

        catalogue = Catalogue(configs, state, offline=offline)
        outcome = run_session(plan, catalogue, sink, configs=configs, state=state, on_event=reporter.on_event)
    typer.echo(f"session {plan.session_id}: {outcome.done} blocks, {outcome.noisy} noisy, {outcome.failed} failed")
    for reason in (*outcome.skipped.values(), *outcome.warnings):
        typer.echo(f"not done: {reason}", err=True)
    raise typer.Exit(0 if outcome.complete else 4)
