"""What the overview opens with."""

from __future__ import annotations

import random
import re
from datetime import date
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from history.metrics import shipped_metrics
from history.model import Cause, Finding
from history.versions import version_key
from presentation.ranking import BETWEEN_MAJORS, POINT_RELEASES
from reports.pages.finding_summary import finding_summary
from reports.pages.verdicts import MAX_FOLDED, MAX_VERDICTS, Section, verdict_sections
from tests.builders import finding

METRICS = shipped_metrics()
DATES = {("postgres", f"17.{n}"): date(2024 + n // 4, 2 + n % 4 * 3, 8) for n in range(8)}


def sections(*findings: Finding) -> list[Section]:
    return verdict_sections([finding_summary(one, METRICS) for one in findings], DATES, METRICS)


def opened(*findings: Finding) -> list[str]:
    return [verdict.row.name for section in sections(*findings) for verdict in section.verdicts]


def test_newest_first_by_date_and_then_by_version() -> None:
    """A release that nobody dated stands below those with a date, the highest version first."""
    mysql = [finding(f"8.0.{n}", "8.0.1", dbms="mysql", line="8.0", changes={"insert": 50.0 + n}) for n in (9, 30, 28)]
    small = finding("17.6", "17.5", changes={"insert": 1.0})
    assert opened(*mysql, finding("17.3", "17.2", changes={"insert": 90.0}), small) == [
        "postgres 17.6", "postgres 17.3", "mysql 8.0.30", "mysql 8.0.28", "mysql 8.0.9",
    ]  # fmt: skip


def test_a_change_has_one_verdict_and_what_got_worse_speaks_for_it() -> None:
    worse = finding(tier="provisional", changes={"insert": 1.0})
    better = finding(kind="improvement", changes={"scan": 60.0})
    ((section,),) = [sections(better, worse)]
    (verdict,) = section.verdicts
    assert (verdict.row.finding, [other.finding for other in verdict.beside]) == (worse, [better])
    assert verdict.released == "2025-05-08" and section.folded == ()


def test_what_is_no_releases_doing_is_folded() -> None:
    refuted, better, machine, built = (
        finding("17.5", tier="unconfirmed"),
        finding("17.4", "17.3", kind="improvement"),
        finding("17.3", "17.2", kind="environment"),
        finding("17.2", "17.1").model_copy(update={"cause": "toolchain"}),
    )
    (section,) = sections(refuted, better, machine, built)
    assert section.verdicts == () and len(section.folded) == 4
    assert opened(refuted, finding("17.1", "17.0")) == ["postgres 17.1"]


def test_a_step_between_majors_stands_apart_and_has_no_date() -> None:
    """That of 17.6 says nothing of when 17 came; the newer line goes first."""
    majors = [finding(new, old, line="majors") for new, old in (("16.9", "15.9"), ("17.6", "16.9"))]
    point, major = sections(*majors, finding("17.5"))
    assert (point.title, major.title) == (POINT_RELEASES, BETWEEN_MAJORS)
    assert [verdict.row.name for verdict in major.verdicts] == ["postgres 16 → 17", "postgres 15 → 16"]
    assert [verdict.released for verdict in major.verdicts] == ["", ""]


def test_a_step_between_two_lines_is_one_change_whatever_releases_stood_for_them() -> None:
    """Two configs measured other releases of 16 and 17."""
    older, newer = (
        finding("17.5", "16.8", line="majors"),
        finding("17.6", "16.9", line="majors", changes={"insert": 20.0}),
    )
    ((verdict,),) = [section.verdicts for section in sections(older, newer)]
    assert (verdict.row.finding, [other.finding for other in verdict.beside]) == (newer, [older])


def test_many_are_folded_and_the_rest_is_counted() -> None:
    every = [finding(f"{line}.{n}", f"{line}.{n - 1}", line=str(line)) for line in range(10, 18) for n in range(1, 9)]
    (section,) = sections(*every)
    assert (len(section.verdicts), len(section.folded)) == (MAX_VERDICTS, MAX_FOLDED)
    assert section.more == len(every) - MAX_VERDICTS - MAX_FOLDED


CAUSES: st.SearchStrategy[Cause] = st.sampled_from(["product", "toolchain", "machine"])
FINDINGS = st.lists(
    st.builds(
        lambda release, kind, tier, cause, line: finding(
            f"{line}.{release}", f"{line}.{release - 1}", line=str(line), kind=kind, tier=tier
        ).model_copy(update={"cause": cause}),
        st.integers(1, 7),
        st.sampled_from(["regression", "drift", "environment", "improvement"]),
        st.sampled_from(["confirmed", "provisional", "unconfirmed"]),
        CAUSES,
        st.sampled_from([16, 17]),
    ),
    max_size=12,
    unique_by=lambda one: one.key,
)


@given(FINDINGS, st.randoms())
def test_every_finding_is_shown_once_in_an_order_of_its_own(findings: list[Finding], chance: random.Random) -> None:
    made = sections(*findings)
    shown = [
        row.finding.key
        for section in made
        for row in (*(r for v in section.verdicts for r in (v.row, *v.beside)), *section.folded)
    ]
    assert len(shown) + sum(section.more for section in made) == len(findings) and len(set(shown)) == len(shown)
    order = [verdict.row.name for section in made for verdict in section.verdicts]
    assert order == opened(*chance.sample(findings, len(findings))) and len(set(order)) == len(order)
    dated = [verdict.released for section in made for verdict in section.verdicts if verdict.released]
    undated = [v.row.finding.release for section in made for v in section.verdicts if not v.released]
    assert dated == sorted(dated, reverse=True)
    assert undated == sorted(undated, key=lambda version: version_key("postgres", version), reverse=True)


def test_the_overview_opens_with_them(built: Path) -> None:
    text = (built / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'<th scope="row"><span class="shape[^>]*>[^<]*</span> <a href="[^"]*">([^<]+)</a>', text)
    assert links == ["postgres 17.5", "mysql 8.0.30", "mysql 8.0.28", "postgres 17.3"]
    folded = text[text.index("<details>") : text.index("</details>")]
    assert "postgres 17.3" in folded and "postgres 17.5" not in folded
    assert "released 2025-12-25" in text and "insn/o" not in text[: text.index("</table>")]
    assert "point-query needs 3.0 % more instructions" in text or "needs 3.0 % more instructions" in text
    assert "provisional" not in text and ">suspected<" in text
