"""What the overview opens with: one verdict a change, newest first, with the rest folded below it. Pure.

A change is a boundary, whatever got worse or better at it; what got worse speaks for it. Changes are ordered by the
date of the release; those without a date follow, DBMS by DBMS, the highest version first. Steps between majors have a
section of their own and no date: theirs would be that of the newest point release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from history.metrics import MetricRegistry
from history.model import MAJORS, NOT_FILED, Finding, Series
from history.versions import sort_versions
from presentation.ranking import BETWEEN_MAJORS, POINT_RELEASES, finding_order, section_of, severity
from reports.pages.finding_summary import FindingSummary

#: Verdicts of a section that stand open, and findings folded below them; the findings page has all.
MAX_VERDICTS = 8
MAX_FOLDED = 40

Dates = Mapping[tuple[str, str], date]
"""By DBMS and version."""


@dataclass(frozen=True)
class Verdict:
    """One change: the finding that speaks for it, and the others at its boundary."""

    row: FindingSummary
    beside: tuple[FindingSummary, ...]
    released: str
    """The day of the release, or empty."""


@dataclass(frozen=True)
class Section:
    """The verdicts of point releases, or of the steps between majors."""

    title: str
    verdicts: tuple[Verdict, ...]
    folded: tuple[FindingSummary, ...]
    more: int
    """Findings that only the findings page has."""


def sections_of(rows: Iterable[FindingSummary]) -> dict[str, list[FindingSummary]]:
    """Rows by the title of the section they stand in, in their order; sections without a row are left out."""
    by_title: dict[str, list[FindingSummary]] = {POINT_RELEASES: [], BETWEEN_MAJORS: []}
    for row in rows:
        by_title[section_of(row.finding.line)].append(row)
    return {title: of_section for title, of_section in by_title.items() if of_section}


def verdict_sections(rows: Iterable[FindingSummary], dates: Dates, metrics: MetricRegistry) -> list[Section]:
    """What the overview shows of `rows`, every finding in its order."""
    sections = []
    for title, of_section in sections_of(rows).items():
        verdicts = newest_first(changes(of_section, metrics), dates, metrics)
        told = [verdict for verdict in verdicts if got_slower(verdict.row.finding)][:MAX_VERDICTS]
        shown = {row.finding.key for verdict in told for row in (verdict.row, *verdict.beside)}
        rest = [row for row in of_section if row.finding.key not in shown]
        folded = tuple(rest[:MAX_FOLDED])
        sections.append(Section(title, tuple(told), folded, len(rest) - len(folded)))
    return sections


def got_slower(finding: Finding) -> bool:
    """Whether a release is to blame, as far as is known: nothing refuted, and no other builder's compiler."""
    slower = finding.kind in ("regression", "drift")
    return slower and finding.tier != "unconfirmed" and finding.cause not in NOT_FILED


def changes(rows: Iterable[FindingSummary], metrics: MetricRegistry) -> list[list[FindingSummary]]:
    """The findings of each boundary, the one that speaks for it first: what got worse, unless it was refuted."""
    by_boundary: dict[tuple[str, str, str], list[FindingSummary]] = {}
    for row in rows:
        # Between majors the lines make the boundary: two configs may have measured other releases of them.
        by_boundary.setdefault((row.finding.dbms, row.finding.line, row.step), []).append(row)

    def place(row: FindingSummary) -> tuple[bool, object, str]:
        return not got_slower(row.finding), severity(row.finding, row.finding.moves, metrics), row.finding.key

    return [sorted(of_boundary, key=place) for of_boundary in by_boundary.values()]


def newest_first(
    of_boundaries: Sequence[Sequence[FindingSummary]], dates: Dates, metrics: MetricRegistry
) -> list[Verdict]:
    """Changes as the module's text orders them; those of one day in the order of findings."""
    versions: dict[str, list[str]] = {}
    for row, *_ in of_boundaries:
        versions.setdefault(row.finding.dbms, []).append(row.finding.release)
    ranks = {
        (dbms, version): rank
        for dbms, named in versions.items()
        for rank, version in enumerate(sort_versions(dbms, named))
    }

    def place(verdict: Verdict) -> tuple[bool, int, str, int, object]:
        finding = verdict.row.finding
        order = finding_order(finding, metrics)
        if verdict.released:
            return False, -date.fromisoformat(verdict.released).toordinal(), "", 0, order
        return True, 0, finding.dbms, -ranks[finding.dbms, finding.release], order

    def verdict(row: FindingSummary, *beside: FindingSummary) -> Verdict:
        known = None if row.finding.line == MAJORS else dates.get((row.finding.dbms, row.finding.release))
        return Verdict(row, beside, known.isoformat() if known else "")

    return sorted((verdict(*rows) for rows in of_boundaries), key=place)


def release_dates(series: Iterable[Series]) -> Dates:
    """The days on which releases came out, as far as the history knows."""
    return {
        (member.key.dbms, point.version): point.released
        for member in series
        for point in member.points
        if point.released
    }
