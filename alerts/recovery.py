"""Whether later releases have given a regression back. Pure, over the findings of one detection."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import log

from alerts.settings import Recovery
from history.model import Finding, Move, Row, Tier
from history.versions import version_key
from presentation.headline import goes_its_way

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


def recovery(
    finding: Finding, findings: Iterable[Finding], settings: Recovery, tiers: Collection[Tier] = SURE
) -> Recovered | None:
    """The first later release at which `of_tests` of the lost tests had `given_back` of their loss.

    Levels are those of the moves: a test's level now is what its last improvement left it at. When a still later
    release loses it again, that is a changepoint, and an issue, of its own.
    """
    lost = [move for move in finding.moves if goes_its_way(finding, move) and move.before > 0 and move.after > 0]
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
        now |= {move.key: move.after for move in other.moves if move.key in now and move.after > 0}
        back = [
            GivenBack(move=move, now=now[move.key])
            for move in lost
            if 1 - log(now[move.key] / move.before) / log(move.after / move.before) >= settings.given_back
        ]
        if len(back) >= settings.of_tests * len(lost):
            return Recovered(release=other.release, tests=tuple(back), of=len(lost))
    return None
