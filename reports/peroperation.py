"""The field's per-operation table: one row a release, absolute and relative to the first result. Pure.

>>> table = per_operation([("cpu/o", [0.5, 0.6]), ("r/o", [0.0, 0.077]), ("o/s", [100, 90])], ["a", "b"])
>>> print(per_operation_text(table))
--- absolute
cpu/o  r/o    o/s  dbms
0.5    0      100  a
0.6    0.077  90   b
--- relative to first result
cpu/o  r/o  o/s   dbms
1.20   inf  0.90  b
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.model import Series
from presentation.number_format import plain
from presentation.relative import levels, relative_text

#: Columns in the order the field prints them; throughput comes last, other metrics before it by name.
COLUMNS = ("cpu/o", "cpu_us/o", "cpupq", "insn/o", "cs/o", "r/o", "rKB/o", "w/o", "wKB/o", "f/o")
LAST = ("qps", "ips", "indexed rows/s", "o/s")
ABSENT = "–"


@dataclass(frozen=True)
class PerOperation:
    """Text of the two halves; cells that were not measured are `ABSENT`."""

    metrics: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    """A row a name, a column a metric."""

    @property
    def absolute(self) -> list[list[str]]:
        return [[ABSENT if value is None else plain(value) for value in row] for row in self.values]

    @property
    def relative(self) -> list[list[str]]:
        """Without the first row, which is the base; a metric the first row lacks has no relative value."""
        first = self.values[0] if self.values else ()
        return [
            [
                ABSENT if value is None or base is None else relative_text(value, base)
                for value, base in zip(row, first, strict=True)
            ]
            for row in self.values[1:]
        ]


def column_order(metrics: Iterable[str]) -> list[str]:
    """Metrics in the field's column order."""

    def rank(metric: str) -> tuple[int, int, str]:
        if metric in COLUMNS:
            return 0, COLUMNS.index(metric), metric
        return (2, LAST.index(metric), metric) if metric in LAST else (1, 0, metric)

    return sorted(set(metrics), key=rank)


def per_operation(columns: Sequence[tuple[str, Sequence[float | None]]], names: Sequence[str]) -> PerOperation:
    """From (metric, one value a name) in any order of metrics."""
    by_metric = dict(columns)
    metrics = column_order(by_metric)
    rows = tuple(tuple(by_metric[metric][i] for metric in metrics) for i in range(len(names)))
    return PerOperation(tuple(metrics), tuple(names), rows)


def of_series(series: Sequence[Series], versions: Sequence[str]) -> PerOperation:
    """All metrics of one test over `versions`."""
    columns = []
    for one in series:
        known = levels(one)
        columns.append((one.key.metric, [known.get(version) for version in versions]))
    return per_operation(columns, versions)


def per_operation_text(table: PerOperation) -> str:
    """Both halves as the field prints them, in aligned columns."""
    head = [*table.metrics, "dbms"]
    halves = (
        ("--- absolute", [[*row, name] for row, name in zip(table.absolute, table.names, strict=True)]),
        (
            "--- relative to first result",
            [[*row, name] for row, name in zip(table.relative, table.names[1:], strict=True)],
        ),
    )
    lines = []
    for title, rows in halves:
        if rows:
            widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
            lines.append(title)
            lines += [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                for row in [head, *rows]
            ]
    return "\n".join(lines) + "\n"
