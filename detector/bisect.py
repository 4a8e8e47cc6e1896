"""Which candidate brought a change: bisection in three-state steps, as a machine that can be stopped and gone on with.

The candidates are releases or commits in order; the first is the good end, the last the bad end. The machine says what
to measure next, is told every block, and remembers nothing else, so the same blocks always give the same step:

1. both ends, beside each other, more blocks while it is UNKNOWN whether they differ. Ends that do not are the answer;
2. the candidate in the middle of what is left, more blocks while it belongs to neither end. One that stays UNKNOWN or
   cannot be measured is walked around and stays inside the answer;
3. the two candidates left beside each other, which have to differ themselves.

>>> state = begin(["17.0", "17.1", "17.2"], budget=20, judge=Judge(floor_pct=0.5, noise=0.0015))
>>> step(state)
Measure(candidates=('17.0', '17.2'), blocks=2)
>>> for candidate, value in (("17.0", 100.0), ("17.2", 109.1), ("17.0", 100.1), ("17.2", 109.0)):
...     state = record_block(state, candidate, value)
>>> step(state)
Measure(candidates=('17.1',), blocks=2)
>>> state = record_block(record_block(state, "17.1", 108.9), "17.1", 109.0)
>>> answer = step(state)
>>> type(answer).__name__, answer.after, answer.first, str(answer.step)
('Found', '17.0', '17.1', '+8.90 % [+8.46, +9.33]')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from detector.bisect_answers import (
    FIRST_BLOCKS,
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
from history.model import Row
from history.model.values import Count, Value

Side = Literal["good", "bad", "unknown", "unusable"]

#: Blocks with a value that a candidate has when it is judged, while it is UNKNOWN again with more.
LOOKS = (FIRST_BLOCKS, 4, 8)
MOST_BLOCKS = LOOKS[-1]
#: Blocks without a value, too noisy or failed, after which a candidate that has too few others is given up.
MOST_LOST = 4
#: A candidate that differs from both ends is bad when it has this share of the whole change.
HALF = 0.5


class CandidateBlocks(Row):
    """What was measured of one candidate."""

    values: tuple[Value, ...] = ()
    lost: Count = 0
    """Blocks that were measured and have no value: too noisy, or failed."""
    unusable: str = ""
    """Why it cannot be measured, empty while it can."""


class BisectState(Row):
    """Everything the machine remembers; write it as JSON to go on later."""

    candidates: tuple[Annotated[str, StringConstraints(min_length=1)], ...]
    """In order; the first is the good end, the last the bad end."""
    budget: int = Field(ge=2 * FIRST_BLOCKS)
    """Blocks that may be measured in all, of the ends too."""
    judge: Judge
    repeat_ends: bool
    """Measure the ends beside every candidate, because values drift with the time; counts do not."""
    blocks: dict[str, CandidateBlocks] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if strange := sorted(self.blocks.keys() - set(self.candidates)):
            raise ValueError(f"{', '.join(strange)}: blocks of no candidate")
        return self

    @property
    def spent(self) -> int:
        """Blocks measured so far."""
        return sum(len(blocks.values) + blocks.lost for blocks in self.blocks.values())

    def of(self, index: int) -> CandidateBlocks:
        """What was measured of the candidate at `index`."""
        return self.blocks.get(self.candidates[index], CandidateBlocks())

    def measured(self, index: int) -> bool:
        """Whether it has blocks enough to be judged."""
        return len(self.of(index).values) >= FIRST_BLOCKS

    def pair(self, before: int, after: int) -> CandidatePair:
        """Two measured candidates beside each other; ValidationError when one is not measured."""
        one, other = (
            MeasuredCandidate(candidate=self.candidates[i], values=self.of(i).values) for i in (before, after)
        )
        return CandidatePair(before=one, after=other, judge=self.judge)


@dataclass(frozen=True)
class Measure:
    """Measure so many more blocks of each of these candidates, interleaved in one session."""

    candidates: tuple[str, ...]
    blocks: int


def begin(candidates: Sequence[str], budget: int, judge: Judge, *, repeat_ends: bool = False) -> BisectState:
    """A machine over `candidates`, oldest first; InvalidSeries when there are fewer than two, or one twice, or when the
    budget does not pay for the ends."""
    if len(candidates) < 2 or len(set(candidates)) != len(candidates):
        raise InvalidSeries("bisect needs two or more different candidates, oldest first; name GOOD and BAD")
    if budget < 2 * FIRST_BLOCKS:
        raise InvalidSeries(f"a budget of {budget} blocks; the two ends alone take {2 * FIRST_BLOCKS}")
    return BisectState(candidates=tuple(candidates), budget=budget, judge=judge, repeat_ends=repeat_ends)


def record_block(state: BisectState, candidate: str, value: float | None, reason: str = "") -> BisectState:
    """`state` after one more block; one that gave no value, for `reason`, counts for the budget all the same."""
    before = _blocks_of(state, candidate)
    values = before.values if value is None else (*before.values, value)
    lost = before.lost + (value is None)
    given_up = value is None and lost >= MOST_LOST and len(values) < FIRST_BLOCKS
    why = f"{lost} blocks without a value, the last one: {reason}" if given_up else ""
    return _with(state, candidate, CandidateBlocks(values=values, lost=lost, unusable=why))


def record_unusable(state: BisectState, candidate: str, reason: str) -> BisectState:
    """`state` when a candidate cannot be fetched, built or started."""
    return _with(state, candidate, _blocks_of(state, candidate).model_copy(update={"unusable": reason}))


def resumed(fresh: BisectState, held: BisectState) -> BisectState:
    """`fresh` with the blocks of `held`, to go on with; an end that could not be measured is tried again.

    ValidationError when they are not of the same candidates.
    """
    state = BisectState.model_validate({**dict(fresh), "blocks": held.blocks})
    for end in (fresh.candidates[0], fresh.candidates[-1]):
        if end in held.blocks:
            state = record_unusable(state, end, "")
    return state


def _blocks_of(state: BisectState, candidate: str) -> CandidateBlocks:
    if candidate not in state.candidates:
        raise InvalidSeries(f"{candidate} is none of the candidates {', '.join(state.candidates)}")
    return state.blocks.get(candidate, CandidateBlocks())


def _with(state: BisectState, candidate: str, blocks: CandidateBlocks) -> BisectState:
    return state.model_copy(update={"blocks": {**state.blocks, candidate: blocks}})


def step(state: BisectState) -> Measure | Answer:
    """What to do next; the same blocks always give the same step."""
    last = len(state.candidates) - 1
    for end in (0, last):
        if reason := state.of(end).unusable:
            return Undecided(reason=f"{state.candidates[end]} cannot be measured: {reason}")
    known = ""
    if state.measured(0) and state.measured(last):
        ends = state.pair(0, last)
        known = f": {ends} after {len(ends.before.values)} and {len(ends.after.values)} blocks"
        if ends.comparison.verdict == "SAME":
            return NoDifference(ends=ends)
        if ends.comparison.verdict == "DIFFERENT":
            return _search(state, ends)
    more = _more(state, (0, last))
    if more is None:
        floor = f"{state.judge.floor_pct:g} % is the smallest change of interest"
        return Undecided(reason=f"the ends may differ or not{known}; {floor}")
    if not _affordable(state, more):
        return Undecided(reason=f"the budget of {state.budget} blocks is spent, and the ends may differ or not{known}")
    return more


def _search(state: BisectState, ends: CandidatePair) -> Measure | Answer:
    """The next step between two ends that differ."""
    last = len(state.candidates) - 1
    sides = {index: _side(state, index) for index in range(1, last)}
    bad = min((index for index, side in sides.items() if side == "bad"), default=last)
    good = max((index for index, side in sides.items() if side == "good" and index < bad), default=0)
    more = None
    for index in sorted(range(good + 1, bad), key=lambda index: (abs(2 * index - good - bad), index)):
        more = _more(state, (index,)) if sides[index] in (None, "unknown") else None
        if more:
            break
    else:
        if state.pair(good, bad).comparison.verdict == "UNKNOWN":
            more = _more(state, (good, bad))
    if more and _affordable(state, more):
        return more
    return _narrowest(state, ends, good, bad, sides, out_of_budget=more is not None)


def _side(state: BisectState, index: int) -> Side | None:
    """Which end a candidate belongs to; None while it has too few blocks."""
    if not state.measured(index):
        return "unusable" if state.of(index).unusable else None
    good, bad = state.of(0).values, state.of(len(state.candidates) - 1).values
    return side_of(good, bad, state.of(index).values, state.judge)


def side_of(good: Sequence[float], bad: Sequence[float], candidate: Sequence[float], judge: Judge) -> Side:
    """Which end a candidate belongs to, from block values of all three.

    A candidate that differs from one end only belongs to the other. One that differs from both has part of the change:
    it is bad when it has half of it or more, so that the search follows the larger part.

    >>> side_of([100, 101, 100], [90, 90.5, 89.8], [100.2, 100.6, 99.9], Judge(floor_pct=1.2, noise=0.005))
    'good'
    """
    from_good = judge.compare(tuple(good), tuple(candidate))
    from_bad = judge.compare(tuple(bad), tuple(candidate))
    whole = judge.compare(tuple(good), tuple(bad)).change_pct
    if from_good.verdict == "DIFFERENT" and from_bad.verdict == "DIFFERENT":
        return "bad" if whole and from_good.change_pct / whole >= HALF else "good"
    if from_good.verdict == "DIFFERENT":
        return "bad"
    if from_bad.verdict == "DIFFERENT":
        return "good"
    return "unknown"


def sides(state: BisectState) -> dict[str, Side | None]:
    """The side of every candidate between the ends, None of one that was not judged; empty before the ends are
    measured."""
    last = len(state.candidates) - 1
    if not (state.measured(0) and state.measured(last)):
        return {}
    return {state.candidates[index]: _side(state, index) for index in range(1, last)}


def _more(state: BisectState, indexes: Iterable[int]) -> Measure | None:
    """The blocks that bring these candidates to their next look; None when they had the last one, or one is given up.

    The ends are not given up however many blocks they lose, since nothing can be said without them.
    """
    last = len(state.candidates) - 1
    have = {index: len(state.of(index).values) for index in indexes}
    target = next((look for look in LOOKS if look > min(have.values())), None)
    given_up = (state.of(i).unusable or state.of(i).lost >= MOST_BLOCKS for i in have if 0 < i < last)
    if target is None or any(given_up):
        return None
    if state.repeat_ends:
        beside = sorted({0, *have, last})
        return Measure(tuple(state.candidates[index] for index in beside), target - min(have.values()))
    lacking = {index: target - count for index, count in have.items() if count < target}
    return Measure(tuple(state.candidates[index] for index in sorted(lacking)), min(lacking.values()))


def _affordable(state: BisectState, more: Measure) -> bool:
    return state.spent + len(more.candidates) * more.blocks <= state.budget


def _narrowest(
    state: BisectState, ends: CandidatePair, good: int, bad: int, sides: dict[int, Side | None], *, out_of_budget: bool
) -> Found | Interval:
    """The narrowest pair of candidates around the step that differ themselves; the two ends always do."""
    last = len(state.candidates) - 1
    pairs = [
        (after - before, -abs(pair.comparison.change_pct), before, after, pair)
        for before in filter(state.measured, range(good + 1))
        for after in filter(state.measured, range(bad, last + 1))
        for pair in (state.pair(before, after),)
        if pair.comparison.verdict == "DIFFERENT" and pair.comparison.change_pct * ends.comparison.change_pct > 0
    ]
    _, _, before, after, pair = min(pairs, key=lambda entry: entry[:4])
    if after == before + 1:
        return Found(ends=ends, step=pair)
    inside = range(before + 1, after)

    def named(*wanted: Side | None) -> str:
        return ", ".join(state.candidates[index] for index in inside if sides[index] in wanted)

    parts = [f"the budget of {state.budget} blocks is spent"] if out_of_budget else []
    parts += [f"{names} could not be told from either side"] if (names := named("unknown")) else []
    parts += [f"{names} could not be measured"] if (names := named("unusable")) else []
    in_parts = "the change came in parts, and no step to or from it is clear by itself"
    parts += [f"{names}: {in_parts}"] if (names := named("good", "bad")) else []
    between = tuple(state.candidates[index] for index in inside)
    return Interval(ends=ends, step=pair, between=between, reason="; ".join(parts))
