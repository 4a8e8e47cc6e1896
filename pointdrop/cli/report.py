"""`pointdrop report build|serve|table`: the static site, and its tables on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pointdrop import paths
from pointdrop.cli import options
from pointdrop.cli.options import Format, names_in
from pointdrop.cli.rows import emit

#: Lines that an error names.
MOST_NAMED = 8


class Table(StrEnum):
    """Which table."""

    relative = "relative"
    groups = "groups"
    per_operation = "per-operation"
    configs = "configs"
    insert = "insert"


def build(
    history: options.History = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the site [default: site in the state directory].")] = None,
    site_url: Annotated[
        str, typer.Option(help="Where the site will be served, for links in its feed [default: site in alerts.toml].")
    ] = "",
    format: options.TextOrJson = "text",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written and write nothing.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the site of the history: only pages whose data changed are made again.

    The same history gives the same bytes. JSON keys: out, pages, written, unchanged, removed, bytes, largest,
    largest_bytes, findings, lines.
    """

    from history.store import Store
    from pointdrop.jobs.room_settings import site_settings
    from reports.site import build as build_site

    settings = site_settings(paths.configs_dir(), site_url)
    folder = out or paths.state_dir() / "site"
    with Store.open(paths.history_url(history)) as store:
        report = build_site(store, folder, settings, dry_run=dry_run)
    if format == "json":
        print(json.dumps({**asdict(report), "out": str(report.out)}))
        return
    if not quiet:
        verb = "would write" if dry_run else "wrote"
        print(
            f"{verb} {report.written} of {report.written + report.unchanged} files"
            f" ({report.pages} pages, {report.bytes / 1e6:.1f} MB)",
            file=sys.stderr,
        )
    print(report.index)


def serve(
    history: options.History = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the site [default: site in the state directory].")] = None,
    port: Annotated[int, typer.Option(help="Port on this machine only; 0 takes a free one.")] = 8321,
    quiet: options.Quiet = False,
) -> None:
    """Serve the site on this machine; a page asked for after the history changed is made anew first."""
    from pointdrop.jobs.room_settings import site_settings
    from reports.serving import serve as run

    run(
        paths.history_url(history),
        out or paths.state_dir() / "site",
        lambda: site_settings(paths.configs_dir()),
        port=port,
        say=(lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr)),
    )


def table(
    name: Annotated[Table, typer.Argument(help="Which table.")],
    dbms: options.Dbms = None,
    line: options.Line = None,
    server: options.Server = None,
    config: options.Config = None,
    benchmark: options.Benchmark = None,
    test: options.Test = None,
    metric: Annotated[
        str, typer.Option(help="A view (throughput, instructions-op, ...) or a metric; empty takes the fullest view.")
    ] = "",
    base: Annotated[str, typer.Option(help="Release or config the others are relative to.")] = "",
    releases: Annotated[
        str,
        typer.Option(
            help="Side by side, of any DBMS and line: `DBMS VERSION[ CONFIG]`, comma-separated, the base first; "
            "for relative, groups and insert."
        ),
    ] = "",
    history: options.History = None,
    format: options.RowFormat = Format.text,
    out: options.Out = None,
) -> None:
    """Print the tables of the site.

    `relative` tests x releases; `groups` average, median, min, max, stddev of each group; `per-operation` absolute and
    relative to the first result; `configs` the config matrix; `insert` the Insert Benchmark summary with SLA marks.
    JSON is an array of objects with `title`, `columns` and `rows`.
    """
    from history.errors import UnknownSeries
    from history.store import Store
    from presentation.line_tables import Selection, line_tables
    from presentation.tables import tables_text
    from reports.settings import load_settings
    from reports.snapshot import grouped_by_line

    settings = load_settings(paths.configs_dir())
    selection = Selection(settings.metrics, settings.order, metric, base, tuple(names_in(releases)))
    with Store.open(paths.history_url(history)) as store:
        series = store.series(dbms=dbms, line=line, server=server, config=config, benchmark=benchmark, test=test)
        tables = line_tables(name.value, grouped_by_line(series), selection)
        if not tables:
            measured = lines_text(store.lines())
            raise UnknownSeries(f"the history has no {name.value} table for this selection. It holds: {measured}")
    text = tables_text(tables, format.value, colour=out is None and sys.stdout.isatty())
    if out is None:
        sys.stdout.write(text)
    else:
        emit(text, out)
        print(out)


def lines_text(lines: Sequence[tuple[str, ...]]) -> str:
    """What could be asked for, as much of it as one can read."""
    names = sorted({" ".join(line) for line in lines})
    if not names:
        return "nothing; run pointdrop nightly"
    more = f" and {len(names) - MOST_NAMED} more: pointdrop history query lines" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


group = typer.Typer(no_args_is_help=True)
group.command("build")(build)
group.command("serve")(serve)
group.command("table")(table)
