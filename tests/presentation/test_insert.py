"""The Insert Benchmark summary."""

from __future__ import annotations

import math

from presentation.insert import efficiency, insert_summary, is_insert

from .examples import METRICS, series

STEPS = [
    series({"1": [5000.0], "2": [4500.0], "3": [4000.0]}, "qr100", "qps"),
    series({"1": [100.0], "2": [99.0], "3": [80.0]}, "qr100", "ips"),
    series({"1": [100.0], "2": [100.0], "3": [100.0]}, "qr100", "target_ips"),
    series({"1": [80000.0], "2": [72000.0]}, "l.i0", "ips"),
    series({"1": [10.0], "2": [11.0]}, "l.i0", "cpupq"),
]


def test_a_step_that_missed_its_rate_is_void_and_relative_to_nothing() -> None:
    summary = insert_summary(STEPS, METRICS)
    assert summary is not None and summary.base == "1"
    assert list(summary.throughput.columns) == ["l.i0", "qr100"] and list(summary.throughput.index) == ["1", "2", "3"]
    assert summary.throughput["qr100"].tolist() == [5000.0, 4500.0, 4000.0]
    assert summary.ratios["qr100"].tolist()[:2] == [1.0, 0.9] and math.isnan(summary.ratios.loc["3", "qr100"])
    assert summary.void["qr100"].tolist() == [False, False, True]
    assert summary.marked(summary.ratios)["qr100"].tolist() == [1.0, 0.9, "SLA 80 %"]


def test_nothing_is_relative_to_a_void_base() -> None:
    summary = insert_summary(STEPS, METRICS, "3")
    assert summary is not None
    assert summary.base == "3" and summary.ratios["qr100"].isna().all()


def test_other_metrics_tell_the_efficiency() -> None:
    tables = efficiency(STEPS, METRICS, ["1", "2", "3"])
    assert list(tables) == ["ips", "cpupq"]  # the inserts behind queries, and CPU; the promised rate is neither
    assert tables["cpupq"]["l.i0"].tolist() == [10.0, 11.0]


def test_a_line_without_throughput_has_no_summary() -> None:
    assert insert_summary([series({"1": [1.0]}, metric="cpu/o")], METRICS) is None
    assert is_insert("insert-io") and not is_insert("sysbench")
