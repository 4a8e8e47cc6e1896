"""Findings, moves, groups and functions as frames."""

from __future__ import annotations

import math

from history.metrics import shipped_metrics
from history.model import FunctionChange, GroupSummary
from presentation.findings import (
    FINDING_COLUMNS,
    FUNCTION_COLUMNS,
    GROUP_COLUMNS,
    MOVE_COLUMNS,
    finding_record,
    findings_frame,
    functions_frame,
    groups_frame,
    moves_frame,
    records,
)
from tests.builders import finding, move, series_key

METRICS = shipped_metrics()


def test_frames_without_rows_have_their_columns_and_types() -> None:
    quiet = finding().model_copy(update={"moves": (), "groups": ()})
    for table, columns in (
        (findings_frame([], METRICS), FINDING_COLUMNS),
        (findings_frame([quiet], METRICS), FINDING_COLUMNS),
        (moves_frame(quiet, METRICS), MOVE_COLUMNS),
        (groups_frame(quiet, METRICS), GROUP_COLUMNS),
        (functions_frame(()), FUNCTION_COLUMNS),
    ):
        assert list(table.columns) == list(columns) and table.empty
        dtypes = {name: "object" if kind == "str" else kind for name, kind in columns.items()}
        assert {name: str(dtype) for name, dtype in table.dtypes.items()} == dtypes


def test_a_finding_is_one_row_of_its_headline() -> None:
    (row,) = records(findings_frame([finding()], METRICS))
    assert (row["finding"], row["metric"], row["tests"]) == ("postgres/17/17.5/regression", "insn/o", 2)
    assert (row["median_pct"], row["worst_pct"], row["worst_test"]) == (4.0, 4.9, "hot-points")
    assert row["title"].startswith("postgres 17.5: hot-points needs 4.9 % more instructions")


def test_findings_are_in_the_order_in_which_people_should_read_them() -> None:
    findings = [
        finding("17.1", changes={"insert": 1.0}),
        finding("17.2", changes={"insert": 9.0}),
        finding("17.3", tier="provisional", changes={"insert": 30.0}),
        finding("17.4", "16.8", line="majors", changes={"insert": 60.0}),
    ]
    assert list(findings_frame(findings, METRICS)["release"]) == ["17.2", "17.1", "17.3", "17.4"]


def test_the_moves_of_the_headline_come_first_the_largest_before_the_others() -> None:
    rate = move(series_key("scan", "qps"), 1000.0, -50.0)
    better = move(series_key("insert", "insn/o"), 1000.0, -60.0)
    counted = finding(changes={"point-query": 3.1, "hot-points": 4.9})
    table = moves_frame(counted.model_copy(update={"moves": (rate, better, *counted.moves)}), METRICS)
    assert list(table["test"]) == ["hot-points", "point-query", "scan", "insert"] or list(table["test"]) == [
        "hot-points", "point-query", "insert", "scan",
    ]  # fmt: skip
    assert list(table["test"])[:2] == ["hot-points", "point-query"]
    assert math.isclose(table.loc[0, "low_pct"], 4.7) and table.loc[0, "series"].endswith("hot-points|insn/o")


def test_a_q_value_that_the_detector_did_not_give_is_nan() -> None:
    unsure = move(series_key("scan"), 1000.0, 5.0).model_copy(update={"q_value": None})
    assert math.isnan(moves_frame(finding(moves=[unsure]), METRICS).loc[0, "q_value"])


def test_quiet_groups_are_shown_in_the_headline_metric_only() -> None:
    quiet = [
        GroupSummary(
            server="local", metric=metric, group="load", moved=0, tests=2, median_pct=0.0, worst_pct=0.0, worst_test=""
        )
        for metric in ("insn/o", "qps")
    ]
    counted = finding(changes={"point-query": 3.1, "range-covered": 9.9})
    table = groups_frame(counted.model_copy(update={"groups": (*quiet, *counted.groups)}), METRICS)
    assert list(table["group"]) == ["range, part 1", "point, part 1", "load"]
    assert list(table["moved"]) == [1, 1, 0] and set(table["metric"]) == {"insn/o"}


def test_functions_are_the_largest_difference_first() -> None:
    changes = [
        FunctionChange(test="scan", function=name, before=before, after=after)
        for name, before, after in (("a", 10.0, 11.0), ("b", 100.0, 50.0), ("c", 0.0, 20.0))
    ]
    table = functions_frame(changes)
    assert list(table["function"]) == ["b", "c", "a"] and list(table["difference"]) == [-50.0, 20.0, 1.0]


def test_the_json_of_a_finding_has_the_headline() -> None:
    record = finding_record(finding(), METRICS)
    assert record["headline"]["metric"] == "insn/o" and record["headline"]["median_pct"] == 4.0
    assert len(record["moves"]) == 2
    assert finding_record(finding().model_copy(update={"moves": ()}), METRICS)["headline"] == {}
