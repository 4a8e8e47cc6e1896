"""A series that grows: one `append` a value, at a cost that does not grow with the series.

Changes that lie far enough back are settled: only the values since the last settled change are judged again, and
never more than `WINDOW_VALUES` of them.

>>> from detector.commits import Monitor
>>> monitor = Monitor([100.0, 101.0, 99.5, 100.4, 99.8, 100.9, 99.2, 100.1] * 5)
>>> [monitor.append(value)[-1:] for value in (95.0, 95.4, 94.9)][-1][0].index
40
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from detector.commits.analysis import Changepoint, CommitSettings, changepoints

#: A change is settled when this many values have come after it.
SETTLED_VALUES = 120
#: Values judged again at an append, at most.
WINDOW_VALUES = 240


class Monitor:
    """The changepoints of a series as it grows. Indices count all values ever given."""

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
