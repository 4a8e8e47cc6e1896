"""A bisection in words and in rows. Pure."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from detector.bisect import Answer
from pointdrop.jobs.bisect import Bisection


def levels_of(bisection: Bisection) -> dict[str, float]:
    """The mean of each candidate that was measured, in the metric's unit."""
    return {name: fmean(values) for name, values in bisection.values.items() if values}


def answer_text(bisection: Bisection, answer: Answer) -> str:
    """The answer in a sentence."""
    if answer.exact:
        return f"{answer.first} is the first at the new level of {bisection.test} ({bisection.metric})."
    if not answer.differ:
        return f"There is nothing to find: {answer.reason}."
    inside = ", ".join((*answer.between, answer.first))
    return f"The change came after {answer.after}, with one of {inside}: {answer.reason}."


def candidate_rows(bisection: Bisection) -> list[dict[str, Any]]:
    """A row for each candidate that was measured or could not be, in order; changes are relative to the first one."""
    levels = levels_of(bisection)
    reference = levels.get(bisection.machine.candidates[0])
    rows = []
    for name in bisection.machine.candidates:
        if name in levels or name in bisection.notes:
            level = levels.get(name)
            change = None if level is None or not reference else round(100 * (level / reference - 1), 4)
            side = bisection.machine.tried[name].side if name in bisection.machine.tried else "end"
            note = bisection.notes.get(name, "")
            rows.append({"candidate": name, "level": level, "change_pct": change, "side": side, "note": note})
    return rows


def answer_lines(bisection: Bisection, answer: Answer) -> list[str]:
    """The answer, then what was measured."""
    lines = [answer_text(bisection, answer)]
    for row in candidate_rows(bisection):
        if row["change_pct"] is not None:
            lines.append(f"  {row['candidate']:<42} {row['level']:>16,.1f}  {row['change_pct']:+7.2f} %  {row['side']}")
    return [*lines, *(f"  {name}: {why}" for name, why in bisection.notes.items())]
