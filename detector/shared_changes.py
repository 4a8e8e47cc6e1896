"""One change, several lines: findings of one DBMS that carry the same signature become one. Pure.

    findings -> groups by signature -> steps between majors that they explain -> lines that probably have it too

Groups are stars, not chains: the surest finding that is not in a group yet leads one, and every member is similar to
*it*. A chain of small resemblances from one change to another cannot form. A line has one row in a group, its most
similar finding. What came to a line besides stays a finding of that line: folded, nobody would ever read of it.

>>> [tie_sentence("17.8", "17", Similarity(0.971, 2, by_functions=True, same_day=True), exact=True)]
['The same change as in 17.8 of line 17: functions and sizes agree to 97 %, released on the same day.']
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from detector.explained_majors import days_up_to, explain_majors
from detector.remaining import left_out_sentence, with_moves
from detector.signatures import (
    Signature,
    Similarity,
    StepKey,
    measured_across,
    own_moves,
    signature_of,
    similarity,
)
from history.metrics import MetricRegistry
from history.model import MAJORS, NOT_FILED, TIERS, ChangeLine, Finding, Move, ProbableLine, Release, Series
from history.versions import build_mark, version_key

#: Kinds that are grouped, each among itself.
KINDS = ("regression", "improvement")


@dataclass(frozen=True)
class Group:
    """The findings of one change."""

    lead: Finding
    members: tuple[tuple[Finding, Similarity], ...] = ()
    """One a line, newest first, each with how similar it is to `lead`."""


def tie(
    findings: Sequence[Finding], series: Iterable[Series], releases: Iterable[Release], metrics: MetricRegistry
) -> list[Finding]:
    """`findings`, in their order, with the lines of each change, and what explains steps between majors.

    To be called when functions are attached. `releases` are those that exist, measured or not.
    """
    by_line: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for member in series:
        by_line[member.key.dbms, member.key.line].append(member)
    releases = list(releases)
    days = {(release.dbms, release.version): release.released for release in releases if release.released}
    signatures = {
        finding.key: _signature(finding, by_line[finding.dbms, finding.line], days, metrics)
        for finding in findings
        if comparable(finding)
    }
    tied = {finding.key: finding for finding in findings}
    changes = groups(findings, signatures)
    for group in changes:
        tied |= {finding.key: finding for finding in _told(group, signatures, metrics)}
    tied = explain_majors(tied, signatures, releases, metrics)
    for group in changes:
        for other, _ in group.members:
            if own := own_moves(other.moves, signatures[group.lead.key], metrics):
                tied[other.key] = _besides(tied[other.key], own, metrics)
    for key, finding in tied.items():
        if finding.lines:
            probable = probably_affected(finding, signatures, by_line, releases)
            tied[key] = finding.model_copy(update={"probably_affected": probable})
    return [tied[finding.key] for finding in findings]


def comparable(finding: Finding) -> bool:
    """Whether a finding can be one line of a change: at a point release, of the product, and not refuted."""
    return (
        finding.kind in KINDS
        and finding.line != MAJORS
        and finding.tier != "unconfirmed"
        and finding.cause not in NOT_FILED
    )


def groups(findings: Iterable[Finding], signatures: Mapping[str, Signature]) -> list[Group]:
    """A partition of the findings that have a signature, independent of their order."""
    waiting = sorted((finding for finding in findings if finding.key in signatures), key=_surest_last)
    made = []
    while waiting:
        lead = waiting.pop()
        of_line: dict[str, tuple[float, str]] = {}
        alike: dict[str, Similarity] = {}
        for other in waiting:
            alike[other.key] = similarity(signatures[lead.key], signatures[other.key])
            if alike[other.key].enough:
                best = (alike[other.key].value, other.key)
                of_line[other.line] = max(best, of_line.get(other.line, best))
        chosen = {key for _, key in of_line.values()}
        members = sorted((other for other in waiting if other.key in chosen), key=_newest_first, reverse=True)
        made.append(Group(lead, tuple((member, alike[member.key]) for member in members)))
        waiting = [other for other in waiting if other.key not in chosen]
    return made


def probably_affected(
    lead: Finding,
    signatures: Mapping[str, Signature],
    series: Mapping[tuple[str, str], Sequence[Series]],
    releases: Sequence[Release],
) -> tuple[ProbableLine, ...]:
    """Other lines with a release of the very day, that have no results on both sides of it in a test that moved.

    None where the day is not known: when no two lines share one, or more than one.
    """
    days, shared = set(signatures[lead.key].days), False
    for row in lead.lines:
        of_row = (
            signatures[row.finding].days
            if row.finding in signatures
            else days_up_to(releases, lead.dbms, row.line, row.release)
        )
        if days & of_row:
            days, shared = days & of_row, True
    if not shared or len(days) != 1:
        return ()
    known = {lead.line, *(row.line for row in lead.lines)}
    moved = signatures[lead.key].steps.keys()
    probable = [
        ProbableLine(line=release.line, release=release.version)
        for release in releases
        if release.dbms == lead.dbms
        and release.released in days
        and release.line not in known
        and build_mark(release.version) == build_mark(lead.release)
        and not _measured_around(release, series.get((lead.dbms, release.line), ()), moved)
    ]
    # Of a line, the first release of that day; the newest line first.
    of_line = {row.line: row for row in sorted(probable, key=lambda row: version_key(lead.dbms, row.release))[::-1]}
    return tuple(of_line.values())


def tie_sentence(release: str, line: str, alike: Similarity, *, exact: bool) -> str:
    """Evidence that another line has the same change; `exact` when nothing is unmeasured on either boundary."""
    what = "functions and sizes" if alike.by_functions else "tests and sizes"
    day = ", released on the same day" if exact else ", and releases of the same day are in both suspect ranges"
    agree = f"{what} agree to {100 * alike.value:.0f} %{day if alike.same_day else ''}"
    return f"The same change as in {release} of line {line}: {agree}."


def _besides(member: Finding, own: Sequence[Move], metrics: MetricRegistry) -> Finding:
    """The finding of a line with what came to it besides the change alone."""
    told = with_moves(member, own, metrics)
    return told.model_copy(update={"same_as": "", "evidence": (*told.evidence, left_out_sentence(own, member))})


def _told(group: Group, signatures: Mapping[str, Signature], metrics: MetricRegistry) -> list[Finding]:
    """The findings of a group that has members, with what each says of the others."""
    lead = group.lead
    if not group.members:
        return []
    move = _largest(lead, metrics)
    rows = tuple(
        ChangeLine.of(member, member.line, move.key.test, move.key.metric).model_copy(
            update={"whole": not own_moves(lead.moves, signatures[member.key], metrics)}
        )
        for member, _ in group.members
    )
    told, of_lead = [], list(lead.evidence)
    for member, alike in group.members:
        exact = not (lead.unmeasured or member.unmeasured)
        of_lead.append(tie_sentence(member.release, member.line, alike, exact=exact))
        evidence = (*member.evidence, tie_sentence(lead.release, lead.line, alike, exact=exact))
        told.append(member.model_copy(update={"same_as": lead.key, "evidence": evidence}))
    return [lead.model_copy(update={"lines": rows, "evidence": tuple(of_lead)}), *told]


def _largest(finding: Finding, metrics: MetricRegistry) -> Move:
    """The largest move that goes the finding's way; of counted instructions where these moved."""
    own = [move for move in finding.moves if move.direction == finding.kind] or list(finding.moves)
    counted = [move for move in own if metrics[move.key.metric].lane == "instructions"]
    return max(counted or own, key=lambda move: (abs(move.change_pct), move.key.id))


def _signature(
    finding: Finding, series: Sequence[Series], days: Mapping[tuple[str, str], date], metrics: MetricRegistry
) -> Signature:
    suspects = [days.get((finding.dbms, version)) for version in (finding.release, *finding.unmeasured)]
    measured: frozenset[StepKey] = measured_across(series, finding.previous, finding.release)
    return signature_of(finding, measured, [day for day in suspects if day], metrics)


def _measured_around(release: Release, series: Iterable[Series], moved: Iterable[StepKey]) -> bool:
    """Whether a series of a test that moved has results before `release` and from it on."""
    at, wanted = version_key(release.dbms, release.version), set(moved)
    for member in series:
        if StepKey(member.key.benchmark, member.key.test, member.key.metric) in wanted:
            before = [version_key(release.dbms, point.version) < at for point in member.points]
            if any(before) and not all(before):
                return True
    return False


def _surest_last(finding: Finding) -> tuple[int, object, str]:
    return TIERS.index(finding.tier), version_key(finding.dbms, finding.release), finding.key


def _newest_first(finding: Finding) -> tuple[object, str]:
    return version_key(finding.dbms, finding.release), finding.key
