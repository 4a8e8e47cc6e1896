"""Functions of two releases side by side: what is one function, what is gone, and what is only not known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from history.function_costs import costs_by_key, function_changes
from history.model import TOP_FUNCTIONS, FunctionCost

Rows = dict[tuple[str, str], float]


def costs(rows: Rows) -> tuple[FunctionCost, ...]:
    return tuple(FunctionCost(function=name, object=obj, insn_per_op=insn) for (name, obj), insn in rows.items())


def changes(before: Rows, after: Rows) -> dict[str, tuple[float, float, str]]:
    return {
        change.function: (change.before, change.after, change.at_most)
        for change in function_changes("scan", costs(before), costs(after))
    }


def test_a_changed_signature_is_the_same_function() -> None:
    before = {("row_sel_store_mysql_rec(unsigned char*, row_prebuilt_t*)", "mysqld"): 174_000.0}
    after = {
        ("row_sel_store_mysql_rec(unsigned char*, row_prebuilt_t*, bool)", "mysqld"): 170_000.0,
        ("row_sel_store_mysql_rec(unsigned char*, row_prebuilt_t*, bool) [clone .part.0]", "mysqld"): 6_000.0,
    }
    assert changes(before, after) == {"row_sel_store_mysql_rec": (174_000.0, 176_000.0, "")}


def test_functions_without_a_name_are_one_of_their_object() -> None:
    before = {("0x00000000027bdca0", "mysqld"): 5_000.0, ("0x1234", "libz.so.1"): 100.0}
    after = {("???", "mysqld"): 5_755.0, ("0x99", "libz.so.1.3"): 100.0, ("0x9a", "libz.so.1.3"): 50.0}
    assert changes(before, after) == {
        "(unknown in mysqld)": (5_000.0, 5_755.0, ""),
        "(unknown in libz.so)": (100.0, 150.0, ""),
    }


def test_an_object_has_one_name_whatever_its_version() -> None:
    before = {("memcpy", "libc-2.31.so"): 10.0, ("malloc", "libc-2.31.so"): 7.0, ("malloc", "libjemalloc.so.1"): 3.0}
    after = {("memcpy", "libc.so.6"): 12.0, ("malloc", "libc.so.6"): 6.0, ("malloc", "libjemalloc.so.2"): 5.0}
    assert changes(before, after) == {
        "memcpy": (10.0, 12.0, ""),
        "malloc (libc.so)": (7.0, 6.0, ""),
        "malloc (libjemalloc.so)": (3.0, 5.0, ""),
    }


def test_a_function_that_moved_to_another_object_is_followed_where_there_is_one_of_its_name() -> None:
    assert changes(
        {("dispatch_command(THD*)", "mysqld"): 10.0}, {("dispatch_command(THD*, bool)", "mariadbd"): 12.0}
    ) == {"dispatch_command": (10.0, 12.0, "")}
    before = {("crc32", "mysqld"): 10.0}
    after = {("crc32", "libz.so.1"): 4.0, ("crc32", "libboot.so"): 5.0}
    assert changes(before, after) == {
        "crc32 (mysqld)": (10.0, 0.0, ""),
        "crc32 (libz.so)": (0.0, 4.0, ""),
        "crc32 (libboot.so)": (0.0, 5.0, ""),
    }


def test_nothing_is_said_without_both_sides() -> None:
    assert function_changes("scan", (), costs({("f", "mysqld"): 1.0})) == []


INSN = st.integers(1, 1_000).map(float)
NAMES = [f"f{number}" for number in range(2 * TOP_FUNCTIONS)]
PROFILES = st.lists(INSN, min_size=len(NAMES), max_size=len(NAMES)).map(
    lambda insn: dict(zip(NAMES, insn, strict=True))
)


def kept(profile: dict[str, float]) -> tuple[FunctionCost, ...]:
    """What a block keeps: the most expensive functions."""
    top = sorted(profile, key=lambda name: (-profile[name], name))[:TOP_FUNCTIONS]
    return costs({(name, "mysqld"): profile[name] for name in top})


@given(PROFILES, PROFILES)
def test_whatever_is_said_of_truncated_lists_is_true(before: dict[str, float], after: dict[str, float]) -> None:
    for change in function_changes("scan", kept(before), kept(after)):
        old, new = before[change.function], after[change.function]
        assert old <= change.before if change.at_most == "before" else old == change.before
        assert new <= change.after if change.at_most == "after" else new == change.after
        if change.at_most:
            assert abs(new - old) >= abs(change.after - change.before) > 0


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["f(int)", "f(long)", "0x1", "0x2", "g"]), st.sampled_from(["a", "b.so.1"])), INSN
    )
)
def test_folding_loses_no_instruction(rows: Rows) -> None:
    assert sum(costs_by_key(costs(rows)).values()) == sum(rows.values())
