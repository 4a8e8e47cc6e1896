"""What sysbench prints is read once and right: captured outputs, and the same numbers whatever the run was."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.errors import WorkloadFailed
from runners.sysbench.output import failure, parse_plans, parse_report, parse_second, plan_digest

GOLDEN = Path(__file__).parent / "golden"
WITH_CHECKPOINT = (GOLDEN / "read-only-with-checkpoint.txt").read_text()


def test_statistics_after_the_checkpoint_are_meant() -> None:
    report = parse_report(WITH_CHECKPOINT)
    first, last = WITH_CHECKPOINT.split("SQL statistics:")[1:]
    assert f"total:                           {report.queries}" in last
    assert f"total:                           {report.queries}" not in first
    assert report.seconds_measured == pytest.approx(3.0, abs=0.1), "four seconds, one of them warm-up"
    assert abs(report.queries - 16 * report.events) < 16, "10 points, 4 ranges, BEGIN and COMMIT, one event cut in two"


def test_seconds_and_histogram_are_kept() -> None:
    report = parse_report(WITH_CHECKPOINT)
    assert [second.at_s for second in report.seconds] == [1, 2, 3, 4]
    assert sum(count for _, count in report.histogram) == report.events
    values = [value for value, _ in report.histogram]
    assert values == sorted(set(values))
    assert 0 < report.latency_sum_ms / report.events <= report.latency_max_ms


def test_what_is_no_second_is_none() -> None:
    assert parse_second("[ 1s ] Checkpoint report:") is None
    assert parse_second("Threads started!") is None


def test_the_counted_window_is_read() -> None:
    counted = parse_report(WITH_CHECKPOINT + "counted: pid=812 events=100 statements=1600\n").counted
    assert counted is not None
    assert (counted.pid, counted.events, counted.statements) == (812, 100, 1600)
    assert parse_report(WITH_CHECKPOINT).counted is None


@pytest.mark.parametrize("cut", [0, 400, WITH_CHECKPOINT.rindex("queries:")])
def test_output_that_is_cut_off_is_an_error_and_never_a_number(cut: int) -> None:
    with pytest.raises(WorkloadFailed, match="sysbench printed no"):
        parse_report(WITH_CHECKPOINT[:cut])


def test_a_failure_is_told_by_its_fatal_lines_once() -> None:
    text = "sysbench 1.0.20\nFATAL: no table\nFATAL: no table\nFATAL: `thread_run' failed\n"
    assert failure(text) == "FATAL: no table\nFATAL: `thread_run' failed"


def test_every_statement_of_a_transaction_has_its_plan() -> None:
    plans = parse_plans((GOLDEN / "explain-read-only-postgres-17.txt").read_text())
    assert [plan.statement for plan in plans] == ["point", "simple", "sum", "order", "distinct"]
    assert plans[2].text.splitlines()[0] == "Aggregate"
    assert len({plan.digest for plan in plans}) == 5


def test_a_plan_is_the_same_with_other_literals_and_estimates() -> None:
    assert plan_digest(["Index Cond: (id = ANY ('{1,2,3}'::integer[]))"]) == plan_digest(
        ["Index Cond: (id = ANY ('{25001,25002}'::integer[]))"]
    )
    assert plan_digest(["Seq Scan on sbtest1"]) != plan_digest(["Index Scan using k_1 on sbtest1"])


def test_mysql_and_mariadb_plans_leave_estimates_out() -> None:
    before = "1\tSIMPLE\tsbtest1\tNULL\trange\tPRIMARY\tPRIMARY\t4\tNULL\t100\t100.00\tUsing where"
    more_rows = "1\tSIMPLE\tsbtest1\tNULL\trange\tPRIMARY\tPRIMARY\t4\tNULL\t7\t33.33\tUsing where"
    other_key = "1\tSIMPLE\tsbtest1\tNULL\trange\tPRIMARY\tk_1\t4\tNULL\t100\t100.00\tUsing where"
    assert plan_digest([before]) == plan_digest([more_rows])
    assert plan_digest([before]) != plan_digest([other_key]) or "k_1" not in other_key
    assert plan_digest(["1\tS\tt\trange\tP\tP\t4\tN\t99\tw"]) == plan_digest(["1\tS\tt\trange\tP\tP\t4\tN\t3\tw"])
