"""The A/A panel: noise floor, smallest detectable change and last A/A of every series. Pure.

A page that listed 5,000 series would be too large: the table here has the median and the ends of each (line page,
metric), the noisiest series by name, and the files beside it have all.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from history.model import MAJORS, Move, Series
from presentation import addresses
from presentation.addresses import LineKey
from reports.charts import height_of
from reports.data import dump, table_csv, table_json
from reports.noise import AA, Noise, last_aa, noise
from reports.snapshot import Snapshot

#: Series listed by name on the page: those that can show least.
NOISIEST = 40
#: Ticks in the chart; more would only blacken it.
MAX_TICKS = 2000
COLUMNS = ("series", "group", "releases", "blocks", "noise_between_releases_pct", "noise_of_a_block_pct",
           "smallest_detectable_pct", "detector_noise_pct", "detector_mde_pct", "aa_earlier", "aa_later",
           "aa_change_pct")  # fmt: skip


@dataclass(frozen=True)
class SeriesNoise:
    """One series' row."""

    series: Series
    noise: Noise
    aa: AA | None
    move: Move | None
    """The detector's own figures, which are shrunk toward the metric's prior, where a finding quotes them."""

    @property
    def mde(self) -> float | None:
        return self.move.mde_pct if self.move else self.noise.mde_pct


def all_noise(snapshot: Snapshot) -> list[SeriesNoise]:
    """Every series of a real line, in the order of lines, tests and metrics: steps between majors are no noise."""
    moves = {move.key.id: move for finding in snapshot.findings for move in finding.moves}
    order = [session.id for session in reversed(snapshot.sessions)]
    return [
        SeriesNoise(one, noise(one), last_aa(one.control, order), moves.get(one.key.id))
        for key, series in snapshot.lines.items()
        if key.line != MAJORS
        for one in series
    ]


def _pct(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def noise_context(snapshot: Snapshot) -> dict[str, Any]:
    """Everything `noise.html` shows."""
    rows = all_noise(snapshot)
    known = [row for row in rows if row.mde is not None]
    by_place: dict[tuple[LineKey, str], list[SeriesNoise]] = {}
    for row in known:
        by_place.setdefault((LineKey.of(row.series.key), row.series.key.metric), []).append(row)
    worst = sorted(known, key=lambda row: (-(row.mde or 0), row.series.key.id))[:NOISIEST]
    stride = max(1, len(known) // MAX_TICKS)
    return {
        "series": len(rows),
        "known": len(known),
        "unknown": len(rows) - len(known),
        "drawing": {
            "height": height_of("noise", len({row.series.key.metric for row in known})),
            "noise": [
                {
                    "metric": row.series.key.metric,
                    "name": row.series.key.id,
                    "mde": row.mde,
                    "noise": row.noise.release_pct,
                }
                for row in sorted(known, key=lambda row: (row.series.key.metric, row.mde or 0))[::stride]
            ],
        },
        "places": [_place(key, metric, here) for (key, metric), here in sorted(by_place.items())],
        "worst": [_named(row) for row in worst],
        "control": [_named(row) for row in known if row.aa][:NOISIEST],
    }


def _place(key: LineKey, metric: str, rows: list[SeriesNoise]) -> dict[str, Any]:
    seen = sorted(row.mde for row in rows if row.mde is not None)
    released = [row.noise.release_pct for row in rows if row.noise.release_pct is not None]
    blocks = [row.noise.block_pct for row in rows if row.noise.block_pct is not None]
    aa = [abs(row.aa.change_pct) for row in rows if row.aa]
    return {
        "label": f"{key.title}",
        "where": key.where,
        "href": addresses.of_line(key),
        "metric": metric,
        "series": len(rows),
        "noise": _pct(statistics.median(released) if released else None),
        "block": _pct(statistics.median(blocks) if blocks else None),
        "mde": _pct(statistics.median(seen)),
        "worst": _pct(seen[-1]),
        "aa": _pct(statistics.median(aa) if aa else None),
    }


def _named(row: SeriesNoise) -> dict[str, Any]:
    key = row.series.key
    return {
        "test": key.test,
        "metric": key.metric,
        "where": f"{key.dbms} {key.line} · {key.server} · {key.config}",
        "href": addresses.of_test(LineKey.of(key), key.test),
        "noise": _pct(row.noise.release_pct),
        "block": _pct(row.noise.block_pct),
        "mde": _pct(row.mde),
        "aa": "–" if row.aa is None else f"{row.aa.change_pct:+.2f}".replace("-", "−"),
    }


def noise_files(snapshot: Snapshot) -> dict[str, str]:
    """`noise.csv` and `noise.json`: every series, by the columns' names."""
    rows: list[list[object]] = []
    for row in all_noise(snapshot):
        one, aa, move = row.series, row.aa, row.move
        blocks = sum(len(point.values) for point in one.points)
        figures = [row.noise.release_pct, row.noise.block_pct, row.noise.mde_pct]
        figures += [move.noise_pct, move.mde_pct] if move else [None, None]
        tail = [aa.earlier, aa.later, aa.change_pct] if aa else [None, None, None]
        rows.append([one.key.id, one.group, len(one.points), blocks, *figures, *tail])
    return {
        "noise.csv": table_csv(COLUMNS, rows),
        "noise.json": dump({"schema": "pointdrop.noise/1", "series": table_json(COLUMNS, rows)}),
    }
