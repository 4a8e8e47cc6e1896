"""The changes of each series of a few campaigns, for callers with series of their own and no use for findings.

Series that share dbms, line, config and benchmark are judged together, exactly as `detect` judges them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from detector.moves import moves_of
from detector.releases.campaign import campaign, families
from detector.releases.scan import scan
from detector.releases.steps import read
from detector.settings import DetectorSettings
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
    """The release measured before it in the campaign."""
    move: Move


def pooled_changes(series: Iterable[Series], settings: DetectorSettings | None = None) -> list[PooledChange]:
    """Changes sorted by series and position; a series with none does not appear."""
    settings = settings or DetectorSettings()
    changes = []
    for family in families(series).values():
        positions = sorted({point.position for one in family for point in one.points})
        if len(positions) < 2:
            continue
        together = campaign(family, settings.metrics)
        found = scan(together.panel)
        versions = together.panel.releases
        by_release = moves_of(together, found, read(found, settings.probability), settings.probability)
        changes += [
            PooledChange(move.key.id, positions[r], versions[r], versions[r - 1], move)
            for r, moves in by_release.items()
            for move in moves
        ]
    return sorted(changes, key=lambda change: (change.series, change.position))
