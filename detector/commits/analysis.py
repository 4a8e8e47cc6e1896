"""A series as people have it (gaps, zeros, units) to changepoints as people read them (percent, interval, tier)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from detector.arrays import Floats, Ints
from detector.commits.segmentation import CommitSettings, Segmentation, segment
from detector.commits.segments import Peak, bounds_of, segment_levels

#: Below this many values nothing can be found: a level before, and one after.
FEWEST_VALUES = 6
#: A series without percentages (zeros, negatives) is measured in medians of |values|, or in this share of the largest.
SMALLEST_UNIT = 1e-3
#: Numbers beyond this are taken for no measurement, so that sums of them stay numbers.
LARGEST_VALUE = 1e300
#: Half-width of a 95 % interval, in standard errors.
HALF_WIDTH_95 = 1.96
#: A move on the log scale is bounded, so that its percentage is a number.
LARGEST_MOVE = 500.0
#: Variance of the median of normal values, over that of their mean.
MEDIAN_VARIANCE = math.pi / 2.0
#: Values on either side of a transient that its height is measured from.
BESIDE = 5
#: So many runs of equal values, all of a multiple of one length, do not come about by themselves.
FEWEST_RUNS = 10
#: A change is settled when this many values have come after it.
SETTLED_VALUES = 120
#: Values judged again at an append, at most.
WINDOW_VALUES = 240

Tier = Literal["confirmed", "provisional"]


@dataclass(frozen=True, slots=True)
class Changepoint:
    """A step of the level. `index` counts the values as given and is that of the first one at the new level."""

    index: int
    change_pct: float
    """Of the level before; of the level after, with a warning, when the one before is zero."""
    low_pct: float
    high_pct: float
    """95 % interval of `change_pct`."""
    probability: float
    tier: Tier
    before: float
    after: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something else that happened: a `transient` that came back, or a `drift`: a level that wanders without a step
    (from the lowest to the highest point of its curve, in time order). `end` is exclusive."""

    kind: Literal["transient", "drift"]
    start: int
    end: int
    change_pct: float | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that one series tells."""

    changepoints: tuple[Changepoint, ...] = ()
    events: tuple[Event, ...] = ()
    noise_pct: float | None = None
    """One standard deviation of the noise, in percent of the level."""
    warnings: tuple[str, ...] = field(default=())

    def indices(self, *, provisional: bool = False) -> list[int]:
        return [c.index for c in self.changepoints if provisional or c.tier == "confirmed"]


def changepoints(values: Sequence[float | None], settings: CommitSettings | None = None) -> list[Changepoint]:
    """The changepoints of `values`, confirmed and provisional, in order. Never fails on numbers; see `analyse`."""
    return list(analyse(values, settings).changepoints)


def analyse(values: Sequence[float | None], settings: CommitSettings | None = None) -> Analysis:
    """Everything about one series. None, NaN and infinities are gaps: left out, with a warning.

    Values that are all positive are judged on a log scale; zeros or negative ones on a linear scale, with a warning.
    """
    settings = settings or CommitSettings()
    given = np.array(values, dtype=np.float64)  # None becomes NaN
    present = np.flatnonzero(np.abs(given) < LARGEST_VALUE)
    finite: Floats = given[present]
    warnings = []
    if len(finite) < len(given):
        absent = len(given) - len(finite)
        warnings.append(f"{absent} of {len(given)} values are missing or not finite and were left out")
    if len(finite) < FEWEST_VALUES:
        warnings.append(f"{len(finite)} values are too few to find a change in; {FEWEST_VALUES} are the least")
        return Analysis(warnings=tuple(warnings))
    repeats, places = _without_repeats(finite)
    if repeats > 1:
        warnings.append(f"every value is there {repeats} times in a row; they count once")
        finite, present = finite[places], present[places]
    unit = None
    if finite.min() > 0.0:
        scaled = np.log(finite)
        smallest = math.log1p(settings.smallest_change_pct / 100.0)
    else:
        warnings.append("there are zeros or negative values, so changes are judged on a linear scale")
        sizes = np.abs(finite)
        unit = max(float(np.median(sizes)), float(sizes.max()) * SMALLEST_UNIT) or 1.0
        scaled = finite / unit
        smallest = settings.smallest_change_pct / 100.0
    segmentation = segment(scaled, smallest, settings)
    events = [_transient(finite, start, end, present) for start, end in segmentation.transients]
    if segmentation.drift is not None:
        events.append(_drift(np.exp(segmentation.drift) if unit is None else segmentation.drift * unit, present))
    noise = 100.0 * (math.expm1(min(segmentation.sigma, LARGEST_MOVE)) if unit is None else segmentation.sigma)
    steps = _steps(segmentation, finite, scaled, present, unit)
    return Analysis(tuple(steps), tuple(events), noise, tuple(warnings))


def _drift(curve: Floats, present: Ints) -> Event:
    """The drift from where the curve is lowest to where it is highest, in time order."""
    start, end = sorted((int(np.argmin(curve)), int(np.argmax(curve))))
    return Event("drift", int(present[start]), int(present[end]) + 1, _percent(curve[start], curve[end]))


def _transient(values: Floats, start: int, end: int, present: Ints) -> Event:
    beside = np.concatenate([values[max(0, start - BESIDE) : start], values[end : end + BESIDE]])
    change = _percent(float(np.median(beside)), float(np.median(values[start:end])))
    return Event("transient", int(present[start]), int(present[end - 1]) + 1, change)


def _percent(before: float, after: float) -> float | None:
    return float(100.0 * (after - before) / abs(before)) if before else None


def _steps(
    segmentation: Segmentation, values: Floats, scaled: Floats, present: Ints, unit: float | None
) -> list[Changepoint]:
    """The changes found, in percent; `unit` is the divisor of a linear scale, None on the log scale."""
    tiers: list[tuple[Peak, Tier]] = [(peak, "confirmed") for peak in segmentation.changes]
    tiers += [(peak, "provisional") for peak in segmentation.provisional]
    bounds = bounds_of([peak.at for peak, _ in tiers], len(values))
    lengths = np.diff(bounds)
    levels = segment_levels(values, bounds).tolist()
    moves = np.diff(segment_levels(scaled, bounds))
    spread = math.sqrt(MEDIAN_VARIANCE * (1.0 + segmentation.phi) / (1.0 - segmentation.phi))
    errors = HALF_WIDTH_95 * segmentation.sigma * spread * np.sqrt(1.0 / lengths[:-1] + 1.0 / lengths[1:])
    steps = []
    for i, (peak, tier) in enumerate(tiers):
        before, after = levels[i], levels[i + 1]
        bounded = (float(moves[i]), float(moves[i] - errors[i]), float(moves[i] + errors[i]))
        notes: tuple[str, ...] = ()
        if unit is None:
            percent, low, high = (100.0 * math.expm1(min(move, LARGEST_MOVE)) for move in bounded)
        else:
            percent, low, high = (100.0 * move * unit / (abs(before) or abs(after) or unit) for move in bounded)
        if not before:
            notes = ("from zero: the percentage is of the new level",)
        probability = round(peak.probability, 4)
        steps.append(Changepoint(int(present[peak.at]), percent, low, high, probability, tier, before, after, notes))
    return steps


def _without_repeats(values: Floats) -> tuple[int, Ints]:
    """How often every value is there in a row, and the places of the first of each; (1, every place) as a rule.

    The first and the last run may be cut off, since a series may begin and end anywhere.

    >>> _without_repeats(np.repeat([5.1, 4.9, 5.0, 5.2, 4.8, 5.3, 5.1, 4.7, 5.0, 5.2, 4.9, 5.1], 2))
    (2, array([ 0,  2,  4,  6,  8, 10, 12, 14, 16, 18, 20, 22]))
    >>> _without_repeats(np.repeat([5.0, 5.5], 20))[0]      # two levels without noise are two levels
    1
    """
    n = len(values)
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1]) if n else np.arange(0)
    if 2 * len(starts) > n + 2 or len(starts) < FEWEST_RUNS + 2:
        return 1, np.arange(n)
    lengths = np.diff(np.append(starts, n))
    repeats = math.gcd(*lengths[1:-1].tolist())
    if repeats == 1:
        return 1, np.arange(n)
    places = [np.arange(start, start + length, repeats) for start, length in zip(starts, lengths, strict=True)]
    return repeats, np.concatenate(places)


class Monitor:
    """The changepoints of a series as it grows. Indices count all values ever given.

    Changes that lie far enough back are settled: only the values since the last settled one are judged again, at most
    `WINDOW_VALUES`, so that the cost of an `append` does not grow with the series.

    >>> monitor = Monitor([100.0, 101.0, 99.5, 100.4, 99.8, 100.9, 99.2, 100.1] * 5)
    >>> [monitor.append(value)[-1:] for value in (95.0, 95.4, 94.9)][-1][0].index
    40
    """

    def __init__(self, values: Iterable[float | None] = (), settings: CommitSettings | None = None) -> None:
        self._settings = settings or CommitSettings()
        self._values = list(values)
        self._found = changepoints(self._values, self._settings)

    @property
    def changepoints(self) -> list[Changepoint]:
        return list(self._found)

    def append(self, value: float | None) -> list[Changepoint]:
        """The changepoints, now that `value` is there too."""
        self._values.append(value)
        n = len(self._values)
        settled = [change for change in self._found if change.index <= n - SETTLED_VALUES]
        start = max(settled[-1].index if settled else 0, n - WINDOW_VALUES)
        recent = changepoints(self._values[start:], self._settings)
        self._found = [change for change in self._found if change.index <= start] + [
            replace(change, index=change.index + start) for change in recent
        ]
        return self.changepoints
