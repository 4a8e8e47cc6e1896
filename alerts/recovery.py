"""Whether later releases have given a regression back. Pure, over the findings of one detection.

An issue about a change of several lines is recovered when every line that was measured at point releases has it back: a
fix in 18.5 helps nobody on 17. What is seen on `majors` alone cannot be given back there and is not waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log

from alerts.settings import Recovery
from alerts.subject import Subject
from history.model import MAJORS, Finding, Move, Row, Tier, carrying_moves, goes_its_way
from history.versions import version_key

#: Improvements of other tiers give nothing back.
SURE: tuple[Tier, ...] = ("confirmed",)


class GivenBack(Row):
    """One test's three levels."""

    move: Move
    now: float


class Recovered(Row):
    """The release at which enough of the tests were back."""

    release: str
    tests: tuple[GivenBack, ...]
    of: int
    """Tests that had lost."""
    others: tuple[str, ...] = ()
    """Releases that gave it back in the other lines of the change."""


def recovery(
    finding: Finding, findings: Iterable[Finding], settings: Recovery, tiers: Collection[Tier] = SURE
) -> Recovered | None:
    """The first later release at which `of_tests` of the lost tests had `given_back` of their loss.

    Levels are those of the moves: a test's level now is what its last improvement left it at. When a still later
    release loses it again, that is a changepoint, and an issue, of its own.
    """
    told = carrying_moves(finding)
    lost = [move for move in told if goes_its_way(finding.kind, move) and move.before > 0 and move.after > 0]
    lost = [move for move in lost if move.before != move.after and not move.near_zero]
    if finding.kind not in ("regression", "drift") or not lost:
        return None
    boundary = version_key(finding.dbms, finding.release)
    later = sorted(
        (
            other
            for other in findings
            if (other.dbms, other.line) == (finding.dbms, finding.line)
            and other.kind == "improvement"
            and other.cause != "toolchain"  # faster by another builder's compiler gives nothing back
            and other.tier in tiers
            and version_key(other.dbms, other.release) > boundary
        ),
        key=lambda other: version_key(other.dbms, other.release),
    )
    now = {move.key: move.after for move in lost}
    for other in later:
        now |= {move.key: move.after for move in carrying_moves(other) if move.key in now and move.after > 0}
        back = [
            GivenBack(move=move, now=now[move.key])
            for move in lost
            if 1 - log(now[move.key] / move.before) / log(move.after / move.before) >= settings.given_back
        ]
        if len(back) >= settings.of_tests * len(lost):
            return Recovered(release=other.release, tests=tuple(back), of=len(lost))
    return None


def recoveries(
    subject: Subject, findings: Sequence[Finding], settings: Recovery, tiers: Collection[Tier] = SURE
) -> dict[str, Recovered]:
    """By key of a finding of the subject's change: where it was given back; those that were not are not there."""
    of_change = (subject.finding, *(member for member in subject.members if member.line != MAJORS))
    found = {one.key: recovery(one, findings, settings, tiers) for one in of_change}
    return {key: recovered for key, recovered in found.items() if recovered}


def recovered_in_all_lines(subject: Subject, of_change: Mapping[str, Recovered]) -> Recovered | None:
    """What gave back the finding of an issue, once all lines have it back."""
    members = [member for member in subject.members if member.line != MAJORS]
    recovered = of_change.get(subject.finding.key)
    if recovered is None or any(member.key not in of_change for member in members):
        return None
    return recovered.model_copy(update={"others": tuple(of_change[member.key].release for member in members)})
