"""What goes first."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.metrics import shipped_metrics
from history.model import Finding, FindingKind, Move, Tier
from presentation.ranking import BETWEEN_MAJORS, POINT_RELEASES, finding_order, loss, section_of
from tests.builders import TESTS, finding, move, series_key

METRICS = shipped_metrics()


def of(tier: Tier, kind: FindingKind, metric: str, change: float, release: str) -> Finding:
    return finding(release, tier=tier, kind=kind, moves=[move(series_key("insert", metric), 100.0, change)])


def surely(moved: Move, probability: float) -> Move:
    return moved.model_copy(update={"probability": probability})


def test_the_surest_the_worst_and_what_costs_users_come_first() -> None:
    ordered = [
        of("confirmed", "regression", "qps", -30.0, "17.1"),
        of("confirmed", "regression", "qps", -3.0, "17.2"),
        of("confirmed", "regression", "wKB/o", 4900.0, "17.3"),
        of("confirmed", "drift", "qps", -9.0, "17.4"),
        of("confirmed", "environment", "qps", -9.0, "17.5"),
        of("confirmed", "improvement", "qps", 90.0, "17.6"),
        of("provisional", "regression", "qps", -50.0, "17.7"),
        of("unconfirmed", "regression", "qps", -60.0, "17.8"),
    ]
    shuffled = random.Random(4).sample(ordered, len(ordered))
    assert sorted(shuffled, key=lambda row: finding_order(row, METRICS)) == ordered


def test_a_cost_and_a_rate_that_change_by_one_factor_are_one_loss() -> None:
    """+214 % and −68 % are both a factor of three."""
    cost, rate = (move(series_key("insert", *of_move), 100.0, change) for *of_move, change in
                  (("cpu/o", 214.0), ("qps", -68.15)))  # fmt: skip
    assert loss([cost]) == pytest.approx(loss([rate]), rel=1e-2)
    doubled, halved = (move(series_key("insert"), 100.0, change) for change in (100.0, -50.0))
    assert loss([doubled]) == pytest.approx(loss([halved]))


def test_one_test_with_ten_times_the_cost_is_less_than_twenty_that_lost_a_tenth() -> None:
    one = move(series_key("insert", "insn/o"), 5.0, 1000.0)
    twenty = [move(series_key(f"t{n}", "qps"), 1000.0, -10.0) for n in range(20)]
    assert loss([one]) < loss(twenty)
    tiny = finding("17.1", moves=[move(series_key("insert", "wKB/o"), 1.0, 1000.0)])
    assert finding_order(finding("17.2", moves=twenty), METRICS) < finding_order(tiny, METRICS)


def test_a_loss_that_is_not_sure_weighs_less() -> None:
    sure, unsure = (surely(move(series_key("insert"), 100.0, 20.0), chance) for chance in (0.99, 0.6))
    assert loss([unsure]) < loss([sure]) < loss([sure, surely(move(series_key("scan"), 100.0, 20.0), 0.6)])


def test_two_metrics_of_a_test_are_one_loss() -> None:
    rate, cost = (move(series_key("insert", *of_move), 100.0, change) for *of_move, change in
                  (("qps", -10.0), ("cpu/o", 11.0)))  # fmt: skip
    assert loss([rate, cost]) == max(loss([rate]), loss([cost]))


def test_what_goes_the_other_way_is_no_part_of_a_loss() -> None:
    lost = move(series_key("insert", "qps"), 100.0, -5.0)
    gained = move(series_key("scan", "qps"), 100.0, 60.0)
    assert finding_order(finding(moves=[lost, gained]), METRICS) == finding_order(finding(moves=[lost]), METRICS)


def test_a_step_between_majors_stands_in_a_section_of_its_own() -> None:
    major = finding("18.4", "17.9", line="majors", changes=dict.fromkeys(TESTS, 40.0))
    point = finding("17.5", tier="unconfirmed", changes={"insert": 1.0})
    assert sorted([major, point], key=lambda row: finding_order(row, METRICS)) == [point, major]
    assert (section_of("majors"), section_of("17")) == (BETWEEN_MAJORS, POINT_RELEASES)


KEY = st.builds(
    series_key,
    st.sampled_from(TESTS),
    st.sampled_from(["qps", "insn/o", "cpu_us/o", "wKB/o", "not-known"]),
    server=st.sampled_from(["small", "medium"]),
)
CHANGE = st.floats(-90, 900).filter(lambda change: abs(change) > 0.01)
MOVES = st.lists(
    st.builds(surely, st.builds(move, KEY, st.floats(1e-3, 1e6), CHANGE), st.floats(0.5, 1.0)),
    min_size=1,
    max_size=8,
    unique_by=lambda moved: moved.key,
)
FINDING = st.builds(
    lambda moves, tier, kind, release: finding(release, tier=tier, kind=kind, moves=moves),
    MOVES,
    st.sampled_from(["confirmed", "provisional", "unconfirmed"]),
    st.sampled_from(["regression", "drift", "environment", "improvement"]),
    st.sampled_from([f"17.{n}" for n in range(1, 7)]),
)


@given(st.lists(FINDING, min_size=2, max_size=5, unique_by=lambda one: one.key), st.randoms())
def test_the_order_is_total_and_that_of_the_values_alone(findings: list[Finding], chance: random.Random) -> None:
    """Whatever the order of findings and of the moves in them, and no two share a place."""
    keys = [finding_order(one, METRICS) for one in findings]
    assert len(set(keys)) == len(keys)
    mixed = [one.model_copy(update={"moves": tuple(chance.sample(one.moves, len(one.moves)))}) for one in findings]
    chance.shuffle(mixed)
    ordered = sorted(findings, key=lambda one: finding_order(one, METRICS))
    assert [one.key for one in sorted(mixed, key=lambda one: finding_order(one, METRICS))] == [
        one.key for one in ordered
    ]
    assert all(finding_order(one, METRICS) < finding_order(other, METRICS) for one, other in pairwise(ordered))


@given(MOVES, st.floats(1e-3, 1e3))
def test_a_loss_knows_no_unit_and_no_sign(moves: list[Move], unit: float) -> None:
    """In milliseconds or in seconds, and given back instead of lost, it is as large."""
    scaled = [one.model_copy(update={"before": one.before * unit, "after": one.after * unit}) for one in moves]
    back = [one.model_copy(update={"before": one.after, "after": one.before}) for one in moves]
    assert loss(scaled) == pytest.approx(loss(moves), rel=1e-6, abs=1e-9)
    assert loss(back) == pytest.approx(loss(moves), rel=1e-9)


@given(MOVES, st.floats(1.0, 1e12))
def test_one_test_is_worth_a_factor_of_four_at_most(moves: list[Move], factor: float) -> None:
    first, *rest = moves
    wild = first.model_copy(update={"after": first.before * factor, "probability": 1.0})
    assert loss([wild, *rest]) - loss(rest) <= 1.3863
    assert loss([wild, *rest]) >= loss(rest)
