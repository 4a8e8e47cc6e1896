"""Noise of a series, the smallest change it can show, and its last A/A: same release, two sessions. Pure.

With x = log(level of a release) and d = differences of neighbours, the noise of a release is
1.4826 · median(|d|) / √2, in percent: the median keeps real steps out of it. Blocks give the pooled standard deviation
within releases. The smallest change that two neighbouring releases can show, found with probability 0.8 at a
two-sided 5 %, is (1.96 + 0.84) · √2 · noise. How many blocks of each side a change asks for: `blocks_needed`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from history.model import Move, Series, SeriesKey
from presentation.durations import duration_range
from presentation.findings import frame
from presentation.relative import level_frame

if TYPE_CHECKING:
    from pandas import DataFrame
    from pandas import Series as Column

#: Makes the median absolute value of a normal variable its standard deviation.
MAD_TO_SD = 1.4826
#: z(0.975) + z(0.80).
POWER = 1.959964 + 0.841621
#: z of the level at which `detector.compare` calls two sides different (0.0158 in each of five looks), and z(0.80).
SIDE_BY_SIDE_POWER = 2.413302 + 0.841621
#: What a timed line is asked to show, in percent; one that can with the blocks it has needs no sentence.
ASKED_PCT = 5.0
#: Differences needed for a noise between releases; with fewer the median is one release's luck.
MIN_DIFFERENCES = 4
#: What the files have of the noise of a series: percent, NaN where it has too few releases, blocks or sessions to say.
#: The detector's own figures are shrunk toward the metric's prior, and known where a finding quotes them.
FILE_COLUMNS = {
    "series": "str", "group": "str", "releases": "int64", "blocks": "int64", "noise_between_releases_pct": "float64",
    "noise_of_a_block_pct": "float64", "smallest_detectable_pct": "float64", "detector_noise_pct": "float64",
    "detector_mde_pct": "float64", "aa_earlier": "str", "aa_later": "str", "aa_change_pct": "float64",
}  # fmt: skip
NOISE_COLUMNS = {**dict.fromkeys(SeriesKey.model_fields, "str"), **FILE_COLUMNS}


def release_noise(values: DataFrame) -> Column:
    """Percent, by row of levels (columns are the releases in order); NaN for too few releases or a level of 0."""
    import numpy as np
    import pandas as pd

    noise = np.full(len(values), np.nan)
    for row, levels in enumerate(values.to_numpy()):
        # A release that was not measured is no neighbour: the next one differs from the one before it.
        measured = levels[~np.isnan(levels)]
        if len(measured) > MIN_DIFFERENCES and measured.min() > 0:
            noise[row] = 100 * MAD_TO_SD * np.median(np.abs(np.diff(np.log(measured)))) / math.sqrt(2)
    return pd.Series(noise, index=values.index)


def block_noise(series: Series) -> float | None:
    """Percent: pooled over releases with more than one block; None without."""
    scatter, degrees = 0.0, 0
    for point in series.points:
        values = point.numbers
        if len(values) > 1 and min(values) > 0:
            logs = [math.log(value) for value in values]
            mean = math.fsum(logs) / len(logs)
            scatter += math.fsum((x - mean) ** 2 for x in logs)
            degrees += len(logs) - 1
    return 100 * math.sqrt(scatter / degrees) if degrees else None


def blocks_needed(noise_pct: float, change_pct: float) -> int:
    """Blocks of each of two sides, side by side, in which a change is found four times in five; at least two.

    `noise_pct` is s, the standard deviation of the log of one block's value, times 100. With d = log(1 + change) it is
    n = 2 (z + 0.84)² s² / d², the size of two equal samples for a difference of means (Chow, Shao, Wang 2008, "Sample
    Size Calculations in Clinical Research", 3.2), z being that of the level of `detector.compare`.

    >>> blocks_needed(0.8, 5.0), blocks_needed(4.0, 5.0), blocks_needed(15.0, 5.0), blocks_needed(15.0, 50.0)
    (2, 15, 201, 3)
    """
    ratio = noise_pct / 100 / math.log1p(change_pct / 100)
    return max(2, math.ceil(2 * SIDE_BY_SIDE_POWER**2 * ratio**2))


def time_to_show(series: Iterable[Series], metric: str, block_s: float | None) -> str:
    """What it would take to see a change of ASKED_PCT in `metric`, the rate of the timed lane: of the test in the
    middle, by the noise of its blocks here. Empty where the blocks of most releases suffice, or nothing was measured
    twice.

    `block_s` is how long one block takes, in seconds; all tests of it are measured in that time.
    """
    rates = [member for member in series if member.key.metric == metric]
    noises = [noise for noise in map(block_noise, rates) if noise is not None]
    if not noises:
        return ""
    noise = statistics.median(noises)
    needed = blocks_needed(noise, ASKED_PCT)
    if needed <= statistics.median(len(point.numbers) for member in rates for point in member.points):
        return ""
    took = "" if block_s is None else f" ({duration_range(needed * block_s, needed * block_s)})"
    return (
        f"Blocks of one release vary by {noise:.2g} % in throughput here (median of the tests), so a change of "
        f"{ASKED_PCT:g} % would need about {needed} blocks{took} of each side."
    )


class AA(NamedTuple):
    """The control release in two sessions: what differs is not the product."""

    earlier: str
    later: str
    """Session ids."""
    change_pct: float


def last_aa(series: Series, order: Sequence[str]) -> AA | None:
    """The last session and the one before it that had the same control, `order` being session ids from old to new;
    None where there are no two."""
    sessions = [session for session in order if series.control.get(session)]
    sessions = [session for session in sessions if series.control_of(session) == series.control_of(sessions[-1])]
    if len(sessions) < 2:
        return None
    before, after = (statistics.median(series.control[session]) for session in sessions[-2:])
    return AA(sessions[-2], sessions[-1], 100 * (after / before - 1)) if before > 0 else None


def noise_frame(lines: Iterable[Sequence[Series]], moves: Mapping[str, Move], sessions: Sequence[str]) -> DataFrame:
    """NOISE_COLUMNS, a row a series in the order of the lines; `moves` by series id, `sessions` from old to new."""
    rows = []
    for series in lines:
        for member, release_pct in zip(series, release_noise(level_frame(series)), strict=True):
            block_pct, aa, move = block_noise(member), last_aa(member, sessions), moves.get(member.key.id)
            noise_pct = block_pct if math.isnan(release_pct) else release_pct
            rows.append(
                {
                    **member.key.model_dump(),
                    "series": member.key.id,
                    "group": member.group,
                    "releases": len(member.points),
                    "blocks": sum(len(point.values) for point in member.points),
                    "noise_between_releases_pct": release_pct,
                    "noise_of_a_block_pct": block_pct,
                    "smallest_detectable_pct": noise_pct and POWER * math.sqrt(2) * noise_pct,
                    "detector_noise_pct": move and move.noise_pct,
                    "detector_mde_pct": move and move.mde_pct,
                    "aa_earlier": aa and aa.earlier,
                    "aa_later": aa and aa.later,
                    "aa_change_pct": aa and aa.change_pct,
                }
            )
    return frame(NOISE_COLUMNS, rows)
