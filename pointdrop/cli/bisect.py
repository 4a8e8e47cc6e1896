"""`pointdrop bisect`: which release, or which commit, brought a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from detector.bisect import Answer
    from pointdrop.jobs.bisect import Bisection

INCOMPLETE = 4


def register(app: typer.Typer) -> None:
    app.command("bisect")(bisect)


def bisect(
    dbms: Annotated[str, typer.Argument(help="postgres, mysql, mariadb or myrocks.")],
    good: Annotated[str, typer.Argument(help="The last version, or with --repository commit, known at the old level.")],
    bad: Annotated[str, typer.Argument(help="The first known at the new level.")],
    test: Annotated[str, typer.Option(help="The test that changed.")],
    metric: Annotated[str, typer.Option(help="insn/o counts instructions; any other is timed.")] = "insn/o",
    repository: Annotated[
        str, typer.Option(help="Bisect the commits of this Git repository instead of releases; each is built.")
    ] = "",
    server: Annotated[str, typer.Option(help="Server class, for scale and memory.")] = "local",
    config: Annotated[str, typer.Option(help="Config of all candidates.")] = "default",
    benchmark: Annotated[str, typer.Option(help="Catalogue of tests.")] = "sysbench",
    profile: Annotated[str, typer.Option(help="Durations; the lane's quickest by default.")] = "",
    budget: Annotated[int, typer.Option(min=2, help="Blocks of candidates that may be measured in all.")] = 40,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Build inside bubblewrap.")] = False,
    format: Annotated[Literal["text", "json"], typer.Option(help="Of the answer on standard output.")] = "text",
    offline: Annotated[bool, typer.Option("--offline", help="Only releases that are in the cache.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Find the release or commit that moved a test, in three-state steps: good, bad, or not to be told.

    A bisection that was stopped goes on where it was; a larger --budget goes further. Exit code 4 when the answer is an
    interval and not one candidate, or when the two ends turn out to be the same.
    """
    from pointdrop.cli.compare import pick_profile
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs import bisect as job
    from pointdrop.paths import configs_dir, state_dir
    from runners.releases import Catalogue
    from runners.settings import load_benchmark, load_server
    from runners.settings.metrics import load_metrics

    configs, state = configs_dir(), state_dir()
    tests = load_benchmark(benchmark, configs)
    chosen = pick_profile(profile, "instructions" if metric == "insn/o" else "time", configs)
    metrics = load_metrics(configs)
    with Reporter(quiet) as reporter:
        catalogue = Catalogue(configs, state, offline=offline)
        if repository:
            candidates = job.commit_candidates(repository, good, bad)
            get = job.commit_getter(catalogue, dbms, repository, sandbox)
        else:
            catalogue.discover(dbms)
            known = [one.release for one in catalogue.list(dbms) if one.state in ("pinned", "new")]
            candidates = job.release_candidates(known, good, bad)
            get = job.release_getter(catalogue, dbms)
        bench = job.Bench(
            get=get,
            server=load_server(server, configs),
            benchmark=tests,
            test=tests.select((test,))[-1],
            profile=chosen,
            floor_pct=metrics[metric].smallest_change_pct if metric in metrics else 1.0,
            configs=configs,
            state=state,
            on_event=reporter.on_event,
            say=reporter.say,
        )
        path = job.path_of(state, dbms, test, metric, config, candidates, chosen.lane)
        fresh = job.new(dbms, test, metric, config, candidates, budget)
        reporter.say(f"{len(candidates)} candidates from {candidates[0]} to {candidates[-1]}; state in {path}")
        bisection, answer = job.run(bench, path, job.load(path, fresh))
    _print(bisection, answer, format)
    raise typer.Exit(0 if answer.exact else INCOMPLETE)


def _print(bisection: Bisection, answer: Answer, format: str) -> None:
    import json
    from dataclasses import asdict
    from statistics import fmean

    levels = {name: fmean(values) for name, values in bisection.values.items() if values}
    if format == "json":
        row = {**asdict(answer), "dbms": bisection.dbms, "test": bisection.test, "metric": bisection.metric}
        typer.echo(json.dumps({**row, "levels": levels, "blocks": bisection.machine.spent}, indent=2))
        return
    if answer.exact:
        typer.echo(f"{answer.first} is the first at the new level of {bisection.test} ({bisection.metric}).")
    elif not answer.differ:
        typer.echo(f"There is nothing to find: {answer.reason}.")
    else:
        inside = ", ".join((*answer.between, answer.first))
        typer.echo(f"The change came after {answer.after}, with one of {inside}: {answer.reason}.")
    reference = levels.get(bisection.machine.candidates[0])
    for name in bisection.machine.candidates:
        if name in levels and reference:
            side = bisection.machine.tried[name].side if name in bisection.machine.tried else "end"
            change = 100 * (levels[name] / reference - 1)
            typer.echo(f"  {name:<42} {levels[name]:>16,.1f}  {change:+7.2f} %  {side}")
    for name, why in bisection.notes.items():
        typer.echo(f"  {name}: {why}")
