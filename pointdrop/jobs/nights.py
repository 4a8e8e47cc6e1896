"""Which work of a night comes first, and what does not fit any more. Pure.

What costs minutes and answers for every line comes first: the instructions lane. Then the newest line of each DBMS and
benchmark, in the order of the plan, then the line before it: when time runs out, the oldest lines are left for the next
night, of all DBMS alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from history.versions import version_key
from pointdrop.jobs.picks import Work
from runners.sessions import Estimate

SECONDS_A_MINUTE = 60.0


def in_turn(work: Sequence[Work]) -> list[Work]:
    """`work` in the order in which it is done; the plan's order decides where nothing else does."""
    lines: dict[str, set[str]] = {}
    for one in work:
        lines.setdefault(one.measure.dbms, set()).add(one.line or "0")
    newest = {
        dbms: sorted(names, key=lambda line: version_key(dbms, line), reverse=True) for dbms, names in lines.items()
    }

    def turn(one: Work) -> int:
        return 1 + newest[one.measure.dbms].index(one.line or "0") if one.measure.lane == "time" else 0

    return sorted(work, key=turn)


def begins(wanted: Estimate, left_s: float | None) -> bool:
    """Whether one block of it would end in the time that is left; a session that began goes on the next night."""
    return left_s is None or not wanted.blocks or wanted.seconds / wanted.blocks <= left_s


def tonight(wanted: Sequence[Estimate], budget_minutes: float | None) -> list[bool]:
    """Which of the work, done one after the other, begins within the budget."""
    left = None if budget_minutes is None else budget_minutes * SECONDS_A_MINUTE
    found = []
    for one in wanted:
        found.append(begins(one, left))
        if left is not None and found[-1]:
            left = max(0.0, left - one.seconds)
    return found


def left_out(work: Sequence[Work], budget_minutes: float) -> str:
    """A sentence about what was not begun."""
    names = ", ".join(
        " ".join(filter(None, (one.measure.dbms, one.line, one.measure.benchmark, one.config))) for one in work
    )
    return f"left for the next night, since {max(0.0, budget_minutes):.0f} minutes do not hold it: {names}"
