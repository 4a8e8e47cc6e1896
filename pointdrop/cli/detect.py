"""`pointdrop detect`, `replay` and `explain`: what changed, when it would have been seen, and why it is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pointdrop.cli import options
from pointdrop.cli.detect_views import (
    REPLAY_COLUMNS,
    explanation_text,
    findings_for_people,
    findings_text,
    replay_score,
    replayed_json,
    replayed_row,
    replayed_text,
)
from pointdrop.cli.options import Format as RowFormat
from pointdrop.cli.options import write_outputs
from pointdrop.cli.rows import emit, json_text, print_rows, print_sections, remark
from pointdrop.paths import configs_dir, history_url, state_dir

if TYPE_CHECKING:
    from history.metrics import MetricRegistry
    from history.model import Finding
    from history.store import Store

Format = Annotated[
    Literal["table", "text", "json", "csv", "markdown"],
    typer.Option(
        "--format", help="table, csv and markdown: a row each; text: with the evidence; json: everything there is."
    ),
]

#: Columns for people; CSV has all.
SHOWN_FINDING = ("finding", "how sure", "cause", "title")
SHOWN_REPLAY = ("measured", "seen", "still there", "finding", "title")


def detect(
    history: options.History = None,
    dbms: options.Dbms = None,
    line: options.Line = None,
    format: Format = "table",
    out: options.Out = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Scan on this Dask cluster, as in tcp://10.0.0.1:8786.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing to the history.")] = False,
    suspects: Annotated[
        bool,
        typer.Option("--suspects", help="Print as JSON what to measure again, a row a server and DBMS; write nothing."),
    ] = False,
    plan: Annotated[str, typer.Option("--plan", help="With --suspects: how they would be measured.")] = "local",
    github_output: options.GithubOutput = None,
    fail_on: Annotated[
        Literal["regression"] | None,
        typer.Option(
            "--fail-on",
            help="Exit with 3 when a finding of this kind is more likely than not and not refuted, unless two builders "
            "are its cause.",
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Find changes in the history and write them down as its newest detection.

    Every boundary between two releases at which tests changed is one finding: regression, improvement, environment
    shift or slow drift. Steps between majors stand in a section of their own, after the point releases. With --dbms or
    --line only a part is looked at, and nothing is written.

    JSON keys: key, kind, cause, tier, dbms, line, previous, release, unmeasured, moves, trade, groups, functions,
    plans, settings, split, toolchain, blocks, evidence, warnings, lines, probably_affected, same_as, explained,
    explained_by, headline. CSV columns: finding, kind, cause, tier, dbms, line, previous, release, title, tests,
    metric, median_pct, worst_pct, worst_test, probability, folded_under. Outputs with --suspects: work, some.
    """
    from history.model import NOT_FILED, fails_gates
    from history.store import Store
    from pointdrop.jobs.detect import load_detector_settings, run_detection
    from presentation.findings import FINDING_COLUMNS, finding_record, findings_frame, records
    from presentation.ranking import finding_order

    settings = load_detector_settings(configs_dir())
    metrics = settings.metrics
    write = not (dry_run or suspects or dbms or line)
    with Store.open(history_url(history)) as store:
        _require_series(store, dbms, line, quiet)
        findings = run_detection(store, settings, dbms=dbms, line=line, scheduler=scheduler, write=write)
        if write and store.events():  # only what people were told do they ask about
            from alerts import load_settings
            from pointdrop.jobs.measurement_requests import settle_requests

            sources = load_settings(configs_dir()).links.source
            settle_requests(store, findings, sources, metrics)
        if suspects:
            _suspects(findings, metrics, store, plan, out, github_output)
            return
    findings.sort(key=lambda finding: finding_order(finding, metrics))
    if format == "json":
        emit(json_text([finding_record(finding, metrics) for finding in findings]), out)
    elif format == "text":
        emit(findings_text(findings, metrics), out)
    elif format == "csv":
        rows = records(findings_frame(findings, metrics)) if findings else []
        print_rows(rows, RowFormat.csv, tuple(FINDING_COLUMNS), out=out)
    else:
        print_sections(findings_for_people(findings, metrics), _row_format(format), SHOWN_FINDING, out=out)
    if not findings:
        remark("No changes.", quiet)
    fails = (f for f in findings if f.kind == fail_on and fails_gates(f) and f.cause not in NOT_FILED)
    if fail_on and any(fails):
        raise typer.Exit(3)


def _suspects(
    findings: list[Finding],
    metrics: MetricRegistry,
    store: Store,
    plan: str,
    out: Path | None,
    github_output: Path | None,
) -> None:
    from pointdrop.jobs.measurement import MeasurementSetup
    from pointdrop.jobs.measurement_requests import suspects_to_measure
    from pointdrop.jobs.planned_work import runnable_releases
    from pointdrop.jobs.suspects import in_plan, with_available_releases
    from pointdrop.jobs.work_matrix import suspect_rows
    from runners.releases import Catalogue
    from runners.settings import load_plan

    wanted = load_plan(plan, configs_dir())
    candidates = in_plan(suspects_to_measure(store, findings, metrics), wanted)
    setup = MeasurementSetup(configs_dir(), state_dir(), Catalogue(configs_dir(), state_dir()), store)
    releases = {}
    for dbms in sorted({suspect.dbms for suspect in candidates}):
        setup.catalogue.discover(dbms)
        releases[dbms] = runnable_releases(setup.catalogue, dbms)
    available, lost = with_available_releases(candidates, releases)
    for sentence in lost:
        typer.echo(sentence, err=True)
    rows = suspect_rows(setup, wanted, available)
    emit(json_text(rows), out)
    write_outputs(github_output, work=json.dumps(rows), some="true" if rows else "false")


def replay(
    dataset: options.Dataset = None,
    history: options.History = None,
    dbms: options.Dbms = None,
    line: options.Line = None,
    format: Format = "table",
    out: options.Out = None,
    quiet: options.Quiet = False,
) -> None:
    """Say what would have been found, and when, had Pointdrop been running.

    Goes through each line release by release with only the past visible. `same release` means that the change would
    have been seen on the day its release was measured. Writes nothing.

    JSON keys: dbms, line, measured, delay, stays, finding. CSV columns: dbms, measured, delay, stays, and those of
    `detect`.
    """
    from detector.replay import replay as replayed
    from pointdrop.jobs.detect import load_detector_settings

    with _store(history, dataset) as store:
        _require_series(store, dbms, line, quiet)
        series = list(store.series(dbms=dbms, line=line))
        releases = store.releases(dbms)
    settings = load_detector_settings(configs_dir())
    metrics = settings.metrics
    events = list(replayed(series, settings, releases))
    if format == "json":
        emit(json_text([replayed_json(event, metrics) for event in events]), out)
    elif format == "text":
        emit("\n".join(replayed_text(event, metrics) for event in events), out)
    else:
        rows = [replayed_row(event, metrics) for event in events]
        print_rows(rows, _row_format(format), REPLAY_COLUMNS if format == "csv" else SHOWN_REPLAY, out=out)
    remark(replay_score(events) if events else "Nothing would have been found.", quiet)


@contextmanager
def _store(history: str | None, dataset: str | None) -> Iterator[Store]:
    """The history, or one for this command only that holds the shipped results of `dataset`."""
    from history import datasets
    from history.store import Store

    with (
        TemporaryDirectory() as folder,
        Store.open(f"sqlite:///{folder}/dataset.db" if dataset else history_url(history)) as store,
    ):
        if dataset:
            datasets.load(store, dataset)
        yield store


def _row_format(format: str) -> RowFormat:
    return RowFormat.text if format == "table" else RowFormat(format)


def explain(
    series: Annotated[str, typer.Argument(help="DBMS|LINE|SERVER|CONFIG|BENCHMARK|TEST|METRIC, quoted.")],
    history: options.History = None,
    dataset: options.Dataset = None,
    format: options.TextOrJson = "text",
    out: options.Out = None,
) -> None:
    """Explain one series in words: the rule, noise floor, what it would show by itself, evidence for and against.

    JSON keys: key, releases, blocks, rule, noise_pct, prior_noise_pct, mde_newest_pct, mde_middle_pct, cases, notes.
    """
    from detector.errors import UnknownEvidence
    from detector.explanation import explain as explained
    from history.model import SeriesKey
    from pointdrop.jobs.detect import load_detector_settings

    try:
        key = SeriesKey.parse(series)
    except ValueError as error:
        raise UnknownEvidence(str(error)) from error
    with _store(history, dataset) as store:
        family = list(store.series(dbms=key.dbms, line=key.line, config=key.config, benchmark=key.benchmark))
    explanation = explained(family, key, load_detector_settings(configs_dir()))
    if format == "json":
        emit(json_text(asdict(explanation) | {"key": key.id}), out)
    else:
        emit(f"{explanation_text(explanation)}\n", out)


def _require_series(store: Store, dbms: str | None, line: str | None, quiet: bool) -> None:
    """UnknownSeries when nothing of what was asked for is in the history; a word when it is empty."""
    from history.errors import UnknownSeries

    lines = store.lines()
    if not lines:
        remark(
            "The history is empty. Measure with: pointdrop nightly. Or load published results: "
            "pointdrop history load smalldatum",
            quiet,
        )
    elif not any(dbms in (None, name) and line in (None, number) for name, number, *_ in lines):
        there = ", ".join(sorted({f"{name} {number}" for name, number, *_ in lines}))
        raise UnknownSeries(f"nothing of {' '.join(filter(None, (dbms, line)))} in this history; it has {there}")
