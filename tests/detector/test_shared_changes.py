"""Which findings are one change: similarity, groups, and steps between majors, as pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.explained_majors import explain_majors
from detector.shared_changes import Group, groups, tie
from detector.signatures import Signature, agreement, contained, signature_of, similarity
from history.model import MAJORS, Finding, FunctionChange, Part, Release, Series, SettingsSplit, SplitRow, Tier
from tests.builders import METRICS, finding, move, series, series_key

DAY, OTHER_DAY = date(2026, 2, 12), date(2026, 5, 14)
FIX = {"pg_mblen": -595_000.0, "pg_mblen_with_len": 1_904_000.0, "pg_mbstrlen_with_len": 119_000.0}
OTHER = {"ExecScan": 1_400_000.0}


def step(
    line: str,
    release: str,
    changes: Mapping[str, float],
    functions: Mapping[str, float] | None = None,
    tier: Tier = "confirmed",
    **of: str,
) -> Finding:
    """A regression in counted instructions, with the functions of its first test."""
    test = next(iter(changes))
    made = finding(
        release, f"{release}-before", line=line, tier=tier, changes=changes, plans=False, functions=False, **of
    )  # type: ignore[arg-type]
    return made.model_copy(
        update={
            "moves": tuple(
                move.model_copy(update={"tier": tier, "judged_in": int(tier != "provisional")}) for move in made.moves
            ),
            "functions": tuple(
                FunctionChange(test=test, function=name, before=max(0.0, -by), after=max(0.0, by))
                for name, by in (functions or {}).items()
            ),
        }
    )


def signed(one: Finding, *days: date, measured: tuple[str, ...] = ()) -> Signature:
    moved = signature_of(one, (), days, METRICS)
    more = {key._replace(test=test) for key in moved.steps for test in measured}
    return signature_of(one, more, days, METRICS)


def test_functions_decide_where_both_have_them() -> None:
    left, right = step("17", "17.8", {"scan": 44.2}, FIX), step("18", "18.2", {"scan": 44.9}, FIX)
    alike = similarity(signed(left), signed(right))
    assert alike.enough and alike.by_functions and not alike.same_day and alike.value > 0.98
    apart = similarity(signed(left), signed(step("18", "18.2", {"scan": 44.2}, OTHER), DAY))
    assert not apart.enough and apart.value == pytest.approx(0.3)


def test_tests_and_sizes_alone_have_to_agree_more_and_in_two_tests() -> None:
    changes = {"scan": 44.0, "insert": 20.0}
    left = step("17", "17.8", changes)
    assert similarity(signed(left), signed(step("18", "18.2", {"scan": 46.0, "insert": 19.0}))).enough
    assert not similarity(signed(left), signed(step("18", "18.2", {"scan": 44.0, "insert": 4.0}))).enough
    one, other = step("17", "17.8", {"scan": 44.0}), step("18", "18.2", {"scan": 44.0})
    assert not similarity(signed(one), signed(other)).enough, "one test of one size may be anything"
    assert similarity(signed(one, DAY), signed(other, DAY)).enough
    assert not similarity(signed(one, DAY), signed(other, OTHER_DAY)).enough
    assert not similarity(signed(one, DAY), signed(other)).enough, "a day that is not known is no evidence"


def test_a_day_in_common_lowers_what_is_asked() -> None:
    left, right = (
        step("17", "17.8", {"scan": 44.0, "insert": 20.0}),
        step("18", "18.2", {"scan": 44.0, "insert": 6.0}),
    )
    assert not similarity(signed(left), signed(right)).enough
    assert similarity(signed(left, DAY, OTHER_DAY), signed(right, DAY)).enough


def test_a_test_that_one_line_did_not_measure_says_nothing() -> None:
    left, right = (
        step("17", "17.8", {"scan": 44.0, "insert": 40.0, "delete": 40.0}),
        step("18", "18.2", {"scan": 44.0, "insert": 40.0}),
    )
    assert similarity(signed(left), signed(right)).value == pytest.approx(1.0)
    assert similarity(signed(left), signed(right, measured=("delete",))).value == pytest.approx(0.68, abs=0.01)


def test_what_was_counted_is_not_blurred_by_time() -> None:
    sides = []
    for line, release, slower in (("17", "17.8", -28.0), ("18", "18.2", -9.0)):
        counted = step(line, release, {"scan": 44.0, "insert": 20.0})
        timed = move(series_key("scan", "qps", line=line), 2000.0, slower)
        sides.append(signed(counted.model_copy(update={"moves": (*counted.moves, timed)})))
    assert similarity(*sides).value == pytest.approx(1.0)


@pytest.mark.parametrize(
    "other",
    [
        step("17", "17.9", {"scan": 44.0}, FIX),
        step("8.0", "8.0.30", {"scan": 44.0}, FIX, dbms="mysql"),
        step("18", "18.2", {"scan": 44.0}, FIX, kind="improvement"),
    ],
)
def test_other_lines_of_the_same_dbms_and_direction_alone_are_compared(other: Finding) -> None:
    assert similarity(signed(step("17", "17.8", {"scan": 44.0}, FIX)), signed(other)).value == 0.0


amounts = st.dictionaries(st.sampled_from("abcd"), st.floats(-1e6, 1e6), max_size=4)


@given(amounts, amounts)
def test_agreement_is_a_share_and_the_same_both_ways(left: dict[str, float], right: dict[str, float]) -> None:
    assert agreement(left, right) == agreement(right, left)
    assert 0.0 <= agreement(left, right) <= 1.0 and 0.0 <= contained(left, right) <= 1.0
    if any(left.values()):
        assert agreement(left, left) == pytest.approx(1.0) == contained(left, left)
        assert agreement(left, right) <= contained(left, right) + 1e-9


findings = st.lists(
    st.builds(
        lambda line, point, tier, scan, insert, functions: step(
            line, f"{line}.{point}", {"scan": scan, "insert": insert}, functions, tier
        ),
        st.sampled_from(["14", "15", "16", "17", "18"]),
        st.integers(1, 9),
        st.sampled_from(["confirmed", "provisional"]),
        st.sampled_from([2.0, 30.0, 40.0, 44.0]),
        st.sampled_from([2.0, 20.0]),
        st.sampled_from([None, FIX, OTHER]),
    ),
    max_size=12,
    unique_by=lambda one: one.key,
)


@settings(max_examples=80, deadline=None)
@given(findings, st.randoms())
def test_groups_are_a_partition_into_stars(made: list[Finding], random: object) -> None:
    signatures = {one.key: signed(one) for one in made}
    result = groups(made, signatures)
    told = [one.key for group in result for one in (group.lead, *(member for member, _ in group.members))]
    assert sorted(told) == sorted(signatures), "each finding is in one group, once"
    for group in result:
        lines = [group.lead.line, *(member.line for member, _ in group.members)]
        assert len(set(lines)) == len(lines), "a line has one row"
        for member, alike in group.members:
            assert alike.enough and alike == similarity(signatures[group.lead.key], signatures[member.key])
            assert similarity(signatures[member.key], signatures[group.lead.key]) == alike, "symmetric"
            assert group.lead.tier == "confirmed" or member.tier == "provisional", "the surest leads"
    random.shuffle(made)  # type: ignore[attr-defined]
    assert {_names(group) for group in groups(made, signatures)} == {_names(group) for group in result}


def _names(group: Group) -> tuple[str, ...]:
    return group.lead.key, *(member.key for member, _ in group.members)


def test_resemblances_do_not_chain() -> None:
    """14 is like 16 and 16 like 18, but 14 is not like 18: it is not in the change that 18 leads."""
    changes = {"14": 20.2, "16": 24.0, "18": 28.5}
    made = [step(line, f"{line}.2", {"scan": size, "insert": size}) for line, size in changes.items()]
    signatures = {one.key: signed(one) for one in made}
    low, middle, high = made
    assert similarity(signatures[low.key], signatures[middle.key]).enough
    assert similarity(signatures[middle.key], signatures[high.key]).enough
    assert not similarity(signatures[low.key], signatures[high.key]).enough
    assert [_names(group) for group in groups(made, signatures)] == [(high.key, middle.key), (low.key,)]


def test_findings_keep_their_order_and_all_but_the_telling() -> None:
    made = [step("18", "18.2", {"scan": 44.9}, FIX), step("17", "17.8", {"scan": 44.2}, FIX)]
    told = tie(made, [], [], METRICS)
    assert [one.key for one in told] == [one.key for one in made]
    for before, after in zip(made, told, strict=True):
        same = {"moves", "groups", "functions", "tier", "release", "previous", "kind"}
        assert before.model_dump(include=same) == after.model_dump(include=same)
    assert told[1].same_as == made[0].key and [row.finding for row in told[0].lines] == [made[1].key]


def released(dbms: str, day: date, *versions: str) -> list[Release]:
    lines = {version: version.rpartition(".")[0] for version in versions}
    return [Release(dbms=dbms, version=version, line=line, released=day) for version, line in lines.items()]


def test_a_boundary_over_several_releases_has_their_days() -> None:
    """17.9 after 17.6: a release between them came out on the day of 18.2, as did 16.12 and 15.16."""
    wide = step("17", "17.9", {"scan": 44.2}, FIX).model_copy(update={"unmeasured": ("17.7", "17.8")})
    releases = released("postgres", DAY, "18.2", "17.8", "16.12", "15.16")
    releases += released("postgres", OTHER_DAY, "17.9", "14.20")
    lead, _ = tie([step("18", "18.2", {"scan": 44.9}, FIX), wide], [], releases, METRICS)
    assert lead.evidence[-1].endswith(", and releases of the same day are in both suspect ranges.")
    assert [row.release for row in lead.probably_affected] == ["16.12", "15.16"]
    two_days = [one.model_copy(update={"unmeasured": (f"{one.line}.1",)}) for one in (wide, lead)]
    also = [*releases, *released("postgres", OTHER_DAY, "17.1", "18.1"), *released("postgres", DAY, "17.9")]
    assert tie(two_days, [], also, METRICS)[1].probably_affected == (), "which of two days it was is not known"


def test_lines_of_mysql_and_the_steps_between_them_are_no_different() -> None:
    """A merge came to 8.0.46, 8.4.9 and 9.7.1; of 8.4 the newest release alone was measured."""
    made = [
        step(line, release, {"scan": 12.0, "insert": 6.0}, OTHER, dbms="mysql")
        for line, release in (("8.0", "8.0.46"), ("9.7", "9.7.1"))
    ]
    between = step(MAJORS, "8.4.10", {"scan": 12.1, "insert": 6.0}, OTHER, dbms="mysql")
    between = between.model_copy(update={"previous": "5.7.44"})
    releases = released("mysql", DAY, "8.0.46", "8.4.9", "9.7.1", "26.7.1")
    old, new, steps = tie([*made, between], [], releases, METRICS)
    assert [(row.line, row.release) for row in new.lines] == [("8.0", "8.0.46"), ("8.4", "8.4.10")]
    assert old.same_as == new.key == steps.folded_under
    assert [row.line for row in new.probably_affected] == ["26.7"]


@pytest.mark.parametrize("update", [{"tier": "unconfirmed"}, {"cause": "toolchain"}, {"kind": "environment"}])
def test_what_was_refuted_or_is_not_of_the_product_is_no_line(update: dict[str, object]) -> None:
    made = [step("18", "18.2", {"scan": 44.9}, FIX), step("17", "17.8", {"scan": 44.2}, FIX).model_copy(update=update)]
    assert [one.lines or one.same_as for one in tie(made, [], [], METRICS)] == ["", ""]


def between(size: float, tier: Tier = "confirmed", functions: Mapping[str, float] | None = None) -> Finding:
    made = step(MAJORS, "18.6", {"scan": size, "insert": 3.0}, functions, tier)
    return made.model_copy(update={"previous": "17.11"})


def explained(*made: Finding, releases: tuple[Release, ...] = ()) -> dict[str, Finding]:
    signatures = {one.key: signed(one) for one in made if one.line != MAJORS}
    return explain_majors({one.key: one for one in made}, signatures, releases, METRICS)


@pytest.mark.parametrize(
    ("size", "whole"),
    [(45.6, True), (49.0, True), (60.0, False), (200.0, False), (600.0, None), (12.0, None), (-30.0, None)],
)
def test_what_explains_too_little_or_too_much_explains_nothing(size: float, whole: bool | None) -> None:
    lead, majors = step("18", "18.2", {"scan": 44.9}, FIX), between(size)
    told = explained(lead, majors)[majors.key]
    assert [one.whole for one in told.explained] == ([] if whole is None else [whole])
    assert told.explained_by == (() if whole is None else (lead.key,))
    assert len(told.moves) == (1 if whole else 2), "the insert has another cause"


def test_a_noisy_step_that_is_a_little_less_than_its_part_is_explained() -> None:
    """9.7.4 after 9.7.0: −11.6 %, and between majors −9.1 %: the clock cannot tell these apart."""
    lead, majors = step("18", "18.2", {"scan": 14.0}, FIX), step(MAJORS, "18.6", {"scan": 10.0})
    majors = majors.model_copy(update={"previous": "17.11"})
    assert not explained(lead, majors)[majors.key].explained
    noisy = majors.model_copy(update={"moves": (majors.moves[0].model_copy(update={"mde_pct": 5.0}),)})
    assert explained(lead, noisy)[majors.key].folded_under == lead.key


def test_what_is_sure_is_not_hidden_behind_what_is_not() -> None:
    lead, majors = step("18", "18.2", {"scan": 44.9}, FIX, tier="provisional"), between(45.0)
    (one,) = explained(lead, majors)[majors.key].explained
    assert not one.whole
    (one,) = explained(lead, between(45.0, "provisional"))[majors.key].explained
    assert one.whole


def test_releases_above_the_step_and_other_lines_explain_nothing() -> None:
    majors = between(45.0)
    for other in (step("18", "18.7", {"scan": 44.9}), step("16", "16.2", {"scan": 44.9})):
        assert explained(other, majors)[majors.key] == majors


def test_two_point_releases_explain_their_product() -> None:
    majors = between(69.0)
    both = step("18", "18.2", {"scan": 30.0}), step("18", "18.4", {"scan": 30.0})
    findings = explained(*both, majors)
    told = findings[majors.key]
    (one,) = told.explained
    assert "The changes at 18.2 and 18.4 explain all of the +69.0 % in scan (insn/o)." in told.evidence
    assert any(
        line.startswith("Between majors, 17 → 18: this and the change at 18.4 explain all of the +69.0 %")
        for line in findings[both[0].key].evidence
    )
    assert one.explained_pct == pytest.approx(69.0) and one.whole and len(one.by) == len(told.explained_by) == 2


def test_what_went_the_other_way_and_what_both_sides_have_is_named_where_it_is_taken_off() -> None:
    """+44.9 % at 18.2, −10 % at 18.4 and +5 % at 17.3 are +24.2 % between 17.11 and 18.6, not +44.9 %."""
    gain = finding("18.4", "18.3", line="18", kind="improvement", changes={"scan": 10.0}, plans=False, functions=False)
    lead, both = step("18", "18.2", {"scan": 44.9}, FIX), step("17", "17.3", {"scan": 5.0})
    majors = between(25.0)
    told = explained(lead, gain, both, majors)[majors.key]
    assert told.explained[0].by == (lead.key,) and set(told.explained[0].less) == {gain.key, both.key}
    assert told.evidence[-2].startswith(
        "The change at 18.2 explains +24.2 of the +25.0 % in scan (insn/o), net of the changes at 17.3 and 18.4"
    )


def test_a_step_without_what_is_explained_is_split_without_it() -> None:
    """Code of 13 → 14 was told with the scan that the title leaves out: +10.1 % beside tests of +2 to +5 %."""
    majors = between(45.0)
    rows = tuple(
        SplitRow(
            test=test,
            metric="insn/o",
            cause="product",
            settings=Part(change_pct=0.0, low_pct=-0.2, high_pct=0.2),
            code=Part(change_pct=size, low_pct=size - 0.2, high_pct=size + 0.2),
        )
        for test, size in (("scan", 45.0), ("insert", 3.0))
    )
    both = SettingsSplit(
        cause="product", settings=Part(change_pct=0.0), code=Part(change_pct=22.2), metric="insn/o", tests=rows
    )
    told = explained(step("18", "18.2", {"scan": 44.9}, FIX), majors.model_copy(update={"split": both}))[majors.key]
    assert [move.key.test for move in told.moves] == ["insert"] and told.split is not None
    assert [row.test for row in told.split.tests] == ["insert"]
    assert told.split.code.change_pct == pytest.approx(3.0) and told.split.code.low_pct == pytest.approx(2.8, abs=1e-3)


def test_functions_of_a_line_without_point_releases_tie_its_step_to_the_change() -> None:
    lead, majors = step("14", "14.3", {"scan": 44.9}, FIX), between(45.0, functions={**FIX, "hash_seq_search": 9e3})
    told = explained(lead, majors)
    assert [row.finding for row in told[lead.key].lines] == [majors.key] and told[lead.key].lines[0].line == "18"
    assert told[majors.key].explained_by == (lead.key,)
    assert explained(lead, between(45.0))[majors.key].explained == (), "sizes alone prove nothing"
    halved = {name: by / 2 for name, by in FIX.items()}
    assert explained(lead, between(45.0, functions=halved))[majors.key].explained == ()


def on_lines(*made: Finding, flat: Mapping[str, tuple[str, ...]] | None = None) -> list[Series]:
    """What `made` was found in, and by line tests that did not move."""
    found = []
    for one in made:
        tests = {moved.key.test: moved.change_pct for moved in one.moves}
        for test, change in {**dict.fromkeys((flat or {}).get(one.line, ()), 0.0), **tests}.items():
            key = series_key(test, line=one.line)
            values = [[1000.0], [1000.0 * (1 + change / 100)]]
            found.append(series(values, key, releases=[one.previous, one.release]))
    return found


@pytest.mark.parametrize("besides", ["older", "newer"])
def test_what_came_to_one_line_besides_the_change_is_not_folded_with_it(besides: str) -> None:
    """The fix came to 17.8 and 18.2 on one day, and one of them has a slower point query of its own, too."""
    changes = {"scan": 44.2, "insert": 20.0}
    more = {**changes, "point-query": 9.0}
    old = step("17", "17.8", more if besides == "older" else changes, FIX)
    new = step("18", "18.2", more if besides == "newer" else changes, FIX)
    flat = {"17": ("point-query",), "18": ("point-query",)}
    releases = released("postgres", DAY, "17.8", "18.2")
    lead, member = tie([new, old], on_lines(new, old, flat=flat), releases, METRICS)
    (row,) = lead.lines
    assert (row.finding, row.change_pct) == (old.key, 44.2)
    if besides == "newer":
        assert member.same_as == lead.key and not row.whole, "17.8 cannot speak for the point query"
        return
    assert row.whole and not member.folded_under
    assert [moved.key.test for moved in member.moves] == ["point-query"] and member.tier == "confirmed"
    assert [(group.worst_test, group.moved) for group in member.groups if group.moved] == [("point-query", 1)]
    assert member.evidence[-2].startswith("The same change as in 18.2 of line 18")
    assert member.evidence[-1] == "2 of 3 moves are left out for that."


def test_what_the_other_line_could_not_show_or_did_not_measure_is_no_other_change() -> None:
    changes = {"scan": 44.2, "insert": 20.0}
    new, old = step("18", "18.2", changes, FIX), step("17", "17.8", {**changes, "point-query": 9.0}, FIX)
    assert tie([new, old], on_lines(new, old), [], METRICS)[1].same_as == new.key, "18 has no point query"
    flat = {"18": ("point-query",)}
    small = old.model_copy(update={"moves": tuple(moved.model_copy(update={"mde_pct": 12.0}) for moved in old.moves)})
    assert tie([new, small], on_lines(new, small, flat=flat), [], METRICS)[1].same_as == new.key
    refuted = old.model_copy(
        update={
            "moves": tuple(
                moved.model_copy(update={"tier": "unconfirmed"} if moved.key.test == "point-query" else {})
                for moved in old.moves
            )
        }
    )
    assert tie([new, refuted], on_lines(new, refuted, flat=flat), [], METRICS)[1].same_as == new.key


def test_a_line_with_more_still_has_the_change_on_both_sides_of_majors() -> None:
    """18.2 explains nothing of 17.11 → 18.6 that 17.8 has as well, whatever else came to 17.8."""
    changes = {"scan": 44.2, "insert": 20.0}
    new, old = step("18", "18.2", changes, FIX), step("17", "17.8", {**changes, "point-query": 9.0}, FIX)
    step_between = step(MAJORS, "18.6", {"scan": 44.0}).model_copy(update={"previous": "17.11"})
    flat = {"18": ("point-query",)}
    told = tie([new, old, step_between], on_lines(new, old, flat=flat), [], METRICS)
    assert told[2].explained == () and not told[1].same_as
