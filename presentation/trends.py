"""Series over the releases of their line: levels, and as a line of bars. Pure.

>>> bars([10, 10, None, 11, 12], boundary=3)
'▁▁·|▅█'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from history.model import Move, Row, Series, SeriesKey
from presentation.near_zero import change_of, interval_of
from presentation.relative import levels
from presentation.tables import aligned

BARS = "▁▂▃▄▅▆▇█"


class Trend(Row):
    """One moved series over the releases of its line."""

    move: Move
    levels: tuple[float | None, ...]
    """One a release; None where it was not measured."""


def trends(moves: Iterable[Move], series: Mapping[SeriesKey, Series], versions: Sequence[str]) -> tuple[Trend, ...]:
    """The trend of each move whose series is given, in the order of the moves."""
    series_levels = ((move, levels(series[move.key])) for move in moves if move.key in series)
    return tuple(Trend(move=move, levels=tuple(map(values.get, versions))) for move, values in series_levels)


def bars(values: Sequence[float | None], boundary: int | None = None) -> str:
    """One bar a release, a dot where there is none, a stroke before the release at `boundary`."""
    present = [value for value in values if value is not None]
    low, high = (min(present), max(present)) if present else (0.0, 0.0)
    span = high - low
    marks = []
    for index, value in enumerate(values):
        if index == boundary:
            marks.append("|")
        step = round((value - low) / span * (len(BARS) - 1)) if value is not None and span > 0 else 0
        marks.append("·" if value is None else BARS[step])
    return "".join(marks)


def trend_lines(rows: Sequence[Trend], versions: Sequence[str], release: str) -> list[str]:
    """One line a series: test, metric, server, the line's releases as bars, change at `release` and its interval."""
    boundary = versions.index(release) if release in versions else None
    head = ("test", "metric", "server", f"{versions[0]} .. {versions[-1]}", "change", "95 % interval")
    table = [
        (
            trend.move.key.test,
            trend.move.key.metric,
            trend.move.key.server,
            bars(trend.levels, boundary),
            change_of(trend.move),
            interval_of(trend.move),
        )
        for trend in rows
    ]
    return aligned([head, *table], gap=2)
