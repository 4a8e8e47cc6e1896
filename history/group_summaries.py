"""The moves of a finding folded by server, metric and group of tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from history.model import GroupSummary, Move


def groups_of(moves: Sequence[Move], tests: Mapping[tuple[str, str, str], int]) -> tuple[GroupSummary, ...]:
    """Moves folded by server, metric and group; `tests` counts those measured by the same three.

    Groups that did not move are there as well, with `moved` 0, where others did on that server and in that metric: of
    how many tests so many moved is a question about all that were measured.
    """
    folded: dict[tuple[str, str, str], list[Move]] = defaultdict(list)
    for move in moves:
        folded[move.key.server, move.key.metric, move.group].append(move)
    moved = {(server, metric) for server, metric, _ in folded}
    beside = {place for place in tests if place[:2] in moved}
    return tuple(_summary(place, folded.get(place, []), tests.get(place, 0)) for place in sorted({*folded, *beside}))


def _summary(place: tuple[str, str, str], moves: list[Move], tests: int) -> GroupSummary:
    server, metric, group = place
    compared = [move for move in moves if not move.near_zero]
    worst = max(compared or moves, key=lambda move: (abs(move.change_pct), move.key.id), default=None)
    return GroupSummary(
        server=server,
        metric=metric,
        group=group,
        moved=len(moves),
        tests=max(tests, len(moves)),
        median_pct=median(move.change_pct for move in compared) if compared else 0.0,
        worst_pct=worst.change_pct if worst and compared else 0.0,
        worst_test=worst.key.test if worst else "",
        worst_levels=(worst.before, worst.after) if worst and not compared else None,
    )
