"""Changes of moves and groups as text: in percent, or in units near zero."""

from __future__ import annotations

from history.group_summaries import groups_of
from history.metrics import shipped_metrics
from history.model import Move
from presentation.findings import groups_frame, moves_frame, records
from presentation.heat import marks_of
from presentation.near_zero import change_of, interval_of, median_change, worst_change
from presentation.trends import Trend, trend_lines
from reports.pages.finding import effects, move_rows
from tests.builders import finding, move, series_key

METRICS = shipped_metrics()


def reads() -> Move:
    of_test = move(series_key("point-query", "rKB/o"), 0.0, 100.0)
    return of_test.model_copy(update={"after": 0.5, "near_zero": True})


def test_a_change_near_zero_has_levels_and_no_interval() -> None:
    assert (change_of(reads()), interval_of(reads())) == ("0 → 0.5 KB", "–")
    of_test = move(series_key("scan"), 100.0, -5.6)
    assert (change_of(of_test), interval_of(of_test)) == ("−5.6 %", "−5.8 to −5.4 %")


def test_tables_pages_and_charts_have_no_percentage_of_nothing() -> None:
    slower = move(series_key("point-query"), 1000.0, 5.0)
    told = finding(moves=[slower, reads()])
    told = told.model_copy(update={"groups": groups_of(told.moves, {})})
    groups = {row["metric"]: row for row in records(groups_frame(told, METRICS))}
    assert (median_change(groups["rKB/o"]), worst_change(groups["rKB/o"])) == ("–", "0 → 0.5")
    assert (median_change(groups["insn/o"]), worst_change(groups["insn/o"])) == ("–", "+5.0 %")
    assert list(moves_frame(told, METRICS)["near_zero"]) == [False, True]
    rows = {row["metric"]: row for row in move_rows(told, METRICS)}
    assert (rows["rKB/o"]["change"], rows["rKB/o"]["interval"]) == ("0 → 0.5 KB", "–")
    assert len(effects(told.moves)["effects"]) == 1
    line = trend_lines([Trend(move=reads(), levels=(0.0, 0.5))], ["17.4", "17.5"], "17.5")[1]
    assert "0 → 0.5 KB" in line and "%" not in line
    (mark,) = marks_of([told])[reads().key.id].values()
    assert mark.said == "0 → 0.5 KB"


def test_a_group_of_both_kinds_is_told_in_percent() -> None:
    both = [reads(), move(series_key("hot-points", "rKB/o"), 2.0, 8.0, group=reads().group)]
    (group,) = groups_of(both, {})
    assert (group.moved, group.median_pct, group.worst_test, group.worst_levels) == (2, 8.0, "hot-points", None)
    quiet = {"moved": 0, "median_pct": 0.0, "worst_pct": 0.0, "worst_before": float("nan")}
    assert (median_change(quiet), worst_change(quiet)) == ("–", "–")
