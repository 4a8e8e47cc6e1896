"""A finding in a line or two, as every page that lists findings shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from history.metrics import MetricRegistry
from history.model import MAJORS, Finding, FindingEvent, IssueLink
from presentation import addresses
from presentation.addresses import LineKey
from presentation.change_lines import told_elsewhere
from presentation.findings import groups_frame, records
from presentation.headline import (
    KIND_CLASSES,
    KIND_MARKS,
    Headline,
    MetricChange,
    headline,
    release_name,
    step_name,
    step_sides,
    title,
    verdict,
)
from presentation.number_format import listing, signed
from presentation.sentences import TIER_WORDS

#: Events that change where a finding stands, as alerts have them; a test keeps the two equal.
HAPPENED = frozenset(
    (
        "detected", "confirmed", "refuted", "held", "released", "digested", "filed", "updated", "acknowledged",
        "snoozed", "woke", "recovered", "returned", "withdrawn", "folded", "not-a-bug", "closed", "reopened", "gone",
    )
)  # fmt: skip


@dataclass(frozen=True)
class FindingSummary:
    """A finding's row in a list."""

    finding: Finding
    lead: Headline | None
    """None for a finding that lists no series."""
    better: dict[str, str]
    """By metric: `higher` or `lower`."""
    groups: str
    """`writes: 8 of 10 · range, part 1: 5 of 9` in the headline metric; empty where the finding has no groups."""
    state: str
    """The last thing that happened to it, in a word."""
    issue: str
    """Its address, where a reader of the site can follow it."""

    @property
    def shape(self) -> str:
        return KIND_MARKS[self.finding.kind]

    @property
    def css(self) -> str:
        return KIND_CLASSES[self.finding.kind]

    @property
    def address(self) -> str:
        return addresses.of_finding(self.finding.key)

    @property
    def title(self) -> str:
        return title(self.finding, self.lead) if self.lead else f"{release_name(self.finding)}: no series listed"

    @property
    def name(self) -> str:
        """`mysql 8.0.30`, or `postgres 13 → 14`."""
        return release_name(self.finding)

    @property
    def step(self) -> str:
        """The same without the DBMS, for pages of one."""
        return step_name(self.finding)

    @property
    def about(self) -> str:
        """`regression after 8.0.28`, or `regression, 14.24 against 13.23`."""
        comma = "," if self.finding.line == MAJORS else ""
        return f"{self.finding.kind}{comma} {step_sides(self.finding)}"

    @property
    def verdict(self) -> str:
        """The title without the name."""
        return verdict(self.finding, self.lead) if self.lead else "no series listed"

    @property
    def changes(self) -> tuple[MetricChange, ...]:
        """By metric, that of the headline first."""
        return (self.lead.change, *self.lead.others) if self.lead else ()

    @property
    def short(self) -> str:
        """The headline metric and its largest change, for lists of a word each."""
        return f"{self.lead.metric} {signed(self.lead.change.worst_pct)}" if self.lead else ""

    @property
    def sure(self) -> str:
        return TIER_WORDS[self.finding.tier]

    @property
    def also(self) -> str:
        """The releases of other lines that the same change came to: `17.8 and 14.24`; empty for one line."""
        return listing([row.release for row in self.finding.lines]) if self.finding.lines else ""

    @property
    def told_in(self) -> tuple[str, list[tuple[str, str]]]:
        """`the same change as` or `explained by`, and (key, address) of what tells it; empty for the rest."""
        words, keys = told_elsewhere(self.finding)
        return words, [(key, addresses.of_finding(key)) for key in keys]

    @property
    def unmeasured(self) -> str:
        """What was not measured between the two sides, at most three names."""
        names = self.finding.unmeasured
        return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]} ({len(names)} releases)"

    @property
    def lines(self) -> list[tuple[str, str]]:
        """(label, address) of the line pages that show it."""
        pages = sorted({LineKey.of(move.key) for move in self.finding.moves})
        return [(f"{page.title} · {page.where}", addresses.of_line(page)) for page in pages]

    def css_of(self, change: MetricChange) -> str:
        """`worse` or `better` by the metric's own direction: a finding may gain in one metric and lose in another."""
        return "better" if (change.worst_pct > 0) == (self.better[change.metric] == "higher") else "worse"


def finding_summary(
    finding: Finding,
    metrics: MetricRegistry,
    events: Sequence[FindingEvent] = (),
    links: Sequence[IssueLink] = (),
) -> FindingSummary:
    """`events` in their order; of `links` the newest is last."""
    lead = headline(finding, metrics)
    return FindingSummary(
        finding=finding,
        lead=lead,
        better={move.key.metric: move.better for move in finding.moves},
        groups=" · ".join(
            f"{group['group'] or 'all tests'}: {group['moved']} of {group['tests']}"
            for group in records(groups_frame(finding, metrics))
            if lead and group["moved"] and group["metric"] == lead.metric
        ),
        # A delivery, or a comment that was read, changes no state.
        state=next((event.event for event in reversed(events) if event.event in HAPPENED), "detected"),
        issue=web_address(links[-1].url) if links else "",
    )


def web_address(url: str) -> str:
    """`url` when a reader of the site can follow it; a path on the machine that filed it is empty."""
    return url if url.startswith(("https://", "http://")) else ""
