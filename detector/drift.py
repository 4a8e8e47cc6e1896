"""Slow drift: a line that loses a little with every release, never enough at once to be a changepoint.

What a test lost since the line's first release, beyond the steps that were found, is compared with the noise of the
few releases at both ends; a drift is a finding when at least half of the tests have it, or one test has it clearly.
The finding is dated to the first release at which it could be told, so its key stays the same as the line goes on.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from detector.arrays import Floats
from detector.percentages import log_percent
from detector.releases.families import Family
from detector.releases.metric_kinds import evidence
from detector.releases.series_panel import Panel
from detector.releases.series_steps import PanelSteps
from detector.series_moves import move_between, raw_level
from history.model import Move

#: Releases at either end whose mean is the end's level.
END = 3
#: A line shorter than this has no drift, only steps.
FEWEST_RELEASES = 8
#: Standard errors that the drift of one test must exceed.
CLEAR_Z = 4.0
#: Share of the tests that must drift the same way, and how many there must be to speak of a share.
SHARE = 0.5
FEWEST_TESTS = 4
#: The drift is spread out: no release takes more than this share of it.
LARGEST_SHARE = 0.5
#: Half-width of a 95 % interval, in standard errors.
HALF_WIDTH_95 = 1.96

_PRE_RELEASE = re.compile(r"(alpha|beta|rc|dev|preview|m\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Drift:
    """One series that drifted, on the log scale."""

    place: tuple[int, int, int]
    release: int
    """First release at which the drift could be told."""
    start: float
    """Level of the first releases."""
    size: float
    """Drift up to the newest release, without the steps found."""
    error: float
    noise: float
    """Standard deviation of one release's value."""


def first_ga(releases: tuple[str, ...]) -> int:
    """Index of the first release that is no pre-release.

    >>> first_ga(("17beta1", "17rc1", "17.0", "17.1"))
    2
    """
    return next((index for index, version in enumerate(releases) if not _PRE_RELEASE.search(version)), 0)


def drifts(family: Family, panel_steps: PanelSteps, least: float) -> list[Drift]:
    """Series that drifted by at least `least` (log units) since the line's first release."""
    panel = family.panel
    start = first_ga(panel.releases)
    candidates = []
    evident = evidence(panel.metrics)
    for m, s, t in sorted(family.series):
        if not (evident[m] and panel.metrics[m].leads):
            continue
        values = _without_steps(panel, panel_steps, (m, s, t))
        measured = [r for r in range(start, len(panel.releases)) if math.isfinite(values[r])]
        if len(measured) < FEWEST_RELEASES:
            continue
        noise = float(panel_steps.noise[m, s, t])
        size, error = _ends(values, measured, noise)
        if abs(size) < least or abs(size) < CLEAR_Z * error or _jumpy(values, measured, size):
            continue
        release = _since(values, measured, noise, least, size)
        level = float(np.median(panel.values[m, s, t][measured[:END]]))
        candidates.append(Drift((m, s, t), release, level, size, error, noise))
    return _agreed(family, candidates)


def _without_steps(panel: Panel, panel_steps: PanelSteps, place: tuple[int, int, int]) -> Floats:
    values: Floats = panel.values[place].copy()
    for step in panel_steps.steps:
        if step.place == place:
            values[step.release :] -= step.size
    return values


def _ends(values: Floats, measured: list[int], noise: float) -> tuple[float, float]:
    first, last = values[measured[:END]], values[measured[-END:]]
    return float(np.median(last) - np.median(first)), noise * math.sqrt(2.0 * 1.3 / END)


def _jumpy(values: Floats, measured: list[int], size: float) -> bool:
    """Whether one release takes most of the drift: then it is a step that was too unsure, not a drift."""
    half = [
        float(np.median(values[measured[i : i + END]]) - np.median(values[measured[max(i - END, 0) : i]]))
        for i in range(1, len(measured))
    ]
    return max(abs(part) for part in half) > LARGEST_SHARE * abs(size) * 1.5


def _since(values: Floats, measured: list[int], noise: float, least: float, size: float) -> int:
    for n in range(FEWEST_RELEASES, len(measured) + 1):
        so_far, error = _ends(values, measured[:n], noise)
        if so_far * size > 0 and abs(so_far) >= max(least, CLEAR_Z * error):
            return measured[n - 1]
    return measured[-1]


def _agreed(family: Family, candidates: list[Drift]) -> list[Drift]:
    """Drifts that at least half of the tests of their server and metric share in the same direction."""
    tests = Counter(place[:2] for place in family.series)
    same = Counter((drift.place[:2], drift.size > 0) for drift in candidates)
    return [
        drift
        for drift in candidates
        if same[drift.place[:2], drift.size > 0] >= SHARE * tests[drift.place[:2]]
        or tests[drift.place[:2]] < FEWEST_TESTS
    ]


def move_of_drift(family: Family, drift: Drift, drift_pct: float) -> Move:
    """What users see of a drift; `drift_pct` is the smallest that counts."""
    series = family.series[drift.place]
    before = raw_level(family, drift.place, drift.start)
    after = raw_level(family, drift.place, drift.start + drift.size)
    low, high = (log_percent(drift.size + sign * HALF_WIDTH_95 * drift.error) for sign in (-1, 1))
    return move_between(
        series,
        family.metrics[series.key.metric],
        before,
        after,
        drift.noise,
        low_pct=low,
        high_pct=high,
        probability=1.0 - math.erfc(abs(drift.size) / drift.error / math.sqrt(2.0)),
        mde_pct=drift_pct,
        blocks_before=len(series.points[0].values),
        blocks_after=len(series.points[-1].values),
    )
