"""Steps on the panel's scale as moves in the metric's unit: levels, percent, interval, direction, sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from detector.percentages import log_percent, percent
from detector.releases.families import Family
from detector.releases.metric_kinds import KINDS, kind_of
from detector.releases.scan import Scan
from detector.releases.series_steps import PanelSteps, SeriesStep
from history.metrics import Metric
from history.model import Direction, Move, Series

#: A level of a series with zeros is zero when it is no more than this share of the offset that stands for zero.
ZERO = 1e-3
#: The log of no level is taken to be larger, so that it stays a number.
LARGEST_LOG = 700.0
#: z of 0.8: the probability of being found that the smallest detectable change is defined by.
POWER_Z = 0.8416
#: The warning of a move whose percentage says nothing.
NEAR_ZERO = "one of the two levels is near zero, where no percentage says anything"
#: The same as a share of what luck explains, which is three standard errors or more.
LUCK_POWER = POWER_Z / 3.0
#: P(a change) a single test starts from where nothing else moves.
PRIOR = 0.02


def moves_of(family: Family, scan: Scan, panel_steps: PanelSteps, probability: float) -> dict[int, list[Move]]:
    """The moves of a family by release (index into the panel's), each list sorted by series; from nothing to nothing is
    no move."""
    quality = q_values([step.probability for step in panel_steps.steps])
    moves: dict[int, list[Move]] = {}
    for step, q in zip(panel_steps.steps, quality, strict=True):
        series = family.series.get(step.place)
        if series is not None and family.panel.metrics[step.place[0]].evidence:
            metric = family.metrics[series.key.metric]
            move = _move(family, scan, panel_steps, series, step, q, probability)
            if not (metric.is_none(move.before) and metric.is_none(move.after)):
                moves.setdefault(step.release, []).append(move)
    return {release: sorted(moves[release], key=lambda move: move.key.id) for release in sorted(moves)}


def q_values(probabilities: Sequence[float]) -> list[float]:
    """For each, the expected share of false ones among all at least as probable (Bayesian false discovery rate).

    >>> [round(q, 3) for q in q_values([0.9, 1.0, 0.8])]
    [0.05, 0.0, 0.1]
    """
    order = sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
    wrong = accumulate(1.0 - probabilities[i] for i in order)
    shares = {i: false / place for place, (i, false) in enumerate(zip(order, wrong, strict=True), start=1)}
    return [shares[i] for i in range(len(order))]


def raw_level(family: Family, place: tuple[int, int, int], level: float) -> float:
    """A level of the panel's scale in the unit of the metric."""
    scale = float(family.panel.scale[place])
    if family.panel.linear[place]:
        return level * scale
    value = math.exp(min(level, LARGEST_LOG))
    return value - scale if value - scale > ZERO * scale else 0.0


def move_between(series: Series, metric: Metric, before: float, after: float, noise: float, **rest: Any) -> Move:
    """The move of `series`, of `metric`, between two levels in its unit; `noise` is on the log scale, `rest` are its
    other fields."""
    change = percent(before, after)
    return Move(
        key=series.key,
        group=series.group,
        unit=series.unit,
        better=series.better,
        before=before,
        after=after,
        change_pct=change,
        direction=direction(series, change),
        noise_pct=log_percent(noise),
        near_zero=metric.is_none(before) or metric.is_none(after),
        **rest,
    )


def _move(
    family: Family, scan: Scan, panel_steps: PanelSteps, series: Series, step: SeriesStep, q: float, probability: float
) -> Move:
    place = step.place
    before, after = raw_level(family, place, step.before), raw_level(family, place, step.after)
    low, high = (percent(before, raw_level(family, place, step.before + end)) for end in step.interval)
    noise = float(panel_steps.noise[place])
    warnings = []
    metric = family.metrics[series.key.metric]
    if metric.is_none(before) or metric.is_none(after):
        warnings.append(NEAR_ZERO)
    if family.panel.linear[place]:
        warnings.append("the series has negative values; changes are relative to the level before")
    if min(step.blocks_before, step.blocks_after) < 2:
        side = "before" if step.blocks_before < 2 else "after"
        blocks = _blocks(series, family, step, before=side == "before")
        warnings.append(f"the level {side} the boundary stands on {as_one(blocks)}")
    mde = smallest_detectable(
        noise,
        step.releases_before,
        step.releases_after,
        KINDS[kind_of(family.panel.metrics[place[0]])].slab,
        max(float(scan.floor[place[0]]), (1.0 + LUCK_POWER) * step.luck),
        probability,
    )
    return move_between(
        series,
        metric,
        before,
        after,
        noise,
        low_pct=min(low, high),
        high_pct=max(low, high),
        probability=step.probability,
        q_value=q,
        mde_pct=log_percent(mde),
        blocks_before=_blocks(series, family, step, before=True),
        blocks_after=_blocks(series, family, step, before=False),
        warnings=tuple(warnings),
    )


def _blocks(series: Series, family: Family, step: SeriesStep, *, before: bool) -> int:
    """Blocks of the nearest measured release on one side of the boundary."""
    measured = [(family.panel.releases.index(point.version), len(point.values)) for point in series.points]
    on_side = [pair for pair in measured if (pair[0] < step.release) == before and pair[1]]
    return (max if before else min)(on_side, default=(0, 0))[1]


def as_one(blocks: int) -> str:
    """What the detector took for one block, of so many: those that are bit for bit the same are no more evidence.

    >>> as_one(1), as_one(4)
    ('one block', '4 blocks that agree to the last digit, which count as one')
    """
    return "one block" if blocks < 2 else f"{blocks} blocks that agree to the last digit, which count as one"


def direction(series: Series, change: float) -> Direction:
    """Whether a change of `series` is for the better."""
    if change == 0.0:
        return "change"
    return "improvement" if (change > 0) == (series.better == "higher") else "regression"


def smallest_detectable(
    sd: float, before: int, after: int, slab: float, floor: float, threshold: float, prior: float = PRIOR
) -> float:
    """Smallest log step found with probability 0.8 between `before` and `after` releases of noise `sd`.

    A change of size d is found when its Bayes factor lifts the prior over the threshold. The factor of an observed step
    x with standard error e and slab width t is about `exp(x^2 / 2 e^2) e / t`; solved for x, plus the 0.84 standard
    errors that a change needs to be seen four times in five.

    `slab` is the typical size of a change, `floor` the smallest step that counts, `threshold` the
    probability asked for.

    >>> round(smallest_detectable(0.008, 6, 1, 0.06, 0.012, 0.62), 3)
    0.038
    >>> round(smallest_detectable(0.008, 6, 6, 0.06, 0.012, 0.62), 3)
    0.021
    """
    error = sd * math.sqrt(1.0 / max(before, 1) + 1.0 / max(after, 1))
    needed = math.log(threshold / (1.0 - threshold)) - math.log(prior / (1.0 - prior))
    occam = math.log(math.hypot(slab, error) / error)
    return max(floor, error * (math.sqrt(2.0 * max(needed + occam, 0.0)) + POWER_Z))
