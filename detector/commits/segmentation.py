"""One commit series to its events: parts of one noise, probability of a jump at every value, rules; docs/detector.md.

1. The series is cut where its noise changes; each part is read with its own (`reading`).
2. Where two parts meet, the levels on both sides are compared.
3. Rules take out what is too small, comes back, or has not lasted long enough yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from detector.arrays import Floats
from detector.commits import events
from detector.commits.noise_parts import part_bounds
from detector.commits.reading import Reading, read
from detector.commits.segments import Peak, bounds_of, peaks, refined

#: Noise below this share of the smallest change of interest does not matter.
NOISE_FLOOR = 0.1
#: The fewest values that can be read.
FEWEST_VALUES = 3
#: A jump of this probability ends the level that is compared with the next part's.
LEVEL = 0.5
#: Log odds beyond these are as good as certain.
LARGEST_ODDS = 100.0
#: Probability of a change in the last values from which it is provisional, and that of a change one value old.
PROVISIONAL = 0.08
PROVISIONAL_SINGLE = 0.12
#: A changepoint is moved by at most so many values to where the values change sides.
REFINE_VALUES = 3


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


@dataclass
class Segmentation:
    """What the engine knows when it is done; indices count the values it was given."""

    sigma: Floats
    """Scale of the noise at every value, in the unit of the values."""
    phi: float = 0.0
    """Autocorrelation of the noise, the strongest of all parts."""
    changes: list[Peak] = field(default_factory=list)
    provisional: list[Peak] = field(default_factory=list)
    transients: list[tuple[int, int]] = field(default_factory=list)
    drifts: list[tuple[int, Floats]] = field(default_factory=list)
    """Where a level drifts, the first value of that part and its smooth curve, in the unit of the values."""


def segment(values: Floats, smallest: float, settings: CommitSettings) -> Segmentation:
    """`values` (finite, log or linear) into levels; `smallest` is the least size of a change in their unit."""
    if len(values) < FEWEST_VALUES:
        return Segmentation(sigma=np.zeros(len(values)))
    least_sigma = NOISE_FLOOR * smallest
    bounds = part_bounds(values, least_sigma)
    readings = [read(values[start:end], least_sigma) for start, end in pairwise(bounds.tolist())]
    result = Segmentation(
        sigma=np.repeat([reading.sigma for reading in readings], np.diff(bounds)),
        phi=max(reading.phi for reading in readings),
        drifts=[
            (start, reading.curve)
            for start, reading in zip(bounds.tolist(), readings, strict=False)
            if reading.curve is not None
        ],
    )
    jumps = np.concatenate([reading.jumps for reading in readings])
    for place in bounds[1:-1].tolist():  # beside a meeting there are too few values to make a level
        jumps[place - REFINE_VALUES + 1 : place + events.FIRST_VALUES] = 0.0
    for place, left, right in zip(bounds[1:-1].tolist(), readings, readings[1:], strict=False):
        at, probability = _meeting(values, place, left, right)
        jumps[at] = max(jumps[at], probability)
    _apply_rules(result, values, jumps, smallest, settings)
    return result


def _meeting(values: Floats, place: int, left: Reading, right: Reading) -> Peak:
    """The step between the lasting levels of two parts that meet about `place`, and its probability: that of two more
    parameters, the step and its place (Schwarz 1978)."""
    start, end = _lasting(left, last=True)
    before = values[place - len(left.jumps) :][start:end]
    first = place - len(left.jumps) + end
    start, end = _lasting(right, last=False)
    after = values[place:][start:end]
    a, b = float(np.median(before)), float(np.median(after))
    odds = 0.5 * (b - a) ** 2 / (left.median_variance / len(before) + right.median_variance / len(after))
    between = values[first : place + start]
    costs = np.concatenate([[0.0], np.cumsum(np.abs(between - a) - np.abs(between - b))])
    at = place if costs[place - first] == costs.min() else first + int(np.argmin(costs))
    return Peak(at, 1.0 / (1.0 + math.exp(2.0 * math.log(len(values)) - min(odds, LARGEST_ODDS))))


def _lasting(reading: Reading, *, last: bool) -> tuple[int, int]:
    """Start and end of the last level of a part, or of the first one, that is no transient, and where all are short of
    the longest; of a few values where the level drifts."""
    n = len(reading.jumps)
    if reading.curve is not None:
        return (max(0, n - events.SIDE_VALUES), n) if last else (0, min(n, events.SIDE_VALUES))
    levels = list(pairwise([0, *(peak.at for peak in peaks(reading.jumps, LEVEL)), n]))
    lasting = [(start, end) for start, end in levels if end - start > events.LONGEST_TRANSIENT]
    if lasting:
        return lasting[-1] if last else lasting[0]
    return max(levels if last else levels[::-1], key=lambda level: level[1] - level[0])


def _likely(jumps: Floats, settings: CommitSettings) -> list[Peak]:
    """The jumps that are likely enough for their age."""
    old, fresh = settings.probability, settings.fresh_probability
    first_fresh = len(jumps) - events.END_VALUES
    return [p for p in peaks(jumps, min(old, fresh)) if p.probability >= (fresh if p.at >= first_fresh else old)]


def _apply_rules(
    result: Segmentation, values: Floats, jumps: Floats, smallest: float, settings: CommitSettings
) -> None:
    """Sorts the jumps into changes, provisional changes, transients, and nothing."""
    n = len(values)
    changes = _likely(jumps, settings)
    while changes:
        places = [peak.at for peak in changes]
        weak = events.too_small(values, places, smallest)
        if weak is not None:
            del changes[weak]
            continue
        passing = events.transient(values, places, result.sigma)
        if passing is not None:
            start = passing.position
            result.transients.append((places[start], places[start + 1]))
            changes[start : start + 2] = [changes[start + passing.which]] if passing.moved else []
            continue
        if places[0] < min(events.FIRST_VALUES, events.FIRST_SHARE * n):  # too few values to make a level
            del changes[0]
            continue
        if n - places[-1] < max(settings.confirm_values, events.end_needs(values, places, result.sigma)):
            del changes[-1]
            continue
        break
    bounds = bounds_of([peak.at for peak in changes], n)
    moved = refined(values, bounds, REFINE_VALUES).tolist()
    result.changes = [Peak(at, peak.probability) for at, peak in zip(moved, changes, strict=True)]
    result.provisional = _provisional(result, values, jumps, smallest)


def _provisional(result: Segmentation, values: Floats, jumps: Floats, smallest: float) -> list[Peak]:
    """What may be the beginning of a change: likely enough to measure again, not to tell anyone.

    A single value is one only when the series has never shown an excursion of its size.
    """
    n = len(values)
    places = [peak.at for peak in result.changes]
    last = places[-1] if places else 0
    for peak in reversed(peaks(jumps, PROVISIONAL)):
        length = n - peak.at
        if length > events.END_VALUES or peak.at <= last + REFINE_VALUES:
            break
        enough = PROVISIONAL_SINGLE if length == 1 else PROVISIONAL
        height = float(np.median(values[peak.at :]) - np.median(values[last : peak.at]))
        if peak.probability < enough or abs(height) < smallest:
            continue
        if length > 1 or events.end_needs(values, [*places, peak.at], result.sigma) == 1:
            return [peak]
    return []
