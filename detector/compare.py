"""Two releases measured side by side: SAME, DIFFERENT or UNKNOWN, and when to stop measuring. Pure.

Blocks of both sides come from one session, interleaved, so the machine is the same for both and only the noise of
blocks is left. A difference counts when it is both sure and worth a word; two releases are the same when a difference
worth a word is excluded; everything else is UNKNOWN and asks for more blocks, within a budget.

    -floor        0        +floor
       |----------+----------|
    [==]          .          |            DIFFERENT: the interval excludes zero and the estimate is beyond the floor
       |     [====+==]       |            SAME: the whole interval is inside the floor
       |       [==+==========|=====]      UNKNOWN: more blocks

Looking again after every block would find a difference in pure chance sooner or later, so the interval of k looks is
that of a plan of five looks (Pocock 1977, "Group sequential methods in the design and analysis of clinical trials").
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from detector.arrays import MAD, Floats, t_quantile
from detector.releases.metric_kinds import noise_prior
from history.metrics import MetricRegistry

Verdict = Literal["SAME", "DIFFERENT", "UNKNOWN"]

#: The two-sided error of all looks together, and Pocock's level of each of five looks that keeps it.
ERROR = 0.05
NOMINAL = 0.0158
#: Degrees of freedom that the known noise of the series has beside the scatter of these blocks.
NOISE_DF = 8.0
#: Without any known noise, fewer blocks of a side than this decide nothing.
FEWEST_BLOCKS = 2
#: A difference between releases is reported only after this many blocks of each: the second is a fresh server on fresh
#: data.
REPORTED_BLOCKS = 2
#: What lies farther off, of values that have no logs, is taken to lie there: squares stay finite.
FARTHEST = 1e100
#: With known noise a side may have a single block; then only a step of so many standard errors decides.
SINGLE_BLOCK_Z = 4.0


@dataclass(frozen=True)
class Comparison:
    """What the blocks of one test and metric say about two releases."""

    verdict: Verdict
    change_pct: float
    low_pct: float
    high_pct: float
    """Interval of the look, wider than 95 %."""
    blocks_before: int
    blocks_after: int
    warnings: tuple[str, ...] = ()


def compare(
    before: Sequence[float], after: Sequence[float], *, floor_pct: float, noise: float | None = None
) -> Comparison:
    """The verdict on block values of two releases.

    `floor_pct` is the smallest change worth a word, `noise` the known standard deviation of the log of one block's
    value, where the history has one. Values are positive; others are judged by their difference relative to the
    median of both sides, with a warning.

    >>> compare([100.0, 101.0, 99.5, 100.2], [92.0, 93.1, 92.4, 91.8], floor_pct=1.2).verdict
    'DIFFERENT'
    >>> compare([100.0, 100.1, 99.9, 100.0], [100.1, 100.0, 99.9, 100.1], floor_pct=1.2).verdict
    'SAME'
    >>> compare([100.0], [97.0], floor_pct=1.2).verdict
    'UNKNOWN'
    """
    a = np.array([value for value in before if math.isfinite(value)])
    b = np.array([value for value in after if math.isfinite(value)])
    warnings: list[str] = []
    if a.size == 0 or b.size == 0:
        return Comparison("UNKNOWN", 0.0, -math.inf, math.inf, int(a.size), int(b.size), ("one side has no blocks",))
    both = np.concatenate([a, b])
    if both.min() > 0:
        x, y = np.log(a), np.log(b)
    else:
        scale = float(np.median(np.abs(both))) or 1.0
        x, y = a / scale, b / scale
        warnings.append("values that are not positive: the change is relative to their median size")
    size = _centre(y) - _centre(x)
    variance, df = _variance(x, y, noise)
    error = math.sqrt(variance * (1.0 / x.size + 1.0 / y.size))
    floor = math.log1p(floor_pct / 100.0)
    if min(x.size, y.size) < FEWEST_BLOCKS:
        warnings.append("a single block on one side")
        if noise is None:
            return _result("UNKNOWN", size, math.inf, x, y, both, warnings)
        half = SINGLE_BLOCK_Z * error
    else:
        half = t_quantile(df, 1.0 - NOMINAL / 2.0) * error
    if abs(size) > half and abs(size) >= floor:
        verdict: Verdict = "DIFFERENT"
    elif abs(size) + half <= floor:
        verdict = "SAME"
    else:
        verdict = "UNKNOWN"
    return _result(verdict, size, half, x, y, both, warnings)


def _centre(values: Floats) -> float:
    """Median of up to four blocks, else the mean without the farthest fifth at each end."""
    if values.size <= 4:
        return float(np.median(values))
    cut = values.size // 5
    return float(np.sort(values)[cut : values.size - cut].mean())


def _variance(x: Floats, y: Floats, noise: float | None) -> tuple[float, float]:
    """Variance of one block's log value and its degrees of freedom: scatter of both sides, held up by known noise.

    Never less than the scatter: known noise that these blocks refute, as that of a quiet server is on a busy machine,
    counts for as much less as they exceed it.
    """
    residual = np.clip(np.concatenate([x - np.median(x), y - np.median(y)]), -FARTHEST, FARTHEST)
    df = float(max(x.size + y.size - 2, 0))
    scatter = float((residual**2).sum() / df) if df else 0.0
    if df >= 4:
        typical = (MAD * float(np.median(np.abs(residual)))) ** 2
        scatter = max(min(scatter, 4.0 * typical), typical)
    if noise is None:
        return max(scatter, 1e-12), max(df, 1.0)
    if scatter > noise**2:
        return scatter, NOISE_DF * noise**2 / scatter + df
    return (NOISE_DF * noise**2 + df * scatter) / (NOISE_DF + df), NOISE_DF + df


def _result(
    verdict: Verdict, size: float, half: float, x: Floats, y: Floats, both: Floats, warnings: list[str]
) -> Comparison:
    def percent(step: float) -> float:
        return 100.0 * (math.expm1(step) if both.min() > 0 else step) if step < 500.0 else math.inf

    low = percent(size - half) if math.isfinite(half) else -math.inf
    return Comparison(verdict, percent(size), low, percent(size + half), int(x.size), int(y.size), tuple(warnings))


def family_verdict(comparisons: Collection[Comparison]) -> Verdict:
    """The verdict on a suite of tests: DIFFERENT when any test is, SAME when all are, else UNKNOWN.

    The error budget holds for every test; in a large suite a few tests differ by chance, so a family in which not more
    tests differ than chance allows, none of them by three times its interval, stays UNKNOWN.
    """
    different = [comparison for comparison in comparisons if comparison.verdict == "DIFFERENT"]
    clear = any(
        abs(comparison.change_pct) > 1.5 * (comparison.high_pct - comparison.low_pct) / 2.0 for comparison in different
    )
    if clear or len(different) > 1 + int(ERROR * len(comparisons)):
        return "DIFFERENT"
    same = comparisons and all(comparison.verdict == "SAME" for comparison in comparisons)
    return "SAME" if same else "UNKNOWN"


def judge(
    before: Sequence[float], after: Sequence[float], test: str, metric: str, metrics: MetricRegistry
) -> Comparison:
    """The verdict on one test and metric, by the metric's known noise of one block and its smallest change; UNKNOWN
    instead of DIFFERENT on fewer than REPORTED_BLOCKS of a side."""
    floor_pct, noise = metrics[metric].smallest_change_pct, noise_prior(metrics[metric], test)
    comparison = compare(before, after, floor_pct=floor_pct, noise=noise)
    if comparison.verdict == "DIFFERENT" and min(len(before), len(after)) < REPORTED_BLOCKS:
        return replace(comparison, verdict="UNKNOWN")
    return comparison
