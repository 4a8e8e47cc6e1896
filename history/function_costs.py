"""Where two releases spend their instructions, function by function: the same function on both sides. Pure.

>>> from history.model import FunctionCost
>>> def cost(function, insn):
...     return FunctionCost(function=function, insn_per_op=insn, object="mysqld")
>>> changes = function_changes(
...     "scan",
...     [cost("row_sel_store_mysql_rec(unsigned char*, bool)", 174_000.0), cost("0x27bdca0", 5_755.0)],
...     [cost("row_sel_store_mysql_rec(unsigned char*)", 176_000.0), cost("0x27cd110", 5_755.0)],
... )
>>> [(change.function, change.before, change.after) for change in changes]
[('row_sel_store_mysql_rec', 174000.0, 176000.0), ('(unknown in mysqld)', 5755.0, 5755.0)]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from history.function_names import base_name, is_unknown, object_base, unknown_name
from history.model import TOP_FUNCTIONS, FunctionChange, FunctionCost, UnknownSide


class FunctionKey(NamedTuple):
    """What is the same function in two releases. All functions of an object that have no name are one."""

    name: str
    """Base name."""
    object: str
    """Without a version."""


def function_key(function: str, obj: str) -> FunctionKey:
    """The key of a function as callgrind named it."""
    name = unknown_name(obj) if is_unknown(function) else base_name(function)
    return FunctionKey(name, object_base(obj))


def costs_by_key(costs: Iterable[FunctionCost]) -> dict[FunctionKey, float]:
    """Instructions per operation of overloads, instances of templates and clones together."""
    sums: dict[FunctionKey, float] = defaultdict(float)
    for cost in costs:
        sums[function_key(cost.function, cost.object)] += cost.insn_per_op
    return dict(sums)


def function_changes(test: str, before: Sequence[FunctionCost], after: Sequence[FunctionCost]) -> list[FunctionChange]:
    """Functions of which something is known on both sides, the largest difference first; empty when a side is.

    Each side is what a block keeps of a test: the most expensive functions. One that only the other side has may have
    fallen off the end: it costs at most what the cheapest of the most expensive does, and is left out where it costs no
    more than that on the side that has it.
    """
    if not before or not after:
        return []
    left, right = costs_by_key(before), costs_by_key(after)
    right = _in_place_of(left, right)
    left_end, right_end = _end(left, len(before)), _end(right, len(after))
    names = Counter(key.name for key in {*left, *right})
    changes = []
    for key in {*left, *right}:
        old, new = left.get(key, left_end), right.get(key, right_end)
        unknown: UnknownSide = ""
        if key not in left and left_end:
            unknown = "before"
        elif key not in right and right_end:
            unknown = "after"
        if (unknown == "before" and new <= old) or (unknown == "after" and old <= new):
            continue
        name = key.name if names[key.name] == 1 else f"{key.name} ({key.object})"
        changes.append(FunctionChange(test=test, function=name, before=old, after=new, at_most=unknown))
    return sorted(changes, key=lambda change: (-abs(change.after - change.before), change.function))


def _end(costs: dict[FunctionKey, float], rows: int) -> float:
    """The most that a function can cost which is not among `costs`: 0 where none was left out."""
    if rows < TOP_FUNCTIONS:
        return 0.0
    return sorted(costs.values(), reverse=True)[:TOP_FUNCTIONS][-1]


def _in_place_of(left: dict[FunctionKey, float], right: dict[FunctionKey, float]) -> dict[FunctionKey, float]:
    """`right` with the object of `left` where a function is in one object on each side, and not in the same.

    So it is when the server's program got another name, or libc took in libpthread.
    """
    objects: tuple[dict[str, set[str]], ...] = (defaultdict(set), defaultdict(set))
    for side, costs in zip(objects, (left, right), strict=True):
        for key in costs:
            side[key.name].add(key.object)
    placed = {}
    for key, cost in right.items():
        here, there = objects[1][key.name], objects[0].get(key.name, set())
        moved = len(here) == len(there) == 1
        placed[FunctionKey(key.name, next(iter(there))) if moved else key] = cost
    return placed
