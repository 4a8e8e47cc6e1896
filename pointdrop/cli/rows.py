"""Rows of a table on standard output or in a file, as text, JSON, CSV or Markdown.

>>> print(rows_text([{"test": "l.i0", "change_pct": 3.5}], "csv"), end="")
test,change_pct
l.i0,3.5
>>> print(rows_text([{"test": "a|b", "change_pct": None}], "markdown"), end="")
| test | change_pct |
| --- | --- |
| a\\|b |  |
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from history.files import write_atomically
from pointdrop.cli.options import Format

Rows = Sequence[Mapping[str, Any]]


def print_rows(
    rows: Rows, format: str, columns: Sequence[str] = (), *, out: Path | None = None, shown: Rows | None = None
) -> None:
    """Print `rows`, or write them to `out`. `shown` are the same rows for people, in text and Markdown.

    The columns are those named, else those of the first row: without either, nothing is printed but an empty array.
    """
    seen = rows if shown is None or format in (Format.json, Format.csv) else shown
    if format == Format.text and out is None and seen and sys.stdout.isatty():
        _draw(seen, list(columns) or list(seen[0]))
    else:
        emit(rows_text(seen, format, columns), out)


def rows_text(rows: Rows, format: str, columns: Sequence[str] = ()) -> str:
    """The rows as text that ends with a line break; JSON is an array of objects."""
    names = list(columns) or list(rows[0] if rows else ())
    if format == Format.json:
        return json_text([dict(row) for row in rows])
    if not names:
        return ""
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    if format == Format.csv:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(cells)
        return buffer.getvalue()
    if format == Format.markdown:
        lines = ([cell.replace("\\", "\\\\").replace("|", "\\|") for cell in line] for line in cells)
        first, *rest = (f"| {' | '.join(line)} |" for line in lines)
        return "\n".join((first, f"| {' | '.join('---' for _ in names)} |", *rest)) + "\n"
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def json_text(value: Any) -> str:
    """Indented JSON; what JSON has no type for is written as its text."""
    return json.dumps(value, indent=2, default=str, ensure_ascii=False) + "\n"


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


def _draw(rows: Rows, names: Sequence[str]) -> None:
    """A table as wide as the terminal: the last column folds."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name != names[-1])
    for row in rows:
        table.add_row(*(Text(_cell(row.get(name))) for name in names))
    Console(highlight=False).print(table)


def _cell(value: Any) -> str:
    """One cell on one line."""
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    return " ".join(text.split())
