"""Reads a callgrind profile: total, self and inclusive cost by function, and calls. Pure.

The format (Valgrind manual, "Callgrind Format Specification"), with names compressed to numbers:

    events: Ir
    ob=(3) /opt/postgres/bin/postgres
    fn=(12) exec_simple_query
    0 1200                  self cost of a line
    cob=(2) /usr/lib/libc.so.6
    cfn=(40) memcpy         the callee, in the caller's object unless `cob` names another
    calls=1000 0
    0 98000                 cost of the calls, inclusive
    totals: 43029801

Callgrind tells a function that is called while it is active, `f'2`, from its outermost call, `f`. Outermost calls never
lie inside each other, so costs of these alone are added up: what is inclusive counts every instruction once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from runners.errors import CountingFailed

_NAME = re.compile(r"^(c?)(fn|ob)=\((\d+)\)(?: (.*))?$")
_COST = re.compile(r"^[+\-*]?\d*(?: [+\-*]?\d+)* (\d+)$")
_LEVEL = re.compile(r"'(\d+)$")


class ProfiledFunction(NamedTuple):
    """A function as callgrind names it, without its level of recursion, and the file name of its object."""

    name: str
    object: str


class Call(NamedTuple):
    """All calls of `callee` by `caller`."""

    caller: ProfiledFunction
    callee: ProfiledFunction


class CallCount(NamedTuple):
    """How often, and how many instructions with all that the callee calls."""

    calls: int
    instructions: int


@dataclass(frozen=True)
class CallgrindProfile:
    """One dump: instructions in all, self and inclusive cost by function, and the calls between functions."""

    total: int
    functions: dict[ProfiledFunction, int]
    """Self cost."""
    inclusive: dict[ProfiledFunction, int] = field(default_factory=dict)
    """With all that it calls, while it is active."""
    calls: dict[Call, CallCount] = field(default_factory=dict)
    """A call while both are active already counts as a call, without instructions: those are in an outer call."""


class _Frame(NamedTuple):
    function: ProfiledFunction
    level: int


def parse_profile(text: str) -> CallgrindProfile:
    """The profile in `text`; CountingFailed when it is none, or when its parts do not add up to its total."""
    if not re.search(r"^events: Ir$", text, re.MULTILINE):
        raise CountingFailed("the callgrind file counts no instructions; is it cut off?")
    names: dict[str, dict[str, str]] = {"fn": {}, "ob": {}}
    costs: dict[_Frame, int] = defaultdict(int)
    calls: dict[tuple[_Frame, _Frame], list[int]] = defaultdict(lambda: [0, 0])
    caller = callee = _frame("", "")
    obj, callee_object, count, total = "", None, 0, None
    for line in text.splitlines():
        if name := _NAME.match(line):
            called, kind, number, new = name.groups()
            if new is not None:
                names[kind][number] = new
            value = names[kind].get(number, "")
            if kind == "ob":
                obj, callee_object = (obj, value) if called else (value, callee_object)
            elif called:
                callee, callee_object = _frame(value, obj if callee_object is None else callee_object), None
            else:
                caller = _frame(value, obj)
        elif line.startswith("calls="):
            count = int(line.removeprefix("calls=").split()[0])
        elif line.startswith("totals:"):
            total = int(line.split()[1])
        elif cost := _COST.match(line):
            if count:
                edge = calls[caller, callee]
                edge[0] += count
                edge[1] += int(cost[1])
                count = 0
            else:
                costs[caller] += int(cost[1])
    if total is None:
        raise CountingFailed("the callgrind file has no total; is it cut off?")
    if sum(costs.values()) != total:
        raise CountingFailed(f"callgrind's functions add up to {sum(costs.values())}, its total is {total}")
    return _profile(total, costs, calls)


def _frame(name: str, obj: str) -> _Frame:
    level = _LEVEL.search(name)
    function = ProfiledFunction(_LEVEL.sub("", name), obj.rpartition("/")[2])
    return _Frame(function, int(level[1]) if level else 1)


def _profile(
    total: int, costs: Mapping[_Frame, int], calls: Mapping[tuple[_Frame, _Frame], list[int]]
) -> CallgrindProfile:
    """Levels folded. The lowest level of a function is its outermost one: counting may begin while it is active."""
    outermost: dict[ProfiledFunction, int] = {}
    for frame in (*costs, *(frame for edge in calls for frame in edge)):
        outermost[frame.function] = min(frame.level, outermost.get(frame.function, frame.level))
    functions: dict[ProfiledFunction, int] = defaultdict(int)
    inclusive: dict[ProfiledFunction, int] = defaultdict(int)
    edges: dict[Call, list[int]] = defaultdict(lambda: [0, 0])
    for frame, cost in costs.items():
        functions[frame.function] += cost
        if frame.level == outermost[frame.function]:
            inclusive[frame.function] += cost
    for (caller, callee), (count, cost) in calls.items():
        edge = edges[Call(caller.function, callee.function)]
        edge[0] += count
        if caller.level == outermost[caller.function]:
            inclusive[caller.function] += cost
            edge[1] += cost
        elif callee.level == outermost[callee.function]:
            edge[1] += cost
    return CallgrindProfile(
        total=total,
        functions=dict(functions),
        inclusive=dict(inclusive),
        calls={call: CallCount(*edge) for call, edge in edges.items()},
    )
