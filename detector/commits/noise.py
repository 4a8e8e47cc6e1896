"""What the noise of one series looks like: its scale, its density, how its values hang together.

Benchmark noise is rarely normal: outliers to one side, two modes, heavy tails. So the density is *learnt* from the
residuals of a first segmentation (a kernel estimate), and drawn toward Student's t where residuals are few. A
changepoint is then judged by how likely its values are under the noise this very series has shown.

>>> import numpy as np
>>> round(difference_scale(np.array([0.0, 1.0, 0.0, 1.0, 0.0, 30.0, 31.0, 30.0])), 2)    # one step does not count
1.05
"""

from __future__ import annotations

import math

import numpy as np

from detector.arrays import MAD, Floats
from detector.commits.level_states import BINS_PER_SIGMA, TABLE_SIGMA, TABLE_SIZE, TABLE_ZERO
from detector.compilation import compiled

#: Standard deviation that rounding adds, in steps of the rounded values: that of a uniform distribution (Widrow 1956).
ROUNDING = 12.0**-0.5
#: Where fewer neighbours than this share differ, they differ by steps of the level and outliers, not by noise.
SELDOM = 0.125
#: Residuals the t prior of the density counts for.
PRIOR_RESIDUALS = 40.0
#: Kernel bandwidth at one residual, in sigma; falls with n ** -0.2 (Silverman 1986, eq. 3.28).
BANDWIDTH = 0.9
#: Degrees of freedom the prior chooses from by likelihood; 50 stands for normal.
TAILS = np.array([2.0, 4.0, 50.0])
#: Scale of each of them that keeps the median of |x| of a normal distribution.
TAIL_SCALES = np.array([0.8261, 0.9106, 0.9926])
#: A tail less likely than this is left out.
LEAST_WEIGHT = 1e-3
#: Values over which noise may stick, and the most it is taken to.
STICKY_VALUES = 4
STICKIEST = 4.0
#: The residual scale stays within these bounds of the scale the differences gave.
SCALE_BOUNDS = (0.4, 1.5)


def noise_scale(values: Floats) -> float:
    """Sigma from the differences of neighbours; where half of them are 0, that which rounding makes, or 0 when values
    hardly ever differ.

    >>> round(noise_scale(np.array([5.0, 5.0, 5.0, 5.2, 5.0, 5.0, 5.0])), 4)      # steps of 0.2
    0.0577
    >>> noise_scale(np.repeat([5.0, 5.2], 9))
    0.0
    """
    scale = difference_scale(values)
    if scale or np.count_nonzero(np.diff(values)) < SELDOM * len(values):
        return scale
    return ROUNDING * resolution(values)


def difference_scale(values: Floats) -> float:
    """Sigma from the median of |differences|; it survives any few steps. 0 when half of the differences are 0."""
    return scale_of_differences(np.abs(np.diff(values)))


def scale_of_differences(sizes: Floats) -> float:
    """Sigma from the median of `sizes`, |differences| of neighbours."""
    return round(MAD * float(np.median(sizes)) / math.sqrt(2.0), 12)


def resolution(values: Floats) -> float:
    """The smallest difference between two values that differ, the step of rounded ones; 0 when all are alike."""
    gaps = np.diff(np.unique(values))
    return float(gaps.min()) if gaps.size else 0.0


@compiled
def learn_density(residuals: Floats) -> Floats:
    """The tabulated density of `residuals` (in sigma): kernel estimate and t prior, by their weights.

    The scale of both is the robust scale of the residuals. The prior is the mixture of `TAILS` by likelihood.
    """
    n = residuals.shape[0]
    table = np.zeros(TABLE_SIZE)
    scale = SCALE_BOUNDS[1]
    if n > 0:
        scale = min(max(MAD * np.median(np.abs(residuals)), SCALE_BOUNDS[0]), SCALE_BOUNDS[1])
    _add_prior(table, residuals, scale)
    limit = TABLE_SIGMA - 0.5
    for i in range(TABLE_SIZE):
        table[i] *= PRIOR_RESIDUALS / (n + PRIOR_RESIDUALS)
    if n == 0:
        return table
    width = BANDWIDTH * scale * n**-0.2 * BINS_PER_SIGMA
    reach = int(4.0 * width) + 1
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    kernel *= BINS_PER_SIGMA / (kernel.sum() * (n + PRIOR_RESIDUALS))
    for residual in residuals:
        center = int(min(max(residual, -limit), limit) * BINS_PER_SIGMA + TABLE_ZERO + 0.5)
        for i in range(max(-reach, -center), min(reach, TABLE_SIZE - 1 - center) + 1):
            table[center + i] += kernel[reach + i]
    return table


@compiled
def _add_prior(table: Floats, residuals: Floats, scale: float) -> None:
    likelihood = np.zeros(TAILS.shape[0])
    for j in range(TAILS.shape[0]):
        width = TAIL_SCALES[j] * scale
        for residual in residuals:
            likelihood[j] -= (TAILS[j] + 1.0) / 2.0 * math.log1p((residual / width) ** 2 / TAILS[j])
        likelihood[j] += residuals.shape[0] * math.log(_t_peak(TAILS[j]) / width)
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    for j in range(TAILS.shape[0]):
        if weights[j] < LEAST_WEIGHT:
            continue
        width = TAIL_SCALES[j] * scale * BINS_PER_SIGMA
        height = weights[j] * _t_peak(TAILS[j]) * BINS_PER_SIGMA / width
        for i in range(TABLE_ZERO + 1):
            density = height * (1.0 + (i / width) ** 2 / TAILS[j]) ** (-(TAILS[j] + 1.0) / 2.0)
            table[TABLE_ZERO + i] += density
            if i > 0:
                table[TABLE_ZERO - i] += density


@compiled
def _t_peak(freedom: float) -> float:
    """The density of Student's t at zero."""
    ratio = math.exp(math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0))
    return ratio / math.sqrt(freedom * math.pi)


@compiled
def stickiness(residuals: Floats, density: Floats) -> float:
    """How many times a run of values says less than as many independent ones; 1 when they are independent.

    It is the long-run variance of the score of `density` at the residuals over its variance: the factor that the
    evidence of dependent values must be divided by (the magnitude adjustment of composite likelihoods, Pauli,
    Racugno and Ventura 2011).
    """
    n = residuals.shape[0]
    score = np.empty(n)
    for t in range(n):
        place = min(max(residuals[t] * BINS_PER_SIGMA, 1.0 - TABLE_ZERO), TABLE_ZERO - 1.0)
        i = int(place + TABLE_ZERO + 0.5)
        score[t] = math.log(density[i - 1] / density[i + 1])
    variance = (score * score).sum()
    factor = 1.0
    if variance > 0.0:
        for lag in range(1, min(STICKY_VALUES, n - 1) + 1):
            factor += 2.0 * max(0.0, (score[lag:] * score[:-lag]).sum() / variance)
    return min(factor, STICKIEST)
