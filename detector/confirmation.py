"""Whether a finding has been seen side by side: `provisional`, `confirmed` or `unconfirmed`.

A finding is provisional until one session holds blocks of the release and of its predecessor. Their blocks are
compared move by move (`compare`); the moves that a session can speak about decide together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from detector.attribution import blocks_at
from detector.compare import Comparison, compare
from history.metrics import MetricRegistry
from history.model import Lane, Move, Series, Tier

#: Counted instructions do not depend on the machine's luck: a single block of each side is enough.
FEWEST_BLOCKS: dict[Lane, int] = {"instructions": 1, "time": 2}
#: A finding is confirmed when at least this share of the moves that could be judged is seen again.
CONFIRMED_SHARE = 0.5
#: An UNKNOWN whose estimate is at least this share of the move, in its direction, does not speak against it.
LEANING = 0.5
#: Two metrics of a test moved by about as much when neither did by more than this times the other, as logs.
ALIKE = 2.0


def side_by_side(series: Series, previous: str, release: str) -> tuple[list[float], list[float]]:
    """Block values of the two releases from sessions that hold both, each session scaled to the same level."""
    sides: tuple[dict[str, list[float]], ...] = (defaultdict(list), defaultdict(list))
    for version, side in zip((previous, release), sides, strict=True):
        for block in blocks_at(series, version):
            side[block.session_id].append(block.value)
    before: list[float] = []
    after: list[float] = []
    reference = None
    for session in sorted(sides[0].keys() & sides[1].keys()):
        left, right = sides[0][session], sides[1][session]
        level = math.fsum(left) / len(left)
        reference = level if reference is None else reference
        scale = reference / level if level and reference else 1.0
        before += sorted(value * scale for value in left)
        after += sorted(value * scale for value in right)
    return before, after


def judged(move: Move, series: Series, previous: str, release: str, metrics: MetricRegistry) -> Comparison | None:
    """The two sides of `move` beside each other; None when no session has blocks enough."""
    before, after = side_by_side(series, previous, release)
    metric = metrics[move.key.metric]
    if min(len(before), len(after)) < FEWEST_BLOCKS[metric.lane]:
        return None
    return compare(before, after, floor_pct=metric.smallest_change_pct, noise=math.log1p(move.noise_pct / 100.0))


def upheld(
    moves: Sequence[Move], series: Mapping[str, Series], previous: str, release: str, metrics: MetricRegistry
) -> list[Move]:
    """`moves` of one boundary without those that only stand beside what was seen side by side.

    Where a session has judged a server, a number that stands on one block is most often the luck of that block; told
    with the others it would pass for confirmed. It stays where its test was seen again in another metric, by about as
    much, and where nothing on its server has been judged; it is judged itself once there are blocks.
    """
    comparisons = {move.key.id: judged(move, series[move.key.id], previous, release, metrics) for move in moves}
    servers = {move.key.server for move in moves if comparisons[move.key.id]}
    again: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for move in moves:
        if (comparison := comparisons[move.key.id]) and _again(comparison, move):
            again[move.key.server, move.key.test, move.direction].append(_size(move))

    def alike(move: Move) -> bool:
        others = again[move.key.server, move.key.test, move.direction]
        return any(_size(move) <= ALIKE * other and other <= ALIKE * _size(move) for other in others)

    return [
        move
        for move in moves
        if comparisons[move.key.id]
        or move.key.server not in servers
        or min(move.blocks_before, move.blocks_after) >= FEWEST_BLOCKS["time"]
        or alike(move)
    ]


def _size(move: Move) -> float:
    return abs(math.log1p(move.change_pct / 100.0)) if move.change_pct > -100.0 else math.inf


def confirm(
    moves: Sequence[Move],
    series: Mapping[str, Series],
    previous: Mapping[str, str],
    release: str,
    metrics: MetricRegistry,
) -> tuple[Tier, str]:
    """The tier of a finding from its moves, and why; `series`, and the release before it, by series id."""
    judgements = [(move, judged(move, series[move.key.id], previous[move.key.id], release, metrics)) for move in moves]
    compared = [(move, comparison) for move, comparison in judgements if comparison]
    seen = sum(_again(comparison, move) for move, comparison in compared)
    refuted = sum(_against(comparison, move) for move, comparison in compared)
    if not compared:
        return "provisional", "Not confirmed: no session has enough interleaved blocks of both sides to judge by."
    again = f"Measured side by side, {seen} of {len(compared)} moves were seen again"
    if seen >= CONFIRMED_SHARE * len(compared):
        return "confirmed", f"{again}."
    if refuted > CONFIRMED_SHARE * len(compared):
        return "unconfirmed", f"Measured side by side, {refuted} of {len(compared)} moves were not seen again."
    return "provisional", f"{again}; more blocks are needed."


def _again(comparison: Comparison, move: Move) -> bool:
    return comparison.verdict == "DIFFERENT" and comparison.change_pct * move.change_pct > 0


def _against(comparison: Comparison, move: Move) -> bool:
    if comparison.verdict == "UNKNOWN":
        change, moved = comparison.change_pct, move.change_pct
        return change * moved < 0 or abs(change) < LEANING * abs(moved) / 2.0
    return not _again(comparison, move)
