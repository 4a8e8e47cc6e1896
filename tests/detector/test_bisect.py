"""Bisection: the ends come first, the candidate is found, a stop loses nothing, and nothing unmeasured is claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from random import Random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from detector.bisect import (
    FIRST_BLOCKS,
    MOST_BLOCKS,
    BisectState,
    Measure,
    begin,
    record_block,
    record_unusable,
    resumed,
    side_of,
    sides,
    step,
)
from detector.bisect_answers import (
    Answer,
    CandidatePair,
    Found,
    Interval,
    Judge,
    MeasuredCandidate,
    NoDifference,
    Undecided,
)
from detector.errors import InvalidSeries

#: Of counted instructions, with half a percent as the smallest change.
COUNTED = Judge(floor_pct=0.5, noise=0.0015)
PLENTY = 100_000


def names(n: int) -> list[str]:
    return [f"c{i}" for i in range(n)]


class Oracle:
    """Measures candidates of known levels; counts what it measured."""

    def __init__(
        self, levels: list[float], *, unusable: Set[int] = frozenset(), lost: float = 0.0, seed: int = 1
    ) -> None:
        self.levels, self.unusable, self.lost = levels, unusable, lost
        self.random = Random(seed)
        self.measured: Counter[str] = Counter()

    def bisect(self, budget: int = PLENTY, *, repeat_ends: bool = False, killed: float = 0.0) -> Answer:
        """Until there is an answer; a session is killed after any block, and the state is read back from its JSON."""
        fresh = begin(names(len(self.levels)), budget, COUNTED, repeat_ends=repeat_ends)
        state = fresh
        for _ in range(5_000):
            todo = step(state)
            if not isinstance(todo, Measure):
                assert state.spent == sum(self.measured.values()) <= budget
                self.state = state
                return todo
            state = self.session(state, todo, killed)
            state = resumed(fresh, BisectState.model_validate_json(state.model_dump_json()))
        raise AssertionError("bisect does not end")

    def session(self, state: BisectState, todo: Measure, killed: float) -> BisectState:
        """Blocks in any order, as the workers finish them."""
        for name in todo.candidates:
            if int(name[1:]) in self.unusable:
                return record_unusable(state, name, "does not build")
        blocks = [name for name in todo.candidates for _ in range(todo.blocks)]
        self.random.shuffle(blocks)
        for name in blocks:
            self.measured[name] += 1
            value = self.levels[int(name[1:])] * (1 + self.random.uniform(-3e-4, 3e-4))
            noisy = self.random.random() < self.lost
            state = record_block(state, name, None if noisy else value, "steal")
            if self.random.random() < killed:
                break
        return state


def claims(answer: Answer) -> list[CandidatePair]:
    """What an answer says was compared."""
    match answer:
        case Found() | Interval():
            return [answer.ends, answer.step]
        case NoDifference():
            return [answer.ends]
    return []


steps = st.sampled_from([-0.3, -0.05, -0.02, 0.02, 0.05, 0.3])


@given(n=st.integers(2, 60), size=steps, repeat_ends=st.booleans(), killed=st.sampled_from([0.0, 0.3]), data=st.data())
def test_a_step_anywhere_is_found(n: int, size: float, repeat_ends: bool, killed: float, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, n - 1))
    wiggle = data.draw(st.lists(st.floats(-5e-4, 5e-4), min_size=n, max_size=n))
    levels = [1000.0 * (1 + w) * (1 + size * (i >= culprit)) for i, w in enumerate(wiggle)]
    oracle = Oracle(levels)
    answer = oracle.bisect(repeat_ends=repeat_ends, killed=killed)
    assert isinstance(answer, Found)
    assert (answer.after, answer.first) == (f"c{culprit - 1}", f"c{culprit}")
    if not killed:
        looked_at = 3 if repeat_ends else 1
        assert sum(oracle.measured.values()) <= 2 * FIRST_BLOCKS + looked_at * FIRST_BLOCKS * n.bit_length()


@given(wiggle=st.lists(st.floats(-5e-4, 5e-4), min_size=2, max_size=40), killed=st.sampled_from([0.0, 0.3]))
def test_where_nothing_changed_the_ends_are_the_answer(wiggle: list[float], killed: float) -> None:
    oracle = Oracle([1000.0 * (1 + w) for w in wiggle])
    answer = oracle.bisect(killed=killed)
    assert isinstance(answer, NoDifference)
    assert oracle.measured.keys() == {"c0", f"c{len(wiggle) - 1}"}, "nothing but the ends was measured"
    assert "do not differ" in answer.reason


@given(n=st.integers(3, 30), lost=st.sampled_from([0.0, 0.4]), seed=st.integers(0, 99), data=st.data())
def test_what_cannot_be_measured_stays_in_the_answer(n: int, lost: float, seed: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, n - 1))
    unusable = data.draw(st.sets(st.integers(1, n - 2)))
    oracle = Oracle(
        [1000.0 * (1.1 if i >= culprit else 1.0) for i in range(n)], unusable=unusable, lost=lost, seed=seed
    )
    answer = oracle.bisect()
    if isinstance(answer, Undecided):
        assert lost and "blocks without a value, the last one: steal" in answer.reason
        return
    assert isinstance(answer, Found | Interval)
    left, right = int(answer.after[1:]), int(answer.first[1:])
    assert left < culprit <= right
    if isinstance(answer, Interval):
        assert answer.between == tuple(names(n)[left + 1 : right])
        assert "could not be measured" in answer.reason
        given_up = {int(name[1:]) for name, blocks in oracle.state.blocks.items() if blocks.unusable}
        assert given_up >= set(range(left + 1, right))
    elif not lost:
        assert right == left + 1


@given(
    levels=st.lists(st.sampled_from([900.0, 950.0, 1000.0, 1050.0]), min_size=2, max_size=20),
    budget=st.sampled_from([4, 7, 12, PLENTY]),
    repeat_ends=st.booleans(),
    lost=st.sampled_from([0.0, 0.3]),
)
def test_of_any_levels_what_is_named_was_measured_and_is_true(
    levels: list[float], budget: int, repeat_ends: bool, lost: float
) -> None:
    oracle = Oracle(levels, lost=lost)
    answer = oracle.bisect(budget, repeat_ends=repeat_ends)
    for pair in claims(answer):
        assert min(oracle.measured[pair.before.candidate], oracle.measured[pair.after.candidate]) >= FIRST_BLOCKS
    if isinstance(answer, NoDifference):
        assert levels[0] == levels[-1]
    elif isinstance(answer, Found | Interval):
        before, after = int(answer.after[1:]), int(answer.first[1:])
        assert (levels[after] - levels[before]) * (levels[-1] - levels[0]) > 0
        assert isinstance(answer, Found) == (after == before + 1)
    else:
        assert lost or budget < 16, "ends of plain levels are always told apart"


@given(
    blocks=st.lists(st.tuples(st.integers(0, 3), st.none() | st.floats(-1e6, 1e6)), max_size=60),
    repeat_ends=st.booleans(),
)
@example(blocks=[], repeat_ends=False)
@example(blocks=[(1, 5.0), (1, 5.0), (2, 9.0), (2, 9.0)], repeat_ends=False)
def test_whatever_was_measured_no_answer_lacks_blocks_of_both_ends(
    blocks: list[tuple[int, float | None]], repeat_ends: bool
) -> None:
    state = begin(names(4), PLENTY, COUNTED, repeat_ends=repeat_ends)
    have: Counter[str] = Counter()
    for index, value in blocks:
        state = record_block(state, f"c{index}", value, "noisy")
        have[f"c{index}"] += value is not None
        todo = step(state)
        assert step(BisectState.model_validate_json(state.model_dump_json())) == todo
        if isinstance(todo, Measure):
            assert todo.blocks >= 1 and todo.candidates
            continue
        if isinstance(todo, Undecided):
            continue
        named = {"c0", "c3"} | {name for pair in claims(todo) for name in (pair.before.candidate, pair.after.candidate)}
        assert all(have[name] >= FIRST_BLOCKS for name in named)


@given(step_pct=st.floats(0.1, 0.4), n=st.integers(12, 30))
def test_a_slow_drift_is_no_single_candidate(step_pct: float, n: int) -> None:
    assume(step_pct * (n - 1) > 1.0)
    answer = Oracle([1000.0 * (1 + step_pct / 100) ** i for i in range(n)]).bisect()
    assert isinstance(answer, Interval)
    assert int(answer.first[1:]) - int(answer.after[1:]) >= 2
    assert answer.reason


def test_the_ends_come_first_beside_each_other() -> None:
    state = begin(names(5), 40, COUNTED)
    assert step(state) == Measure(("c0", "c4"), FIRST_BLOCKS)
    state = record_block(record_block(state, "c0", 100.0), "c0", 100.0)
    assert step(state) == Measure(("c4",), FIRST_BLOCKS), "what is there is not measured again"
    timed = begin(names(5), 40, COUNTED, repeat_ends=True)
    timed = record_block(record_block(timed, "c0", 100.0), "c0", 100.0)
    assert step(timed) == Measure(("c0", "c4"), FIRST_BLOCKS), "timed values need both ends in one session"
    timed = record_block(record_block(timed, "c4", 110.0), "c4", 110.0)
    assert step(timed) == Measure(("c0", "c2", "c4"), FIRST_BLOCKS), "and beside every candidate"
    poor = BisectState.model_validate({**dict(timed), "budget": 9})
    assert isinstance(step(poor), Interval), "which takes six blocks"


def test_ends_get_more_blocks_while_it_is_unknown_whether_they_differ() -> None:
    state, asked = begin(names(3), 40, COUNTED), []
    while isinstance(todo := step(state), Measure):
        asked.append(todo)
        for name in todo.candidates:
            for _ in range(todo.blocks):
                state = record_block(state, name, 1000.0 if name == "c0" else 1004.9)
    assert asked == [Measure(("c0", "c2"), blocks) for blocks in (2, 2, 4)]
    assert isinstance(todo, Undecided)
    assert "+0.49 %" in todo.reason and "after 8 and 8 blocks" in todo.reason and "0.5 %" in todo.reason


def test_an_unknown_candidate_gets_more_blocks_then_is_walked_around() -> None:
    judge, asked = Judge(floor_pct=1.0, noise=0.002), []
    state = begin(names(3), 50, judge)
    levels = {"c0": 1000.0, "c1": 1006.0, "c2": 1012.0}
    while isinstance(todo := step(state), Measure):
        asked.append((todo.candidates, todo.blocks))
        for name in todo.candidates:
            for _ in range(todo.blocks):
                state = record_block(state, name, levels[name])
    assert asked[-3:] == [(("c1",), 2), (("c1",), 2), (("c1",), 4)]
    assert isinstance(todo, Interval) and todo.between == ("c1",)
    assert todo.reason == "c1 could not be told from either side"
    assert sides(state) == {"c1": "unknown"}


def test_a_step_the_other_way_is_not_the_change() -> None:
    state = begin(names(5), PLENTY, COUNTED)
    for name, level in zip(names(5), (1000.0, 1018.0, 1021.0, 900.0, 1040.0), strict=True):
        for _ in range(MOST_BLOCKS):
            state = record_block(state, name, level)
    answer = step(state)
    assert sides(state) == {"c1": "good", "c2": "bad", "c3": "good"}
    assert isinstance(answer, Interval)
    assert (answer.after, answer.between, answer.first) == ("c0", ("c1",), "c2"), "not c1 to c3, which falls"


def test_neighbours_of_which_it_is_unknown_whether_they_differ_get_more_blocks() -> None:
    state, asked = begin(names(4), PLENTY, Judge(floor_pct=1.0, noise=0.01)), []
    while isinstance(todo := step(state), Measure):
        asked.append((todo.candidates, todo.blocks))
        for name in todo.candidates:
            for sign in (1, -1) * (todo.blocks // 2):
                state = record_block(state, name, (1000.0 if name < "c2" else 1022.0) * (1 + 0.003 * sign))
    assert asked[2:] == [(("c1",), 2), (("c2",), 2), (("c1", "c2"), 2)]
    assert isinstance(todo, Found) and (todo.after, todo.first) == ("c1", "c2")


@pytest.mark.parametrize("how", ["gone", "noisy"])
def test_an_unknown_candidate_that_gives_no_more_blocks_is_walked_around(how: str) -> None:
    state = begin(names(3), PLENTY, Judge(floor_pct=1.0, noise=0.002))
    for name, level in (("c0", 1000.0), ("c1", 1006.0), ("c2", 1012.0)):
        for _ in range(MOST_BLOCKS if name != "c1" else FIRST_BLOCKS):
            state = record_block(state, name, level)
    assert step(state) == Measure(("c1",), 2)
    if how == "gone":
        state = record_unusable(state, "c1", "the source cannot be reached")
    else:
        for _ in range(MOST_BLOCKS):
            state = record_block(state, "c1", None, "steal")
    answer = step(state)
    assert isinstance(answer, Interval) and answer.between == ("c1",)


def test_the_budget_ends_it_honestly() -> None:
    oracle = Oracle([1000.0 * (1.1 if i >= 7 else 1.0) for i in range(33)])
    answer = oracle.bisect(6)
    assert isinstance(answer, Interval) and "budget of 6 blocks" in answer.reason
    assert int(answer.after[1:]) < 7 <= int(answer.first[1:])
    tired = Oracle([1000.0, 1004.9]).bisect(4)
    assert isinstance(tired, Undecided)
    assert "budget of 4 blocks" in tired.reason and "after 2 and 2 blocks" in tired.reason


def test_an_end_that_cannot_be_measured_is_said_and_tried_again() -> None:
    fresh = begin(names(3), 40, COUNTED)
    broken = record_unusable(fresh, "c2", "does not build")
    assert step(broken) == Undecided(reason="c2 cannot be measured: does not build")
    assert step(resumed(fresh, broken)) == step(fresh)
    noisy = fresh
    for _ in range(4):
        assert isinstance(step(noisy), Measure)
        noisy = record_block(noisy, "c0", None, "steal 3 %")
    assert step(noisy) == Undecided(reason="c0 cannot be measured: 4 blocks without a value, the last one: steal 3 %")
    assert step(resumed(fresh, noisy)) == Measure(("c0", "c2"), 2)
    assert resumed(fresh, noisy).spent == 4, "the budget is of all blocks, those without a value too"


def test_bad_candidates_and_blocks() -> None:
    for candidates in (["a"], ["a", "a"]):
        with pytest.raises(InvalidSeries, match="GOOD and BAD"):
            begin(candidates, 10, COUNTED)
    with pytest.raises(InvalidSeries, match="budget of 3 blocks"):
        begin(["a", "b"], 3, COUNTED)
    two = begin(["a", "b"], 10, COUNTED)
    with pytest.raises(InvalidSeries, match="z is none of the candidates"):
        record_block(two, "z", 1.0)
    with pytest.raises(ValidationError, match="finite"):
        record_block(two, "a", float("nan"))
    with pytest.raises(ValidationError, match="blocks of no candidate"):
        resumed(two, record_block(begin(["a", "c"], 10, COUNTED), "c", 1.0))


def pair(before: tuple[float, ...], after: tuple[float, ...]) -> CandidatePair:
    one, other = (MeasuredCandidate(candidate=c, values=v) for c, v in (("18.1", before), ("18.2", after)))
    return CandidatePair(before=one, after=other, judge=COUNTED)


@pytest.mark.parametrize("values", [(), (100.0,), (100.0, float("nan"))])
def test_a_candidate_without_blocks_is_in_no_answer(values: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError):
        pair((100.0, 100.0), values)


def test_an_answer_that_its_blocks_do_not_bear_out_cannot_be_made() -> None:
    same, up, down = (pair((100.0, 100.0), after) for after in ((100.0, 100.0), (110.0, 110.0), (90.0, 90.0)))
    Found(ends=up, step=up), NoDifference(ends=same)
    for ends, seen in ((same, same), (same, up), (up, same), (up, down)):
        with pytest.raises(ValidationError):
            Found(ends=ends, step=seen)
        with pytest.raises(ValidationError):
            Interval(ends=ends, step=seen, between=("18.1.1",), reason="not built")
    with pytest.raises(ValidationError):
        NoDifference(ends=up)
    with pytest.raises(ValidationError):
        Interval(ends=up, step=up, between=(), reason="an interval has something in it")
    emptied = Found(ends=up, step=up).model_dump()
    emptied["step"]["after"]["values"] = []
    with pytest.raises(ValidationError):
        Found.model_validate(emptied)


def test_the_side_follows_the_larger_part() -> None:
    good, bad, judge = [100.0, 100.2, 99.9], [80.0, 80.2, 79.9], Judge(floor_pct=1.0, noise=0.002)
    found = [side_of(good, bad, [level, level + 0.1, level - 0.1], judge) for level in (104, 100, 96, 84, 80, 76)]
    assert found == ["good", "good", "good", "bad", "bad", "bad"]
    loose = Judge(floor_pct=1.0, noise=0.01)
    assert side_of([100.0, 101.0], [99.0, 100.0], [99.5, 100.5], loose) == "unknown"


def test_no_candidate_has_more_blocks_than_it_may() -> None:
    oracle = Oracle([1000.0, 1003.0, 1006.0, 1009.0])
    assert isinstance(oracle.bisect(), Interval)
    assert max(oracle.measured.values()) <= MOST_BLOCKS
