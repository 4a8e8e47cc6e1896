"""Bisection: it finds the candidate, stops within its budget, can be resumed, and does not guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.bisect import Answer, BisectState, Measure, Side, begin, nothing_to_find, record, side_of, step
from detector.errors import InvalidSeries


def drive(
    candidates: list[str], culprit: int, odd: dict[int, Side] | None = None, budget: int = 200
) -> tuple[Answer, int]:
    """Bisect with an oracle; every state goes through JSON, as a resumed one does."""
    state = begin(candidates, budget)
    for _ in range(1000):
        todo = step(BisectState.model_validate_json(state.model_dump_json()))
        if isinstance(todo, Answer):
            return todo, state.spent
        index = candidates.index(todo.candidate)
        side: Side = (odd or {}).get(index) or ("bad" if index >= culprit else "good")
        state = record(state, todo.candidate, side, todo.blocks)
    raise AssertionError("bisect does not end")


@given(n=st.integers(2, 60), data=st.data())
def test_finds_the_culprit(n: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, n - 1))
    names = [f"c{i}" for i in range(n)]
    answer, spent = drive(names, culprit)
    assert (answer.first, answer.exact) == (names[culprit], True)
    assert answer.after == names[culprit - 1]
    assert spent <= 2 * (n.bit_length() + 1)


@given(n=st.integers(3, 30), data=st.data())
def test_what_cannot_be_told_stays_in_the_answer(n: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, n - 1))
    strange = st.sampled_from(["unknown", "unusable"])
    odd: dict[int, Side] = data.draw(st.dictionaries(st.integers(1, n - 2), strange, max_size=n))
    names = [f"c{i}" for i in range(n)]
    answer, _ = drive(names, culprit, odd, budget=10_000)
    left, right = names.index(answer.after), names.index(answer.first)
    assert left < culprit <= right
    assert answer.between == tuple(names[left + 1 : right])
    assert all(i in odd for i in range(left + 1, right))
    assert answer.exact == (not answer.between)
    assert bool(answer.reason) == bool(answer.between)


def test_an_unknown_step_gets_more_blocks_then_is_walked_around() -> None:
    state = begin(["a", "b", "c"], budget=50)
    blocks = []
    while isinstance(todo := step(state), Measure):
        blocks.append(todo.blocks)
        state = record(state, todo.candidate, "unknown", todo.blocks)
    assert blocks == [2, 2, 4]
    assert todo.between == ("b",)
    assert "could not be told" in todo.reason


def test_the_budget_ends_it_honestly() -> None:
    answer, spent = drive([f"c{i}" for i in range(33)], 7, budget=6)
    assert spent <= 6
    assert not answer.exact
    assert "budget of 6 blocks" in answer.reason


def test_bad_candidates() -> None:
    with pytest.raises(InvalidSeries):
        begin(["a"], 10)
    with pytest.raises(InvalidSeries):
        begin(["a", "a"], 10)
    with pytest.raises(InvalidSeries):
        record(begin(["a", "b"], 10), "z", "good", 1)


def test_the_side_follows_the_larger_part() -> None:
    good, bad = [100.0, 100.2, 99.9], [80.0, 80.2, 79.9]
    sides = [
        side_of(good, bad, [level, level + 0.1, level - 0.1], floor_pct=1.0, noise=0.002) for level in (100, 96, 84, 80)
    ]
    assert sides == ["good", "good", "bad", "bad"]
    assert side_of([100.0, 101.0], [99.0, 100.0], [99.5, 100.5], floor_pct=1.0, noise=0.01) == "unknown"


def test_ends_that_do_not_differ_end_it() -> None:
    level = [100.0, 100.1, 99.9, 100.0]
    assert "do not differ" in nothing_to_find(level, level[::-1], floor_pct=1.0, noise=0.002)
    assert nothing_to_find(level, [value * 0.97 for value in level], floor_pct=1.0, noise=0.002) == ""
    assert nothing_to_find([100.0, 104.0], [101.0, 99.0], floor_pct=1.0, noise=0.02) == "", "not to be told yet"
