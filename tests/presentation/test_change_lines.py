"""One change in several lines, as rows and a sentence, and on the pages."""

from __future__ import annotations

from pathlib import Path

from history.model import ChangeLine, ExplainedStep, Finding, ProbableLine
from pointdrop.cli.detect_views import findings_for_people
from presentation.addresses import of_finding
from presentation.change_lines import how_sure, line_rows, probably_affected, told_elsewhere
from presentation.sentences import TIER_WORDS
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


def test_a_line_that_only_a_step_between_majors_shows_is_written_as_that_step() -> None:
    between = ChangeLine.of(finding("14.24", "13.23", line="majors", changes=CHANGES), "14", "hot-points", "insn/o")
    assert how_sure("postgres", between) == f"{TIER_WORDS[between.tier]}, between majors 13 → 14"
    assert how_sure("postgres", ChangeLine.of(OLD, "17", "hot-points", "insn/o")) == TIER_WORDS[OLD.tier]


def test_what_is_told_elsewhere_says_where_and_why() -> None:
    lead, member = tied()
    assert told_elsewhere(lead) == ("", ()) and told_elsewhere(member) == ("the same change as", (lead.key,))
    majors = finding("18.6", "17.11", line="majors", changes=CHANGES)
    steps = tuple(
        ExplainedStep(key=move.key, change_pct=4.0, explained_pct=4.0, rest_pct=0.0, by=(lead.key,), whole=True)
        for move in majors.moves
    )
    keys = (lead.key, "postgres/18/18.4/regression")
    explained = majors.model_copy(update={"explained": steps, "explained_by": keys})
    assert told_elsewhere(explained) == ("explained by", keys), "two changes are not the same change"
    rows = findings_for_people([lead, member, explained], METRICS)
    titles = {row["finding"]: row["title"] for of_section in rows.values() for row in of_section}
    assert titles[member.key].endswith(f"; the same change as {lead.key}")
    assert titles[majors.key].endswith("; explained by postgres/18/18.2/regression and postgres/18/18.4/regression")


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
    assert "The same change came to 17.5." in (tmp_path / "index.html").read_text()
    listed = (tmp_path / "findings" / "index.html").read_text()
    assert of_finding(member.key) in listed and "; the same change as <a" in listed
