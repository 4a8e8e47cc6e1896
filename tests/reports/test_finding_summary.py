"""What a page says of a finding in a line."""

from __future__ import annotations

from reports.pages.brief import brief
from tests.alerts.examples import finding, move, series_key


def test_the_metric_that_moved_in_most_tests_leads_as_in_the_issue() -> None:
    counted = finding(changes={"point-query": 3.0, "insert": 5.0})
    moves = (*counted.moves, move(series_key("point-query", "qps"), 1000.0, -20.0, better="higher"))
    short = brief(counted.model_copy(update={"moves": moves}))
    assert short.headline == "2 tests: insn/o median +4.0 %, worst +5.0 % (insert)"
    assert [one.metric for one in short.metrics] == ["insn/o", "qps"]
    alike = brief(counted.model_copy(update={"moves": (counted.moves[0], moves[-1])}))
    assert alike.headline == "point-query: qps −20.0 %", "among equals, throughput first"
