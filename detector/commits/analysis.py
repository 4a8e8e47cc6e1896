"""A series as people have it to all that it tells, at once or as it grows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from detector.arrays import Floats, Ints
from detector.commits.results import Analysis, Changepoint, Event, Step, changepoints_at
from detector.commits.scaling import ScaledSeries, on_scale
from detector.commits.segmentation import CommitSettings, Segmentation, segment
from detector.percentages import log_percent, percent
from detector.wording import count

#: Below this many values nothing can be found: a level before, and one after.
FEWEST_VALUES = 6
#: Values on either side of a transient that its height is measured from.
BESIDE = 5
#: A change is settled when this many values have come after it.
SETTLED_VALUES = 120
#: Values judged again at an append, at most.
WINDOW_VALUES = 240


def changepoints(values: Sequence[float | None], settings: CommitSettings | None = None) -> list[Changepoint]:
    """The changepoints of `values`, confirmed and provisional, in order. Never fails on numbers; see `analyse`."""
    return list(analyse(values, settings).changepoints)


def analyse(values: Sequence[float | None], settings: CommitSettings | None = None) -> Analysis:
    """Everything about one series. None, NaN and infinities are gaps: left out, with a warning.

    Values that are all positive are judged on a log scale; zeros or negative ones on a linear scale, with a warning.
    """
    settings = settings or CommitSettings()
    series = on_scale(values)
    if few := too_few(series):
        return few
    segmentation = segment(series.values, series.size_of(settings.smallest_change_pct), settings)
    noise = float(np.sort(segmentation.sigma)[len(segmentation.sigma) // 2])
    return Analysis(
        changepoints_at(series, _steps(segmentation), segmentation.sigma, segmentation.phi),
        tuple(_events(series, segmentation)),
        log_percent(noise) if series.unit is None else 100.0 * noise,
        series.warnings,
    )


def too_few(series: ScaledSeries) -> Analysis | None:
    """The analysis of a series in which nothing can be found; None of a longer one."""
    if len(series.raw) >= FEWEST_VALUES:
        return None
    of_them = f"{count(len(series.raw), 'value')} {'is' if len(series.raw) == 1 else 'are'}"
    few = f"{of_them} too few to find a change in; {FEWEST_VALUES} are the least"
    return Analysis(warnings=(*series.warnings, few))


def _steps(segmentation: Segmentation) -> list[Step]:
    confirmed = [Step(peak.at, round(peak.probability, 4), "confirmed") for peak in segmentation.changes]
    provisional = [Step(peak.at, round(peak.probability, 4), "provisional") for peak in segmentation.provisional]
    return confirmed + provisional


def _events(series: ScaledSeries, segmentation: Segmentation) -> list[Event]:
    events = [_transient(series.raw, start, end, series.places) for start, end in segmentation.transients]
    for start, curve in segmentation.drifts:
        level = np.exp(curve) if series.unit is None else curve * series.unit
        events.append(_drift(level, series.places[start:]))
    return sorted(events, key=lambda event: event.start)


def _drift(curve: Floats, places: Ints) -> Event:
    """The drift from where the curve is lowest to where it is highest, in time order."""
    start, end = sorted((int(np.argmin(curve)), int(np.argmax(curve))))
    return Event("drift", int(places[start]), int(places[end]) + 1, _change(float(curve[start]), float(curve[end])))


def _transient(values: Floats, start: int, end: int, places: Ints) -> Event:
    beside = np.concatenate([values[max(0, start - BESIDE) : start], values[end : end + BESIDE]])
    change = _change(float(np.median(beside)), float(np.median(values[start:end])))
    return Event("transient", int(places[start]), int(places[end - 1]) + 1, change)


def _change(before: float, after: float) -> float | None:
    return percent(before, after) if before else None


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
