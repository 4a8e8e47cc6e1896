"""The field's per-operation table: a row a release, a column a metric, absolute and relative to the first row. Pure.

>>> import pandas as pd
>>> table = pd.DataFrame({"cpu/o": [0.5, 0.6], "r/o": [0.0, 0.077], "o/s": [100.0, 90.0]}, index=["17.4", "17.5"])
>>> print(operations_text(table, "postgres"))
--- absolute
cpu/o   r/o     o/s     dbms
0.5     0       100     postgres 17.4
0.6     0.077   90      postgres 17.5
--- relative to first result
1.20    inf     0.90    postgres 17.5
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from history.metrics import MetricRegistry
from history.model import Series
from presentation.number_format import ABSENT, plain, ratio
from presentation.relative import levels

if TYPE_CHECKING:
    from pandas import DataFrame

#: A column of numbers is at least this wide, like a tab stop.
COLUMN_WIDTH = 8


def operations_frame(series: Iterable[Series], versions: Sequence[str], metrics: MetricRegistry) -> DataFrame:
    """Levels of one test, float64: index the releases that have any, columns the headers of its metrics by rank,
    throughput last as the field prints it. Metrics without a header have no column."""
    import pandas as pd

    by_metric = {one.key.metric: levels(one) for one in series}
    names = metrics.ranked(name for name in by_metric if metrics[name].column)
    names.sort(key=lambda name: metrics[name].kind == "throughput")
    columns = {metrics[name].column: by_metric[name] for name in names}
    return (
        pd.DataFrame(columns, index=list(versions), columns=list(columns), dtype="float64")
        .dropna(axis="columns", how="all")
        .dropna(axis="index", how="all")
    )


def tests_frame(series: Iterable[Series], versions: Sequence[str]) -> DataFrame:
    """Levels of one metric, float64: index the releases that have any, a column a test in the order given."""
    import pandas as pd

    columns = {one.key.test: levels(one) for one in series}
    table = pd.DataFrame(columns, index=list(versions), columns=list(columns), dtype="float64")
    return table.dropna(axis="columns", how="all").dropna(axis="index", how="all")


def relative_frame(table: DataFrame, base: str | None = None) -> DataFrame:
    """Every row relative to `base`, by default the first; as the field has it, 0/0 is 1 and x/0 is infinity."""
    first = table.loc[base] if base is not None else table.iloc[0]
    return (table / first).mask((table == 0) & (first == 0), 1.0)


def cells(table: DataFrame, decimals: int | None = None) -> list[list[str]]:
    """The text of every cell: significant digits, or ratios with so many decimals."""
    return [
        [ABSENT if value != value else plain(value) if decimals is None else ratio(value, decimals) for value in row]
        for row in table.itertuples(index=False, name=None)
    ]


def operations_text(table: DataFrame, name: str, config: str = "", decimals: int = 2) -> str:
    """Both halves in aligned columns, the release at the end of its row; `name` is the DBMS."""
    labels = [" ".join(filter(None, (name, str(version), config))) for version in table.index]
    halves = cells(table), cells(relative_frame(table), decimals)
    absolute, ratios = ([[*row, label] for row, label in zip(half, labels, strict=True)] for half in halves)
    lines = aligned([[*table.columns, "dbms"], *absolute, *ratios[1:]], COLUMN_WIDTH)
    relative = ["--- relative to first result", *lines[len(labels) + 1 :]] if len(labels) > 1 else []
    return "\n".join(["--- absolute", *lines[: len(labels) + 1], *relative])


def aligned(rows: Sequence[Sequence[str]], narrowest: int = 0, gap: int = 1) -> list[str]:
    """Lines of left-aligned columns, each as wide as its longest cell."""
    widths = [max(narrowest, *(len(row[at]) + gap for row in rows)) for at in range(len(rows[0]))]
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
