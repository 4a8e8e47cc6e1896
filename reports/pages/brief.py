"""A finding in a line or two, as every page that lists findings shows it. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from history.model import Finding, FindingEvent, IssueLink, Move
from reports import addresses
from reports.addresses import LineKey
from reports.numerals import counted, signed_pct

#: Shape and word of each kind; the shape carries what colour carries.
SHAPES = {"regression": "▼", "improvement": "▲", "environment": "◆", "drift": "↘"}
WORDS = {
    "regression": "slower",
    "improvement": "faster",
    "environment": "environment shift",
    "drift": "slow drift",
}
CLASSES = {"regression": "worse", "drift": "worse", "improvement": "better", "environment": "other"}
#: The metric a headline quotes, the first that moved; throughput is what users feel.
HEADLINE = ("qps", "ips", "indexed rows/s", "insn/o", "cpu_us/o", "cpu/o", "cpupq")


#: Events that change where a finding stands, as alerts have them; a test keeps the two equal.
HAPPENED = frozenset(
    (
        "detected", "confirmed", "refuted", "held", "released", "digested", "filed", "updated", "acknowledged",
        "snoozed", "woke", "recovered", "returned", "withdrawn", "not-a-bug", "closed", "reopened", "gone",
    )
)  # fmt: skip


@dataclass(frozen=True)
class MetricBrief:
    """What moved in one metric."""

    metric: str
    moved: int
    median: str
    worst: str
    worst_test: str
    css: str
    """`worse` or `better`, by the metric's own direction: a finding may gain in one metric and lose in another."""


@dataclass(frozen=True)
class Brief:
    """A finding's row in a list."""

    key: str
    address: str
    kind: str
    shape: str
    css: str
    dbms: str
    line: str
    release: str
    previous: str
    unmeasured: str
    title: str
    metrics: tuple[MetricBrief, ...]
    headline: str
    lead: str
    """The headline metric and its median, for lists of a line each."""
    groups: str
    sure: str
    tier: str
    cause: str
    state: str
    issue: str
    lines: tuple[tuple[str, str], ...]
    """(label, address) of the line pages that show it."""


def by_metric(moves: Sequence[Move]) -> list[list[Move]]:
    """The moves of each metric: headline metrics first, of these the one that moved in most tests, as in the issue."""
    found: dict[str, list[Move]] = {}
    for move in moves:
        found.setdefault(move.key.metric, []).append(move)
    rank = {metric: position for position, metric in enumerate(HEADLINE)}

    def place(metric: str) -> tuple[bool, int, int, str]:
        return metric not in rank, -len(found[metric]), rank.get(metric, 0), metric

    return [found[metric] for metric in sorted(found, key=place)]


def headline_moves(moves: Sequence[Move]) -> list[Move]:
    """The moves in the metric a headline quotes."""
    return next(iter(by_metric(moves)), [])


def metric_briefs(moves: Sequence[Move]) -> list[MetricBrief]:
    """By metric, the one of the headline first."""
    found = []
    for here in by_metric(moves):
        metric = here[0].key.metric
        worst = max(here, key=lambda move: (abs(move.change_pct), move.key.id))
        median = statistics.median(move.change_pct for move in here)
        css = "better" if (median > 0) == (worst.better == "higher") else "worse"
        changes = signed_pct(median), signed_pct(worst.change_pct)
        found.append(MetricBrief(metric, len(here), *changes, worst.key.test, css))
    return found


def state_of(events: Sequence[FindingEvent]) -> str:
    """The last thing that happened to a finding, in a word; a delivery or a comment that was read is none."""
    return next((one.event for one in reversed(events) if one.event in HAPPENED), "detected")


def headline(finding: Finding) -> str:
    """`8 tests, median −5.6 %, worst −21.0 % (scan)`."""
    moves = headline_moves(finding.moves)
    if not moves:
        return "no series listed"
    one = metric_briefs(moves)[0]
    tests = len({move.key.test for move in moves})
    if tests == 1:
        return f"{one.worst_test}: {one.metric} {one.worst}"
    return f"{counted(tests, 'test')}: {one.metric} median {one.median}, worst {one.worst} ({one.worst_test})"


def group_text(finding: Finding) -> str:
    """`writes 8 of 10, range, part 1 5 of 9` for the headline metric; empty where the finding has no groups."""
    metric = next(iter(headline_moves(finding.moves)), None)
    if metric is None:
        return ""
    rows = [one for one in finding.groups if one.metric == metric.key.metric and one.moved]
    return " · ".join(f"{one.group or 'all tests'}: {one.moved} of {one.tests}" for one in rows)


def sure_text(probability: float) -> str:
    """`p 0.962`; a probability is never printed as certainty."""
    return "p > 0.999" if probability > 0.9994 else f"p {probability:.3f}"


def web_address(url: str) -> str:
    """`url` when a reader of the site can follow it; a path on the machine that filed it is empty."""
    return url if url.startswith(("https://", "http://")) else ""


def between(finding: Finding) -> str:
    """What was not measured between the two sides, at most three names."""
    names = finding.unmeasured
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]} ({len(names)} releases)"


def brief(finding: Finding, events: Sequence[FindingEvent] = (), links: Sequence[IssueLink] = ()) -> Brief:
    probability = max((move.probability for move in finding.moves), default=0.0)
    pages = sorted({LineKey.of(move.key) for move in finding.moves})
    link = links[-1] if links else None
    return Brief(
        key=finding.key,
        address=addresses.of_finding(finding.key),
        kind=finding.kind,
        shape=SHAPES[finding.kind],
        css=CLASSES[finding.kind],
        dbms=finding.dbms,
        line=finding.line,
        release=finding.release,
        previous=finding.previous,
        unmeasured=between(finding),
        title=f"{finding.dbms} {finding.release}: {WORDS[finding.kind]} than {finding.previous}"
        if finding.kind in ("regression", "improvement")
        else f"{finding.dbms} {finding.release}: {WORDS[finding.kind]}",
        metrics=tuple(metric_briefs(finding.moves)),
        headline=headline(finding),
        lead=next((f"{one.metric} {one.median}" for one in metric_briefs(headline_moves(finding.moves))), ""),
        groups=group_text(finding),
        sure=f"{finding.tier}, {sure_text(probability)}",
        tier=finding.tier,
        cause=finding.cause,
        state=state_of(events),
        issue=web_address(link.url) if link else "",
        lines=tuple((f"{page.title} · {page.where}", addresses.of_line(page)) for page in pages),
    )
