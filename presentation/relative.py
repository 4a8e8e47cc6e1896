"""Levels of releases, and relative values as the published tables of this field print them. Pure.

Relative is value / base. Where the base is 0 the field prints `1` for 0/0 and `inf` for x/0.

>>> relative(3856, 3966), relative(0, 0), relative(0.077, 0)
(0.9722642460917801, 1.0, inf)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from history.metrics import DEFAULT_SMALLEST_PCT
from history.model import Better, Series

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

#: Edges of the colour steps of a heat table, in percent of change; the first edge is the metric's own smallest change.
COLOUR_EDGES_PCT = (2.5, 5.0, 10.0, 20.0)


def relative(value: float, base: float) -> float:
    """value / base; 1 for 0/0 and infinity for x/0."""
    if base == 0:
        return 1.0 if value == 0 else math.inf
    return value / base


def ratios(values: pd.DataFrame, bases: np.ndarray[Any, Any]) -> pd.DataFrame:
    """`relative` of each value to its base: one a column, or of shape (rows, 1) one a row."""
    import numpy as np
    import pandas as pd

    numbers = values.to_numpy()
    with np.errstate(all="ignore"):
        quotients = np.where((numbers == 0) & (bases == 0), 1.0, numbers / bases)
    return pd.DataFrame(quotients, index=values.index, columns=values.columns)


def gain(ratio: float, better: Better) -> float:
    """log of the ratio, signed so that more is better whatever the metric; 0 is no change.

    The log makes a halving and a doubling the same distance, so colours do not favour one direction.
    """
    if ratio <= 0:
        return -math.inf if better == "higher" else math.inf
    return math.log(ratio) if better == "higher" else -math.log(ratio)


def colour_step(ratio: float, better: Better, smallest_pct: float = DEFAULT_SMALLEST_PCT) -> int:
    """Colour of a heat cell: 0 is quiet or not measured (NaN), -1..-5 ever worse, 1..5 ever better.

    >>> colour_step(0.94, "higher"), colour_step(1.004, "lower", 0.5), colour_step(1.3, "lower")
    (-3, 0, -5)
    """
    size = gain(ratio, better)
    edges = (smallest_pct, *(edge for edge in COLOUR_EDGES_PCT if edge > smallest_pct))
    missing = len(COLOUR_EDGES_PCT) + 1 - len(edges)
    # math.nextafter-like slack: 1.025 must reach the 2.5 % edge whichever way the division rounded
    step = sum(abs(size) + 1e-12 >= math.log1p(edge / 100.0) for edge in edges)
    if step:
        step += missing
    return step if size > 0 else -step


def levels(series: Series) -> dict[str, float]:
    """By version, the level of each release that has blocks."""
    return {point.version: point.level for point in series.points if point.values}


def versions_of(series: Iterable[Series]) -> list[str]:
    """Every version that some series has blocks of, in the order of the line."""
    position = {point.version: point.position for member in series for point in member.points if point.values}
    return sorted(position, key=lambda version: (position[version], version))


def level_frame(series: Sequence[Series], versions: Sequence[str] | None = None) -> pd.DataFrame:
    """Levels, float64: a row a series in the order given, a column a release of `versions`, by default all of them in
    the order of the line; NaN where a release was not measured."""
    import numpy as np
    import pandas as pd

    versions = versions_of(series) if versions is None else versions
    place = {version: column for column, version in enumerate(versions)}
    table = np.full((len(series), len(versions)), np.nan)
    for row, member in enumerate(series):
        for version, level in levels(member).items():
            if version in place:
                table[row, place[version]] = level
    return pd.DataFrame(table, columns=pd.Index(list(versions), dtype=object))
