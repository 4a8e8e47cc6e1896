"""What a series tells: changepoints as people read them (percent, interval, tier), other events, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from detector.arrays import Floats
from detector.commits.scaling import ScaledSeries
from detector.commits.segments import MEDIAN_VARIANCE, bounds_of, segment_levels
from detector.percentages import LARGEST_PCT, bounded, log_percent

#: Half-width of a 95 % interval, in standard errors.
HALF_WIDTH_95 = 1.96

Tier = Literal["confirmed", "provisional"]


@dataclass(frozen=True, slots=True)
class Changepoint:
    """A step of the level. `index` counts the values as given and is that of the first one at the new level."""

    index: int
    change_pct: float
    """Of the level before; of the level after, with a warning, when the one before is zero. Bounded, so that it is a
    number."""
    low_pct: float
    high_pct: float
    """95 % interval of `change_pct`."""
    probability: float | None
    """None of a method that tells none, and so the tier."""
    tier: Tier | None
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
    """One standard deviation of the noise, in percent of the level; its median where it changes."""
    warnings: tuple[str, ...] = field(default=())

    def indices(self, *, provisional: bool = False) -> list[int]:
        return [c.index for c in self.changepoints if provisional or c.tier == "confirmed"]


class Step(NamedTuple):
    """Where a level begins, and how sure that is; see `Changepoint`."""

    at: int
    probability: float | None = None
    tier: Tier | None = None


def changepoints_at(
    series: ScaledSeries, steps: Sequence[Step], sigma: Floats, phi: float = 0.0
) -> tuple[Changepoint, ...]:
    """Changepoints at `steps` (ascending, places among the values of `series`) from the medians between them.

    `sigma` (n) is the noise of every value on the scale of `series`, `phi` its autocorrelation.
    """
    bounds = bounds_of([step.at for step in steps], len(series.values))
    levels = segment_levels(series.raw, bounds).tolist()
    moves = np.diff(segment_levels(series.values, bounds))
    variances = np.add.reduceat(sigma**2, bounds[:-1]) / np.diff(bounds) ** 2
    spread = MEDIAN_VARIANCE * (1.0 + phi) / (1.0 - phi)
    errors = HALF_WIDTH_95 * np.sqrt(spread * (variances[:-1] + variances[1:]))
    changepoints = []
    for i, step in enumerate(steps):
        before, after = levels[i], levels[i + 1]
        interval = (float(moves[i]), float(moves[i] - errors[i]), float(moves[i] + errors[i]))
        if series.unit is None:
            percent, low, high = (log_percent(move) for move in interval)
        else:
            base = max(abs(before) or abs(after), series.unit / LARGEST_PCT)
            percent, low, high = (bounded(100.0 * series.unit / base * move) for move in interval)
        notes = () if before else ("from zero: the percentage is of the new level",)
        index = int(series.places[step.at])
        changepoints.append(Changepoint(index, percent, low, high, step.probability, step.tier, before, after, notes))
    return tuple(changepoints)
