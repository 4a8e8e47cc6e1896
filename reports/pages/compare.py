"""The compare page: any two of what one server measured with one benchmark, and its configs as a matrix. Pure.

The page shows one pair as it is written, and its script any other; the numbers of all of them are in the page.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from presentation import addresses
from presentation.comparison import (
    SUMMARY,
    Comparison,
    Lines,
    Subject,
    by_place,
    comparisons,
    config_matrices,
    default_pair,
    differences,
    newest_subjects,
    subjects_of,
    summary_frame,
    throughput_of,
)
from presentation.number_format import ABSENT, grouped, short
from presentation.number_format import ratio as ratio_text
from presentation.operations import cells, relative_frame
from presentation.tables import csv_text, json_line, records_of
from presentation.views import views
from reports.charts import height_of
from reports.pages.line import cell
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

if TYPE_CHECKING:
    from pandas import DataFrame
    from pandas import Series as Column

#: Numbers in one page, about 9 bytes each; the oldest releases of each line give way.
MAX_NUMBERS = 50_000
#: Ratios below this get two digits: fsync makes a config a hundred times slower.
SMALL_RATIO = 0.095
COLUMNS = ("dbms", "line", "version", "config", "view", "group", "test", "median")


class Compared(NamedTuple):
    """What one page shows."""

    subjects: list[Subject]
    views: list[Comparison]


def places(snapshot: Snapshot, settings: ReportSettings) -> dict[tuple[str, str], Lines]:
    """The lines of each (server, benchmark) with at least two subjects."""
    shown = views(settings.metrics)
    return {place: lines for place, lines in by_place(snapshot.lines).items() if len(subjects_of(lines, shown)) > 1}


def compared(lines: Lines, settings: ReportSettings) -> Compared:
    """Every view, with as many subjects as a page has room for."""
    shown = views(settings.metrics)
    subjects = subjects_of(lines, shown)
    every = comparisons(lines, subjects, shown, settings.metrics, settings.order)
    subjects = newest_subjects(subjects, MAX_NUMBERS // max(1, sum(len(view.tests) for view in every)))
    return Compared(subjects, [replace(view, levels=view.levels[subjects]) for view in every])


def section(comparison: Comparison, base: Subject, other: Subject) -> dict[str, Any]:
    """One view of a pair: every test, the chart, the summary."""
    view, ratios = comparison.view, comparison.ratios(base)[other]
    rows: list[dict[str, Any]] = [
        {
            "test": test["test"],
            "group": test["group"],
            "a": ABSENT if math.isnan(left) else grouped(left),
            "b": ABSENT if math.isnan(right) else grouped(right),
            "cell": cell(ratio, test["better"], view.decimals, test["smallest_pct"]),
        }
        for test, left, right, ratio in zip(
            records_of(comparison.tests.reset_index()),
            comparison.levels[base],
            comparison.levels[other],
            ratios,
            strict=True,
        )
    ]
    kinds = {"w": "worse", "b": "better", "": "note"}
    drawn = [
        {"test": row["test"], "r": ratio, "one": 1, "kind": kinds[row["cell"].css[:1]]}
        for row, ratio in zip(rows, ratios, strict=True)
        if 0 < ratio < math.inf
    ]
    return {
        "view": view,
        "rows": rows,
        "summary": [
            {
                "group": group,
                "tests": int(row["tests"]),
                "figures": [ratio_text(row[name], view.decimals) for name in SUMMARY],
            }
            for group, row in summary_frame(ratios).iterrows()
        ],
        "chart": {"height": height_of("compare", len(drawn)), "tests": drawn},
    }


def matrix_text(ratio: float) -> str:
    return ratio_text(ratio) if ratio >= SMALL_RATIO or ratio == 0 or math.isnan(ratio) else f"{ratio:.2g}"


def matrix_context(release: str, matrix: DataFrame) -> dict[str, Any]:
    ratios = [[matrix_text(ratio) for ratio in row] for row in relative_frame(matrix).to_numpy()]
    return {
        "release": release,
        "tests": list(matrix.columns),
        "base": matrix.index[0],
        "absolute": list(zip(matrix.index, cells(matrix), strict=True)),
        "relative": list(zip(matrix.index, ratios, strict=True)),
    }


def script_data(page: Compared, base: Subject, other: Subject) -> dict[str, Any]:
    """What the page's script needs to show any other pair: absolute values by view and subject."""
    return {
        "subjects": [subject.label for subject in page.subjects],
        "a": page.subjects.index(base),
        "b": page.subjects.index(other),
        "views": {
            comparison.view.id: {
                "decimals": comparison.view.decimals,
                "tests": records_of(comparison.tests.rename(columns={"smallest_pct": "quiet"}).reset_index()),
                "values": [[short(value) for value in comparison.levels[subject]] for subject in page.subjects],
            }
            for comparison in page.views
        },
    }


def compare_context(server: str, benchmark: str, page: Compared, settings: ReportSettings) -> dict[str, Any]:
    """Everything `compare.html` shows."""
    base, other = default_pair(page.subjects, page.views)

    def shared(comparison: Comparison) -> int:
        both: Column = comparison.levels[[base, other]].notna().all(axis="columns")
        return int(both.sum())

    rates = throughput_of(page.views, settings.metrics)
    matrices = config_matrices(rates) if rates else {}
    return {
        "server": server,
        "benchmark": benchmark,
        "a": base,
        "b": other,
        "sections": [
            section(comparison, base, other)
            for comparison in sorted(page.views, key=lambda comparison: -shared(comparison))
        ],
        "matrices": [matrix_context(release, matrix) for release, matrix in matrices.items()],
        "differences": [
            {
                "from": switch.before,
                "to": switch.after,
                "base": switch.table.columns[0],
                "other": switch.table.columns[1],
                "rows": list(zip(switch.table.index, cells(switch.table, 2), strict=True)),
            }
            for switch in differences(matrices)
        ],
        "script": script_data(page, base, other),
        "stem": addresses.part(benchmark),
    }


def compare_page(
    server: str, benchmark: str, lines: Lines, settings: ReportSettings
) -> tuple[dict[str, Any], str, str]:
    """What the page shows, and CSV and JSON of every number it can show, a row each."""
    page = compared(lines, settings)
    rows = [
        [*subject, comparison.view.id, group, test, level]
        for comparison in page.views
        for subject in page.subjects
        for (group, test), level in zip(comparison.levels.index, comparison.levels[subject].tolist(), strict=True)
        if not math.isnan(level)
    ]
    whole = {"schema": "pointdrop.compare/1", "server": server, "benchmark": benchmark}
    values = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    context = compare_context(server, benchmark, page, settings)
    return context, csv_text(COLUMNS, rows), json_line({**whole, "values": values})
