"""What is kept of a profile: whole functions, no addresses, calls whose ends are there, and all of it bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.function_costs import costs_by_key
from history.model import TOP_CALLS, TOP_FUNCTIONS, FunctionCost
from runners.instructions.callgrind import Call, CallCount, CallgrindProfile, ProfiledFunction
from runners.instructions.profile_rows import LEAST_CALL_PCT, profile_rows


def test_functions_without_a_name_are_one_row_of_their_object() -> None:
    serve, first, second = (ProfiledFunction(name, "mysqld") for name in ("serve", "0x1a", "0x2b"))
    profile = CallgrindProfile(
        total=1000,
        functions={serve: 100, first: 500, second: 400},
        inclusive={serve: 1000, first: 900, second: 400},
        calls={
            Call(serve, first): CallCount(10, 700),
            Call(serve, second): CallCount(20, 200),
            Call(first, second): CallCount(5, 200),
        },
    )
    functions, calls = profile_rows(profile, 10.0)
    assert [(row.function, row.object, row.insn_per_op, row.inclusive_per_op) for row in functions] == [
        ("???", "mysqld", 90.0, None),
        ("serve", "mysqld", 10.0, 100.0),
    ]
    assert [(row.caller, row.callee, row.calls_per_op, row.insn_per_op) for row in calls] == [
        ("serve", "???", 3.0, 90.0)
    ]


def test_every_part_of_a_function_that_is_kept_is_kept() -> None:
    names = ["rec_copy(rec_t*)", "rec_copy(rec_t*) [clone .part.0]", "rec_copy(rec_t const*, bool)"]
    others = [f"f{number}" for number in range(2 * TOP_FUNCTIONS)]
    costs = {ProfiledFunction(name, "mysqld"): 10 for name in names} | {
        ProfiledFunction(name, "mysqld"): 20 for name in others
    }
    functions, _ = profile_rows(CallgrindProfile(sum(costs.values()), costs), 1.0)
    assert {row.function for row in functions} >= set(names), "30 together, though 10 each"
    assert len(costs_by_key(functions)) == TOP_FUNCTIONS


FUNCTIONS = st.builds(
    ProfiledFunction,
    st.sampled_from([*(f"f{number}(int)" for number in range(60)), "f1(long)", "0x10", "0x20", "???"]),
    st.sampled_from(["mysqld", "libc.so.6"]),
)
PROFILES = st.builds(
    CallgrindProfile,
    total=st.integers(1, 10_000),
    functions=st.dictionaries(FUNCTIONS, st.integers(1, 1_000), max_size=80),
    inclusive=st.dictionaries(FUNCTIONS, st.integers(1, 10_000), max_size=80),
    calls=st.dictionaries(
        st.builds(Call, FUNCTIONS, FUNCTIONS),
        st.builds(CallCount, st.integers(1, 9), st.integers(0, 10_000)),
        max_size=80,
    ),
)


@given(PROFILES, st.integers(1, 1_000))
def test_calls_are_bounded_and_their_ends_are_there(profile: CallgrindProfile, operations: int) -> None:
    functions, calls = profile_rows(profile, operations)
    assert len(calls) <= TOP_CALLS
    assert all(call.insn_per_op * operations >= profile.total * LEAST_CALL_PCT / 100 * 0.999 for call in calls)
    ends = {(call.caller, call.caller_object) for call in calls} | {(call.callee, call.callee_object) for call in calls}
    assert ends <= {(row.function, row.object) for row in functions}
    assert not [row for row in functions if row.function.startswith("0x")]
    whole = costs_by_key(
        FunctionCost(function=function.name, object=function.object, insn_per_op=cost / operations)
        for function, cost in profile.functions.items()
    )
    for key, insn in costs_by_key(functions).items():
        assert insn == pytest.approx(whole.get(key, 0.0)), "no part of a function that is kept is missing"
    for rows in (functions, calls):
        assert [row.insn_per_op for row in rows] == sorted((row.insn_per_op for row in rows), reverse=True)
