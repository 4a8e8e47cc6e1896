"""What a page says of a finding in a line."""

from __future__ import annotations

from datetime import UTC, datetime

from history.metrics import shipped_metrics
from history.model import FindingEvent, IssueLink
from reports.pages.finding_summary import finding_summary
from tests.builders import finding, group_summaries, move, series_key

METRICS = shipped_metrics()


def test_the_metric_that_moved_in_most_tests_leads_as_in_the_issue() -> None:
    counted = finding(changes={"point-query": 3.0, "insert": 5.0})
    moves = (*counted.moves, move(series_key("point-query", "qps"), 1000.0, -20.0))
    row = finding_summary(counted.model_copy(update={"moves": moves}), METRICS)
    (change, *others) = row.changes
    assert (change.metric, change.tests, change.size) == ("insn/o", 2, "up to +5.0 %")
    assert (change.worst_pct, change.worst_test) == (5.0, "insert")
    assert [other.metric for other in others] == ["qps"]
    assert row.short == "insn/o +5.0 %"
    alike = finding_summary(counted.model_copy(update={"moves": (counted.moves[0], moves[-1])}), METRICS)
    assert alike.short == "qps −20.0 %", "among equals, throughput first"
    assert (alike.changes[0].tests, alike.changes[0].worst_test) == (1, "point-query")


def test_a_gain_in_one_metric_and_a_loss_in_another_have_their_colours() -> None:
    counted = finding(changes={"point-query": 3.0})
    faster = move(series_key("point-query", "qps"), 1000.0, 9.0)
    row = finding_summary(counted.model_copy(update={"moves": (*counted.moves, faster)}), METRICS)
    assert {change.metric: row.css_of(change) for change in row.changes} == {"insn/o": "worse", "qps": "better"}


def test_a_finding_without_series_says_so() -> None:
    row = finding_summary(finding().model_copy(update={"moves": ()}), METRICS)
    assert row.title == "postgres 17.5: no series listed" and row.changes == () and row.short == ""


def test_a_step_between_majors_is_named_by_its_lines() -> None:
    row = finding_summary(finding("14.24", "13.23", line="majors"), METRICS)
    assert (row.name, row.step, row.about) == ("postgres 13 → 14", "13 → 14", "regression, 14.24 against 13.23")
    point = finding_summary(finding(tier="provisional"), METRICS)
    assert (point.name, point.step, point.about) == ("postgres 17.5", "17.5", "regression after 17.4")
    assert point.sure == "suspected" and point.title == f"{point.name}: {point.verdict}"


def test_the_state_is_the_last_event_that_changes_one_and_the_issue_the_newest_that_can_be_followed() -> None:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    events = [FindingEvent(key="k", event=name, at=at) for name in ("filed", "snoozed", "notified")]
    links = [IssueLink(key="k", tracker="t", number=n, url=url) for n, url in enumerate(("https://a/1", "https://a/2"))]
    row = finding_summary(finding(), METRICS, events, links)
    assert (row.state, row.issue) == ("snoozed", "https://a/2")
    on_disk = IssueLink(key="k", tracker="files", number=3, url="file:///var/issues/0003.md")
    assert finding_summary(finding(), METRICS, (), [on_disk]).issue == ""
    assert finding_summary(finding(), METRICS).state == "detected"


def test_what_was_not_measured_in_between_is_named_up_to_three() -> None:
    few, many = (tuple(f"17.{point}" for point in range(count)) for count in (3, 5))
    assert finding_summary(finding(unmeasured=few), METRICS).unmeasured == "17.0, 17.1, 17.2"
    assert finding_summary(finding(unmeasured=many), METRICS).unmeasured == "17.0 to 17.4 (5 releases)"


def test_groups_are_counted_in_the_headline_metric_alone() -> None:
    counted = finding(changes={"point-query": 3.0, "insert": 5.0})
    moves = (*counted.moves, move(series_key("point-query", "cs/o"), 2.0, 20.0))
    both = counted.model_copy(update={"moves": moves, "groups": group_summaries(moves, tests=4)})
    assert finding_summary(both, METRICS).groups == "writes: 1 of 4 · point, part 1: 1 of 4"
