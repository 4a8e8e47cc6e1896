"""Which findings share an issue, and by what key the issue is known for good.

One issue a boundary: a regression takes the improvements of the same boundary into its text. Keys are those of
`history.keys`.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def subjects(findings: Iterable[Finding], kinds: Iterable[str], metrics: MetricRegistry) -> list[Subject]:
    """One subject an issue, in the order of findings; kinds that are not in `kinds` get none of their own, and causes
    NOT_FILED none at all. Pure, and independent of the order of `findings`.

    Of two findings of one key (two configs measured other point releases of a line) the issue is about the surest,
    then the newest.
    """
    kinds = frozenset(kinds)
    by_key: dict[str, list[Finding]] = {}
    improvements: dict[tuple[str, str, str], Finding] = {}
    for finding in sorted((one for one in findings if one.cause not in NOT_FILED), key=_surest_last):
        # What was measured again and not seen again is nobody's comfort.
        if finding.kind == "improvement" and finding.tier != "unconfirmed":
            improvements[_boundary(finding)] = finding
        if finding.kind in kinds:
            key = issue_key(finding.dbms, finding.line, finding.release, finding.kind)
            by_key.setdefault(key, []).append(finding)
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
            )
        )
    return sorted(chosen, key=lambda subject: (*finding_order(subject.finding, metrics)[:-1], subject.key))


def not_filed(findings: Iterable[Finding]) -> frozenset[str]:
    """Keys that the issues of findings with a cause of NOT_FILED would have."""
    of_builds = (finding for finding in findings if finding.cause in NOT_FILED)
    return frozenset(issue_key(one.dbms, one.line, one.release, one.kind) for one in of_builds)


def _boundary(finding: Finding) -> tuple[str, str, str]:
    return finding.dbms, finding.line, finding.release


def _sureness(finding: Finding) -> int:
    return ("unconfirmed", "provisional", "confirmed").index(finding.tier)


def _surest_last(finding: Finding) -> tuple[int, object, int, str]:
    return _sureness(finding), version_key(finding.dbms, finding.release), len(finding.moves), finding.key
