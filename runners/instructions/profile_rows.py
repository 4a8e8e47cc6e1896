"""What is kept of a callgrind profile: the most expensive functions and calls, per operation. Pure.

Functions without a name are one row an object, `???`: an address says nothing in another build, and alone most of them
would be too cheap to be kept. Of a function that is kept, every overload, instance and clone is, so that their sum is
that of the whole function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from history.function_costs import FunctionKey, function_key
from history.function_names import NO_NAME, is_unknown
from history.model import TOP_CALLS, TOP_FUNCTIONS, CallCost, FunctionCost
from runners.instructions.callgrind import CallgrindProfile, ProfiledFunction

#: A call with less of the instructions than this is not kept.
LEAST_CALL_PCT = 0.1


def profile_rows(profile: CallgrindProfile, operations: float) -> tuple[tuple[FunctionCost, ...], tuple[CallCost, ...]]:
    """The TOP_FUNCTIONS most expensive functions by self cost and the ends of the calls that are kept; and these calls,
    at most TOP_CALLS, each of at least LEAST_CALL_PCT. Both the most expensive first."""
    calls = _calls(profile, operations)
    ends = {
        ProfiledFunction(*end)
        for call in calls
        for end in ((call.caller, call.caller_object), (call.callee, call.callee_object))
    }
    self_costs = _folded(profile.functions.items())
    by_key: dict[FunctionKey, int] = defaultdict(int)
    for function, cost in self_costs.items():
        by_key[function_key(*function)] += cost
    kept = set(sorted(by_key, key=lambda key: (-by_key[key], key))[:TOP_FUNCTIONS])
    kept |= {function_key(*end) for end in ends}
    rows = [
        FunctionCost(
            function=function.name,
            object=function.object,
            insn_per_op=self_costs.get(function, 0) / operations,
            inclusive_per_op=None if function.name == NO_NAME else profile.inclusive.get(function, 0) / operations,
        )
        for function in {*self_costs, *ends}
        if function_key(*function) in kept
    ]
    return tuple(sorted(rows, key=lambda row: (-row.insn_per_op, row.function, row.object))), calls


def _calls(profile: CallgrindProfile, operations: float) -> tuple[CallCost, ...]:
    calls: dict[tuple[ProfiledFunction, ProfiledFunction], list[int]] = defaultdict(lambda: [0, 0])
    for call, count in profile.calls.items():
        ends = _named(call.caller), _named(call.callee)
        if ends[0] == ends[1] and ends[0].name == NO_NAME:
            continue  # from one function without a name to another: each may lie inside another
        calls[ends][0] += count.calls
        calls[ends][1] += count.instructions
    least = profile.total * LEAST_CALL_PCT / 100
    ranked = sorted(calls.items(), key=lambda item: (-item[1][1], item[0]))
    return tuple(
        CallCost(
            caller=caller.name,
            caller_object=caller.object,
            callee=callee.name,
            callee_object=callee.object,
            calls_per_op=count / operations,
            insn_per_op=instructions / operations,
        )
        for (caller, callee), (count, instructions) in ranked[:TOP_CALLS]
        if instructions >= least
    )


def _named(function: ProfiledFunction) -> ProfiledFunction:
    return ProfiledFunction(NO_NAME, function.object) if is_unknown(function.name) else function


def _folded(costs: Iterable[tuple[ProfiledFunction, int]]) -> dict[ProfiledFunction, int]:
    sums: dict[ProfiledFunction, int] = defaultdict(int)
    for function, cost in costs:
        sums[_named(function)] += cost
    return dict(sums)
