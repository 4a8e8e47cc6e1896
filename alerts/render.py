"""Finding and context to the text of an issue. Pure.

A value the issue must show and that is not there raises IncompleteIssue: no issue has a hole. What was not measured
(no counted instructions, no plans, no storage metrics) has no section. Bodies stay below BODY_BUDGET: the
least needed sections go first, whole, and the text says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from alerts.context import Context, Place
from alerts.errors import IncompleteIssue
from alerts.marker import marker
from alerts.safetext import Markdown, code, fenced
from alerts.safetext import title as safe_title
from alerts.settings import AlertSettings
from alerts.subject import Subject
from alerts.templating import render_block, template
from alerts.trackers import Draft
from history.model import Finding
from presentation import sentences
from presentation.addresses import of_finding
from presentation.change_lines import how_sure, line_rows, probably_affected
from presentation.commands import commands, measurable_here, source_address
from presentation.findings import functions_frame, groups_frame, records
from presentation.headline import Headline, title
from presentation.number_format import listing
from presentation.operations import operations_text
from presentation.trades import its_way, worse_beside
from presentation.trends import trend_lines

if TYPE_CHECKING:
    from pandas import DataFrame

#: GitHub takes 65,536 characters; the rest is for people's notes below the text and for multi-byte bars. In bytes.
BODY_BUDGET = 60_000
#: Rows of the group table that are shown; a finding over 42 tests, 2 servers and 8 metrics has about 80.
GROUP_ROWS = 60


class Section(NamedTuple):
    """One block of the body; the smallest `keep` goes first when the body is too long, REQUIRED never."""

    name: str
    text: Markdown
    keep: int


REQUIRED = 100


def slug(key: str) -> str:
    """An issue's or finding's key as part of a file name or address."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", key).strip("-.")


def render(
    subject: Subject,
    context: Context,
    settings: AlertSettings,
    also: tuple[str, ...] = (),
) -> Draft:
    """The issue for `subject`; `also` are older keys it answers for. IncompleteIssue names what is missing."""
    finding, lead, metrics = subject.finding, subject.lead, settings.metrics
    missing = _missing(finding, context, lead)
    if missing or lead is None:
        raise IncompleteIssue(subject.key, missing)
    page = template("issue.md.j2")
    beside = [group for other in subject.beside for group in records(groups_frame(its_way(other), metrics))]
    values = {
        "summary": sentences.summary(finding, lead),
        "noise": sentences.context(finding, lead, metrics),
        "groups": records(groups_frame(finding, metrics))[:GROUP_ROWS],
        "lines": [(row, how_sure(finding.dbms, row)) for row in line_rows(finding, metrics)],
        "back": subject.back,
        "probable": probably_affected(finding),
        "trends": fenced(trend_lines(context.trends, context.releases, finding.release)),
        "evidence": (sentences.sureness(finding.tier), *finding.evidence),
        "warnings": sentences.warnings(finding),
        "suspects": sentences.suspect_range(finding),
        "source": source_address(settings.links.source.get(finding.dbms, ""), finding),
        "functions": records(functions_frame(finding.functions))[: settings.text.functions],
        "plans": finding.plans[: settings.text.plans],
        "beside": [group for group in beside if group["moved"]],
        "worse_beside": ", ".join(filter(None, (worse_beside(other, metrics) for other in subject.beside))),
        "commands": commands(
            finding,
            metrics,
            measurable=settings.measurable,
            dataset=context.dataset,
            source=settings.links.source.get(finding.dbms, ""),
        ),
        "measurable": measurable_here(finding, settings.measurable),
        "page": of_finding(finding.key),
        "site": settings.links.site.rstrip("/"),
    }

    def block(name: str, keep: int) -> Section:
        return Section(name, render_block(page, name, values), keep)

    sections = [
        Section("marker", Markdown(marker(subject.key, also)), REQUIRED),
        block("summary", REQUIRED),
        block("groups", REQUIRED),
        *([block("lines", REQUIRED)] if values["lines"] else []),
        block("trends", 60),
        block("evidence", REQUIRED),
        block("suspects", REQUIRED),
        *([block("functions", 50)] if values["functions"] else []),
        *([block("plans", 30)] if values["plans"] else []),
        *([block("beside", 20)] if values["beside"] else []),
        *(
            _table("per-operation tables", finding, place, table, 40 - at)
            for at, (place, table) in enumerate(context.tables)
        ),
        *(
            _table("instruction tables", finding, place, table, 45 - at)
            for at, (place, table) in enumerate(context.counted)
        ),
        block("commands", REQUIRED),
        block("links", REQUIRED),
        block("footer", REQUIRED),
    ]
    labels = {settings.labels.issue, finding.dbms}
    if finding.kind in ("environment", "drift", "improvement"):
        labels.add(getattr(settings.labels, finding.kind))
    return Draft(
        key=subject.key,
        title=safe_title(title(finding, lead)),
        body=within_budget(sections),
        labels=frozenset(label for label in labels if label),
    )


def within_budget(sections: list[Section], budget: int = BODY_BUDGET) -> str:
    """The sections joined by blank lines, at most `budget` bytes of UTF-8: whole sections are left out, and named."""
    shown = list(sections)
    dropped: list[str] = []

    def joined() -> str:
        parts: list[str] = [section.text for section in shown if section.text]
        if dropped:
            parts.insert(
                -1, f"Left out to stay within the size of an issue: {listing(dropped)}. The pages have all of it."
            )
        return "\n\n".join(parts)

    while len(joined().encode()) > budget:
        victim = min(shown, key=lambda section: section.keep)
        if victim.keep >= REQUIRED:
            raise ValueError(f"the required sections alone are larger than {budget} bytes")
        shown.remove(victim)
        if victim.name not in dropped:
            dropped.append(victim.name)
    return joined()


def _missing(finding: Finding, context: Context, lead: Headline | None) -> tuple[str, ...]:
    """What the issue must show and has not got."""
    have = {
        "moves": bool(finding.moves),
        "groups": bool(finding.groups) and any(group.moved for group in finding.groups),
        "headline (a moved metric counted in the groups)": lead is not None and bool(lead.tests),
        "evidence": any(sentence.strip() for sentence in finding.evidence),
        "releases": len(context.releases) >= 2,
        "levels of the moved tests": bool(context.trends),
        f"a result of {finding.previous}": finding.previous in context.releases,
        f"a result of {finding.release}": finding.release in context.releases,
    }
    return tuple(name for name, there in have.items() if not there)


def _table(name: str, finding: Finding, place: Place, table: DataFrame, keep: int) -> Section:
    """One table in the field's layout; of several, the later ones are the first to go."""
    # Counted instructions repeat to 0.1-0.3 %, hence three decimals.
    what, decimals = (code(place.test), 2) if place.test else (Markdown("Instructions per operation"), 3)
    where = f"on {code(place.server)}, config {code(place.config)}, {code(place.benchmark)}"
    lines = operations_text(table, finding.dbms, place.config, decimals).splitlines()
    return Section(name, Markdown(f"**{what}** {where}\n\n{fenced(lines)}"), keep)
