"""What counted instructions say of the moves of the time lane, test by test.

A test that got slower, or needs more CPU, mostly does more work, and instructions count that work to a few tenths of a
percent. Where they moved by much less than the clock did, the clock may be right, since waits and cache misses are no
instructions; but most often it is the machine's luck, so such a move is measured again before any title names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from detector.percentages import percent
from detector.releases.epochs import on_one_scale
from detector.wording import signed
from history.metrics import MetricRegistry
from history.model import Move, Series, Tier, carried_by

#: Instructions explain a move of the time lane when they moved its way by at least this share of it, as logs.
EXPLAINING = 0.5


def with_counted(
    moves: Sequence[Move],
    series: Mapping[str, Series],
    previous: Mapping[str, str],
    release: str,
    metrics: MetricRegistry,
) -> list[Move]:
    """`moves` with `counted_pct` where the instructions of the same test, server and config were counted on both sides
    and cannot explain a move of throughput or CPU; `series`, and the release before it, by series id."""
    counted = [metric.name for metric in metrics if metric.lane == "instructions"]
    judged = []
    for move in moves:
        metric = metrics[move.key.metric]
        if metric.lane == "time" and metric.kind in ("throughput", "cpu"):
            for name in counted:
                member = series.get(move.key.model_copy(update={"metric": name}).id)
                change = counted_change(member, previous[move.key.id], release, metrics) if member else None
                if change is not None and not explains(change, move.change_pct, metric.kind == "throughput"):
                    move = move.model_copy(update={"counted_pct": change})
                    break
        judged.append(move)
    return judged


def counted_change(series: Series, previous: str, release: str, metrics: MetricRegistry) -> float | None:
    """Percent between the medians of two releases, epochs joined through the control; None where that cannot be had."""
    before, after = on_one_scale(series, previous, release, metrics)
    return percent(median(before), median(after)) if before and after else None


def explains(counted_pct: float, change_pct: float, is_rate: bool) -> bool:
    """Whether instructions that changed by so much explain a change of CPU per operation, or of a rate.

    >>> explains(45.0, -28.0, True), explains(1.6, 49.0, False), explains(-5.0, 4.0, False)
    (True, False, False)
    """
    if min(counted_pct, change_pct) <= -100.0:
        return False
    work, cost = math.log1p(counted_pct / 100.0), math.log1p(change_pct / 100.0) * (-1.0 if is_rate else 1.0)
    return work * cost > 0 and abs(work) >= EXPLAINING * abs(cost)


def unexplained_sentence(tier: Tier, moves: Sequence[Move]) -> str:
    """About the moves of a finding of this tier that instructions do not explain and that nothing has confirmed; empty
    where there are none."""
    doubted = [move for move in moves if move.counted_pct is not None and move.tier != "confirmed"]
    if not doubted:
        return ""
    worst = max(doubted, key=lambda move: (abs(move.change_pct), move.key.id))
    count = f"{len(doubted)} {'move of the time lane is' if len(doubted) == 1 else 'moves of the time lane are'}"
    changes = f"{worst.key.metric} {signed(worst.change_pct)}, instructions {signed(worst.counted_pct or 0.0)}"
    them = "it" if len(doubted) == 1 else "them"
    alone = any(move in doubted for move in carried_by(tier, moves))
    rest = "nothing else carries the finding, which proves nothing" if alone else f"no title names {them}"
    return (
        f"{count} not explained by counted instructions ({worst.key.test}: {changes}), and {rest} before later blocks "
        f"have shown {them} again."
    )
