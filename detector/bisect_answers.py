"""What a bisection can answer, each answer with the blocks that carry it.

    Found          one candidate: it differs from the one before it
    Interval       the change lies between two candidates that differ; why it is not one candidate is said
    NoDifference   the two ends are the same, so there is nothing to find
    Undecided      it is not known whether the ends differ; it names no candidate

The first three hold the block values of every candidate they name, two or more each, and judge them when they are made:
a claim that its own values do not bear out is a ValidationError.

>>> judge = Judge(floor_pct=0.5, noise=0.0015)
>>> old = MeasuredCandidate(candidate="18.1", values=(47_410.2, 47_409.8))
>>> new = MeasuredCandidate(candidate="18.2", values=(47_410.9, 47_410.1))
>>> pair = CandidatePair(before=old, after=new, judge=judge)
>>> print(pair)
+0.00 % [-0.39, +0.39]
>>> NoDifference(ends=pair).reason
'18.1 and 18.2 do not differ: +0.00 % [-0.39, +0.39]'
>>> Found(ends=pair, step=pair)
Traceback (most recent call last):
pydantic_core._pydantic_core.ValidationError: 1 validation error for Found
  Value error, 18.1 and 18.2 are SAME (+0.00 % [-0.39, +0.39]), so nothing was found between them ...
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from detector.compare import Comparison, compare
from history.model import Row
from history.model.values import Value

#: Blocks of a candidate before anything is said about it.
FIRST_BLOCKS = 2

Reason = Annotated[str, Field(min_length=1)]


class Judge(Row):
    """How block values are compared."""

    floor_pct: float = Field(gt=0)
    """The smallest change of interest."""
    noise: float | None = None
    """Known standard deviation of the log of one block's value."""

    def compare(self, before: tuple[float, ...], after: tuple[float, ...]) -> Comparison:
        """The verdict on block values of two candidates."""
        return compare(before, after, floor_pct=self.floor_pct, noise=self.noise)


class MeasuredCandidate(Row):
    """A candidate and its block values, never fewer than `FIRST_BLOCKS`."""

    candidate: str
    values: tuple[Value, ...] = Field(min_length=FIRST_BLOCKS)


class CandidatePair(Row):
    """Two measured candidates; `str` is the change from one to the other with its interval."""

    before: MeasuredCandidate
    after: MeasuredCandidate
    judge: Judge

    @property
    def comparison(self) -> Comparison:
        """The verdict, computed from the values."""
        return self.judge.compare(self.before.values, self.after.values)

    def __str__(self) -> str:
        seen = self.comparison
        return f"{seen.change_pct:+z.2f} % [{seen.low_pct:+z.2f}, {seen.high_pct:+z.2f}]"


class _StepSeen(Row):
    """The two ends differ, and the two candidates of the step differ in the same direction."""

    ends: CandidatePair
    step: CandidatePair

    @property
    def after(self) -> str:
        """The last candidate at the old level."""
        return self.step.before.candidate

    @property
    def first(self) -> str:
        """The first candidate measured at the new level."""
        return self.step.after.candidate

    @model_validator(mode="after")
    def _is_seen(self) -> Self:
        for pair in (self.ends, self.step):
            if (verdict := pair.comparison.verdict) != "DIFFERENT":
                names = f"{pair.before.candidate} and {pair.after.candidate}"
                raise ValueError(f"{names} are {verdict} ({pair}), so nothing was found between them")
        if self.ends.comparison.change_pct * self.step.comparison.change_pct < 0:
            raise ValueError(f"the step ({self.step}) goes the other way than the ends ({self.ends})")
        return self


class Found(_StepSeen):
    """`first` brought the change: nothing lies between it and `after`."""


class Interval(_StepSeen):
    """The change came after `after`, with `first` or with one of `between`."""

    between: tuple[str, ...] = Field(min_length=1)
    reason: Reason
    """Why it is not one candidate."""


class NoDifference(Row):
    """The ends are the same, whatever lies between them."""

    ends: CandidatePair

    @property
    def reason(self) -> str:
        """The two ends and how far they are apart."""
        return f"{self.ends.before.candidate} and {self.ends.after.candidate} do not differ: {self.ends}"

    @model_validator(mode="after")
    def _is_seen(self) -> Self:
        if (verdict := self.ends.comparison.verdict) != "SAME":
            raise ValueError(f"the ends are {verdict} ({self.ends}), not SAME")
        return self


class Undecided(Row):
    """Whether the ends differ is not known."""

    reason: Reason


Answer = Found | Interval | NoDifference | Undecided
