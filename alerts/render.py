"""Finding and context to the text of an issue. Pure.

A value the issue must show and that is not there raises IncompleteIssue: no issue has a hole. What was not measured
(no counted instructions, no plans, no storage metrics) has no section. Bodies stay below BODY_BUDGET: the
least needed sections go first, whole, and the text says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from alerts.context import Context
from alerts.errors import IncompleteIssue
from alerts.marker import marker
from alerts.measurable import Measurable, measured_here
from alerts.repeat import repeat
from alerts.safetext import Markdown, code, fenced
from alerts.settings import AlertSettings
from alerts.subject import Subject
from alerts.suspects import suspect_range
from alerts.tables import instruction_lines, operation_lines, sparkline_lines
from alerts.templating import render_block, template
from alerts.trackers import Draft
from alerts.words import (
    Headline,
    beside_in_words,
    count,
    dbms_name,
    headline,
    issue_title,
    leads,
    listing,
    metric_place,
    metric_words,
    middle,
    percent,
    signed,
)
from history.model import Finding, GroupSummary, Move

#: GitHub takes 65,536 characters; the rest is for people's notes below the text and for multi-byte bars. In bytes.
BODY_BUDGET = 60_000
#: Rows of the group table that are shown; a finding over 42 tests, 2 servers and 8 metrics has about 80.
GROUP_ROWS = 60


def address(key: str) -> str:
    """A key as part of a page's address, escaped as the site escapes it: `~` and the bytes in hex."""
    parts = [
        re.sub(r"[^A-Za-z0-9._-]", lambda m: "".join(f"~{b:02x}" for b in m[0].encode()), p) for p in key.split("/")
    ]
    return "/".join(re.sub(r"^\.+", lambda m: "~2e" * len(m[0]), part) or "~" for part in parts)


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
    can: Measurable | None = None,
) -> Draft:
    """The issue for `subject`; `also` are older keys it answers for, `can` what can be measured, everything if None.

    IncompleteIssue names what is missing.
    """
    finding = subject.finding
    lead = headline(finding)
    missing = _missing(finding, context, lead)
    if missing or lead is None:
        raise IncompleteIssue(subject.key, missing)
    page = template("issue.md.j2")
    values = {
        "first_sentence": _first_sentence(finding, lead),
        "second_sentence": _second_sentence(finding, lead),
        "groups": _group_rows(finding, lead)[:GROUP_ROWS],
        "sparklines": fenced(sparkline_lines(context.moved, context.releases, finding.release)),
        "evidence": finding.evidence,
        "warnings": [_warning(finding, warning) for warning in finding.warnings],
        "suspects": suspect_range(finding, settings),
        "functions": sorted(finding.functions, key=lambda f: (-abs(f.after - f.before), f.function, f.test))[
            : settings.text.functions
        ],
        "plans": finding.plans[: settings.text.plans],
        "beside": [group for other in subject.beside for group in other.groups if group.moved],
        "repeat": repeat(finding, lead, context, settings, can),
        "measurable": measured_here(finding, can),
        "links": _links(finding, settings),
    }

    def block(name: str, keep: int) -> Section:
        return Section(name, render_block(page, name, values), keep)

    sections = [
        Section("marker", Markdown(marker(subject.key, also)), REQUIRED),
        block("summary", REQUIRED),
        block("groups", REQUIRED),
        block("sparklines", 60),
        block("evidence", REQUIRED),
        block("suspects", REQUIRED),
        *([block("functions", 50)] if values["functions"] else []),
        *([block("plans", 30)] if values["plans"] else []),
        *([block("beside", 20)] if values["beside"] else []),
        *_operations(finding, context),
        block("repeat", REQUIRED),
        block("links", REQUIRED),
        block("footer", REQUIRED),
    ]
    labels = {settings.labels.issue, finding.dbms}
    if finding.kind in ("environment", "drift", "improvement"):
        labels.add(getattr(settings.labels, finding.kind))
    return Draft(
        key=subject.key,
        title=issue_title(finding, lead),
        body=within_budget(sections),
        labels=frozenset(label for label in labels if label),
    )


def within_budget(sections: list[Section], budget: int = BODY_BUDGET) -> str:
    """The sections joined by blank lines, at most `budget` bytes of UTF-8: whole sections are left out, and named."""
    kept = list(sections)
    dropped: list[str] = []

    def joined() -> str:
        parts: list[str] = [section.text for section in kept if section.text]
        if dropped:
            parts.insert(
                -1, f"Left out to stay within the size of an issue: {listing(dropped)}. The pages have all of it."
            )
        return "\n\n".join(parts)

    while len(joined().encode()) > budget:
        victim = min(kept, key=lambda section: section.keep)
        if victim.keep >= REQUIRED:
            raise ValueError(f"the required sections alone are larger than {budget} bytes")
        kept.remove(victim)
        if victim.name not in dropped:
            dropped.append(victim.name)
    return joined()


def _missing(finding: Finding, context: Context, lead: Headline | None) -> tuple[str, ...]:
    """What the issue must show and has not got."""
    have = {
        "moves": bool(finding.moves),
        "groups": bool(finding.groups) and any(group.moved for group in finding.groups),
        "headline (a moved metric counted in the groups)": lead is not None,
        "evidence": any(sentence.strip() for sentence in finding.evidence),
        "releases": len(context.releases) >= 2,
        "levels of the moved tests": bool(context.moved),
        f"a result of {finding.previous}": finding.previous in context.releases,
        f"a result of {finding.release}": finding.release in context.releases,
    }
    return tuple(name for name, there in have.items() if not there)


def _group_rows(finding: Finding, lead: Headline) -> list[GroupSummary]:
    """By metric, the headline's first, then by how much. Of groups that did not move only the headline's are there."""
    return sorted(
        (group for group in finding.groups if group.moved or group.metric == lead.metric),
        key=lambda g: (
            g.metric != lead.metric,
            metric_place(g.metric),
            g.metric,
            g.server,
            g.moved == 0,
            -abs(g.median_pct),
            g.group,
        ),
    )


def _first_sentence(finding: Finding, lead: Headline) -> Markdown:
    """What and how much."""
    words = metric_words(lead.metric)
    change = words.more if lead.change_pct > 0 else words.less
    per = " per operation" if words.noun.endswith("per operation") else ""
    name = dbms_name(finding.dbms)
    where = f"on {listing([code(s) for s in lead.servers])}"
    if lead.moved == 1 and len({move.key.test for move in _told(finding, lead)}) == 1:
        spread = f"{code(lead.worst_test)}, the only one of {count(lead.tests, 'test')} that moved {where}"
    else:
        middle_of = "" if lead.apart or lead.mixed else "median of those that moved, "
        spread = (
            f"{middle_of}{lead.moved} of {lead.tests} tests {where}; "
            f"most in {code(lead.worst_test)}: {signed(lead.worst_pct)}"
        )
    new, old = code(f"{finding.dbms} {finding.release}"), code(finding.previous)
    if finding.kind == "environment" and lead.mixed:
        return Markdown(
            f"On {listing([code(s) for s in lead.servers])} {_plain(words.noun)} of the tests changed by "
            f"**{lead.size}** since {new} was measured, and the evidence points at the "
            f"machine, not at {name} ({spread})."
        )
    if finding.kind == "environment":
        return Markdown(
            f"On {listing([code(s) for s in lead.servers])} the tests {words.verb} "
            f"**{lead.size} {change}**{per} since {new} was measured, and the evidence points at the "
            f"machine, not at {name} ({spread})."
        )
    than = f"than {'on ' if words.verb == 'need' else ''}{old}"
    slowly = " in small steps, none of them large enough alone" if finding.kind == "drift" else ""
    subject = (
        Markdown(lead.what[:1].upper() + lead.what[1:]) if re.fullmatch(r"[A-Za-z ,]+", lead.what) else code(lead.what)
    )
    return Markdown(f"{subject} on {new} {words.verb} **{lead.size} {change}**{per} {than}{slowly} ({spread}).")


def _told(finding: Finding, lead: Headline) -> list[Move]:
    """The moves that the headline is made of."""
    of_metric = [move for move in finding.moves if move.key.metric == lead.metric]
    return [move for move in of_metric if leads(finding, move)] or of_metric


def _second_sentence(finding: Finding, lead: Headline) -> Markdown:
    """What moved beside it, and against which noise."""
    told = _told(finding, lead)
    noise, mde = middle(m.noise_pct for m in told), middle(m.mde_pct for m in told)
    floor = (
        f"From release to release these tests vary by {percent(noise)} (one standard deviation); "
        f"a step of {percent(mde)} in one of them is found four times in five."
    )
    beside = beside_in_words(finding, lead)
    return Markdown(f"Also at this boundary: {_plain(beside)}. {floor}" if beside else floor)


def _warning(finding: Finding, warning: str) -> str:
    """With the number of moves it is about."""
    moves = sum(warning in move.warnings for move in finding.moves)
    return f"{warning} ({moves} of {count(len(finding.moves), 'move')})" if moves else warning


def _plain(text: str) -> str:
    """Our own words with a metric's name in them, which for a foreign metric is foreign text."""
    return text if re.fullmatch(r"[A-Za-z0-9 ,./%+−]*", text) else code(text)


def _links(finding: Finding, settings: AlertSettings) -> Markdown:
    """The page of the finding: an address when the site is published, else where the file lies."""
    path = settings.links.finding_page.format(key=address(finding.key))
    if settings.links.site:
        return Markdown(f"Charts and raw blocks: <{settings.links.site.rstrip('/')}/{path}>")
    return Markdown(f"Charts and raw blocks: {code('var/site/' + path)} after `pointdrop report build`.")


def _operations(finding: Finding, context: Context) -> list[Section]:
    """One section a table; of several, the later ones are the first to go."""
    sections = []
    for index, table in enumerate(context.tables):
        where = f"on {code(table.server)}, config {code(table.config)}, {code(table.benchmark)}"
        text = Markdown(f"**{code(table.test)}** {where}\n\n{fenced(operation_lines(table, finding.dbms))}")
        sections.append(Section("per-operation tables", text, 40 - index))
    for index, table in enumerate(context.instructions):
        where = f"on {code(table.server)}, config {code(table.config)}, {code(table.benchmark)}"
        lines = instruction_lines(table, finding.dbms)
        text = Markdown(f"**Instructions per operation** {where}\n\n{fenced(lines)}")
        sections.append(Section("instruction tables", text, 45 - index))
    return sections
