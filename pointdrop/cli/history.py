"""`pointdrop history`: put results into the history, take them out, look at them, and keep it safe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointdrop.cli import options
from pointdrop.cli.history_sync import sync
from pointdrop.cli.options import Format
from pointdrop.cli.rows import print_rows, remark
from pointdrop.paths import history_url

if TYPE_CHECKING:
    from history.importing import ImportReport
    from history.model import Better
    from history.store import Store

DryRun = Annotated[bool, typer.Option("--dry-run", help="Read and check everything, store nothing.")]
Metric = Annotated[str | None, typer.Option("--metric", help="The metric, such as qps.")]

#: Done, but something could not be taken.
INCOMPLETE = 4
BAD_INPUT = 2

group = typer.Typer(no_args_is_help=True)


def _open(url: str | None) -> Store:
    from history.store import Store

    return Store.open(history_url(url))


def _print_reports(reports: list[ImportReport], format: Format, dry_run: bool = False) -> None:
    """One row a file; rejected lines go to standard error as well, so that they are seen in a pipe."""
    rows: list[dict[str, Any]] = []
    for report in reports:
        row = {"file": report.file, "stored": report.stored and not dry_run, "new": sum(report.new.values())}
        rows.append(row | {"known": report.unchanged, "rejected": report.rejections})
        if format is Format.json:
            rejections = [rejection.model_dump() for rejection in report.rejected]
            rows[-1] |= {"records": report.new, "rejections": rejections}
    print_rows(rows, format)
    for report in reports:
        for rejection in report.rejected:
            where = f"line {rejection.line}" if rejection.line else "file"
            typer.echo(f"{report.file}: {where}: {rejection.reason}", err=True)
        if report.rejections:
            problems = "1 problem" if report.rejections == 1 else f"{report.rejections} problems"
            stored = f"{sum(report.new.values())} records were" if report.new else "nothing was"
            typer.echo(f"{report.file}: {stored} stored; {problems}", err=True)


@group.command("load")
def load_command(
    dataset: Annotated[str, typer.Argument(help="smalldatum.")],
    history: options.History = None,
    format: options.RowFormat = Format.text,
) -> None:
    """Put published results that ship with Pointdrop into the history; a second time adds nothing.

    `smalldatum`: Insert Benchmark and sysbench figures of the Small Datum posts, with their sources.
    """
    from history.datasets import load

    with _open(history) as store:
        _print_reports([load(store, dataset)], format)


@group.command("append")
def append_command(
    file: Annotated[Path, typer.Argument(help="A `pointdrop.run/1` file, or - for standard input.")],
    history: options.History = None,
    format: options.RowFormat = Format.text,
    dry_run: DryRun = False,
) -> None:
    """Append results in the interchange format, all of them or none."""
    from history.importing import import_file, import_lines, read_lines

    with _open(history) as store:
        if str(file) == "-":
            content = sys.stdin.buffer.read()
            report = import_lines(store, "standard input", lambda: read_lines([content]), dry_run=dry_run)
        else:
            report = import_file(store, file, dry_run=dry_run)
    _print_reports([report], format, dry_run)
    if not report.stored:
        raise typer.Exit(BAD_INPUT)


@group.command("import")
def import_command(
    files: Annotated[
        list[Path], typer.Argument(help="Files, gzip'd or not, and directories, for the .jsonl files below them.")
    ],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="pointdrop, smalldatum, sysbench, otava, bmf, github-action-benchmark, asv, benchstat or "
            "pytest-benchmark; else told from the file.",
        ),
    ] = None,
    dbms: options.Dbms = None,
    release: Annotated[str | None, typer.Option("--release", help="The version, where the file does not say.")] = None,
    line: options.Line = None,
    server: options.Server = None,
    host: Annotated[str | None, typer.Option("--host", help="The machine.")] = None,
    config: options.Config = None,
    benchmark: options.Benchmark = None,
    test: options.Test = None,
    date: Annotated[str | None, typer.Option("--date", help="ISO 8601, where the file does not say.")] = None,
    label: Annotated[str, typer.Option("--label", help="Tells repetitions of the same measurement apart.")] = "",
    source: Annotated[str, typer.Option("--source", help="Citation or address, kept with the release.")] = "",
    better: Annotated[list[str] | None, typer.Option("--better", help="METRIC=higher or METRIC=lower.")] = None,
    history: options.History = None,
    format: options.RowFormat = Format.text,
    dry_run: DryRun = False,
) -> None:
    """Import results of any known format. Each file is stored whole or not at all, and twice is once.

    A line that cannot be taken is reported with its number and the reason, and nothing of its file is stored; then
    the exit code is 2. Numbers survive exactly.
    """
    from history.importers import import_any
    from history.importers.figures import About
    from history.importers.otava import moment

    given: dict[str, Any] = {"dbms": dbms or "", "version": release, "line": line, "server": server, "host": host}
    given |= {"config": config, "benchmark": benchmark, "test": test, "label": label, "source": source}
    given |= {"started": None if date is None else moment(date), "better": _directions(better or [])}
    about = About(**{name: value for name, value in given.items() if value is not None})
    with _open(history) as store:
        reports = [import_any(store, file, about, from_, dry_run=dry_run) for file in _expanded(files)]
    _print_reports(reports, format, dry_run)
    if not all(report.stored for report in reports):
        raise typer.Exit(BAD_INPUT)


def _expanded(paths: list[Path]) -> list[Path]:
    """Files, with directories replaced by the results below them, in order."""
    files: list[Path] = []
    for path in paths:
        below = (*path.rglob("*.jsonl"), *path.rglob("*.jsonl.gz")) if path.is_dir() else (path,)
        if not below:  # no error: the jobs of a night may all have found nothing to do
            typer.echo(f"there is no .jsonl file below {path}; name files of other formats one by one", err=True)
        files += sorted(below)
    return files


def _directions(pairs: list[str]) -> dict[str, Better]:
    directions: dict[str, Better] = {}
    for pair in pairs:
        metric, _, direction = pair.rpartition("=")
        if not metric or direction not in ("higher", "lower"):
            raise typer.BadParameter(f"{pair!r} is not METRIC=higher or METRIC=lower")
        directions[metric] = "higher" if direction == "higher" else "lower"
    return directions


@group.command("export")
def export_command(
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="jsonl, csv, parquet, otava, bmf, customBiggerIsBetter, customSmallerIsBetter, benchstat, "
            "openmetrics or junit.",
        ),
    ] = "jsonl",
    out: Annotated[
        Path | None, typer.Option("--out", help="File; .gz is compressed [default: standard output].")
    ] = None,
    dbms: options.Dbms = None,
    line: options.Line = None,
    server: options.Server = None,
    config: options.Config = None,
    benchmark: options.Benchmark = None,
    test: options.Test = None,
    metric: Metric = None,
    release: Annotated[
        str | None, typer.Option("--release", help="For formats of one release [default: the newest].")
    ] = None,
    history: options.History = None,
) -> None:
    """Write results for other tools. `jsonl` is everything that was measured and imports again unchanged.

    When nothing matches, what is written is valid and empty, standard error says what there is, and the exit code is 0.
    """
    from history.exporters import write
    from history.listing import lines_told

    wanted = {"dbms": dbms, "line": line, "server": server, "config": config, "benchmark": benchmark}
    wanted |= {"test": test, "metric": metric}
    with _open(history) as store:
        if not write(store, format, out, wanted, release):
            chosen = _options_text(wanted | {"release": release})
            there = lines_told(store)
            more = "releases" if release else "series" if test or metric else "lines"
            hint = f"there is {there}; more with: pointdrop history query {more}" if there else _advice("lines", "")
            typer.echo(f"nothing to export{chosen} as {format} from {store.url}; {hint}", err=True)
        if format == "jsonl" and (corrections := len(store.supersessions())):
            typer.echo(
                f"corrections of this history that are not in the export: {corrections}; what they took out counts "
                "again where it is imported. history merge and backup take them along",
                err=True,
            )


@group.command("query")
def query_command(
    what: Annotated[
        str,
        typer.Argument(
            help="lines, releases, sessions, runs, blocks, series, values, findings, events, links or corrections."
        ),
    ] = "lines",
    dbms: options.Dbms = None,
    line: options.Line = None,
    server: options.Server = None,
    config: options.Config = None,
    benchmark: options.Benchmark = None,
    test: options.Test = None,
    metric: Metric = None,
    until: Annotated[str | None, typer.Option("--until", help="Series as they were at that release.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Runs and blocks of one session.")] = None,
    history: options.History = None,
    format: options.RowFormat = Format.text,
    out: options.Out = None,
    quiet: options.Quiet = False,
) -> None:
    """Look at what is stored. JSON is an array of objects with the columns of the table as keys."""
    from history.listing import rows_of

    wanted = {"dbms": dbms, "line": line, "server": server, "config": config, "benchmark": benchmark}
    wanted |= {"test": test, "metric": metric, "until": until}
    with _open(history) as store:
        rows = rows_of(store, what, wanted, session)
        print_rows(rows, format, out=out)
        if not rows:
            chosen = _options_text(wanted | {"session": session})
            remark(f"no {what}{chosen} in {store.url}; {_advice(what, chosen)}", quiet)


def _options_text(wanted: dict[str, str | None]) -> str:
    """The options that chose, as they were typed."""
    typed = " ".join(f"--{name} {value}" for name, value in wanted.items() if value)
    return typed and f" with {typed}"


#: What fills a kind of row.
FILLED_BY = {
    "findings": "pointdrop detect writes them",
    "events": "pointdrop alerts sync writes them",
    "links": "pointdrop alerts sync writes them",
    "corrections": "pointdrop history supersede writes them",
}


def _advice(what: str, chosen: str) -> str:
    """What somebody can do who looked for rows and found none."""
    if chosen:
        return f"see what there is with: pointdrop history query {what if what in ('lines', 'releases') else 'lines'}"
    return FILLED_BY.get(what, "pointdrop bench, history import and history load fill it")


@group.command("supersede")
def supersede_command(
    kind: Annotated[str, typer.Argument(help="session, run or block.")],
    target: Annotated[str, typer.Argument(help="Its id.")],
    reason: Annotated[str, typer.Option("--reason", help="Why it counts no more.")],
    by: Annotated[str | None, typer.Option("--by", help="The id of what stands in its place.")] = None,
    history: options.History = None,
) -> None:
    """Take a session, run or block out of every series. It stays stored, with the reason."""
    with _open(history) as store:
        new = store.supersede(kind, target, reason, by)
    typer.echo(f"{kind} {target} counts no more" if new else f"{kind} {target} was superseded for that reason already")


@group.command("verify")
def verify_command(
    quick: Annotated[bool, typer.Option("--quick", help="Only the database file, not every row.")] = False,
    history: options.History = None,
    format: options.RowFormat = Format.text,
) -> None:
    """Check the database, its tables, and every row against the digest it was written with. Exit code 1 when wrong."""
    from history.maintenance import verify

    with _open(history) as store:
        report = verify(store, deep=not quick)
    print_rows([report.model_dump(exclude={"problems"}) | {"problems": len(report.problems)}], format)
    for problem in report.problems:
        typer.echo(problem, err=True)
    if report.problems:
        raise typer.Exit(1)


@group.command("backup")
def backup_command(
    out: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
    history: options.History = None,
) -> None:
    """Write a backup of one moment: a SQLite file with the same rows, also of a history in PostgreSQL.

    Others may append meanwhile. The file can be queried, merged and restored.
    """
    from history.maintenance import backup

    with _open(history) as store:
        typer.echo(str(backup(store, out)))


@group.command("restore")
def restore_command(
    backup: Annotated[Path, typer.Argument(help="A file of `history backup`.")],
    history: options.History = None,
    format: options.RowFormat = Format.text,
) -> None:
    """Check a backup and put it into an empty history, SQLite or PostgreSQL."""
    from history.maintenance import restore

    report = restore(backup, history_url(history))
    print_rows([report.model_dump(exclude={"problems"})], format)


@group.command("merge")
def merge_command(
    other: Annotated[str, typer.Argument(help="URL of another history, or the file of a backup.")],
    history: options.History = None,
    format: options.RowFormat = Format.text,
) -> None:
    """Take over what another history has and this one lacks: results, pins, findings, events, issue links."""
    from history.database import sqlite_url
    from history.maintenance import merge, opened

    url = other if "://" in other else sqlite_url(Path(other).resolve())
    with opened(url) as theirs, _open(history) as store:
        new = merge(store, theirs)
    print_rows([{"record": kind, "new": count} for kind, count in new.items()], format, ("record", "new"))
    if not new:
        typer.echo(f"{other} has nothing that is not here already", err=True)


@group.command("recover")
def recover_command(history: options.History = None, format: options.RowFormat = Format.text) -> None:
    """Import results that were kept on disk while the database could not take them.

    A file whose results are stored is removed; of any other what could not be stored stays. Exit code 4 then.
    """
    from history.maintenance import recover_spool

    with _open(history) as store:
        reports = recover_spool(store)
    _print_reports(reports, format)
    if not reports:
        typer.echo("nothing waits to be recovered", err=True)
    if not all(report.stored for report in reports):
        raise typer.Exit(INCOMPLETE)


group.command("sync")(sync)
