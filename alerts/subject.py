"""Which findings share an issue, and by what key the issue is known for good.

One issue a change: a regression takes the improvements of the same boundary into its text, and the findings of other
lines that are the same change, and steps between majors that it explains, are told in it. Keys are those of
`history.keys`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from history.keys import issue_key
from history.metrics import MetricRegistry
from history.model import NOT_FILED, Finding, Row
from history.versions import version_key
from presentation.headline import Headline, headline
from presentation.ranking import finding_order


class Subject(Row):
    """What one issue is about."""

    key: str
    finding: Finding
    lead: Headline | None
    """None where nothing moved: such a finding cannot be filed."""
    beside: tuple[Finding, ...] = ()
    """Improvements at the same boundary that are as sure."""
    same: tuple[Finding, ...] = ()
    """Less sure or older findings of the same key: they have the same issue, and are not in its text."""
    members: tuple[Finding, ...] = ()
    """Findings of other lines that are the same change, and steps between majors that it explains whole."""
    back: dict[str, str] = Field(default_factory=dict)
    """By key of a finding of the change: the release that gave it back."""


def subjects(findings: Iterable[Finding], kinds: Iterable[str], metrics: MetricRegistry) -> list[Subject]:
    """One subject an issue, in the order of findings; kinds that are not in `kinds` get none of their own, and causes
    NOT_FILED none at all. Pure, and independent of the order of `findings`.

    Of two findings of one key (two configs measured other point releases of a line) the issue is about the surest,
    then the newest.
    """
    kinds = frozenset(kinds)
    by_key: dict[str, list[Finding]] = {}
    improvements: dict[tuple[str, str, str], Finding] = {}
    filed = [one for one in sorted(findings, key=_surest_last) if one.cause not in NOT_FILED]
    members = members_of([one for one in filed if one.kind in kinds])
    folded = {member.key for of_change in members.values() for member in of_change}
    for finding in filed:
        # What was measured again and not seen again is nobody's comfort.
        if finding.kind == "improvement" and finding.tier != "unconfirmed":
            improvements[_boundary(finding)] = finding
        if finding.kind in kinds and finding.key not in folded:
            by_key.setdefault(issue_key_of(finding), []).append(finding)
    regressed = {_boundary(finding) for same in by_key.values() for finding in same if finding.kind == "regression"}
    chosen = []
    for key, (*same, finding) in by_key.items():
        if finding.kind == "improvement" and _boundary(finding) in regressed:
            continue
        beside = improvements.get(_boundary(finding)) if finding.kind == "regression" else None
        if beside and _sureness(beside) < _sureness(finding):
            beside = None  # beside what is confirmed it would pass for confirmed
        chosen.append(
            Subject(
                key=key,
                finding=finding,
                lead=headline(finding, metrics),
                beside=(beside,) if beside else (),
                same=tuple(same),
                members=tuple(member for one in (finding, *same) for member in members.get(one.key, ())),
            )
        )
    return sorted(chosen, key=lambda subject: (*finding_order(subject.finding, metrics)[:-1], subject.key))


def members_of(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """By key of the regression that leads a change: the findings that are told in it. What names a finding that is not
    among `findings` is told by itself; so are improvements, each in the issue of its boundary."""
    ordered = sorted(findings, key=_surest_last, reverse=True)
    leads = {one.key for one in ordered if one.kind == "regression" and not one.folded_under}
    members: dict[str, list[Finding]] = {}
    for finding in ordered:
        if finding.folded_under in leads:
            members.setdefault(finding.folded_under, []).append(finding)
    return members


def issue_key_of(finding: Finding) -> str:
    """The key that a finding's issue has, where it has one of its own."""
    return issue_key(finding.dbms, finding.line, finding.release, finding.kind)


def not_filed(findings: Iterable[Finding]) -> frozenset[str]:
    """Keys that the issues of findings with a cause of NOT_FILED would have."""
    of_builds = (finding for finding in findings if finding.cause in NOT_FILED)
    return frozenset(issue_key_of(one) for one in of_builds)


def _boundary(finding: Finding) -> tuple[str, str, str]:
    return finding.dbms, finding.line, finding.release


def _sureness(finding: Finding) -> int:
    return ("unconfirmed", "provisional", "confirmed").index(finding.tier)


def _surest_last(finding: Finding) -> tuple[int, object, int, str]:
    return _sureness(finding), version_key(finding.dbms, finding.release), len(finding.moves), finding.key
