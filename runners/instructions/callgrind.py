"""Reads a callgrind profile: total and self cost by function. Pure.

The format (Valgrind manual, "Callgrind Format Specification"), with names compressed to numbers:

    events: Ir
    ob=(3) /opt/postgres/bin/postgres
    fn=(12) exec_simple_query
    0 1200                  self cost of a line
    cfn=(40) PortalRun
    calls=1000 0
    0 98000                 cost of the calls, inclusive: not ours
    totals: 43029801
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from runners.errors import CountingFailed

_NAME = re.compile(r"^(c?)(fn|ob|fl|fi|fe)=\((\d+)\)(?: (.*))?$")
_COST = re.compile(r"^[+\-*]?\d*(?: [+\-*]?\d+)* (\d+)$")
#: Callgrind tells recursion levels apart with a suffix.
_RECURSION = re.compile(r"'\d+$")


@dataclass(frozen=True)
class CallgrindProfile:
    """One dump: instructions in all, and self cost by (function, object)."""

    total: int
    functions: dict[tuple[str, str], int]

    def top(self, count: int) -> list[tuple[str, str, int]]:
        """(function, object, instructions), the most expensive first."""
        ranked = sorted(self.functions.items(), key=lambda item: (-item[1], item[0]))
        return [(function, obj, cost) for (function, obj), cost in ranked[:count]]


def parse_profile(text: str) -> CallgrindProfile:
    """The profile in `text`; CountingFailed when it is none, or when its parts do not add up to its total."""
    if not re.search(r"^events: Ir$", text, re.MULTILINE):
        raise CountingFailed("the callgrind file counts no instructions; is it cut off?")
    functions: dict[str, str] = {}
    objects: dict[str, str] = {}
    costs: dict[tuple[str, str], int] = {}
    where = ("", "")
    obj, inclusive, total = "", False, None
    for line in text.splitlines():
        name = _NAME.match(line)
        if name:
            called, kind, number, new = name.groups()
            names = functions if kind == "fn" else objects if kind == "ob" else None
            if names is not None:
                if new is not None:
                    names[number] = _RECURSION.sub("", new) if kind == "fn" else new.rpartition("/")[2]
                if not called:
                    if kind == "ob":
                        obj = names[number]
                    else:
                        where = (names[number], obj)
        elif line.startswith("calls="):
            inclusive = True
        elif line.startswith("totals:"):
            total = int(line.split()[1])
        elif cost := _COST.match(line):
            if not inclusive:
                costs[where] = costs.get(where, 0) + int(cost[1])
            inclusive = False
    if total is None:
        raise CountingFailed("the callgrind file has no total; is it cut off?")
    if sum(costs.values()) != total:
        raise CountingFailed(f"callgrind's functions add up to {sum(costs.values())}, its total is {total}")
    return CallgrindProfile(total=total, functions=costs)
