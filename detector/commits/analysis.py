"""A series as people have it (gaps, zeros, units) to changepoints as people read them (percent, interval, tier)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from detector.commits.engine import Segmentation, segment
from detector.commits.levels import Floats
from detector.commits.segments import Peak

#: Below this many values nothing can be found: a level before, and one after.
FEWEST_VALUES = 6
#: A change of a series without percentages (zeros, negatives) is measured against this quantile of |values|.
LINEAR_SCALE_QUANTILE = 0.5
#: Half-width of a 95 % interval, in standard errors.
HALF_WIDTH_95 = 1.96
#: A move on the log scale is bounded, so that its percentage is a number.
LARGEST_MOVE = 500.0


@dataclass(frozen=True, slots=True)
class CommitSettings:
    """What is worth a changepoint. The defaults are those that `docs/detector.md` reports figures for."""

    smallest_change_pct: float = 1.0
    probability: float = 0.5
    confirm_values: int = 3
    """A level needs this many values before its change is confirmed; until then it is provisional."""

    def __post_init__(self) -> None:
        if not 0.0 < self.smallest_change_pct < 100.0:
            raise ValueError(f"smallest_change_pct must be between 0 and 100, got {self.smallest_change_pct}")
        if not 0.0 < self.probability < 1.0:
            raise ValueError(f"probability must be between 0 and 1, got {self.probability}")
        if self.confirm_values < 1:
            raise ValueError(f"confirm_values must be at least 1, got {self.confirm_values}")


@dataclass(frozen=True, slots=True)
class Changepoint:
    """A step of the level. `index` counts the values as given and is that of the first one at the new level."""

    index: int
    change_pct: float | None
    """None when the level before is zero: there is no percentage of nothing."""
    low_pct: float | None
    high_pct: float | None
    """95 % interval of `change_pct`."""
    probability: float
    tier: Literal["confirmed", "provisional"]
    before: float
    after: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something else that happened: a `transient` that came back, or a `drift` without a step. `end` is exclusive."""

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
    given = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    present = np.flatnonzero(np.isfinite(given))
    kept: Floats = given[present]
    warnings = []
    if len(kept) < len(given):
        warnings.append(f"{len(given) - len(kept)} of {len(given)} values are missing or not finite and were left out")
    if len(kept) < FEWEST_VALUES:
        warnings.append(f"{len(kept)} values are too few to find a change in; {FEWEST_VALUES} are the least")
        return Analysis(warnings=tuple(warnings))
    logarithmic = bool(kept.min() > 0.0)
    unit = 1.0
    if logarithmic:
        scaled = np.log(kept)
        smallest = math.log1p(settings.smallest_change_pct / 100.0)
    else:
        warnings.append("there are zeros or negative values, so changes are judged on a linear scale")
        unit = _linear_unit(kept)
        scaled = kept / unit
        smallest = settings.smallest_change_pct / 100.0
    found = segment(scaled, smallest, least=settings.probability, confirm=settings.confirm_values)
    steps = _steps(found, kept, scaled, present, logarithmic)
    events = [
        Event("transient", int(present[start]), int(present[end - 1]) + 1, _height(kept, start, end))
        for start, end in found.transients
    ]
    noise = 100.0 * (math.expm1(found.sigma) if logarithmic else found.sigma)
    return Analysis(tuple(steps), tuple(events), noise, tuple(warnings))


def _linear_unit(values: Floats) -> float:
    """What a percentage of a series with zeros is of: its typical size."""
    sizes = np.abs(values)
    typical = float(np.quantile(sizes, LINEAR_SCALE_QUANTILE))
    return typical or float(sizes.max()) or 1.0


def _height(values: Floats, start: int, end: int) -> float | None:
    beside = np.concatenate([values[max(0, start - 5) : start], values[end : end + 5]])
    return _percent(float(np.median(beside)), float(np.median(values[start:end])))


def _percent(before: float, after: float) -> float | None:
    return 100.0 * (after - before) / abs(before) if before else None


def _growth(move: float) -> float:
    return 100.0 * math.expm1(min(move, LARGEST_MOVE))


def _steps(
    found: Segmentation, values: Floats, scaled: Floats, present: np.ndarray, logarithmic: bool
) -> list[Changepoint]:
    tiers: list[tuple[Peak, Literal["confirmed", "provisional"]]] = [(peak, "confirmed") for peak in found.changes]
    tiers += [(peak, "provisional") for peak in found.provisional]
    tiers.sort()
    bounds = [0, *(peak.at for peak, _ in tiers), len(values)]
    inflation = math.sqrt((1.0 + found.phi) / (1.0 - found.phi))
    steps = []
    for (peak, tier), start, at, end in zip(tiers, bounds, bounds[1:], bounds[2:], strict=False):
        before, after = float(np.median(values[start:at])), float(np.median(values[at:end]))
        move = float(np.median(scaled[at:end]) - np.median(scaled[start:at]))
        error = found.sigma * inflation * math.sqrt(math.pi / 2.0 * (1.0 / (at - start) + 1.0 / (end - at)))
        low, high = move - HALF_WIDTH_95 * error, move + HALF_WIDTH_95 * error
        percents: tuple[float | None, ...]
        if logarithmic:
            percents = (_growth(move), _growth(low), _growth(high))
            notes: tuple[str, ...] = ()
        elif before:
            unit = 100.0 * (values[at] / scaled[at] if scaled[at] else 1.0) / abs(before)
            percents = (move * unit, low * unit, high * unit)
            notes = ()
        else:
            percents = (None, None, None)
            notes = ("the level before is zero: there is no percentage",)
        change, lowest, highest = percents
        steps.append(
            Changepoint(
                index=int(present[at]),
                change_pct=change,
                low_pct=lowest,
                high_pct=highest,
                probability=round(peak.probability, 4),
                tier=tier,
                before=before,
                after=after,
                warnings=notes,
            )
        )
    return steps
