"""One change in several lines, as rows and a sentence, and on the pages."""

from __future__ import annotations

from pathlib import Path

from history.model import ChangeLine, Finding, ProbableLine
from presentation.addresses import of_finding
from presentation.change_lines import line_rows, probably_affected
from reports.settings import ReportSettings
from reports.site import write_site
from reports.snapshot import Snapshot, grouped_by_line
from tests.builders import METRICS, finding, history_of

CHANGES = {"point-query": 3.1, "hot-points": 4.9}
OLD = finding(changes=CHANGES)
NEW = finding("18.2", "18.1", line="18", changes={**CHANGES, "insert": 9.0})


def tied() -> tuple[Finding, Finding]:
    """18.2 leads 17.5; both tell of `hot-points`, though the insert moved more in 18.2."""
    row = ChangeLine.of(OLD, "17", "hot-points", "insn/o")
    return NEW.model_copy(update={"lines": (row,)}), OLD.model_copy(update={"same_as": NEW.key})


def test_all_rows_are_of_one_test_and_the_findings_own_is_the_first() -> None:
    lead, member = tied()
    assert [(row.line, row.release, row.test, row.change_pct) for row in line_rows(lead, METRICS)] == [
        ("18", "18.2", "hot-points", 4.9),
        ("17", "17.5", "hot-points", 4.9),
    ]
    assert line_rows(member, METRICS) == [] == line_rows(OLD, METRICS)


def test_a_line_without_that_test_has_its_largest() -> None:
    row = ChangeLine.of(finding(changes={"insert": 2.0}), "17", "hot-points", "insn/o")
    assert (row.test, row.change_pct) == ("insert", 2.0)


def test_lines_without_results_are_a_sentence() -> None:
    probable = [ProbableLine(line=line, release=f"{line}.12") for line in ("16", "15")]
    assert probably_affected(NEW) == ""
    assert probably_affected(NEW.model_copy(update={"probably_affected": probable[:1]})) == (
        "16.12 came out on the same day and has no results on both sides of it: it probably has the same change."
    )
    assert probably_affected(NEW.model_copy(update={"probably_affected": probable})).startswith(
        "16.12 and 15.12 came out on the same day and have no results"
    )


def test_pages_link_the_lines_and_the_overview_has_the_change_once(tmp_path: Path) -> None:
    lead, member = tied()
    series = [*history_of(lead, ("18.0", "18.1", "18.2", "18.3")), *history_of(member)]
    write_site(Snapshot(lines=grouped_by_line(series), findings=(member, lead)), tmp_path, ReportSettings())
    page = (tmp_path / of_finding(lead.key)).read_text()
    assert "One change, 2 lines" in page and f'href="../../../../{of_finding(member.key)}"' in page
    other = (tmp_path / of_finding(member.key)).read_text()
    assert "This is the same change as" in other and of_finding(lead.key) in other
    for name in ("index.html", "feed.xml"):
        listed = (tmp_path / name).read_text()
        assert of_finding(lead.key) in listed and of_finding(member.key) not in listed, name
    assert of_finding(member.key) in (tmp_path / "findings" / "index.html").read_text()
