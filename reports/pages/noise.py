"""The A/A panel: noise floor, smallest detectable change and last A/A of every series. Pure.

A page that listed 5,000 series would be too large: the table here has the median and the ends of each (line page,
metric), the least sensitive series by name, and the files beside it have all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from history.model import MAJORS
from presentation import addresses
from presentation.addresses import LineKey
from presentation.noise import FILE_COLUMNS, noise_frame
from presentation.tables import frame_csv, json_line, records_of
from reports.charts import height_of
from reports.snapshot import Snapshot

if TYPE_CHECKING:
    from pandas import DataFrame

#: Series listed by name on the page: those with the largest smallest detectable change.
LEAST_SENSITIVE = 40
#: The columns that make a row of the table by line and metric.
PLACE = [*LineKey._fields, "metric"]
RELEASE, BLOCK, AA = "noise_between_releases_pct", "noise_of_a_block_pct", "aa_change_pct"
#: Ticks in the chart; more would only blacken it.
MAX_TICKS = 2000


def noise_of(snapshot: Snapshot) -> DataFrame:
    """NOISE_COLUMNS of every series of a real line: steps between majors are no noise."""
    moves = {move.key.id: move for finding in snapshot.findings for move in finding.moves}
    sessions = [session.id for session in reversed(snapshot.sessions)]
    lines = [series for key, series in snapshot.lines.items() if key.line != MAJORS]
    return noise_frame(lines, moves, sessions)


def noise_context(table: DataFrame) -> dict[str, Any]:
    """Everything `noise.html` shows."""
    mde = table["detector_mde_pct"].fillna(table["smallest_detectable_pct"])
    detectable = table.assign(mde=mde)[mde.notna()]
    stride = max(1, len(detectable) // MAX_TICKS)
    ticks = detectable.sort_values(["metric", "mde"], kind="stable")[::stride]
    least = detectable.sort_values(["mde", "series"], ascending=[False, True])[:LEAST_SENSITIVE]
    return {
        "known": len(detectable),
        "unknown": len(table) - len(detectable),
        "drawing": {
            "height": height_of("noise", detectable["metric"].nunique()),
            "noise": [
                {"metric": row["metric"], "name": row["series"], "mde": row["mde"], "noise": row[RELEASE]}
                for row in records_of(ticks)
            ],
        },
        "places": [_place(*map(str, place), rows=rows) for place, rows in detectable.groupby(PLACE)],
        "least_sensitive": [_named(row) for row in records_of(least)],
        "control": [_named(row) for row in records_of(detectable[detectable[AA].notna()][:LEAST_SENSITIVE])],
    }


def _pct(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.2f}"


def _place(*place: str, rows: DataFrame) -> dict[str, Any]:
    """Medians over the series of a line in one metric."""
    *line, metric = place
    key = LineKey(*line)
    return {
        "label": key.title,
        "where": key.where,
        "href": addresses.of_line(key),
        "metric": metric,
        "series": len(rows),
        "noise": _pct(rows[RELEASE].median()),
        "block": _pct(rows[BLOCK].median()),
        "mde": _pct(rows["mde"].median()),
        "worst": _pct(rows["mde"].max()),
        "aa": _pct(rows[AA].abs().median()),
    }


def _named(row: dict[str, Any]) -> dict[str, Any]:
    key = LineKey(*(row[name] for name in LineKey._fields))
    return {
        "test": row["test"],
        "metric": row["metric"],
        "where": f"{key.title} · {key.server} · {key.config}",
        "href": addresses.of_test(key, row["test"]),
        "noise": _pct(row[RELEASE]),
        "block": _pct(row[BLOCK]),
        "mde": _pct(row["mde"]),
        "aa": "–" if row[AA] is None else f"{row[AA]:+z.2f}".replace("-", "−"),
    }


def noise_files(table: DataFrame) -> tuple[str, str]:
    """CSV and JSON of every series, by the columns' names."""
    table = table[list(FILE_COLUMNS)]
    return frame_csv(table), json_line({"schema": "pointdrop.noise/1", "series": records_of(table)})
