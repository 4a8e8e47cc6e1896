"""Tables as text, Markdown, CSV and JSON: the one writer of each, for frames and for rows of any command. Pure.

Text and Markdown are for people: numbers have the digits that mean something, and foreign text is made harmless. CSV
and JSON are for programs: numbers are exact. pandas and rich are imported where a table needs them; rows do not.

>>> import pandas as pd
>>> relative = pd.DataFrame({"8.0.28": [0.91]}, index=pd.Index(["l.i0"], name="test"))
>>> print(tables_text([Table("t", relative)], "markdown"), end="")
### t
<BLANKLINE>
| test | 8.0.28 |
| --- | ---: |
| l.i0 | 0.91 |
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
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from presentation.number_format import ABSENT, plain, ratio

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.table import Table as RichTable

#: Width of text that goes to a file or a pipe: tables are as wide as they need to be.
FILE_COLUMNS = 4000
COLOURS = {"worse": "dark_orange3", "better": "dodger_blue2"}
SHAPES = {"worse": "▼ ", "better": "▲ "}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Table:
    """A frame to show: its index names the rows, under the name of the index."""

    title: str
    frame: DataFrame
    """Of numbers and text; NaN is what was not measured."""
    decimals: int | None = 2
    """Of every number with a fraction; None prints measured values with four significant digits."""
    styles: DataFrame | None = None
    """`worse`, `better` or empty for each cell of the frame; only the terminal uses it."""
    names_last: bool = False
    """Whether the names of the rows stand at the right, as in the field's per-operation table."""

    @property
    def columns(self) -> list[str]:
        return self._with_name(list(self.frame.columns), self.frame.index.name)

    @property
    def rows(self) -> list[list[Any]]:
        """The values under `columns`, exact; None where not measured."""
        return [self._with_name(row, name) for name, row in zip(self.frame.index, rows_of(self.frame), strict=True)]

    def text_rows(self, *, marked: bool = False) -> list[list[str]]:
        """The same for people; `marked` puts ▼ or ▲ before what is worse or better."""
        styles = rows_of(self.styles) if marked and self.styles is not None else None
        return [
            self._with_name(
                [
                    f"{SHAPES.get(styles[place][at], '') if styles else ''}{self._text(value)}"
                    for at, value in enumerate(row)
                ],
                printable(str(name)),
            )
            for place, (name, row) in enumerate(zip(self.frame.index, rows_of(self.frame), strict=True))
        ]

    def _with_name(self, row: list[Any], name: Any) -> list[Any]:
        return [*row, name] if self.names_last else [name, *row]

    def _text(self, value: Any) -> str:
        if value is None:
            return ABSENT
        if isinstance(value, float):
            return plain(value) if self.decimals is None else ratio(value, self.decimals)
        return printable(str(value))


def rows_of(frame: DataFrame) -> list[list[Any]]:
    """The values of a frame by row, None for NaN."""
    return [[None if value != value else value for value in row] for row in frame.to_numpy(dtype=object).tolist()]


def records_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The same by the names of the columns."""
    return [dict(zip(frame.columns, row, strict=True)) for row in rows_of(frame)]


def frame_csv(frame: DataFrame) -> str:
    """The columns of a frame, without its index."""
    return csv_text(list(frame.columns), rows_of(frame))


def printable(text: str) -> str:
    """Without control characters."""
    return _CONTROL.sub("�", text)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """RFC 4180 with a header row; None is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def json_line(value: Any) -> str:
    """JSON on one line; what is not finite (a relative value x/0) is null, since JSON has no word for it."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, list | tuple) else value


def json_text(value: Any) -> str:
    """Indented JSON; what JSON has no type for is written as its text."""
    return json.dumps(value, indent=2, default=str, ensure_ascii=False) + "\n"


def markdown_text(columns: Sequence[str], rows: Iterable[Sequence[str]], rules: Sequence[str]) -> str:
    """GitHub's table of cells that are escaped already; `rules` align the columns."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (columns, rules, *rows))


def escaped(text: str) -> str:
    """Foreign text in Markdown: no name can open a link, a mention or a cell."""
    text = re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", printable(text))
    return text.replace("@", "@\N{ZERO WIDTH SPACE}")


def tables_text(tables: Sequence[Table], format: str, *, colour: bool = False) -> str:
    """As `text`, `markdown`, `csv` or `json`; `colour` is for a terminal."""
    if format == "json":
        return json_line([{"title": table.title, "columns": table.columns, "rows": table.rows} for table in tables])
    if format == "csv" and len(tables) == 1:
        return csv_text(tables[0].columns, tables[0].rows)
    if format == "csv":  # several follow each other with their title in the first column
        return "".join(
            csv_text(["table", *table.columns], ([table.title, *row] for row in table.rows)) for table in tables
        )
    return "\n".join(_markdown(table) for table in tables) if format == "markdown" else _terminal(tables, colour)


def _markdown(table: Table) -> str:
    rows = ([escaped(cell) for cell in row] for row in table.text_rows())
    rules = ["---", *["---:"] * (len(table.columns) - 1)]
    return f"### {escaped(table.title)}\n\n{markdown_text([escaped(name) for name in table.columns], rows, rules)}"


def _terminal(tables: Sequence[Table], colour: bool) -> str:
    """Aligned text; worse and better cells have their shape, and with `colour` their colour."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out, width=FILE_COLUMNS, force_terminal=colour, no_color=not colour, highlight=False, legacy_windows=False
    )
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(Text(table.title, style="bold" if colour else ""))
        console.print(rich_table([printable(name) for name in table.columns], table.text_rows(marked=True), ruled=True))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def rich_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, ruled: bool = False) -> RichTable:
    """For a console: `ruled` for numbers at the right of the first column; otherwise the last column folds."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    styles = {shape: COLOURS[style] for style, shape in SHAPES.items()} if ruled else {}
    table = RichTable(box=SIMPLE_HEAD if ruled else None, header_style="bold", pad_edge=False, show_edge=False)
    for at, name in enumerate(columns):
        last = at == len(columns) - 1
        table.add_column(
            Text(name), justify="right" if ruled and at else "left", no_wrap=ruled or not last, overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(cell, style=styles.get(cell[:2], "")) for cell in row))
    return table


def rows_text(rows: Rows, format: str, columns: Sequence[str] = ()) -> str:
    """Rows of a command as text that ends with a line break; JSON is an array of objects.

    The columns are those named, else those of the first row: without either there is nothing but an empty array.
    """
    if format == "json":
        return json_text([dict(row) for row in rows])
    names = list(columns) or list(rows[0] if rows else ())
    if not names:
        return ""
    cells = row_cells(rows, names)
    if format == "csv":
        return csv_text(names, cells)
    if format == "markdown":
        inside = [[cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row] for row in (names, *cells)]
        return markdown_text(inside[0], inside[1:], ["---"] * len(names))
    return "".join(f"{line}\n" for line in aligned([names, *cells], gap=2))


def row_cells(rows: Rows, names: Sequence[str]) -> list[list[str]]:
    """The text of every cell, each on one line: numbers exact, None empty."""
    return [[_one_line(row.get(name)) for name in names] for row in rows]


def _one_line(value: Any) -> str:
    if value is None:
        return ""
    return " ".join((repr(value) if isinstance(value, float) else str(value)).split())


def aligned(rows: Sequence[Sequence[str]], narrowest: int = 0, gap: int = 1) -> list[str]:
    """Lines of left-aligned columns, each as wide as its longest cell."""
    widths = [max(narrowest, *(len(row[at]) + gap for row in rows)) for at in range(len(rows[0]))]
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
