"""`pointdrop bisect`: which release, or which commit, brought a change."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointdrop.cli import options
from pointdrop.cli.options import Format
from pointdrop.cli.rows import emit, json_text, print_rows
from pointdrop.paths import configs_dir, state_dir

if TYPE_CHECKING:
    from detector.bisect_answers import Answer, CandidatePair
    from pointdrop.jobs.bisect import Bisection

INCOMPLETE = 4
#: Columns in CSV and Markdown.
CANDIDATE = ("candidate", "level", "change_pct", "side", "blocks", "note")


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
    budget: Annotated[int, typer.Option(min=4, help="Blocks that may be measured in all, of the ends too.")] = 100,
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

    GOOD and BAD are measured first: when they do not differ, that is the answer. A bisection that was stopped goes on
    where it was, on the same machine; a larger --budget goes further.

    Exit code 4 when the answer is an interval and not one candidate, when the ends do not differ, or when that is not
    known, because an end cannot be measured or the budget is spent. Where the two candidates of the answer were built
    by two builders or with two compilers, it says so: toolchain in JSON, else empty.

    JSON keys: answer (found, interval, no-difference, undecided), after, first, between, exact, reason, differ, ends,
    step, dbms, test, metric, toolchain, levels, blocks. after, first and step are null when nothing was found, differ
    and ends when the ends were not told apart. ends and step have before, after, change_pct, low_pct, high_pct,
    blocks_before, blocks_after; blocks counts those of all candidates. CSV columns: candidate, level, change_pct, side,
    blocks, note.
    """
    from detector.bisect_answers import Found
    from history.errors import BadSettings
    from history.metrics import load_metrics
    from pointdrop.cli.compare import pick_profile
    from pointdrop.cli.progress import Reporter
    from pointdrop.jobs.bisect import (
        BisectionSetup,
        commit_candidates,
        new_bisection,
        release_candidates,
        run_bisection,
        state_path,
    )
    from pointdrop.jobs.planned_work import runnable_releases
    from runners.releases import Catalogue
    from runners.settings import load_benchmark, load_server

    configs, state = configs_dir(), state_dir()
    tests = load_benchmark(benchmark, configs)
    metrics = load_metrics(configs)
    if metric not in metrics:
        raise BadSettings(f"no metric {metric!r}; there are: {', '.join(known.name for known in metrics)}")
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
        fresh = new_bisection(setup, dbms, config, candidates, budget)
        path = state_path(setup, fresh)
        reporter.say(f"{len(candidates)} candidates from {candidates[0]} to {candidates[-1]}; state in {path}")
        bisection, answer = run_bisection(setup, path, fresh)
    _print(bisection, answer, format, out)
    raise typer.Exit(0 if isinstance(answer, Found) else INCOMPLETE)


def levels_of(bisection: Bisection) -> dict[str, float]:
    """The level of each candidate that was measured, in the metric's unit."""
    return {name: median(blocks.values) for name, blocks in bisection.machine.blocks.items() if blocks.values}


def candidate_rows(bisection: Bisection) -> list[dict[str, Any]]:
    """A row for each candidate that was measured or could not be, in order; changes are relative to the first one."""
    from detector.bisect import sides

    machine, levels, side = bisection.machine, levels_of(bisection), sides(bisection.machine)
    reference = levels.get(machine.candidates[0])
    rows = []
    for name in machine.candidates:
        if blocks := machine.blocks.get(name):
            level = levels.get(name)
            rows.append(
                {
                    "candidate": name,
                    "level": level,
                    "change_pct": None if level is None or not reference else round(100 * (level / reference - 1), 4),
                    "side": "end" if name in (machine.candidates[0], machine.candidates[-1]) else side.get(name),
                    "blocks": len(blocks.values),
                    "note": blocks.unusable,
                }
            )
    return rows


def answer_lines(bisection: Bisection, answer: Answer) -> list[str]:
    """The answer in a sentence, then what was measured."""
    from detector.bisect_answers import Found, Interval, NoDifference
    from pointdrop.jobs.bisect import toolchain_note

    of = f"{bisection.test} ({bisection.metric})"
    match answer:
        case Found():
            lines = [f"{answer.first} is the first at the new level of {of}: {answer.step} against {answer.after}."]
        case Interval():
            inside = ", ".join((*answer.between, answer.first))
            lines = [f"The change came after {answer.after}, with one of {inside}: {answer.reason}."]
        case NoDifference():
            lines = [f"There is nothing to find in {of}: {answer.reason}."]
        case _:
            lines = [f"Nothing can be said of {of}: {answer.reason}."]
    if note := toolchain_note(bisection, answer):
        lines.append(note)
    rows = candidate_rows(bisection)
    for row in rows:
        if row["change_pct"] is not None:
            side = row["side"] or ""
            lines.append(
                f"  {row['candidate']:<42} {row['level']:>16,.1f}  {row['change_pct']:+7.2f} %  {side}".rstrip()
            )
    return [*lines, *(f"  {row['candidate']}: {row['note']}" for row in rows if row["note"])]


def answer_row(answer: Answer) -> dict[str, Any]:
    """The answer's keys of the JSON."""
    from detector.bisect_answers import Found, Interval, NoDifference

    seen = answer if isinstance(answer, Found | Interval) else None
    ends = seen.ends if seen else answer.ends if isinstance(answer, NoDifference) else None
    names = {"Found": "found", "Interval": "interval", "NoDifference": "no-difference", "Undecided": "undecided"}
    return {
        "answer": names[type(answer).__name__],
        "after": seen and seen.after,
        "first": seen and seen.first,
        "between": answer.between if isinstance(answer, Interval) else (),
        "exact": isinstance(answer, Found),
        "reason": "" if isinstance(answer, Found) else answer.reason,
        "differ": None if ends is None else seen is not None,
        "ends": ends and _pair_row(ends),
        "step": seen and _pair_row(seen.step),
    }


def _pair_row(pair: CandidatePair) -> dict[str, Any]:
    seen = pair.comparison
    interval = [value if math.isfinite(value) else None for value in (seen.low_pct, seen.high_pct)]
    return {
        "before": pair.before.candidate,
        "after": pair.after.candidate,
        "change_pct": seen.change_pct,
        "low_pct": interval[0],
        "high_pct": interval[1],
        "blocks_before": seen.blocks_before,
        "blocks_after": seen.blocks_after,
    }


def _print(bisection: Bisection, answer: Answer, format: Format, out: Path | None) -> None:
    if format is Format.json:
        from pointdrop.jobs.bisect import toolchain_note

        asked = {"dbms": bisection.dbms, "test": bisection.test, "metric": bisection.metric}
        asked["toolchain"] = toolchain_note(bisection, answer)
        measured = {"levels": levels_of(bisection), "blocks": bisection.machine.spent}
        emit(json_text({**answer_row(answer), **asked, **measured}), out)
    elif format is Format.text:
        emit("".join(f"{line}\n" for line in answer_lines(bisection, answer)), out)
    else:
        print_rows(candidate_rows(bisection), format, CANDIDATE, out=out)
