"""Which findings share an issue, and by what key the issue is known for good.

One issue a boundary: a regression takes the improvements of the same boundary into its text. Keys are those of
`history.keys`.
"""

from __future__ import annotations

from collections.abc import Iterable

from history.keys import issue_key
from history.model import Finding, Row
from history.versions import version_key


class Subject(Row):
    """What one issue is about."""

    key: str
    finding: Finding
    beside: tuple[Finding, ...] = ()
    """Improvements at the same boundary that are as sure."""
    same: tuple[Finding, ...] = ()
    """Less sure or older findings of the same key: they have the same issue, and are not told in it."""

    @property
    def severity(self) -> tuple[int, float]:
        """Regressions first, then by the log of what was lost, summed over the tests; larger is worse."""
        rank = {"regression": 3, "drift": 2, "environment": 1, "improvement": 0}[self.finding.kind]
        return rank, sum(abs(move.change_pct) for move in self.finding.moves)


def subjects(findings: Iterable[Finding], kinds: Iterable[str]) -> list[Subject]:
    """One subject an issue, the worst first; kinds that are not in `kinds` get none of their own. Pure, order-free.

    Of two findings of one key (two campaigns measured other point releases of a line) the issue tells the surest, then
    the newest.
    """
    kinds = frozenset(kinds)
    chosen: dict[str, list[Finding]] = {}
    improvements: dict[tuple[str, str, str], Finding] = {}
    for finding in sorted(findings, key=_surest_last):
        # What was measured again and not seen again is nobody's comfort.
        if finding.kind == "improvement" and finding.tier != "unconfirmed":
            improvements[finding.dbms, finding.line, finding.release] = finding
        if finding.kind in kinds:
            key = issue_key(finding.dbms, finding.line, finding.release, finding.kind)
            chosen.setdefault(key, []).append(finding)
    regressed = {(f.dbms, f.line, f.release) for found in chosen.values() for f in found if f.kind == "regression"}
    made = []
    for key, (*same, finding) in chosen.items():
        boundary = (finding.dbms, finding.line, finding.release)
        if finding.kind == "improvement" and boundary in regressed:
            continue
        beside = improvements.get(boundary) if finding.kind == "regression" else None
        if beside and _sure(beside) < _sure(finding):
            beside = None  # beside what is confirmed it would pass for confirmed
        made.append(Subject(key=key, finding=finding, beside=(beside,) if beside else (), same=tuple(same)))
    return sorted(made, key=lambda s: (-s.severity[0], -s.severity[1], s.key))


def _sure(finding: Finding) -> int:
    return ("unconfirmed", "provisional", "confirmed").index(finding.tier)


def _surest_last(finding: Finding) -> tuple[int, object, int, str]:
    return _sure(finding), version_key(finding.dbms, finding.release), len(finding.moves), finding.key
