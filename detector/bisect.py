"""Which candidate brought a change: bisection in three-state steps, as a machine that can be stopped and gone on with.

The candidates are releases or commits in order; the first is good, the last is bad. The machine says what to measure
next, is told how the blocks compare, and ends with the narrowest interval it can vouch for. It never guesses: a step
that stays UNKNOWN after its blocks, or a candidate that cannot be built, is walked around, and what could not be told
stays inside the answer.

>>> state = begin(["17.0", "17.1", "17.2", "17.3", "17.4"], budget=20)
>>> step(state)
Measure(candidate='17.2', blocks=2)
>>> state = record(record(state, "17.2", "good", 2), "17.3", "bad", 2)
>>> step(state)
Answer(after='17.2', first='17.3', between=(), exact=True, reason='', differ=True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from detector.compare import compare
from detector.errors import InvalidSeries
from history.model import Row

Side = Literal["good", "bad", "unknown", "unusable"]

#: Blocks a step begins with, and how many it may take before its candidate is walked around.
FIRST_BLOCKS = 2
MOST_BLOCKS = 8
#: Of two releases that both differ from a candidate, the nearer one is taken by this share of the whole change.
HALF = 0.5


class Tried(Row):
    """What is known of one candidate."""

    side: Side
    blocks: int


class BisectState(Row):
    """Everything the machine remembers; write it as JSON to go on later."""

    candidates: tuple[str, ...]
    """In order; the first is good, the last is bad."""
    tried: dict[str, Tried] = Field(default_factory=dict)
    budget: int
    """Blocks that may be measured in all."""

    @property
    def spent(self) -> int:
        """Blocks measured so far."""
        return sum(tried.blocks for tried in self.tried.values())

    @property
    def good(self) -> int:
        """Index of the last candidate known to be good before every bad one."""
        return max([0, *(i for i in self._at("good") if i < self.bad)])

    @property
    def bad(self) -> int:
        """Index of the first candidate known to be bad."""
        return min([len(self.candidates) - 1, *self._at("bad")])

    def _at(self, side: Side) -> list[int]:
        return [i for i, c in enumerate(self.candidates) if c in self.tried and self.tried[c].side == side]


@dataclass(frozen=True)
class Measure:
    """Measure so many more blocks of this candidate, interleaved with the good and the bad end."""

    candidate: str
    blocks: int


@dataclass(frozen=True)
class Answer:
    """The change arrived after `after`, with `first` or with one of `between`."""

    after: str
    first: str
    between: tuple[str, ...]
    exact: bool
    reason: str
    """Why the interval is not one candidate, empty when it is."""
    differ: bool = True
    """False when the two ends do not, so that there is nothing to find."""


def begin(candidates: Sequence[str], budget: int) -> BisectState:
    """A machine over `candidates`, oldest first; InvalidSeries when there are fewer than two, or one twice."""
    if len(candidates) < 2 or len(set(candidates)) != len(candidates):
        raise InvalidSeries("bisect needs two or more different candidates, oldest first; name GOOD and BAD")
    return BisectState(candidates=tuple(candidates), budget=budget)


def step(state: BisectState) -> Measure | Answer:
    """What to do next; the same state always gives the same step."""
    good, bad = state.good, state.bad
    open_ = [i for i in range(good + 1, bad) if _open(state, i)]
    between = tuple(state.candidates[good + 1 : bad])
    if not open_:
        unusable = [c for c in between if state.tried[c].side == "unusable"]
        unknown = [c for c in between if c not in unusable]
        parts = [f"{', '.join(unknown)} could not be told from either side"] if unknown else []
        parts += [f"{', '.join(unusable)} could not be measured"] if unusable else []
        return Answer(state.candidates[good], state.candidates[bad], between, not between, "; ".join(parts))
    middle = min(open_, key=lambda i: (abs(2 * i - good - bad), i))
    candidate = state.candidates[middle]
    tried = state.tried.get(candidate)
    blocks = FIRST_BLOCKS if tried is None else min(tried.blocks, MOST_BLOCKS - tried.blocks)
    if state.spent + blocks > state.budget:
        reason = f"the budget of {state.budget} blocks is spent"
        return Answer(state.candidates[good], state.candidates[bad], between, False, reason)
    return Measure(candidate, blocks)


def _open(state: BisectState, index: int) -> bool:
    tried = state.tried.get(state.candidates[index])
    return tried is None or (tried.side == "unknown" and tried.blocks < MOST_BLOCKS)


def record(state: BisectState, candidate: str, side: Side, blocks: int) -> BisectState:
    """`state` after `blocks` more blocks of `candidate`, which all its blocks together put on `side`."""
    if candidate not in state.candidates:
        raise InvalidSeries(f"{candidate} is none of the candidates {', '.join(state.candidates)}")
    before = state.tried.get(candidate)
    total = blocks + (before.blocks if before else 0)
    return state.model_copy(update={"tried": {**state.tried, candidate: Tried(side=side, blocks=total)}})


def side_of(
    good: Sequence[float], bad: Sequence[float], candidate: Sequence[float], *, floor_pct: float, noise: float | None
) -> Side:
    """Which end a candidate belongs to, from block values of all three.

    A candidate that differs from one end only belongs to the other. One that differs from both has part of the change:
    it is bad when it has half of it or more, so that the search follows the larger part.

    >>> side_of([100, 101, 100], [90, 90.5, 89.8], [100.2, 100.6, 99.9], floor_pct=1.2, noise=0.005)
    'good'
    """
    from_good = compare(good, candidate, floor_pct=floor_pct, noise=noise)
    from_bad = compare(bad, candidate, floor_pct=floor_pct, noise=noise)
    whole = compare(good, bad, floor_pct=floor_pct, noise=noise).change_pct
    if from_good.verdict == "DIFFERENT" and from_bad.verdict == "DIFFERENT":
        return "bad" if whole and from_good.change_pct / whole >= HALF else "good"
    if from_good.verdict == "DIFFERENT":
        return "bad"
    if from_bad.verdict == "DIFFERENT":
        return "good"
    return "unknown"


def nothing_to_find(good: Sequence[float], bad: Sequence[float], *, floor_pct: float, noise: float | None) -> str:
    """Why no candidate can be found: the two ends are the same, whatever lies between. Empty while they may differ.

    >>> nothing_to_find([100, 100.1, 99.9], [100.1, 100, 100], floor_pct=1.0, noise=0.002)
    'the ends do not differ: +0.00 % [-0.39, +0.39]'
    """
    ends = compare(good, bad, floor_pct=floor_pct, noise=noise)
    if ends.verdict != "SAME":
        return ""
    return f"the ends do not differ: {ends.change_pct:+.2f} % [{ends.low_pct:+.2f}, {ends.high_pct:+.2f}]"
