"""Text tables in the field's layout, and sparklines.

>>> relative(0.0, 0.0), relative(3.0, 0.0), relative(3.1, 3.0), relative(None, 3.0)
('1', 'inf', '1.03', '-')
>>> sparkline([10, 10, None, 11, 12], boundary=3)
'▁▁·|▅█'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from alerts.context import Levels, OperationTable
from alerts.words import signed

BARS = "▁▂▃▄▅▆▇█"
#: Columns of whole numbers: rates, and microseconds of CPU.
WHOLE = frozenset({"o/s", "cpupq", "cpu_us/o"})
#: A column of numbers is at least this wide, like a tab stop.
COLUMN = 8


def relative(value: float | None, first: float | None, decimals: int = 2) -> str:
    """`value` relative to the first result; 0/0 is 1 and x/0 inf, as the field prints them."""
    if value is None or first is None:
        return "-"
    if first == 0:
        return "1" if value == 0 else "inf"
    return f"{value / first:.{decimals}f}"


def absolute(column: str, value: float | None) -> str:
    """`value` with the decimals its column has in the field's tables."""
    if value is None:
        return "-"
    if column in WHOLE:
        return f"{value:.0f}"
    return f"{value:.6f}" if column == "cpu/o" else f"{value:.3f}"


def instructions(column: str, value: float | None) -> str:
    """Instructions per operation, whole."""
    return "-" if value is None else f"{value:.0f}"


def operation_lines(table: OperationTable, dbms: str) -> list[str]:
    """The field's table of one test: absolute, then relative to its first row."""
    return _lines(table, dbms, absolute, decimals=2)


def instruction_lines(table: OperationTable, dbms: str) -> list[str]:
    """The same for counted instructions, a column a test; they repeat to 0.1-0.3 %, hence three decimals."""
    return _lines(table, dbms, instructions, decimals=3)


def _lines(table: OperationTable, dbms: str, show: Callable[[str, float | None], str], *, decimals: int) -> list[str]:
    names = [f"{dbms} {row.version} {table.config}" for row in table.rows]
    first = table.rows[0].values
    shown = [[show(c, v) for c, v in zip(table.columns, row.values, strict=True)] for row in table.rows]
    ratios = [[relative(v, base, decimals) for v, base in zip(row.values, first, strict=True)] for row in table.rows]
    widths = [
        max(COLUMN, *(len(line[i]) + 1 for line in [list(table.columns), *shown, *ratios]))
        for i in range(len(table.columns))
    ]

    def line(cells: Sequence[str], name: str) -> str:
        return "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + name

    return [
        "--- absolute",
        line(table.columns, "dbms"),
        *(line(cells, name) for cells, name in zip(shown, names, strict=True)),
        "--- relative to first result",
        *(line(cells, name) for cells, name in zip(ratios, names, strict=True)),
    ]


def sparkline(levels: Sequence[float | None], boundary: int | None = None) -> str:
    """One bar a release, a dot where there is none, a stroke before the release at `boundary`."""
    present = [value for value in levels if value is not None]
    low, high = (min(present), max(present)) if present else (0.0, 0.0)
    span = high - low
    marks = []
    for index, value in enumerate(levels):
        if index == boundary:
            marks.append("|")
        step = round((value - low) / span * (len(BARS) - 1)) if value is not None and span > 0 else 0
        marks.append("·" if value is None else BARS[step])
    return "".join(marks)


def sparkline_lines(moved: Sequence[Levels], releases: Sequence[str], release: str) -> list[str]:
    """One line a moved series: test, metric, the line's releases as bars, change at the boundary."""
    boundary = releases.index(release) if release in releases else None
    head = f"{releases[0]} .. {releases[-1]}"
    rows = [("test", "metric", "server", head, "change")]
    for one in moved:
        rows.append(
            (
                one.key.test,
                one.key.metric,
                one.key.server,
                sparkline(one.levels, boundary),
                signed(one.change_pct),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
