"""A table as data, and how it is written: terminal text, Markdown, CSV, JSON. Pure.

>>> one = Table("t", ("test", "8.0.28"), (("l.i0", 0.91),))
>>> print(markdown([one]), end="")
### t
<BLANKLINE>
| test | 8.0.28 |
| --- | ---: |
| l.i0 | 0.91 |
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from presentation.number_format import plain
from reports.data import dump, table_csv

Value = str | float | int | None
ABSENT = "–"
#: Width of text that goes to a file or a pipe: tables are as wide as they need to be.
FILE_COLUMNS = 4000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Table:
    """Title, column heads, rows; floats are printed with `decimals`, None as absent."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    decimals: int | None = 2
    """None prints measured values with four significant digits."""
    styles: tuple[tuple[str, ...], ...] = ()
    """A word a cell (`worse`, `better` or empty), parallel to rows; only the terminal uses it."""

    def text(self, value: Value) -> str:
        if value is None:
            return ABSENT
        if isinstance(value, float):
            return (
                plain(value)
                if self.decimals is None
                else "inf"
                if value == float("inf")
                else f"{value:.{self.decimals}f}"
            )
        return _CONTROL.sub("�", str(value))


COLOURS = {"worse": "dark_orange3", "better": "dodger_blue2"}
SHAPES = {"worse": "▼", "better": "▲"}


def terminal(tables: Sequence[Table], *, colour: bool) -> str:
    """Aligned text; with `colour`, worse and better cells are coloured, and both have their shape in any case."""
    out = io.StringIO()
    console = Console(
        file=out, width=FILE_COLUMNS, force_terminal=colour, no_color=not colour, highlight=False, legacy_windows=False
    )
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(Text(table.title, style="bold" if colour else ""))
        drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for at, column in enumerate(table.columns):
            drawn.add_column(Text(_CONTROL.sub("�", column)), justify="left" if at == 0 else "right", no_wrap=True)
        for at, row in enumerate(table.rows):
            styles = table.styles[at] if table.styles else ("",) * len(row)
            drawn.add_row(*(_cell(table.text(value), style) for value, style in zip(row, styles, strict=True)))
        console.print(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _cell(text: str, style: str) -> Text:
    return Text(f"{SHAPES[style]} {text}", style=COLOURS[style]) if style else Text(text)


def markdown(tables: Sequence[Table]) -> str:
    """GitHub's tables; foreign text is escaped, so that no name can open a link, a mention or a cell."""
    parts = []
    for table in tables:
        lines = [f"### {escaped(table.title)}", "", _row([escaped(one) for one in table.columns])]
        lines.append(_row(["---", *["---:"] * (len(table.columns) - 1)]))
        lines += [_row([escaped(table.text(value)) for value in row]) for row in table.rows]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def escaped(text: str) -> str:
    """Markdown's own characters made literal; `@` loses its power to mention."""
    text = re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", _CONTROL.sub("�", text))
    return text.replace("@", "@\N{ZERO WIDTH SPACE}")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def csv(tables: Sequence[Table]) -> str:
    """One CSV: several tables follow each other with their title in the first column."""
    if len(tables) == 1:
        return table_csv(tables[0].columns, (["" if v is None else v for v in row] for row in tables[0].rows))
    return "".join(
        table_csv(
            ("table", *table.columns), ([table.title, *("" if v is None else v for v in row)] for row in table.rows)
        )
        for table in tables
    )


def json(tables: Sequence[Table]) -> str:
    return dump([{"title": one.title, "columns": one.columns, "rows": one.rows} for one in tables])
