"""Epochs and sessions of a series joined through what two of them measured.

Values of two hosts, or of one before and after it was set up anew, have no scale in common. What both measured of one
and the same control release gives it. Timed values that Pointdrop measured itself have a scale for each session, since
a machine is faster in one hour than in the next: any release that two sessions measured joins them, and the noise of
that join goes with the values (`session_join`). Counts do not depend on the hour, and published values name no control:
both have a scale for each epoch.

Scales that nothing joins are judged apart (`judged_apart`); what reads differently where one epoch ends and another
begins (`breaks`) is the hosts' and never a finding about the product.

>>> joined({"new": {"17.0": 0.25}, "old": {"17.0": 0.0, "18.0": 0.5}, "alone": {"9.6": 0.75}}, "new")
{'new': 0.0, 'old': -0.25}
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

import numpy as np

from detector.releases.session_join import SessionJoin, Values, join_sessions
from history.metrics import MetricRegistry
from history.model import BlockValue, Series

Levels = dict[str, float]
"""Log level by version of a control release."""


@dataclass(frozen=True)
class Scales:
    """The scales of one series: what has one of its own, and what brings them together."""

    of_session: dict[str, str]
    """Name of the scale by session: an epoch, or the session itself."""
    by_session: bool
    """Whether sessions have scales of their own."""
    factors: dict[str, float] = field(default_factory=dict)
    """By scale that is joined to the newest release's, what to divide values by; empty where there is one scale."""
    sentence: str = ""
    join: SessionJoin | None = None
    """How sessions were joined, where they were."""

    def factor(self, block: BlockValue) -> float:
        """What to divide the value of `block` by; 1 where nothing joins it."""
        return self.factors.get(self.of_session[block.session_id], 1.0)


def has_own_sessions(series: Series, metrics: MetricRegistry) -> bool:
    """Whether the series is timed and of sessions that declared a control, which those of Pointdrop do."""
    return metrics[series.key.metric].lane == "time" and bool(series.control or series.control_versions)


def scales_of(series: Series, metrics: MetricRegistry) -> Scales:
    """The scales of a series and the factors that make them one: the control release, or of sessions all that two of
    them measured, reads the same in each.

    The scale of the newest release is the reference. One that nothing joins to it has no factor.
    """
    by_session = has_own_sessions(series, metrics)
    of_session = {
        block.session_id: block.session_id if by_session and _declared(series, block.session_id) else block.epoch
        for point in series.points
        for block in point.values
    }
    newest = [of_session[block.session_id] for point in series.points[-1:] for block in point.values]
    count = len(set(of_session.values()))
    if count < 2 or not newest:
        return Scales(of_session, by_session)
    join = join_sessions(values_by_scale(series, of_session), newest[0]) if by_session else None
    shifts = join.shifts if join else joined(_control_levels(series, of_session), newest[0])
    sentence = _join_sentence(series.key.server, count, count - len(shifts), by_session=by_session)
    return Scales(of_session, by_session, {scale: math.exp(shift) for scale, shift in shifts.items()}, sentence, join)


def _join_sentence(server: str, count: int, apart: int, *, by_session: bool) -> str:
    """How `count` scales are compared, `apart` of which nothing joins to that of the newest release.

    >>> _join_sentence("local", 2, 0, by_session=True)
    'local: 2 timed sessions are compared through what both measured.'
    >>> _join_sentence("local", 3, 1, by_session=True)
    'local: 1 of 3 timed sessions has no release in common with the newest, and is not compared with it.'
    """
    scales = "timed sessions" if by_session else "epochs"
    if apart:
        has, is_not = ("has", "is") if apart == 1 else ("have", "are")
        common = "release" if by_session else "control release"
        them = f"{apart} of {count} {scales} {has} no {common} in common with the newest"
        return f"{server}: {them}, and {is_not} not compared with it."
    both = f"what {'both' if count == 2 else 'two or more of them'} measured"
    return f"{server}: {count} {scales} are compared through {both if by_session else 'the control release'}."


def _declared(series: Series, session: str) -> bool:
    return session in series.control or bool(series.control_of(session))


def values_by_scale(series: Series, of_session: Mapping[str, str]) -> Values:
    """By scale and version, every value, those of control releases of other lines among them."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    own = set()
    for point in series.points:
        for block in point.values:
            values[of_session[block.session_id]][point.version].append(block.value)
            own.add((block.session_id, point.version))
    for session, of_control in series.control.items():
        version = series.control_of(session)
        if session in of_session and (session, version) not in own:
            values[of_session[session]][version] += of_control
    return values


def comparable(series: Series, metrics: MetricRegistry) -> list[Series]:
    """The series in parts, each of scales that are joined, the part of the newest release first."""
    parts, rest = [], series
    while (scales := scales_of(rest, metrics)).factors:
        together = {session for session, scale in scales.of_session.items() if scale in scales.factors}
        if len(together) == len(scales.of_session):
            break
        parts.append(of_sessions(rest, together))
        rest = of_sessions(rest, scales.of_session.keys() - together)
    return [*parts, rest]


def judged_apart(series: Iterable[Series], metrics: MetricRegistry) -> list[list[Series]]:
    """The parts of all series in groups, each to be judged by itself: first what is joined to the newest release of its
    series, then by server and by epoch or session what is not."""
    groups: dict[tuple[str, ...], list[Series]] = defaultdict(list)
    for member in series:
        newest, *older = comparable(member, metrics)
        groups[()].append(newest)
        own = has_own_sessions(member, metrics)
        for part in older:
            block = part.points[-1].values[0]
            groups[member.key.server, block.session_id if own else block.epoch].append(part)
    return [groups[place] for place in sorted(groups)]


def comparable_at(series: Series, previous: str, release: str, metrics: MetricRegistry) -> Series:
    """The newest part of the series that measured both releases; where none did, the whole."""
    of_both = comparable(series, metrics)
    parts = (part for part in of_both if {previous, release} <= {point.version for point in part.points})
    return next(parts, series)


def on_one_scale(
    series: Series, previous: str, release: str, metrics: MetricRegistry
) -> tuple[list[float], list[float]]:
    """Values of two releases on one scale, without those that nothing joins to it."""
    part = comparable_at(series, previous, release, metrics)
    scales = scales_of(part, metrics)
    sides: tuple[list[float], list[float]] = ([], [])
    for point in part.points:
        for version, side in zip((previous, release), sides, strict=True):
            if point.version == version:
                side += [
                    block.value / scales.factor(block)
                    for block in point.values
                    if not scales.factors or scales.of_session[block.session_id] in scales.factors
                ]
    return sides


def breaks(series: Series, metrics: MetricRegistry) -> list[tuple[str, str]]:
    """Releases next to each other between which one epoch ended and another began, and nothing can be compared: no part
    was measured before and after."""
    parts = comparable(series, metrics)
    spans = [(part.points[0].position, part.points[-1].position) for part in parts if part.points]
    return [
        (left.version, right.version)
        for left, right in pairwise(series.points)
        if len(parts) > 1
        and not any(first <= left.position and right.position <= last for first, last in spans)
        and {block.epoch for block in left.values}.isdisjoint(block.epoch for block in right.values)
    ]


def of_sessions(series: Series, sessions: Set[str]) -> Series:
    """The series as it were with the blocks of these sessions alone."""
    points = (
        point.model_copy(update={"values": tuple(value for value in point.values if value.session_id in sessions)})
        for point in series.points
    )
    return series.model_copy(update={"points": tuple(point for point in points if point.values)})


def joined(levels: Mapping[str, Levels], reference: str) -> dict[str, float]:
    """By epoch, how far it reads above the reference, as a log; an epoch may be joined through another."""
    shifts = {reference: 0.0}
    known = dict(levels.get(reference, {}))
    waiting = sorted(levels.keys() - {reference})
    while ready := [epoch for epoch in waiting if levels[epoch].keys() & known.keys()]:
        for epoch in ready:
            common = sorted(levels[epoch].keys() & known.keys())
            shifts[epoch] = fmean(levels[epoch][version] - known[version] for version in common)
        for epoch in ready:
            for version, level in levels[epoch].items():
                known.setdefault(version, level - shifts[epoch])
        waiting = [epoch for epoch in waiting if epoch not in shifts]
    return shifts


def _control_levels(series: Series, epoch_of: Mapping[str, str]) -> dict[str, Levels]:
    """By epoch, the level of every release that is the control of some session: where it was measured as such, and
    where it was measured like any other release."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for session, of_session in series.control.items():
        if session in epoch_of:
            values[epoch_of[session]][series.control_of(session)] += of_session
    controls = {series.control_of(session) for session in series.control}
    for point in series.points:
        if point.version in controls:
            for block in point.values:
                if series.control_of(block.session_id) != point.version:
                    values[block.epoch][point.version].append(block.value)
    return {
        epoch: {
            version: float(np.median(np.log([value for value in of_version if value > 0])))
            for version, of_version in of_epoch.items()
            if any(value > 0 for value in of_version)
        }
        for epoch, of_epoch in values.items()
    }
