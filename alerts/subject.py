"""Which findings share an issue, and by what key the issue is known for good.

One issue a boundary: a regression takes the improvements of the same boundary into its text. The key must survive
re-detection, so two kinds differ from their finding's key: on the pseudo-line `majors` the boundary is a line, not its
newest point release of the day, and a drift belongs to its line.

>>> issue_key("postgres", "majors", "18.4", "regression"), issue_key("mysql", "8.0", "8.0.39", "drift")
('postgres/majors/18/regression', 'mysql/8.0/drift')
>>> issue_key("mysql", "8.0", "8.0.30", "regression")
'mysql/8.0/8.0.30/regression'
"""

from __future__ import annotations

from collections.abc import Iterable

from history.model import MAJORS, Finding, Row, finding_key
from history.versions import line_of, version_key


def issue_key(dbms: str, line: str, release: str, kind: str) -> str:
    """The stable key of the issue for a boundary."""
    if kind == "drift":
        return f"{dbms}/{line}/drift"
    return finding_key(dbms, line, line_of(dbms, release) if line == MAJORS else release, kind)


class Subject(Row):
    """What one issue is about."""

    key: str
    finding: Finding
    beside: tuple[Finding, ...] = ()
    """Improvements at the same boundary."""
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
        if finding.kind == "improvement":
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
        made.append(Subject(key=key, finding=finding, beside=(beside,) if beside else (), same=tuple(same)))
    return sorted(made, key=lambda s: (-s.severity[0], -s.severity[1], s.key))


def _surest_last(finding: Finding) -> tuple[int, object, int, str]:
    tier = ("unconfirmed", "provisional", "confirmed").index(finding.tier)
    return tier, version_key(finding.dbms, finding.release), len(finding.moves), finding.key
