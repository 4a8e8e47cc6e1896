"""`pointdrop bisect`: which release, or which commit, brought a change."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointdrop.cli import options
from pointdrop.cli.options import Format
from pointdrop.cli.rows import emit, json_text, print_rows
from pointdrop.paths import configs_dir, state_dir

if TYPE_CHECKING:
    from detector.bisect import Answer
    from pointdrop.jobs.bisect import Bisection

INCOMPLETE = 4
#: Columns in CSV and Markdown.
CANDIDATE = ("candidate", "level", "change_pct", "side", "note")


def bisect(
    dbms: Annotated[str, typer.Argument(help="postgres, mysql, mariadb or myrocks.")],
    good: Annotated[str, typer.Argument(help="The last version, or with --repository commit, known at the old level.")],
    bad: Annotated[str, typer.Argument(help="The first known at the new level.")],
    test: Annotated[str, typer.Option(help="The test that changed.")],
    metric: Annotated[str, typer.Option(help="insn/o counts instructions; any other is timed.")] = "insn/o",
    repository: Annotated[
        str, typer.Option(help="Bisect the commits of this Git repository instead of releases; each is built.")
    ] = "",
    server: options.MeasuredServer = "local",
    config: Annotated[str, typer.Option(help="Config of all candidates.")] = "default",
    benchmark: options.BenchmarkCatalogue = "sysbench",
    profile: options.Profile = "",
    budget: Annotated[int, typer.Option(min=2, help="Blocks of candidates that may be measured in all.")] = 40,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Build inside bubblewrap.")] = False,
    format: Annotated[
        Format, typer.Option("--format", help="text and json: the answer; csv and markdown: a row a candidate.")
    ] = Format.text,
    out: options.Out = None,
    seed: options.Seed = 1,
    offline: options.Offline = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the release or commit that moved a test, in three-state steps: good, bad, or not to be told.

    A bisection that was stopped goes on where it was; a larger --budget goes further. Exit code 4 when the answer is an
    interval and not one candidate, or when the two ends turn out to be the same.

    JSON keys: after, first, between, exact, reason, differ, dbms, test, metric, levels, blocks. CSV columns: candidate,
    level, change_pct, side, note.
    """
    from detector.bisect import begin
    from history.metrics import load_metrics
    from pointdrop.cli.compare import pick_profile
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs.bisect import (
        Bisection,
        BisectionSetup,
        commit_candidates,
        load_bisection,
        release_candidates,
        run_bisection,
        state_path,
    )
    from pointdrop.jobs.measurement import runnable_releases
    from runners.releases import Catalogue
    from runners.settings import load_benchmark, load_server

    configs, state = configs_dir(), state_dir()
    tests = load_benchmark(benchmark, configs)
    metrics = load_metrics(configs)
    chosen = pick_profile(profile, metrics[metric].lane, configs)
    with Reporter(quiet) as reporter:
        catalogue = Catalogue(configs, state, offline=offline)
        if repository:
            candidates = commit_candidates(repository, good, bad)
            get = partial(catalogue.build_commit, dbms, repository=repository, sandbox=sandbox)
        else:
            catalogue.discover(dbms)
            candidates = release_candidates(runnable_releases(catalogue, dbms), good, bad)
            get = partial(catalogue.fetch, dbms)
        setup = BisectionSetup(
            get=get,
            server=load_server(server, configs),
            benchmark=tests,
            test=tests.select((test,))[-1],
            profile=chosen,
            metric=metrics[metric],
            configs=configs,
            state=state,
            seed=seed,
            on_event=reporter.on_event,
            say=reporter.say,
        )
        fresh = Bisection(dbms=dbms, test=test, metric=metric, config=config, machine=begin(candidates, budget))
        path = state_path(setup, fresh)
        reporter.say(f"{len(candidates)} candidates from {candidates[0]} to {candidates[-1]}; state in {path}")
        bisection = load_bisection(path, fresh)
        answer = run_bisection(setup, path, bisection)
    _print(bisection, answer, format, out)
    raise typer.Exit(0 if answer.exact else INCOMPLETE)


def levels_of(bisection: Bisection) -> dict[str, float]:
    """The mean of each candidate that was measured, in the metric's unit."""
    return {name: fmean(values) for name, values in bisection.values.items() if values}


def candidate_rows(bisection: Bisection) -> list[dict[str, Any]]:
    """A row for each candidate that was measured or could not be, in order; changes are relative to the first one."""
    levels = levels_of(bisection)
    reference = levels.get(bisection.machine.candidates[0])
    rows = []
    for name in bisection.machine.candidates:
        if name in levels or name in bisection.notes:
            level = levels.get(name)
            change = None if level is None or not reference else round(100 * (level / reference - 1), 4)
            side = bisection.machine.tried[name].side if name in bisection.machine.tried else "end"
            note = bisection.notes.get(name, "")
            rows.append({"candidate": name, "level": level, "change_pct": change, "side": side, "note": note})
    return rows


def answer_lines(bisection: Bisection, answer: Answer) -> list[str]:
    """The answer in a sentence, then what was measured."""
    inside = ", ".join((*answer.between, answer.first))
    lines = [f"The change came after {answer.after}, with one of {inside}: {answer.reason}."]
    if answer.exact:
        lines = [f"{answer.first} is the first at the new level of {bisection.test} ({bisection.metric})."]
    elif not answer.differ:
        lines = [f"There is nothing to find: {answer.reason}."]
    for row in candidate_rows(bisection):
        if row["change_pct"] is not None:
            lines.append(f"  {row['candidate']:<42} {row['level']:>16,.1f}  {row['change_pct']:+7.2f} %  {row['side']}")
    return [*lines, *(f"  {name}: {why}" for name, why in bisection.notes.items())]


def _print(bisection: Bisection, answer: Answer, format: Format, out: Path | None) -> None:
    if format is Format.json:
        asked = {"dbms": bisection.dbms, "test": bisection.test, "metric": bisection.metric}
        measured = {"levels": levels_of(bisection), "blocks": bisection.machine.spent}
        emit(json_text({**asdict(answer), **asked, **measured}), out)
    elif format is Format.text:
        emit("".join(f"{line}\n" for line in answer_lines(bisection, answer)), out)
    else:
        print_rows(candidate_rows(bisection), format, CANDIDATE, out=out)
