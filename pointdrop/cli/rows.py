"""Rows of a table on standard output, as text, JSON, CSV or Markdown."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import typer


class Format(StrEnum):
    """How rows are written."""

    text = "text"
    json = "json"
    csv = "csv"
    markdown = "markdown"


def print_rows(rows: Sequence[Mapping[str, Any]], format: Format, columns: Sequence[str] = ()) -> None:
    """Print `rows`; the columns are those named, else those of the first row: without either, nothing is printed.

    JSON is an array of objects.
    """
    names = list(columns) or list(rows[0] if rows else ())
    if format is Format.json:
        typer.echo(json.dumps([dict(row) for row in rows], indent=2, default=str, ensure_ascii=False))
    elif not names:
        return
    elif format is Format.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    elif format is Format.markdown:
        typer.echo(f"| {' | '.join(names)} |\n| {' | '.join('---' for _ in names)} |")
        for row in rows:
            typer.echo(f"| {' | '.join(_cell(row.get(name)).replace('|', chr(92) + '|') for name in names)} |")
    else:
        cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
        for line in cells:
            typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    """One cell on one line."""
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    return " ".join(text.split())
