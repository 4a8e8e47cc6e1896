"""Is it a smooth drift? A level that wanders is an event of its own, not a row of changepoints.

The rival of a segmentation is a smooth curve, the first few cosines of the series, each of which costs half a log n
(Schwarz 1978). Its evidence is measured with the noise density of its own residuals, as that of the segmentation is.

>>> import numpy as np
>>> t = np.arange(100)
>>> wave = np.sin(t / 12.0) * 3.0 + np.where(t % 2, 0.5, -0.5)
>>> step = np.where(t < 50, -1.0, 1.0) * 3.0 + np.where(t % 2, 0.5, -0.5)
>>> drift_evidence(wave, wave)[0] > drift_evidence(step, step)[0] + 10.0
True
"""

from __future__ import annotations

import math

import numpy as np

from detector.arrays import Floats
from detector.commits.level_states import BINS_PER_SIGMA, TABLE_ZERO
from detector.commits.noise import learn_density
from detector.compilation import compiled

#: Cosines at most, and values for each.
MOST_COSINES = 16
VALUES_PER_COSINE = 6
#: What the evidence of a drift must be better by (nats); more when the curve only goes one way, since two small steps
#: of one direction look the same.
PRICE = 8.0
ONE_WAY_PRICE = 15.0


def smooth_curve(values: Floats) -> tuple[Floats, int]:
    """The cosine curve with the least Bayesian information criterion, and how many cosines it has."""
    from scipy.fft import dct, idct

    n = len(values)
    center = float(values.mean())
    waves = dct(values - center, norm="ortho")
    most = min(MOST_COSINES, n // VALUES_PER_COSINE)
    squares = waves[1:] ** 2
    left = np.maximum(squares.sum() - np.concatenate([[0.0], np.cumsum(squares[:most])]), 1e-12)
    count = int(np.argmin(n * np.log(left) + np.arange(most + 1) * math.log(n)))
    waves[count + 1 :] = 0.0
    curve: Floats = center + idct(waves, norm="ortho")
    return curve, count


def drift_evidence(values: Floats, clipped: Floats) -> tuple[float, Floats]:
    """Log evidence of `values` (in sigma) about the smooth curve of `clipped`, the same without outliers, less its
    price; and that curve."""
    curve, count = smooth_curve(clipped)
    residuals = values - curve
    evidence = _log_likelihood(residuals, learn_density(residuals)) - 0.5 * (count + 1) * math.log(len(values))
    return evidence - (ONE_WAY_PRICE if count <= 1 else PRICE), curve


@compiled
def _log_likelihood(residuals: Floats, density: Floats) -> float:
    total = 0.0
    for residual in residuals:
        place = min(max(residual * BINS_PER_SIGMA, float(-TABLE_ZERO)), float(TABLE_ZERO))
        total += math.log(density[int(place + TABLE_ZERO + 0.5)])
    return total
