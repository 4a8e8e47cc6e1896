"""One change in several lines, through the store and the detector: rows, steps between majors, lines not measured.

The figures are those of a real night: the fix that turned `pg_mblen` into `pg_mblen_with_len` came to five lines of
Postgres on one day, and was found as 17.8, as 18.2 and as 14.24 against 13.23.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from alerts.settings import AlertSettings
from alerts.subject import Subject, subjects
from detector import DetectorSettings
from history.model import Finding
from history.store import Store
from pointdrop.cli.detect_views import finding_text
from pointdrop.jobs.detect import find
from pointdrop.jobs.summary import count_findings
from presentation.findings import findings_frame
from tests.alerts.scenarios import MULTI_BYTE_FUNCTIONS, MULTI_BYTE_MEASURED, MULTI_BYTE_RELEASES, multi_byte
from tests.builders import METRICS

NEWEST, OLDER, BETWEEN = (
    "postgres/18/18.2/regression",
    "postgres/17/17.8/regression",
    "postgres/majors/14.24/regression",
)
ALERTS = AlertSettings()
Detect = Callable[..., dict[str, Finding]]


@pytest.fixture
def detect(tmp_path: Path) -> Detect:
    """The findings by key of a history that `multi_byte` writes with these arguments."""

    def found(**arguments: object) -> dict[str, Finding]:
        with Store.open(f"sqlite:///{tmp_path / 'history.db'}") as store:
            multi_byte(store, **arguments)  # type: ignore[arg-type]
            findings = find(list(store.series()), DetectorSettings(), store)
            store.append_detection(findings, "test")
            assert store.findings() == findings, "what is stored is read back"
        return {finding.key: finding for finding in findings}

    return found


def filed(findings: dict[str, Finding]) -> list[Subject]:
    return subjects(findings.values(), ALERTS.filing.kinds, METRICS)


def test_the_fix_of_five_lines_is_one_change(detect: Detect) -> None:
    findings = detect()
    assert findings.keys() == {NEWEST, OLDER, BETWEEN}
    lead, older, between = (findings[key] for key in (NEWEST, OLDER, BETWEEN))
    assert [(row.line, row.previous, row.release, row.finding) for row in lead.lines] == [
        ("17", "17.7", "17.8", OLDER),
        ("14", "13.23", "14.24", BETWEEN),
    ]
    assert {(row.test, row.metric) for row in lead.lines} == {("scan.range100", "insn/o")}
    assert all(43 < row.change_pct < 46 for row in lead.lines)
    assert [(row.line, row.release) for row in lead.probably_affected] == [("16", "16.12"), ("15", "15.16")]
    assert (older.same_as, older.lines, lead.same_as) == (NEWEST, (), "")
    assert any("functions and sizes agree to" in line and "same day" in line for line in lead.evidence)
    assert {(one.key.test, one.whole, one.by) for one in between.explained} == {
        ("scan.range100", True, (NEWEST,)),
        ("insert.range100", True, (NEWEST,)),
    }
    assert between.explained_by == (NEWEST,) and not between.folded_under
    assert {move.key.test for move in between.moves} == {"point-query.range100", "random-points.range100"}
    assert "2 of 4 moves are left out for that." in between.evidence
    assert [row.between_majors for row in lead.lines] == [False, True]
    assert any(
        "The change at 18.2 explains all of the +4" in line and "in scan.range100 (insn/o)." in line
        for line in between.evidence
    )
    assert not {change.test for change in between.functions} & {"scan.range100", "insert.range100"}


def test_it_has_one_issue_and_what_is_left_between_majors_another(detect: Detect) -> None:
    lead, between = filed(detect())
    assert (lead.key, [member.key for member in lead.members]) == (NEWEST, [OLDER])
    assert (between.key, between.members) == ("postgres/majors/14/regression", ())


def test_a_step_between_majors_that_is_explained_whole_is_told_by_its_change_alone(detect: Detect) -> None:
    findings = detect(majors={})
    assert findings[BETWEEN].folded_under == NEWEST and findings[BETWEEN].moves
    (subject,) = filed(findings)
    assert {member.key for member in subject.members} == {OLDER, BETWEEN}
    assert sum(count_findings(list(findings.values())).values()) == 1
    text = finding_text(findings[BETWEEN], METRICS)
    assert f"explained by {NEWEST}" in text
    table = findings_frame(findings.values(), METRICS).set_index("finding")
    assert table["folded_under"].to_dict() == {NEWEST: "", OLDER: NEWEST, BETWEEN: NEWEST}


def test_the_same_tests_by_other_functions_are_another_change(detect: Detect) -> None:
    other = {"scan": {"ExecScan": (700_000.0, 2_100_000.0)}, "insert": {"ExecInsert": (3_000.0, 5_000.0)}}
    findings = detect(functions={"17": other})
    assert not findings[OLDER].same_as
    assert "17" not in {row.line for row in findings[NEWEST].lines}
    assert {subject.key for subject in filed(findings)} >= {NEWEST, OLDER}


def test_a_line_that_was_measured_around_the_day_and_did_not_move_is_not_suspected(detect: Detect) -> None:
    measured = {**MULTI_BYTE_MEASURED, "16": ("16.9", "16.10", "16.11", "16.12", "16.13", "16.15")}
    fixed = {line: release for line, release in MULTI_BYTE_RELEASES.items() if line != "16"}
    findings = detect(measured=measured, fixed=fixed)
    assert not any(finding.line == "16" for finding in findings.values())
    assert [row.line for row in findings[NEWEST].probably_affected] == ["15"]


def test_what_came_to_both_majors_explains_no_step_between_them(detect: Detect) -> None:
    findings = detect(majors={"18": {"scan": 12.0}})
    step = findings["postgres/majors/18.6/regression"]
    assert [round(move.change_pct) for move in step.moves if move.key.test == "scan.range100"] == [12]
    assert (step.explained, step.explained_by, step.folded_under) == ((), (), "")


@pytest.mark.parametrize(("before", "left"), [(0.0, False), (10.0, True)])
def test_a_release_of_the_newer_line_alone_explains_its_part(detect: Detect, before: float, left: bool) -> None:
    """The fix came to 18 alone; beside it, 18.0 may have cost as much again."""
    findings = detect(fixed={"18": "18.2"}, majors={"18": {"scan": before}})
    step = findings["postgres/majors/18.6/regression"]
    (scan,) = (one for one in step.explained if one.key.test == "scan.range100")
    assert scan.by == (NEWEST,) and scan.explained_pct == pytest.approx(44, abs=1)
    assert scan.rest_pct == pytest.approx(before, abs=1) and scan.whole is not left
    assert step.folded_under == ("" if left else NEWEST)
    assert len(filed(findings)) == 1 + left
    if left:
        assert any(f"; +{before:.1f} % is left" in line for line in step.evidence)


def test_a_change_that_the_newer_line_lacks_explains_no_step_to_it(detect: Detect) -> None:
    measured = {"16": ("16.15",), "17": MULTI_BYTE_MEASURED["17"], "18": ("18.6",)}
    findings = detect(measured=measured, fixed={"17": "17.8", "16": "16.12"}, majors={})
    assert findings.keys() == {OLDER, "postgres/majors/18.6/improvement"}, "18 lacks the fix, which nothing explains"
    assert findings[OLDER].lines == ()


def test_functions_decide_what_a_step_between_majors_shows(detect: Detect) -> None:
    other = {"scan": {"ExecScan": (700_000.0, 2_100_000.0)}, "insert": {"ExecInsert": (3_000.0, 5_000.0)}}
    findings = detect(functions={"13": other, "14": other})
    assert findings[BETWEEN].explained == ()
    assert "scan.range100" in {move.key.test for move in findings[BETWEEN].moves}
    assert MULTI_BYTE_FUNCTIONS["scan"].keys() & {change.function for change in findings[NEWEST].functions}
