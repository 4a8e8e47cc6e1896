"""`pointdrop bisect`: which release, or which commit, brought a change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pointdrop.cli.rows import Format, OutOption, emit, json_text, print_rows

if TYPE_CHECKING:
    from detector.bisect import Answer
    from pointdrop.jobs.bisect import Bisection

INCOMPLETE = 4
#: Columns in CSV and Markdown.
CANDIDATE = ("candidate", "level", "change_pct", "side", "note")


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
    format: Annotated[
        Format, typer.Option("--format", help="text and json: the answer; csv and markdown: a row a candidate.")
    ] = Format.text,
    out: OutOption = None,
    seed: Annotated[int, typer.Option(help="Order of blocks.")] = 1,
    offline: Annotated[bool, typer.Option("--offline", help="Only releases that are in the cache.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Find the release or commit that moved a test, in three-state steps: good, bad, or not to be told.

    A bisection that was stopped goes on where it was; a larger --budget goes further. Exit code 4 when the answer is an
    interval and not one candidate, or when the two ends turn out to be the same.

    JSON keys: after, first, between, exact, reason, differ, dbms, test, metric, levels, blocks. CSV columns: candidate,
    level, change_pct, side, note.
    """
    from history.metrics import load_metrics
    from pointdrop.cli.compare import pick_profile
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs import bisect as job
    from pointdrop.paths import configs_dir, state_dir
    from runners.releases import Catalogue
    from runners.settings import load_benchmark, load_server

    configs, state = configs_dir(), state_dir()
    tests = load_benchmark(benchmark, configs)
    metrics = load_metrics(configs)
    chosen = pick_profile(profile, metrics[metric].lane, configs)
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
            metric=metrics[metric],
            configs=configs,
            state=state,
            seed=seed,
            on_event=reporter.on_event,
            say=reporter.say,
        )
        path = job.path_of(bench, dbms, metric, config, candidates)
        fresh = job.new(dbms, test, metric, config, candidates, budget)
        reporter.say(f"{len(candidates)} candidates from {candidates[0]} to {candidates[-1]}; state in {path}")
        bisection, answer = job.run(bench, path, job.load(path, fresh))
    _print(bisection, answer, format, out)
    raise typer.Exit(0 if answer.exact else INCOMPLETE)


def _print(bisection: Bisection, answer: Answer, format: Format, out: Path | None) -> None:
    from dataclasses import asdict

    from pointdrop.jobs.bisect_views import answer_lines, candidate_rows, levels_of

    if format is Format.json:
        asked = {"dbms": bisection.dbms, "test": bisection.test, "metric": bisection.metric}
        found = {"levels": levels_of(bisection), "blocks": bisection.machine.spent}
        emit(json_text({**asdict(answer), **asked, **found}), out)
    elif format is Format.text:
        emit("".join(f"{line}\n" for line in answer_lines(bisection, answer)), out)
    else:
        print_rows(candidate_rows(bisection), format, CANDIDATE, out=out)
