"""Noise of a series, the smallest change it can show, and its last A/A: same release, two sessions. Pure.

With x = log(median of a release) and d = differences of neighbours, the noise of a release is
1.4826 · median(|d|) / √2, in percent: the median keeps real steps out of it. Blocks give the pooled standard deviation
within releases. The smallest change that two neighbouring releases can show, found with probability 0.8 at a
two-sided 5 %, is (1.96 + 0.84) · √2 · noise.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from history.model import Series
from presentation.relative import level

#: Makes the median absolute value of a normal variable its standard deviation.
MAD_TO_SD = 1.4826
#: z(0.975) + z(0.80).
POWER = 1.959964 + 0.841621
#: Differences needed for a noise between releases; with fewer the median is one release's luck.
MIN_DIFFERENCES = 4


@dataclass(frozen=True)
class Noise:
    """Percent; None where the series has too few releases or blocks to say."""

    release_pct: float | None
    block_pct: float | None
    mde_pct: float | None


def _logs(series: Series) -> list[float]:
    values = [level(point) for point in series.points if point.values]
    return [math.log(value) for value in values] if values and min(values) > 0 else []


def release_noise(series: Series) -> float | None:
    logs = _logs(series)
    steps = [abs(b - a) for a, b in itertools.pairwise(logs)]
    if len(steps) < MIN_DIFFERENCES:
        return None
    return 100 * MAD_TO_SD * statistics.median(steps) / math.sqrt(2)


def block_noise(series: Series) -> float | None:
    scatter, degrees = 0.0, 0
    for point in series.points:
        values = point.numbers
        if len(values) > 1 and min(values) > 0:
            logs = [math.log(value) for value in values]
            mean = math.fsum(logs) / len(logs)
            scatter += math.fsum((x - mean) ** 2 for x in logs)
            degrees += len(logs) - 1
    return 100 * math.sqrt(scatter / degrees) if degrees else None


def noise(series: Series) -> Noise:
    """Noise between releases, or else of one block, and what it lets one see."""
    release, block = release_noise(series), block_noise(series)
    base = release if release is not None else block
    return Noise(release, block, None if base is None else POWER * math.sqrt(2) * base)


@dataclass(frozen=True)
class AA:
    """The control release in two sessions: what differs is not the product."""

    earlier: str
    later: str
    """Session ids."""
    change_pct: float
    blocks: tuple[int, int]


def last_aa(control: Mapping[str, Sequence[float]], order: Sequence[str]) -> AA | None:
    """The last two sessions with the control, `order` being session ids from old to new; None with fewer than two."""
    have = [session for session in order if control.get(session)]
    if len(have) < 2:
        return None
    a, b = (statistics.median(control[session]) for session in have[-2:])
    if a <= 0:
        return None
    return AA(have[-2], have[-1], 100 * (b / a - 1), (len(control[have[-2]]), len(control[have[-1]])))
