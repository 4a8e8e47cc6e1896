"""What a test of the time lane gives, from what sysbench printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.sessions.lanes import rate_of
from runners.settings import Scale, Test, load_benchmark
from runners.sysbench.output import parse_report

CATALOGUE = load_benchmark("sysbench", Path(__file__).parents[3] / "configs")
SCALE = Scale(tables=1, rows=50_000_000)
#: Seconds of warm-up and of measurement in the profile `full`.
WARMUP_S, SCAN_S = 30.0, 60.0

STATISTICS = """SQL statistics:
    transactions:                        {events}      ({rate:.2f} per sec.)
    queries:                             {events}      ({rate:.2f} per sec.)
    ignored errors:                      0      (0.00 per sec.)
Latency (ms):
         avg:                                {each_ms:.2f}
         max:                                {each_ms:.2f}
         99th percentile:                    {each_ms:.2f}
         sum:                                {sum_ms:.2f}
"""


def named(name: str) -> Test:
    (test,) = CATALOGUE.select((name,))
    return test


def scans(each_s: float, threads: int = 1) -> str:
    """What sysbench says when a scan takes `each_s`: it counts when it ends, and the last one is waited for."""
    ends = [each_s]
    while ends[-1] < WARMUP_S + SCAN_S:
        ends.append(ends[-1] + each_s)
    counted = threads * sum(end > WARMUP_S for end in ends)
    rate = counted / (ends[-1] - WARMUP_S)
    return STATISTICS.format(events=counted, rate=rate, each_ms=1e3 * each_s, sum_ms=1e3 * each_s * counted)


@pytest.mark.parametrize("threads", [1, 12])
@pytest.mark.parametrize("each_s", [0.3, 9.99, 10.01, 11.0, 12.0, 45.0, 250.0])
def test_the_rate_of_scans_does_not_depend_on_where_the_warm_up_ends(each_s: float, threads: int) -> None:
    scale = SCALE.model_copy(update={"threads": threads})
    rate = rate_of(named("scan.range100"), parse_report(scans(each_s, threads)), scale)
    assert rate == pytest.approx(threads * SCALE.rows / 1_000 / each_s)


def test_other_tests_have_the_rate_that_sysbench_prints() -> None:
    text = STATISTICS.format(events=90_000, rate=1_500.0, each_ms=0.6, sum_ms=54_000)
    assert rate_of(named("point-query.range100"), parse_report(text), SCALE) == pytest.approx(1_500.0)
