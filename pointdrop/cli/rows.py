"""Rows of a command on standard output or in a file, as text, JSON, CSV or Markdown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from history.files import write_atomically
from pointdrop.cli.options import Format
from presentation.tables import Rows, rich_table, row_cells
from presentation.tables import json_text as json_text
from presentation.tables import rows_text as rows_text


def print_rows(
    rows: Rows, format: str, columns: Sequence[str] = (), *, out: Path | None = None, shown: Rows | None = None
) -> None:
    """Print `rows`, or write them to `out`. `shown` are the same rows for people, in text and Markdown.

    The columns are those named, else those of the first row: without either, nothing is printed but an empty array.
    """
    seen = rows if shown is None or format in (Format.json, Format.csv) else shown
    if format == Format.text and out is None and seen and sys.stdout.isatty():
        from rich.console import Console

        names = list(columns) or list(seen[0])
        Console(highlight=False).print(rich_table(names, row_cells(seen, names)))
    else:
        emit(rows_text(seen, format, columns), out)


def print_sections(
    sections: Mapping[str, Rows], format: str, columns: Sequence[str], *, out: Path | None = None
) -> None:
    """Rows for people, a table a section under its title; empty sections are left out, and the first one alone has no
    title."""
    first, *_ = sections
    tables = {title: rows for title, rows in sections.items() if rows}
    if tables.keys() <= {first}:
        print_rows(tables.get(first, ()), format, columns, out=out)
        return
    mark = "## " if format == Format.markdown else ""
    emit("\n".join(f"{mark}{title}\n\n{rows_text(rows, format, columns)}" for title, rows in tables.items()), out)


def emit(text: str, out: Path | None = None) -> None:
    """Data to standard output, or to a file, whole or not at all; its folders are made. What is no file of its own, as
    /dev/stdout, /dev/null or a pipe, is written to and stays what it is, and so does a link."""
    if out is None:
        typer.echo(text, nl=False)
    # Standard output may be a file. Others below /dev are files as any: /dev/shm is a disk in memory.
    elif out.exists() and (not out.is_file() or out.parent in (Path("/dev"), Path("/dev/fd"))):
        with out.open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        write_atomically(out.resolve(), text)


def remark(text: str, quiet: bool = False) -> None:
    """What is no data, to standard error."""
    if not quiet:
        typer.echo(text, err=True)
