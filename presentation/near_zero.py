"""How a change is told: in percent, or in units where one of the two levels is near zero. Pure.

`near_zero` of a metric's registry says from where on a level is as good as none; what the detector judged by it is in
the moves and groups of a finding.

>>> levels_text(0.0, 0.05), levels_text(0.0, 512.0, "KB")
('0 → 0.05', '0 → 512 KB')
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

from history.model import Move
from presentation.number_format import ABSENT, grouped, interval, median_of, signed


def levels_text(before: float, after: float, unit: str = "") -> str:
    return f"{grouped(before)} → {grouped(after)} {unit}".rstrip()


def change_of(move: Move) -> str:
    """`−5.6 %`, or `0 → 0.05`."""
    return levels_text(move.before, move.after, move.unit) if move.near_zero else signed(move.change_pct)


def interval_of(move: Move) -> str:
    """The 95 % interval of `change_of`; there is none in units."""
    return ABSENT if move.near_zero else interval(move.low_pct, move.high_pct)


def median_change(group: Mapping[str, Any]) -> str:
    """Of a row of `groups_frame`: absent where too few moved, and where there are only levels near zero."""
    return median_of(group["median_pct"], group["moved"]) if isnan(group["worst_before"]) else ABSENT


def worst_change(group: Mapping[str, Any]) -> str:
    """Of a row of `groups_frame`."""
    if not group["moved"]:
        return ABSENT
    if isnan(group["worst_before"]):
        return signed(group["worst_pct"])
    return levels_text(group["worst_before"], group["worst_after"])
