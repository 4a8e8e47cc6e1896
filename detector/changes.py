"""The changes of series or arrays, for callers that have these and no use for findings.

Series that share dbms, line, config and benchmark are judged together, exactly as `detect` judges them.

>>> noise = np.random.default_rng(7).normal(0.0, 0.004, (1, 6, 12, 2))
>>> qps = 1000 * np.exp(noise)
>>> qps[:, 2, 8:] *= 0.93
>>> release_changes(qps, None)
[(0, 2, 8)]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from detector.arrays import Floats
from detector.releases.boundaries import NEWEST, THRESHOLD, boundaries, is_slope, segments, step
from detector.releases.families import families, family_of
from detector.releases.scan import scan_panel
from detector.releases.series_panel import panel_of_blocks
from detector.releases.series_steps import read_steps
from detector.series_moves import moves_of
from detector.settings import DetectorSettings
from history.metrics import shipped_metrics
from history.model import Move, Series


@dataclass(frozen=True)
class PooledChange:
    """One change of one series."""

    series: str
    """`SeriesKey.id`."""
    position: int
    """Of the first release at the new level, as the series' points count it."""
    release: str
    previous: str
    """The release measured before it in its family."""
    move: Move


def pooled_changes(series: Iterable[Series], settings: DetectorSettings | None = None) -> list[PooledChange]:
    """Changes sorted by series and position; a series with none does not appear."""
    settings = settings or DetectorSettings()
    changes = []
    for members in families(series).values():
        positions = sorted({point.position for member in members for point in member.points})
        if len(positions) < 2:
            continue
        family = family_of(members, settings.metrics)
        scan, versions = scan_panel(family.panel), family.panel.releases
        by_release = moves_of(family, scan, read_steps(scan, settings.probability), settings.probability)
        changes += [
            PooledChange(move.key.id, positions[r], versions[r], versions[r - 1], move)
            for r, moves in by_release.items()
            for move in moves
        ]
    return sorted(changes, key=lambda change: (change.series, change.position))


def release_changes(
    qps: Floats, cpu: Floats | None = None, gaps: Floats | None = None, *, probability: float | None = None
) -> list[tuple[int, int, int]]:
    """Changes as (server, test, index of the first release at the new level), ascending.

    `qps` and `cpu` (per operation) are [servers, tests, releases, blocks], NaN where absent; `gaps`
    [releases] says how many releases lie between a release and the measured one before it (1 where none does). A
    change is at least as likely as `probability`; without one, as `THRESHOLD`, and on the newest release as `NEWEST`.
    Raises InvalidSeries for shapes that do not fit.
    """
    metrics = shipped_metrics()
    arrays = {metrics.first("throughput"): qps}
    if cpu is not None:
        arrays[metrics.first("cpu")] = cpu
    panel = panel_of_blocks(arrays, gaps=gaps)
    scan = scan_panel(panel)
    least, newest = (THRESHOLD, NEWEST) if probability is None else (probability, probability)
    changes = []
    for s, t in zip(*np.nonzero(scan.hit.max(axis=-1) > 0.25), strict=True):
        places = boundaries(scan.hit[s, t], max(least, scan.least), newest)
        parts = segments(places, len(panel.releases))
        steps = []
        for place, left, right in zip(places, parts[:-1], parts[1:], strict=True):
            size = [abs(step(scan.values[m, s, t], left, right)) for m in range(len(arrays))]
            if np.nanmax(np.array(size) / scan.floor, initial=0.0) >= 1.0:
                steps.append((place, step(panel.values[0, s, t], left, right)))
        if not is_slope(panel.values[0, s, t], steps):
            changes += [(int(s), int(t), place) for place, _ in steps]
    return changes
