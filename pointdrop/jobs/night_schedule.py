"""Which work of a night comes first, and what does not fit any more. Pure.

What costs minutes and answers for every line comes first: the instructions lane. Then the newest line of each DBMS and
benchmark, in the order of the plan, then the line before it: when time runs out, the oldest lines are left for the next
night, of all DBMS alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from history.versions import version_key
from pointdrop.jobs.release_selection import Work
from runners.sessions import Estimate

SECONDS_A_MINUTE = 60.0
#: A night of which so much is left is whole: looking for releases that are here already takes a while, too.
WHOLE_SHARE = 0.9


def in_night_order(work: Sequence[Work]) -> list[Work]:
    """`work` in the order in which it is done; the plan's order decides where nothing else does."""
    lines: dict[str, set[str]] = {}
    for item in work:
        lines.setdefault(item.measure.dbms, set()).add(item.line or "0")

    def turn(item: Work) -> int:
        dbms, line = item.measure.dbms, version_key(item.measure.dbms, item.line or "0")
        return 1 + sum(version_key(dbms, other) > line for other in lines[dbms]) if item.measure.lane == "time" else 0

    return sorted(work, key=turn)


def fits(wanted: Estimate, left_s: float | None, budget_s: float | None = None) -> bool:
    """Whether one block of it would end in the time that is left, or the whole budget is; a session that began goes on
    the next night."""
    return left_s is None or not wanted.blocks or wanted.block_s <= left_s or is_whole(left_s, budget_s)


def is_whole(left_s: float | None, budget_s: float | None) -> bool:
    """Whether a block begins however long it is expected to take: no later night has more time for it, and one that
    ends late is better than one that is put off for ever."""
    return left_s is not None and budget_s is not None and left_s > 0 and left_s >= WHOLE_SHARE * budget_s


def within_budget(wanted: Sequence[Estimate], budget_minutes: float | None, before_s: float = 0.0) -> list[bool]:
    """Which of the work, done one after the other, begins within the budget when each takes the middle of its range;
    sessions that were begun on an earlier night take `before_s` seconds of it first."""
    budget = None if budget_minutes is None else budget_minutes * SECONDS_A_MINUTE
    left = None if budget is None else max(0.0, budget - before_s)
    fitting = []
    for estimate in wanted:
        fitting.append(fits(estimate, left, budget))
        if left is not None and fitting[-1]:
            left = max(0.0, left - estimate.middle_s)
    return fitting


def without_pending(work: Sequence[Work], begun: Sequence[Work]) -> list[Work]:
    """`work` without what sessions that go on first will have measured; a confirmation stays whole."""
    remaining = []
    for item in work:
        done = {release.version for other in begun if _counts_for(other, item) for release in other.candidates}
        left = tuple(release for release in item.candidates if item.again or release.version not in done)
        if left:
            remaining.append(replace(item, candidates=left))
    return remaining


def _counts_for(begun: Work, wanted: Work) -> bool:
    has, wants = begun.measure, wanted.measure
    return (has.dbms, has.benchmark, has.lane, begun.config) == (
        wants.dbms, wants.benchmark, wants.lane, wanted.config,
    ) and has.blocks >= wants.blocks  # fmt: skip


def postponed_text(work: Sequence[Work], budget_minutes: float) -> str:
    """A sentence about what was not begun."""
    names = ", ".join(
        " ".join(filter(None, (item.measure.dbms, item.line, item.measure.benchmark, item.config))) for item in work
    )
    return f"left for the next night, since {max(0.0, budget_minutes):.0f} minutes do not hold it: {names}"
