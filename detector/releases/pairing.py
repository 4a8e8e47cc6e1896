"""Throughput and CPU per operation of one test, told apart into what they say together and what CPU says alone.

A change of throughput by e shows in CPU per operation as -b e (b = 1 where the CPU is what a test waits for), and
the noise of the two is correlated, often as strongly. With noise covariance S and response a = (1, -b),

    together = w . (throughput, cpu),  w = S^-1 a / (a' S^-1 a)      moves by e, variance 1 / (a' S^-1 a)
    apart    = cpu + b together                                      does not move by e, and shares no noise with it

(generalised least squares). Whether CPU adds evidence is thus decided by the history itself: where the correlation
says that CPU is throughput seen from the other side, its weight comes out as zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.arrays import MAD, Bools, Floats
from detector.compilation import compiled
from detector.releases.metric_kinds import kind_of
from detector.releases.noise import QUIET_GAP
from detector.releases.series_panel import Panel

#: Bounds of the correlation of two metrics' noise, and how many pairs of differences the prior (none) weighs.
MOST_CORRELATION = 0.95
CORRELATION_WEIGHT = 10.0
#: Prior of the response b and its weight in changes; a change well above this step (log units) is one voice.
RESPONSE = 1.0
RESPONSE_WEIGHT = 3.0
RESPONSE_STEP = 0.03
#: Bounds of the response.
RESPONSES = (0.0, 1.5)
#: Only changes this sure teach the response, from at most so many releases on either side.
SURE = 0.9
NEAR = 3
#: P(CPU shows a change beyond what throughput's implies), before the history is asked.
APART_SHOWS = 0.05
#: Variance of the log ratio of two estimated standard deviations, times the number of differences behind them.
RATIO_SCATTER = 2.5
#: Part of CPU's variance that is never explained by the other.
LEAST_APART = 0.05


@dataclass(frozen=True)
class Pair:
    """CPU per operation (`cpu`) and throughput (`throughput`) as indices of the panel's metrics."""

    throughput: int
    cpu: int
    correlation: float
    response: Floats
    """[tests] b."""
    weight: Floats
    """[servers, tests] weight of CPU in `together`; that of throughput is 1 + response x weight."""


def pair_of(panel: Panel, variance: Floats) -> Pair | None:
    """The panel's pair with weights from `variance` [metrics, servers, tests] of release values; None without one.

    CPU per operation in the field's unit and in ours say the same; the first one listed is taken.
    """
    kinds = [kind_of(metric) for metric in panel.metrics]
    if "throughput" not in kinds or "cpu" not in kinds:
        return None
    q, c = kinds.index("throughput"), kinds.index("cpu")
    sd = np.sqrt(variance)
    quiet = panel.gaps[1:] < QUIET_GAP
    correlation = _correlation(panel.values[q], panel.values[c], sd[q], sd[c], quiet)
    return _weighted(panel, variance, q, c, correlation, np.full(len(panel.tests), RESPONSE))


def taught(pair: Pair, panel: Panel, variance: Floats, hit: Floats) -> Pair:
    """`pair` with the response that the sure changes of `hit` [servers, tests, releases] teach."""
    response = response_of(pair, panel.values, hit)
    return _weighted(panel, variance, pair.throughput, pair.cpu, pair.correlation, response)


def _weighted(panel: Panel, variance: Floats, q: int, c: int, correlation: float, response: Floats) -> Pair:
    """The pair with the weight that the ratio of CPU's noise to that of throughput gives it, [servers, tests]."""
    sd = np.sqrt(variance)
    ratio = _ratio(panel, sd[c] / sd[q], q, c)
    precision = ratio**2 + 2.0 * response * correlation * ratio + response**2
    return Pair(q, c, correlation, response, -(correlation * ratio + response) / np.maximum(precision, 1e-12))


def _ratio(panel: Panel, ratio: Floats, q: int, c: int) -> Floats:
    """`ratio` of every test pulled toward the typical one as far as its scatter is that of an estimate."""
    both = (panel.counts[q] > 0) & (panel.counts[c] > 0)
    seen = both.any(axis=-1)
    if not seen.any():
        return np.ones_like(ratio)
    logs = np.log(np.maximum(ratio, 1e-6))
    typical = float(np.median(logs[seen]))
    scatter = (MAD * float(np.median(np.abs(logs[seen] - typical)))) ** 2
    chance = RATIO_SCATTER / max(float(np.median(both.sum(axis=-1)[seen])) - 1.0, 1.0)
    own = max(0.0, 1.0 - chance / scatter) if scatter > 0 else 0.0
    return np.exp(typical + own * (logs - typical))


def _correlation(throughput: Floats, cpu: Floats, sd_throughput: Floats, sd_cpu: Floats, quiet: Bools) -> float:
    """Robust pooled correlation of release-to-release differences: medians of |sum| and |difference|."""
    x = np.diff(throughput, axis=-1) / sd_throughput[..., None]
    y = np.diff(cpu, axis=-1) / sd_cpu[..., None]
    both = np.isfinite(x) & np.isfinite(y) & quiet
    n = int(both.sum())
    if n < 2:
        return 0.0
    plus = float(np.median(np.abs(x + y)[both])) ** 2
    minus = float(np.median(np.abs(x - y)[both])) ** 2
    raw = (plus - minus) / max(plus + minus, 1e-300)
    return float(np.clip(raw * n / (n + CORRELATION_WEIGHT), -MOST_CORRELATION, MOST_CORRELATION))


def together(pair: Pair, values: Floats, explained: Floats) -> tuple[Floats, Floats]:
    """`values` and the known part of their variance with the pair's two metrics replaced by together and apart.

    Arrays are [metrics, servers, tests, releases]. Where one of the two is absent the other stays as it is.
    """
    q, c = values[pair.throughput], values[pair.cpu]
    explained_q, explained_c = explained[pair.throughput], explained[pair.cpu]
    weight = pair.weight[..., None]
    response = pair.response[:, None]
    share = 1.0 + response * weight
    both = np.isfinite(q) & np.isfinite(c)
    joint = share * q + weight * c
    shared = pair.correlation * np.sqrt(explained_q * explained_c)
    joint_explained = share**2 * explained_q + weight**2 * explained_c + 2.0 * share * weight * shared
    apart_explained = np.maximum(explained_c - response**2 * joint_explained, LEAST_APART * explained_c)
    values, explained = values.copy(), explained.copy()
    values[pair.throughput] = np.where(both, joint, q)
    values[pair.cpu] = np.where(both, c + response * joint, np.where(np.isfinite(q), np.nan, c))
    explained[pair.throughput] = np.where(both, joint_explained, explained_q)
    explained[pair.cpu] = np.where(both, apart_explained, explained_c)
    return values, explained


def response_of(pair: Pair, values: Floats, hit: Floats) -> Floats:
    """[tests] the response b that the sure changes teach: CPU's steps over throughput's, each change one voice.

    `values` are the original ones [metrics, servers, tests, releases], `hit` is [servers, tests, releases]. A test
    with few changes takes the response of the others, and all of them together at first the prior.
    """
    said, voices = _voices(values[pair.throughput], values[pair.cpu], hit)
    typical = (RESPONSE_WEIGHT * RESPONSE + said.sum()) / (RESPONSE_WEIGHT + voices.sum())
    return np.asarray((RESPONSE_WEIGHT * typical + said) / (RESPONSE_WEIGHT + voices))


@compiled
def _add(value: float, sums: Floats, counts: Floats, slot: int) -> None:
    if not np.isnan(value):
        sums[slot] += value
        counts[slot] += 1.0


@compiled
def _voices(throughput: Floats, cpu: Floats, hit: Floats) -> tuple[Floats, Floats]:
    """[tests] sums over the sure changes of the response that each shows, and of their weights."""
    servers, tests, releases = hit.shape
    said = np.zeros(tests)
    voices = np.zeros(tests)
    for s in range(servers):
        for t in range(tests):
            for r in range(1, releases):
                if hit[s, t, r] <= SURE:
                    continue
                sums = np.zeros(4)
                counts = np.zeros(4)
                for i in range(r - 1, max(r - NEAR, 0) - 1, -1):
                    _add(throughput[s, t, i], sums, counts, 0)
                    _add(cpu[s, t, i], sums, counts, 1)
                    if hit[s, t, i] > 1.0 - SURE:
                        break
                for i in range(r, min(r + NEAR, releases)):
                    if i > r and hit[s, t, i] > 1.0 - SURE:
                        break
                    _add(throughput[s, t, i], sums, counts, 2)
                    _add(cpu[s, t, i], sums, counts, 3)
                if counts.min() > 0:
                    means = sums / counts
                    step = means[2] - means[0]
                    share = step**2 / (step**2 + RESPONSE_STEP**2)
                    if share > 0.0:
                        ratio = -(means[3] - means[1]) / step
                        said[t] += share * min(max(ratio, RESPONSES[0]), RESPONSES[1])
                        voices[t] += share
    return said, voices
