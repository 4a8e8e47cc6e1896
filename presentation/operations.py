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

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from history.metrics import MetricRegistry
from history.model import Series
from presentation.number_format import ABSENT, plain, ratio
from presentation.relative import level_frame, ratios
from presentation.tables import aligned

if TYPE_CHECKING:
    from pandas import DataFrame

#: A column of numbers is at least this wide, like a tab stop.
COLUMN_WIDTH = 8


def operations_frame(series: Iterable[Series], versions: Sequence[str], metrics: MetricRegistry) -> DataFrame:
    """Levels of one test, float64: index the releases that have any, columns the headers of its metrics by rank,
    throughput last as the field prints it. Metrics without a header have no column."""
    by_metric = {member.key.metric: member for member in series}
    names = metrics.ranked(name for name in by_metric if metrics[name].column)
    names.sort(key=lambda name: metrics[name].kind == "throughput")
    return _measured({metrics[name].column: by_metric[name] for name in names}, versions)


def tests_frame(series: Iterable[Series], versions: Sequence[str]) -> DataFrame:
    """Levels of one metric, float64: index the releases that have any, a column a test in the order given."""
    return _measured({member.key.test: member for member in series}, versions)


def _measured(columns: Mapping[str, Series], versions: Sequence[str]) -> DataFrame:
    """Levels of one series a column; releases and series without any are left out."""
    import numpy as np
    import pandas as pd

    numbers = level_frame(list(columns.values()), versions).to_numpy().T
    measured = ~np.isnan(numbers)
    rows, places = measured.any(axis=1), measured.any(axis=0)
    names = [pd.Index(list(every), dtype=object) for every in (versions, columns)]
    return pd.DataFrame(numbers[rows][:, places], index=names[0][rows], columns=names[1][places])


def relative_frame(table: DataFrame, base: str | None = None) -> DataFrame:
    """Every row relative to `base`, by default the first; as the field has it, 0/0 is 1 and x/0 is infinity."""
    row = 0 if base is None else table.index.get_loc(base)
    return ratios(table, table.to_numpy()[row])


def cells(table: DataFrame, decimals: int | None = None) -> list[list[str]]:
    """The text of every cell: significant digits, or ratios with so many decimals."""
    return [
        [ABSENT if value != value else plain(value) if decimals is None else ratio(value, decimals) for value in row]
        for row in table.to_numpy().tolist()
    ]


def operations_text(table: DataFrame, name: str, config: str = "", decimals: int = 2) -> str:
    """Both halves in aligned columns, the release at the end of its row; `name` is the DBMS."""
    labels = [" ".join(filter(None, (name, str(version), config))) for version in table.index]
    halves = cells(table), cells(relative_frame(table), decimals)
    absolute, ratios = ([[*row, label] for row, label in zip(half, labels, strict=True)] for half in halves)
    lines = aligned([[*table.columns, "dbms"], *absolute, *ratios[1:]], COLUMN_WIDTH)
    relative = ["--- relative to first result", *lines[len(labels) + 1 :]] if len(labels) > 1 else []
    return "\n".join(["--- absolute", *lines[: len(labels) + 1], *relative])
