"""Whether a finding has been seen side by side: `provisional`, `confirmed` or `unconfirmed`.

A finding is provisional until one session holds blocks of the release and of its predecessor. Their blocks are
compared move by move (`compare`); the moves that a session can speak about decide together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from detector.compare import Comparison, compare
from detector.releases.kinds import kind_of
from history.model import Move, Series, Tier

#: Counted instructions do not depend on the machine's luck: a single block of each side is enough.
FEWEST_BLOCKS = {"instructions": 1}
FEWEST_BLOCKS_OTHERWISE = 2
#: A finding is confirmed when at least this share of the moves that could be judged is seen again.
CONFIRMED_SHARE = 0.5
#: An UNKNOWN whose estimate is at least this share of the move, in its direction, does not speak against it.
LEANING = 0.5


@dataclass(frozen=True)
class Confirmation:
    """What sessions with both sides say."""

    tier: Tier
    evidence: tuple[str, ...]


def side_by_side(series: Series, previous: str, release: str) -> tuple[list[float], list[float]]:
    """Block values of the two releases from sessions that hold both, each session scaled to the same level."""
    by_session: dict[str, tuple[list[float], list[float]]] = {}
    for point in series.points:
        side = {previous: 0, release: 1}.get(point.version)
        if side is not None:
            for block in point.values:
                by_session.setdefault(block.session_id, ([], []))[side].append(block.value)
    before: list[float] = []
    after: list[float] = []
    reference = None
    for session in sorted(by_session):
        left, right = by_session[session]
        if not left or not right:
            continue
        level = math.fsum(left) / len(left)
        reference = level if reference is None else reference
        scale = reference / level if level and reference else 1.0
        before += sorted(value * scale for value in left)
        after += sorted(value * scale for value in right)
    return before, after


def confirm(
    moves: Sequence[Move],
    series: Mapping[str, Series],
    previous: Mapping[str, str],
    release: str,
    floors: Mapping[str, float],
) -> Confirmation:
    """The tier of a finding from its moves; `series`, and the release before it, by series id.

    `floors` are the smallest changes in percent by metric.
    """
    seen, refuted, judged = 0, 0, 0
    for move in moves:
        before, after = side_by_side(series[move.key.id], previous[move.key.id], release)
        fewest = FEWEST_BLOCKS.get(kind_of(move.key.metric).name, FEWEST_BLOCKS_OTHERWISE)
        if min(len(before), len(after)) < fewest:
            continue
        judged += 1
        floor = floors.get(move.key.metric, 100.0 * kind_of(move.key.metric).smallest_change)
        found = compare(before, after, floor_pct=floor, noise=math.log1p(move.noise_pct / 100.0))
        seen += _again(found, move)
        refuted += _against(found, move)
    if not judged:
        sentence = "Not confirmed: no session has enough interleaved blocks of both sides to judge by."
        return Confirmation("provisional", (sentence,))
    if seen >= CONFIRMED_SHARE * judged:
        return Confirmation("confirmed", (f"Measured side by side, {seen} of {judged} moves were seen again.",))
    if refuted > CONFIRMED_SHARE * judged:
        return Confirmation(
            "unconfirmed", (f"Measured side by side, {refuted} of {judged} moves were not seen again.",)
        )
    sentence = f"Measured side by side, {seen} of {judged} moves were seen again; more blocks are needed."
    return Confirmation("provisional", (sentence,))


def _again(found: Comparison, move: Move) -> bool:
    return found.verdict == "DIFFERENT" and found.change_pct * move.change_pct > 0


def _against(found: Comparison, move: Move) -> bool:
    if found.verdict == "UNKNOWN":
        return found.change_pct * move.change_pct < 0 or abs(found.change_pct) < LEANING * abs(move.change_pct) / 2.0
    return not _again(found, move)
