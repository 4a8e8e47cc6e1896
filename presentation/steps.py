"""A series as steps: a level and its interval for each stretch between changepoints. Pure.

Level of a stretch: geometric mean of its releases' medians. Interval: with x = log(median of a release), K stretches
and N releases, the scatter s² = Σ (x - mean of its stretch)² / (N - K) is pooled over stretches, and the level's 95 %
interval is exp(mean ± t(0.975, N - K) · s / √n). Without a degree of freedom (every stretch one release) there is no
interval: absent, not zero. A series with a value of 0 or less takes arithmetic means instead.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from history.model import Series
from presentation.relative import levels

#: Two-sided coverage of the intervals.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Stretch:
    """Releases `start`..`end` (positions, inclusive) at one level, in the unit of the series."""

    start: int
    end: int
    level: float
    low: float | None
    high: float | None
    releases: int
    blocks: int


@lru_cache(maxsize=256)
def t_quantile(degrees: int) -> float:
    """Student's t at the upper edge of `CONFIDENCE`."""
    from scipy.special import stdtrit  # slow to import, and only pages with intervals need it

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


def steps(series: Series, boundaries: Collection[str]) -> list[Stretch]:
    """Stretches of `series`, a new one at each version in `boundaries`; positions index the series' own points."""
    points = [point for point in series.points if point.values]
    if not points:
        return []
    starts = [0, *(i for i, point in enumerate(points) if i and point.version in boundaries)]
    ends = [*(start - 1 for start in starts[1:]), len(points) - 1]
    values = list(levels(series).values())
    logs = min(values) > 0
    scale = [math.log(value) for value in values] if logs else values
    means = [math.fsum(scale[a : b + 1]) / (b - a + 1) for a, b in zip(starts, ends, strict=True)]
    degrees = len(points) - len(starts)
    scatter = math.fsum(
        (x - mean) ** 2 for a, b, mean in zip(starts, ends, means, strict=True) for x in scale[a : b + 1]
    )
    back = math.exp if logs else float
    stretches = []
    for a, b, mean in zip(starts, ends, means, strict=True):
        low = high = None
        if degrees:
            half = t_quantile(degrees) * math.sqrt(scatter / degrees / (b - a + 1))
            low, high = back(mean - half), back(mean + half)
        blocks = sum(len(point.values) for point in points[a : b + 1])
        stretches.append(Stretch(a, b, back(mean), low, high, b - a + 1, blocks))
    return stretches
