"""`pointdrop patch`: patches in pull requests, in the three steps of the workflow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pointdrop.cli import options
from pointdrop.cli.options import names_in, tests_in, write_outputs
from pointdrop.cli.rows import emit
from pointdrop.paths import configs_dir, state_dir

if TYPE_CHECKING:
    from pointdrop.jobs.compare import CompareReport

group = typer.Typer(no_args_is_help=True)

Head = Annotated[str, typer.Option("--head", help="The full SHA of the patch.")]


@group.command("gate")
def gate_command(
    event: Annotated[Path, typer.Option("--event", envvar="GITHUB_EVENT_PATH", help="The event, as JSON.")],
    servers: Annotated[str, typer.Option(help="Servers that may be asked for, the default first.")] = "small,medium",
    github_output: options.GithubOutput = None,
) -> None:
    """Check that a `/bench [SERVER] [SHA]` comes from somebody who may write, and fix the commits.

    Asks GitHub (GITHUB_TOKEN, GITHUB_REPOSITORY) for the permission and for the pull request. Exit code 1 when refused.

    Outputs: pr, base, head, server.
    """
    from alerts import load_settings
    from alerts.trackers.access import account_from
    from pointdrop.jobs.patches import Refused, gate

    account = account_from(os.environ, load_settings(configs_dir()).github)
    try:
        data = json.loads(event.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Refused(f"{event} is no JSON: {error}") from error
    request = gate(data, account.github, account.repository, names_in(servers))
    typer.echo(request.model_dump_json())
    write_outputs(github_output, **request.model_dump())


@group.command("run")
def run_command(
    base: Annotated[str, typer.Option("--base", help="The full SHA the patch is compared with.")],
    head: Head,
    out: Annotated[Path, typer.Option("--out", help="Directory that gets result.json.")],
    repository: Annotated[str, typer.Option(help="Where both commits can be fetched.")] = "",
    merge_base: Annotated[
        bool,
        typer.Option("--merge-base", help="Compare with where the patch left --base; needs --repository."),
    ] = False,
    dbms: Annotated[str, typer.Option(help="What the repository builds.")] = "postgres",
    server: options.MeasuredServer = "local",
    lane: options.Lane = "instructions",
    profile: options.Profile = "",
    tests: options.Tests = "local",
    budget_minutes: options.BudgetMinutes = 120.0,
    rounds: options.Rounds = 6,
    summary: Annotated[
        Path | None, typer.Option("--summary", help="Append the report as Markdown to this file.")
    ] = None,
    github_output: options.GithubOutput = None,
    quiet: options.Quiet = False,
) -> None:
    """Build both commits and compare them, everything of theirs inside bubblewrap.

    Sources are fetched by SHA into a bare mirror and unpacked from `git archive`, so nothing of a commit runs outside
    the sandbox. Needs no token. Exit code 4 when it stopped before all was clear; the result is written all the same.

    Outputs: result, verdict.
    """
    from history.metrics import load_metrics
    from pointdrop.cli.compare import pick_profile
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs.compare import ComparisonSetup, compare_sides
    from pointdrop.jobs.compare_views import markdown
    from pointdrop.jobs.comparison_sides import Side
    from pointdrop.jobs.patches import FULL_SHA, patch_result, public_report
    from runners.releases import Catalogue
    from runners.releases.git import merge_base as branched_off
    from runners.settings import load_benchmark, load_server

    for sha in (base, head):
        if not FULL_SHA.fullmatch(sha):
            raise typer.BadParameter(f"{sha!r} is no full SHA")
    configs, state = configs_dir(), state_dir()
    if merge_base:
        if not repository:
            raise typer.BadParameter("--merge-base needs --repository")
        base = branched_off(repository, base, head, state / "cache" / "git")
    benchmark = load_benchmark("sysbench", configs)
    with Reporter(quiet) as reporter:
        catalogue = Catalogue(configs, state)
        sides = []
        for sha in (base, head):
            reporter.say(f"building {dbms} {sha} in the sandbox")
            built = catalogue.build_commit(dbms, sha, repository=repository or None, sandbox=True)
            sides.append((Side(dbms, "git", sha, None, "default"), built))
        report = compare_sides(
            ComparisonSetup(
                base=sides[0],
                candidate=sides[1],
                server=load_server(server, configs),
                benchmark=benchmark,
                tests=tests_in(tests, benchmark),
                profile=pick_profile(profile, lane, configs),
                metrics=load_metrics(configs),
                configs=configs,
                state=state,
                budget_minutes=budget_minutes,
                most_rounds=rounds,
                seed=1,
                sandbox=True,
                on_event=reporter.on_event,
            )
        )
    result = patch_result(dbms, base, head, report)
    emit(result.model_dump_json(indent=1), out / "result.json")
    typer.echo(f"{report.verdict}: {out / 'result.json'}")
    if summary:
        with summary.open("a", encoding="utf-8") as file:
            file.write(markdown(public_report(result)))
    write_outputs(github_output, result=out / "result.json", verdict=report.verdict)
    raise typer.Exit(0 if report.clear else 4)


@group.command("publish")
def publish_command(
    head: Head,
    untrusted: Annotated[Path, typer.Option("--untrusted", help="result.json, as the measuring machine left it.")],
    pr: Annotated[
        int, typer.Option("--pr", help="The pull request, from the gate; found by its head commit when left out.")
    ] = 0,
    outcome: Annotated[
        Literal["success", "failure", "cancelled", "skipped"],
        typer.Option("--bench-result", help="How the measuring job ended."),
    ] = "success",
    run_url: Annotated[str, typer.Option("--run-url", help="Where the log is.")] = "",
) -> None:
    """Check the result and say it in one comment, which is edited in place, and in a check run.

    Nothing of a result that is not of the right form is shown; then the exit code is 2 and the comment says so.
    """
    from alerts import load_settings
    from alerts.pull_requests import publish_check, publish_comment
    from alerts.trackers.access import account_from
    from pointdrop.jobs import patches

    settings = load_settings(configs_dir()).github
    account = account_from(os.environ, settings)
    pr = pr or patches.pull_of(account.github, account.repository, head)
    problem: patches.BadResult | None = None
    ending = "failed" if outcome == "failure" else "did not run to its end"
    report: CompareReport | str = f"the measuring job {ending}"
    if untrusted.exists() or outcome == "success":
        try:
            report = patches.public_report(patches.read_result(untrusted, head))
        except patches.BadResult as error:
            problem, report = error, "the measuring machine handed over a result of the wrong form"
    check = patches.check(report, head, pr, run_url)
    publish_check(account, settings, check)
    publish_comment(account, settings, pr, patches.comment(report, head, run_url))
    typer.echo(f"pull request {pr}: {check.conclusion}, {check.title}")
    if problem:
        raise problem
