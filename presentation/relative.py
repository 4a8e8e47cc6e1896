"""Relative values and their summaries, as the published tables of this field print them.

Relative is value / base. Where the base is 0 the field prints `1` for 0/0 and `inf` for x/0.

>>> relative_text(3856, 3966), relative_text(0, 0), relative_text(0.077, 0)
('0.97', '1', 'inf')
>>> summarize([0.90, 0.97, 0.98]).median
0.97
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from history.metrics import DEFAULT_SMALLEST_PCT as DEFAULT_SMALLEST_PCT
from history.model import Better, Point, Series

#: Edges of the colour steps of a heat table, in percent of change; the first edge is the metric's own smallest change.
COLOUR_EDGES_PCT = (2.5, 5.0, 10.0, 20.0)


def relative(value: float, base: float) -> float:
    """value / base; 1 for 0/0 and infinity for x/0."""
    if base == 0:
        return 1.0 if value == 0 else math.inf
    return value / base


def relative_text(value: float, base: float, decimals: int = 2) -> str:
    """`relative` as the field prints it: two decimals, but `1` for 0/0 and `inf` for x/0."""
    if base == 0:
        return "1" if value == 0 else "inf"
    return f"{value / base:.{decimals}f}"


def change_pct(value: float, base: float) -> float:
    """Change from base to value in percent."""
    return 100.0 * (relative(value, base) - 1.0)


def gain(ratio: float, better: Better) -> float:
    """log of the ratio, signed so that more is better whatever the metric; 0 is no change.

    The log makes a halving and a doubling the same distance, so colours do not favour one direction.
    """
    if ratio <= 0:
        return -math.inf if better == "higher" else math.inf
    return math.log(ratio) if better == "higher" else -math.log(ratio)


def colour_step(ratio: float, better: Better, smallest_pct: float = DEFAULT_SMALLEST_PCT) -> int:
    """Colour of a heat cell: 0 is quiet, -1..-5 ever worse, 1..5 ever better.

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


def level(point: Point) -> float:
    """A release's value in a series: the median of its blocks, which one bad block does not move."""
    return statistics.median(point.numbers)


def levels(series: Series) -> dict[str, float]:
    """By version, the median of its blocks."""
    return {point.version: level(point) for point in series.points if point.values}


@dataclass(frozen=True)
class Summary:
    """The five rows of the field's group table, over the relative values of one group of tests."""

    average: float
    median: float
    min: float
    max: float
    stddev: float
    """Sample standard deviation; 0 for a single test."""
    tests: int


def summarize(ratios: Sequence[float]) -> Summary:
    """Summary of at least one finite relative value; ValueError for none."""
    if not ratios:
        raise ValueError("a summary needs at least one value")
    return Summary(
        average=statistics.fmean(ratios),
        median=statistics.median(ratios),
        min=min(ratios),
        max=max(ratios),
        stddev=statistics.stdev(ratios) if len(ratios) > 1 else 0.0,
        tests=len(ratios),
    )
