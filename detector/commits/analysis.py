"""A series as people have it (gaps, zeros, units) to changepoints as people read them (percent, interval, tier)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from detector.commits.engine import Demands, Segmentation, segment
from detector.commits.levels import Floats, Ints
from detector.commits.repeats import once
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

Tier = Literal["confirmed", "provisional"]


@dataclass(frozen=True, slots=True)
class CommitSettings:
    """What is worth a changepoint. The defaults are those that `docs/detector.md` reports figures for."""

    smallest_change_pct: float = 1.0
    probability: float = 0.85
    """A change has to be as likely as this, ..."""
    fresh_probability: float = 0.5
    """... but only this likely while it is eight values old or younger: the next ones will tell, and it may be news."""
    confirm_values: int = 2
    """A level needs this many values before its change is confirmed; until then it is provisional."""

    def __post_init__(self) -> None:
        if not 0.0 < self.smallest_change_pct < 100.0:
            raise ValueError(f"smallest_change_pct must be between 0 and 100, got {self.smallest_change_pct}")
        for name in ("probability", "fresh_probability"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if self.confirm_values < 1:
            raise ValueError(f"confirm_values must be at least 1, got {self.confirm_values}")


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
    kept: Floats = given[present]
    warnings = []
    if len(kept) < len(given):
        warnings.append(f"{len(given) - len(kept)} of {len(given)} values are missing or not finite and were left out")
    if len(kept) < FEWEST_VALUES:
        warnings.append(f"{len(kept)} values are too few to find a change in; {FEWEST_VALUES} are the least")
        return Analysis(warnings=tuple(warnings))
    repeats, places = once(kept)
    if repeats > 1:
        warnings.append(f"every value is there {repeats} times in a row; they count once")
        kept, present = kept[places], present[places]
    unit = None
    if kept.min() > 0.0:
        scaled = np.log(kept)
        smallest = math.log1p(settings.smallest_change_pct / 100.0)
    else:
        warnings.append("there are zeros or negative values, so changes are judged on a linear scale")
        unit = _linear_unit(kept)
        scaled = kept / unit
        smallest = settings.smallest_change_pct / 100.0
    demands = Demands(smallest, settings.probability, settings.fresh_probability, settings.confirm_values)
    found = segment(scaled, demands)
    events = [_transient(kept, start, end, present) for start, end in found.transients]
    if found.drift is not None:
        events.append(_drift(np.exp(found.drift) if unit is None else found.drift * unit, present))
    noise = 100.0 * (math.expm1(min(found.sigma, LARGEST_MOVE)) if unit is None else found.sigma)
    steps = _steps(found, kept, scaled, present, unit)
    return Analysis(tuple(steps), tuple(events), noise, tuple(warnings))


def _linear_unit(values: Floats) -> float:
    """What a percentage of a series with zeros is of: its typical size."""
    sizes = np.abs(values)
    largest = float(sizes.max())
    return max(float(np.median(sizes)), largest * SMALLEST_UNIT) or 1.0


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


def _steps(found: Segmentation, values: Floats, scaled: Floats, present: Ints, unit: float | None) -> list[Changepoint]:
    """The changes found, in percent; `unit` is the divisor of a linear scale, None on the log scale."""
    tiers: list[tuple[Peak, Tier]] = [(peak, "confirmed") for peak in found.changes]
    tiers += [(peak, "provisional") for peak in found.provisional]
    bounds = bounds_of([peak.at for peak, _ in tiers], len(values))
    lengths = np.diff(bounds)
    levels = segment_levels(values, bounds).tolist()
    moves = np.diff(segment_levels(scaled, bounds))
    spread = math.sqrt(MEDIAN_VARIANCE * (1.0 + found.phi) / (1.0 - found.phi))
    errors = HALF_WIDTH_95 * found.sigma * spread * np.sqrt(1.0 / lengths[:-1] + 1.0 / lengths[1:])
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
