"""What a finding is named for."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.metrics import shipped_metrics
from presentation.headline import group_noun, headline, headline_moves, metric_order, release_name, step_sides, title
from presentation.number_format import FEWEST_FOR_MEDIAN
from tests.builders import TESTS, finding, group_summaries, move, series_key

METRICS = shipped_metrics()
CHANGES = {"point-query": 3.1, "hot-points": 4.9, "range-covered": 1.2}


def lead_of(**values: object):  # type: ignore[no-untyped-def]
    lead = headline(finding(**values), METRICS)  # type: ignore[arg-type]
    assert lead is not None
    return lead


def test_a_finding_without_moves_has_none() -> None:
    assert headline(finding().model_copy(update={"moves": ()}), METRICS) is None


def test_the_metric_that_moved_in_most_tests_leads() -> None:
    counted = finding(changes={"point-query": 3.0, "insert": 5.0})
    rate = move(series_key("point-query", "qps"), 1000.0, -20.0)
    lead = headline(counted.model_copy(update={"moves": (*counted.moves, rate)}), METRICS)
    assert lead is not None
    assert (lead.metric, lead.change.median_pct, lead.change.worst_test) == ("insn/o", 4.0, "insert")
    assert [change.metric for change in lead.others] == ["qps"]
    alike = headline(counted.model_copy(update={"moves": (counted.moves[0], rate)}), METRICS)
    assert alike is not None
    assert (alike.metric, alike.change.size) == ("qps", "−20.0 %"), "among equals, throughput first"


def test_what_explains_never_leads_before_what_costs() -> None:
    """26 % more storage writes in three tests, and one that lost throughput: that one is the headline."""
    writes = [move(series_key(test, "wKB/o"), 5.0, 26.0) for test in TESTS[:3]]
    rate = move(series_key("insert", "qps"), 1000.0, -2.1)
    lead = headline(finding(moves=[*writes, rate]), METRICS)
    assert lead is not None
    assert (lead.metric, lead.change.median_pct) == ("qps", -2.1)
    alone = headline(finding(moves=writes), METRICS)
    assert alone is not None and alone.metric == "wKB/o"


def test_a_test_that_moved_the_other_way_is_not_counted() -> None:
    both_ways = finding(changes={"point-query": 5.0, "hot-points": 4.0, "insert": 3.0})
    better = both_ways.moves[-1].model_copy(update={"change_pct": -3.0, "direction": "improvement"})
    lead = headline(both_ways.model_copy(update={"moves": (*both_ways.moves[:-1], better)}), METRICS)
    assert lead is not None
    assert (lead.moved, lead.change.median_pct, lead.groups) == (2, 4.5, ("point queries",))


def test_the_worst_test_leads_and_a_median_stands_from_five_tests_up() -> None:
    """The median of +45 and +1.1 says nothing true of either."""
    few = lead_of(changes={"point-query": 45.0, "insert": 1.1})
    assert few.changed == "needs 45.0 % more instructions" and few.change.worst_test == "point-query"
    assert (few.change.size, few.change.ends, few.change.typical) == ("up to +45.0 %", "+1.1 to +45.0 %", "")
    assert few.spread == "2 of 22 tests moved"
    many = lead_of(changes=dict.fromkeys(TESTS, 20.0) | {"insert": 1.0})
    assert len(TESTS) == FEWEST_FOR_MEDIAN and many.change.typical == "median +20.0 %"
    assert many.spread == "5 of 33 tests moved, median +20.0 %"
    assert lead_of(changes=dict.fromkeys(TESTS[1:], 20.0)).change.typical == "", "four are too few"


def test_a_test_on_two_servers_is_no_second_test() -> None:
    """Three tests on two servers are six moves, and too few for a median."""
    twice = lead_of(changes=CHANGES, servers=("local", "medium"))
    assert (twice.change.tests, twice.moved, twice.change.typical) == (3, 3, "")


def test_tests_that_all_moved_by_as_much_have_one_size() -> None:
    alike = lead_of(changes={"point-query": 3.0, "insert": 3.01}).change
    assert (alike.size, alike.ends) == ("+3.0 %", "+3.0 %")


def test_both_directions_have_their_signs() -> None:
    lead = lead_of(kind="environment", changes=dict.fromkeys(TESTS, 12.0) | {"insert": -4.0})
    assert lead.change.mixed and lead.change.size == lead.change.ends == "−4.0 to +12.0 %"
    assert lead.changed == "needs 12.0 % more instructions"
    assert lead.spread == "5 of 33 tests moved, both ways", "no median stands for both"


def test_groups_are_said_in_words_the_most_tests_first() -> None:
    assert lead_of(changes=CHANGES).what == "point queries and range queries"
    assert [group_noun(name) for name in ("point, part 1", "writes", "load", "")] == [
        "point queries", "writes", "load", "tests",
    ]  # fmt: skip
    moves = [move(series_key(f"t{n}"), 1.0, 3.0, group=f"group {n}") for n in range(4)]
    lead = headline(finding(moves=moves), METRICS)
    assert lead is not None and lead.what == "sysbench"


def test_a_group_of_two_configs_is_counted_once() -> None:
    moves = [move(series_key("insert", config=config), 1.0, 3.0) for config in ("a", "b")]
    twice = finding(moves=moves).model_copy(update={"groups": group_summaries(moves) * 2})
    lead = headline(twice, METRICS)
    assert lead is not None and lead.tests == 11


def test_the_server_where_most_moved_is_counted_and_all_are_named() -> None:
    first, second = (finding(changes=changes, servers=(server,)) for changes, server in
                     ((CHANGES, "medium"), ({"insert": 2.0}, "local")))  # fmt: skip
    lead = headline(first.model_copy(update={"moves": (*first.moves, *second.moves)}), METRICS)
    assert lead is not None
    assert (lead.moved, lead.server, lead.servers) == (3, "medium", ("local", "medium"))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "postgres 17.5: hot-points needs 4.9 % more instructions (2 of 11 tests moved; point queries, local)"),
        (
            {"kind": "improvement"},
            "postgres 17.5: hot-points needs 4.9 % fewer instructions (2 of 11 tests moved; point queries, local)",
        ),
        (
            {"kind": "environment"},
            "local: hot-points needs 4.9 % more instructions at postgres 17.5, not the product "
            "(2 of 11 tests moved; point queries)",
        ),
        (
            {"kind": "drift"},
            "postgres 17: hot-points needs 4.9 % more instructions than 17.4, a slow drift "
            "(2 of 11 tests moved; point queries, local)",
        ),
        (
            {"line": "majors", "release": "14.24", "previous": "13.23"},
            "postgres 13 → 14: hot-points needs 4.9 % more instructions (2 of 11 tests moved; point queries, local)",
        ),
    ],
)
def test_titles_say_what_where_how_much(values: dict[str, str], text: str) -> None:
    named = finding(**values)  # type: ignore[arg-type]
    lead = headline(named, METRICS)
    assert lead is not None and title(named, lead) == text


def test_tests_without_a_group_have_none_in_the_title() -> None:
    bare = finding(moves=[move(series_key("startup"), 9.0, 4.0, group="")])
    lead = headline(bare, METRICS)
    assert lead is not None
    assert title(bare, lead) == "postgres 17.5: startup needs 4.0 % more instructions (1 of 11 tests moved; local)"


def test_a_step_between_majors_is_no_point_release() -> None:
    point = finding("8.0.30", "8.0.28", dbms="mysql", line="8.0")
    assert (release_name(point), step_sides(point)) == ("mysql 8.0.30", "after 8.0.28")
    major = finding("14.24", "13.23", line="majors")
    assert (release_name(major), step_sides(major)) == ("postgres 13 → 14", "14.24 against 13.23")
    assert release_name(finding("9.5.0", "8.4.6", dbms="mysql", line="majors")) == "mysql 8.4 → 9.5"


CHANGE = st.floats(-90, 900).filter(lambda change: abs(change) > 0.01)
MOVE = st.builds(
    move,
    st.builds(
        series_key,
        st.sampled_from(TESTS),
        st.sampled_from(["qps", "insn/o", "cpu_us/o", "cs/o", "wKB/o", "not-known"]),
        server=st.sampled_from(["small", "medium"]),
    ),
    st.just(100.0),
    CHANGE,
)
MOVES = st.lists(MOVE, min_size=1, max_size=8, unique_by=lambda moved: moved.key)


@given(MOVES, st.randoms())
def test_the_order_of_the_moves_does_not_matter(moves: list, chance: random.Random) -> None:  # type: ignore[type-arg]
    shuffled = chance.sample(moves, len(moves))
    ordered, other = (finding(moves=moves), finding(moves=shuffled))
    groups = {"groups": ordered.groups}
    assert headline(ordered, METRICS) == headline(other.model_copy(update=groups), METRICS)


@given(MOVES)
def test_the_headline_is_of_one_metric_and_of_its_extremes(moves: list) -> None:  # type: ignore[type-arg]
    named = finding(moves=moves)
    lead = headline(named, METRICS)
    assert lead is not None
    of_headline = headline_moves(named, METRICS)
    changes = [moved.change_pct for moved in of_headline]
    assert {moved.key.metric for moved in of_headline} == {lead.metric}
    assert lead.change.tests == len({moved.key.test for moved in of_headline})
    assert abs(lead.change.worst_pct) == max(map(abs, changes)) and (lead.change.worst_pct > 0) == (
        lead.words == METRICS[lead.metric].more
    )
    assert (lead.change.low_pct, lead.change.high_pct) == (min(changes), max(changes))
    assert lead.change.low_pct <= lead.change.median_pct <= lead.change.high_pct
    assert {lead.metric, *(change.metric for change in lead.others)} == {moved.key.metric for moved in moves}


def test_the_order_of_metrics_is_that_of_the_registry_among_equals() -> None:
    names = ("insn/o", "qps", "cpu/o", "cs/o", "not-known")
    for order in permutations(names):
        moves = [move(series_key("insert", name), 100.0, 3.0) for name in order]
        assert metric_order(moves, METRICS) == ["qps", *metric_order(moves, METRICS)[1:]]
        assert metric_order(moves, METRICS)[-2:] == ["cs/o", "not-known"]
