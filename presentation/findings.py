"""Findings as pandas DataFrames: what lists, issues, pages, the terminal and files are drawn from. Pure.

`findings_frame` has a row a finding, `moves_frame` a row a moved series, `groups_frame` a row a group of tests,
`functions_frame` a row a function; each is in the order in which people should read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from history.metrics import MetricRegistry
from history.model import Finding, FunctionChange, GroupSummary, Move, carrying_moves
from presentation.headline import headline, headline_moves, metric_order, named_moves, title
from presentation.ranking import finding_order

if TYPE_CHECKING:
    from pandas import DataFrame

#: Columns of a finding; `tests` counts those that carry its tier in any metric, `folded_under` is the key of the
#: finding that tells the same change, the rest is of the headline.
FINDING_COLUMNS = {
    "finding": "str", "kind": "str", "cause": "str", "tier": "str", "dbms": "str", "line": "str", "previous": "str",
    "release": "str", "title": "str", "tests": "int64", "metric": "str", "median_pct": "float64",
    "worst_pct": "float64", "worst_test": "str", "probability": "float64", "folded_under": "str",
}  # fmt: skip
#: Columns of a moved series: levels in `unit`, changes and their 95 % interval in percent, its own tier.
MOVE_COLUMNS = {
    "test": "str", "group": "str", "metric": "str", "server": "str", "config": "str", "benchmark": "str",
    "unit": "str", "better": "str", "before": "float64", "after": "float64", "change_pct": "float64",
    "low_pct": "float64", "high_pct": "float64", "direction": "str", "tier": "str", "probability": "float64",
    "q_value": "float64", "noise_pct": "float64", "mde_pct": "float64", "blocks_before": "int64",
    "blocks_after": "int64", "near_zero": "bool", "series": "str",
}  # fmt: skip
#: Columns of a group: how many of its tests moved, and by how much those did; levels of the worst where all that moved
#: are near zero, else NaN.
GROUP_COLUMNS = {
    "server": "str", "metric": "str", "group": "str", "moved": "int64", "tests": "int64", "median_pct": "float64",
    "worst_pct": "float64", "worst_test": "str", "worst_before": "float64", "worst_after": "float64",
}  # fmt: skip
#: Columns of a function: its own instructions per operation in `test`; `at_most` names a side that may be smaller.
FUNCTION_COLUMNS = {
    "test": "str", "function": "str", "before": "float64", "after": "float64", "difference": "float64",
    "at_most": "str",
}  # fmt: skip


def frame(columns: dict[str, str], rows: Iterable[dict[str, Any]]) -> DataFrame:
    """A frame of these columns and dtypes, also without a row."""
    import numpy as np
    import pandas as pd

    records = list(rows)
    cells = np.empty((len(records), len(columns)), dtype=object)
    for at, record in enumerate(records):
        cells[at] = [record[name] for name in columns]
    # One block of objects: pandas would look into every column of text for its type, at ten times the price.
    table = pd.DataFrame(cells, columns=pd.Index(list(columns), dtype=object), dtype=object)
    for at, (name, dtype) in enumerate(columns.items()):
        if dtype != "str":
            table[name] = cells[:, at].astype(dtype)
    return table


def records(table: DataFrame) -> list[dict[str, Any]]:
    """The rows by the names of the columns."""
    columns = [table[name].tolist() for name in table.columns]
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def findings_frame(findings: Iterable[Finding], metrics: MetricRegistry) -> DataFrame:
    """FINDING_COLUMNS, in the order of lists; findings without a move are left out."""
    ordered = sorted(findings, key=lambda finding: finding_order(finding, metrics))
    return frame(FINDING_COLUMNS, (finding_row(finding, metrics) for finding in ordered if finding.moves))


def finding_row(finding: Finding, metrics: MetricRegistry) -> dict[str, Any]:
    """One finding by FINDING_COLUMNS. ValueError for one without moves."""
    lead = headline(finding, metrics)
    if lead is None:
        raise ValueError(f"{finding.key} has no moves")
    return {
        **finding.model_dump(include={"kind", "cause", "tier", "dbms", "line", "previous", "release"}),
        "finding": finding.key,
        "title": title(finding, lead),
        "tests": len({move.key.test for move in carrying_moves(finding)}),
        "metric": lead.metric,
        "median_pct": lead.change.median_pct,
        "worst_pct": lead.change.worst_pct,
        "worst_test": lead.change.worst_test,
        "probability": lead.probability,
        "folded_under": finding.folded_under,
    }


def finding_record(finding: Finding, metrics: MetricRegistry) -> dict[str, Any]:
    """A finding as JSON has it everywhere: all that the detector gave, and under `headline` what it is named for."""
    named = ("title", "metric", "median_pct", "worst_pct", "worst_test", "tests", "probability")
    row = finding_row(finding, metrics) if finding.moves else {}
    return {**finding.model_dump(mode="json"), "headline": {name: row[name] for name in named if row}}


def ordered_moves(finding: Finding, metrics: MetricRegistry) -> list[Move]:
    """All moves: those of the headline first, then metric by metric, each the largest change first."""
    lead = {move.key for move in headline_moves(finding, metrics)}
    order = metric_order(named_moves(finding), metrics)
    places = {name: at for at, name in enumerate([*order, *metric_order(finding.moves, metrics)][::-1])}
    return sorted(
        finding.moves,
        key=lambda move: (move.key not in lead, -places[move.key.metric], -abs(move.change_pct), move.key.id),
    )


def moves_frame(finding: Finding, metrics: MetricRegistry) -> DataFrame:
    """MOVE_COLUMNS, in the order of `ordered_moves`; `q_value` is NaN where the detector gave none."""
    own = set(MOVE_COLUMNS) & set(Move.model_fields)
    return frame(
        MOVE_COLUMNS,
        (
            {
                **move.key.model_dump(),
                **move.model_dump(include=own),
                "near_zero": move.near_zero,
                "series": move.key.id,
            }
            for move in ordered_moves(finding, metrics)
        ),
    )


def groups_frame(finding: Finding, metrics: MetricRegistry) -> DataFrame:
    """GROUP_COLUMNS, the headline's metric first; of groups that did not move only those of that metric are there."""
    order = metric_order(named_moves(finding), metrics)
    lead = order[:1]
    shown = [group for group in finding.groups if group.moved or group.metric in lead]
    shown.sort(
        key=lambda group: (
            group.metric not in lead,
            not metrics[group.metric].leads,
            metrics.rank(group.metric),
            group.server,
            not group.moved,
            -abs(group.median_pct),
            group.group,
        )
    )
    return frame(GROUP_COLUMNS, (_group_row(group) for group in shown))


def _group_row(group: GroupSummary) -> dict[str, Any]:
    before, after = group.worst_levels or (nan, nan)
    return {**group.model_dump(), "worst_before": before, "worst_after": after}


def functions_frame(changes: Sequence[FunctionChange]) -> DataFrame:
    """FUNCTION_COLUMNS, the largest difference first."""
    rows = sorted(changes, key=lambda change: (-abs(change.after - change.before), change.function, change.test))
    own = FUNCTION_COLUMNS.keys() - {"difference"}
    return frame(
        FUNCTION_COLUMNS,
        (
            {**{name: getattr(change, name) for name in own}, "difference": change.after - change.before}
            for change in rows
        ),
    )
