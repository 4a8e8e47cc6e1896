"""Our two engines as estimators of `ruptures` (Truong, Oudre and Vayatis 2020), for its metrics and displays.

What they predict is counted as in `ruptures`: the first value of every new segment, ascending, and the number of
values last. The penalty is in log odds: a change must be as likely as exp(`pen`) to 1, so that a higher one leaves
fewer changes; without one the engines' own probabilities hold.

>>> signal = 100.0 + np.tile([0.3, -0.2, 0.5, -0.6], 30)
>>> signal[80:] *= 1.05
>>> Commits().fit_predict(signal)
[80, 120]
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Self

import numpy as np
from ruptures.base import BaseEstimator

from detector.arrays import Floats
from detector.changes import release_changes
from detector.commits import CommitSettings, analyse
from detector.errors import InvalidSeries

#: Log odds beyond these are probabilities that no change has, or that every change has.
LARGEST_ODDS = 30.0


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """What both have in common: a signal that is fitted, [values, series], NaN where nothing was measured."""

    def __init__(self) -> None:
        self.signal: Floats | None = None

    def fit(self, signal: Floats) -> Self:
        """Keeps `signal`, [values] or [values, series]. Raises InvalidSeries for another shape."""
        signal = np.asarray(signal, dtype=np.float64)
        if signal.ndim not in (1, 2) or not signal.size:
            raise InvalidSeries(f"a signal must be an array [values] or [values, series], got {signal.shape}")
        self.signal = signal.reshape(len(signal), -1)
        return self

    def predict(self, pen: float | None = None) -> list[int]:
        """Where segments end in the signal that was fitted. Raises InvalidSeries without one."""
        if self.signal is None:
            raise InvalidSeries("there is no signal yet; call fit(signal) first")
        return [*self._changes(self.signal, None if pen is None else _probability(pen)), len(self.signal)]

    def fit_predict(self, signal: Floats, pen: float | None = None) -> list[int]:
        """`fit` and `predict` in one."""
        return self.fit(signal).predict(pen)

    @abstractmethod
    def _changes(self, signal: Floats, probability: float | None) -> list[int]:
        """The first values of new segments; None stands for the engine's own probability."""


class Commits(_Estimator):
    """The confirmed changepoints of one commit series."""

    def fit(self, signal: Floats) -> Self:
        """As above; of one series."""
        super().fit(signal)
        if self.signal is not None and self.signal.shape[1] > 1:
            raise InvalidSeries(f"Commits judges one series, got {self.signal.shape[1]}; fit them one after the other")
        return self

    def _changes(self, signal: Floats, probability: float | None) -> list[int]:
        settings = CommitSettings()
        if probability is not None:
            settings = CommitSettings(probability=probability, fresh_probability=probability)
        return analyse(signal[:, 0].tolist(), settings).indices()


class Releases(_Estimator):
    """The releases at which any of the tests that were measured together changed: a column is a test's throughput."""

    def _changes(self, signal: Floats, probability: float | None) -> list[int]:
        changes = release_changes(signal.T[None, :, :, None], probability=probability)
        return sorted({release for _, _, release in changes})


def _probability(pen: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(pen, -LARGEST_ODDS), LARGEST_ODDS)))
