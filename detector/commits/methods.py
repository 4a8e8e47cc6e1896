"""The methods of `ruptures` (Truong, Oudre and Vayatis 2020), to compare with ours: the same values, the same results.

Values are scaled as ours are and divided by the noise of their differences. A method looks for the segments whose costs
and penalties, one for each changepoint, have the smallest sum; it knows no probability and no tier. Penalties are

* `bic`: log(n) for each parameter of a changepoint, its place and what the model fits after it (Schwarz 1978);
* `aic`: 2 for each of them (Akaike 1974);
* a number: as it is, in the model's own cost.

Both criteria are of -2 log likelihood, and `Model.unit` is what one of that is in the model's cost.

>>> values = [5.0, 5.1, 5.0, 4.9] * 8 + [5.5, 5.6, 5.5, 5.4] * 8
>>> [(change.index, round(change.change_pct)) for change in analyse_with(RupturesMethod("pelt"), values).changepoints]
[(32, 10)]
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from detector.arrays import Floats
from detector.commits.analysis import too_few
from detector.commits.noise import noise_scale
from detector.commits.results import Analysis, Step, changepoints_at
from detector.commits.scaling import on_scale
from detector.commits.segmentation import NOISE_FLOOR, CommitSettings
from detector.percentages import log_percent

#: Width of `window`, in values; in a short series half of it.
WINDOW_WIDTH = 40
#: The most changepoints that `dynp` looks for.
MOST_CHANGES = 10


@dataclass(frozen=True, slots=True)
class Model:
    """A cost of `ruptures`, of values in units of their noise."""

    parameters: int
    """Of a changepoint: its place and what is fitted after it."""
    unit: float | None
    """One of -2 log likelihood in this cost; None: what two neighbours cost."""
    min_size: int = 2
    """The fewest values of a segment."""


#: The cost of a median falls by 1 / 4 f(0) per unit; f(0) is the density of normal noise at its center.
MODELS = {
    "l1": Model(2, math.sqrt(2.0 * math.pi) / 4.0),
    "l2": Model(2, 1.0),
    "normal": Model(3, 1.0, min_size=8),  # fewer do not tell a variance
    "rank": Model(2, 1.0),
    "rbf": Model(2, None),
}
#: The models of each method, the one it has by default first; `kernel` calls that of l2 linear.
METHODS = {
    "pelt": ("l2", "l1", "normal", "rank", "rbf"),
    "kernel": ("rbf", "l2"),
    "binseg": ("l2", "l1", "normal", "rank", "rbf"),
    "bottomup": ("l2", "l1", "normal", "rank", "rbf"),
    "window": ("l2", "l1", "normal", "rank", "rbf"),
    "dynp": ("l2", "l1", "normal", "rank", "rbf"),
}
CRITERIA = ("bic", "aic")


@dataclass(frozen=True, slots=True)
class RupturesMethod:
    """A method of `ruptures` with its model and penalty. Raises ValueError for what does not fit together."""

    name: str
    model: str = ""
    """Empty: the default of the method."""
    penalty: str | float = "bic"

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.name!r}")
        models = METHODS[self.name]
        object.__setattr__(self, "model", self.model or models[0])
        if self.model not in models:
            raise ValueError(f"model of {self.name} must be one of {', '.join(models)}, got {self.model!r}")
        object.__setattr__(self, "penalty", _penalty(self.penalty))


def _penalty(given: str | float) -> str | float:
    if given in CRITERIA:
        return given
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise ValueError(f"penalty must be bic, aic or a number above 0, got {given!r}")
    return number


def analyse_with(
    method: RupturesMethod, values: Sequence[float | None], settings: CommitSettings | None = None
) -> Analysis:
    """What `method` finds in `values`, as `analyse` gives it; its changepoints have neither probability nor tier. Of
    `settings` it takes the smallest change, a tenth of which is the least noise."""
    settings = settings or CommitSettings()
    series = on_scale(values)
    n = len(series.values)
    if few := too_few(series):
        return few
    least = NOISE_FLOOR * series.size_of(settings.smallest_change_pct)
    sigma = max(noise_scale(series.values), least)
    places = _places(method, (series.values - np.median(series.values)) / sigma)
    notes = series.warnings
    if method.name == "dynp" and len(places) == MOST_CHANGES:
        notes = (*notes, f"dynp looks for {MOST_CHANGES} changes at most; pelt finds the same optimum for any number")
    return Analysis(
        changepoints_at(series, [Step(place) for place in places], np.full(n, sigma)),
        noise_pct=log_percent(sigma) if series.unit is None else 100.0 * sigma,
        warnings=notes,
    )


def _places(method: RupturesMethod, signal: Floats) -> list[int]:
    """The first values of new segments."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # CostNormal tells what it does
        estimator = _estimator(method, len(signal)).fit(signal)
    penalty = method.penalty
    if isinstance(penalty, str):
        penalty = _criterion(penalty, MODELS[method.model], estimator.cost, len(signal))
    ends = _best_of_dynp(estimator, penalty) if method.name == "dynp" else estimator.predict(pen=penalty)
    return [int(end) for end in ends if end < len(signal)]


def _estimator(method: RupturesMethod, n: int) -> Any:
    import ruptures

    min_size = min(MODELS[method.model].min_size, n // 2)
    common = {"model": method.model, "min_size": min_size, "jump": 1}
    if method.name == "kernel":
        return ruptures.KernelCPD(kernel="linear" if method.model == "l2" else method.model, min_size=min_size)
    if method.name == "window":
        return ruptures.Window(width=max(2 * min_size, min(WINDOW_WIDTH, n // 2)), **common)
    classes = {
        "pelt": ruptures.Pelt, "binseg": ruptures.Binseg, "bottomup": ruptures.BottomUp, "dynp": ruptures.Dynp
    }  # fmt: skip
    return classes[method.name](**common)


def _criterion(name: str, model: Model, cost: Any, n: int) -> float:
    """The penalty of a criterion in the cost of a model, for `n` values that `cost` was fitted to."""
    unit = model.unit
    if unit is None:
        unit = float(np.mean([cost.error(start, start + 2) for start in range(n - 1)]))
    return model.parameters * (math.log(n) if name == "bic" else 2.0) * unit


def _best_of_dynp(estimator: Any, penalty: float) -> list[int]:
    """The segmentation with the smallest cost and penalty of those with up to `MOST_CHANGES` changes."""
    n = estimator.n_samples
    most = min(MOST_CHANGES, n // estimator.min_size - 1)
    found = [estimator.predict(n_bkps=count) for count in range(most + 1)]
    costs = [estimator.cost.sum_of_costs(ends) + penalty * (len(ends) - 1) for ends in found]
    return list(found[int(np.argmin(costs))])
