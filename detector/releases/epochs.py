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
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from statistics import fmean
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats, Ints
from detector.releases.cells import Cells, Measured
from detector.releases.session_join import join_sessions
from history.metrics import MetricRegistry
from history.model import BlockValue, Series

#: Arrangements of blocks kept: a line has one or two a lane, and a few more where tests came or went.
ARRANGEMENTS = 64

Levels = dict[str, float]
"""Log level by version of a control release."""


@dataclass(frozen=True)
class Scales:
    """The scales of one series: what has one of its own, and what brings them together."""

    of_session: Mapping[str, str]
    """Name of the scale by session: an epoch, or the session itself."""
    by_session: bool
    """Whether sessions have scales of their own."""
    divisors: Floats
    """[values] what to divide each value of the points by, to have it on the scale of the newest release; 1 where
    nothing joins it."""
    measured: Measured | None = None
    """What was measured together, where sessions have scales of their own."""
    factors: dict[str, float] = field(default_factory=dict)
    """By scale that is joined to the newest release's, what to divide values by; empty where there is one scale."""
    sentence: str = ""
    newest: str = ""
    """The scale of the newest release, where there are several."""

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
    known = id(series), has_own_sessions(series, metrics)
    if known not in _SCALES:  # asked for the panel, and for each move of the series
        _SCALES[known] = _scales_of(series, by_session=known[1])
        weakref.finalize(series, _SCALES.pop, known, None)
    return _SCALES[known]


#: By the identity of a series that is still there, and whether its sessions have scales of their own.
_SCALES: dict[tuple[int, bool], Scales] = {}


def _scales_of(series: Series, *, by_session: bool) -> Scales:
    blocks = _arrangement(_Blocks.of(series), by_session)
    measured = None
    if blocks.cells:
        columns = [point.numbers for point in series.points] + [series.control[session] for session in blocks.beside]
        measured = Measured(blocks.cells, blocks.cells.summaries(np.array(list(chain.from_iterable(columns)))))
    count, newest = len(blocks.scales), blocks.newest
    if count < 2 or not newest:
        return Scales(blocks.of_session, by_session, np.ones(blocks.scale.size), measured)
    shifts = join_sessions(measured, newest) if measured else joined(_control_levels(series, blocks.of_session), newest)
    sentence = _join_sentence(series.key.server, count, count - len(shifts), by_session=by_session)
    factors = {scale: math.exp(shift) for scale, shift in shifts.items()}
    divisors = np.array([factors.get(scale, 1.0) for scale in blocks.scales])[blocks.scale]
    return Scales(blocks.of_session, by_session, divisors, measured, factors, sentence, newest)


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


class _Blocks(NamedTuple):
    """The blocks of a series, without their values: the same for most series of a line."""

    points: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    """Version, sessions and epochs of each point."""
    control: tuple[str, ...]
    """Sessions that have values of their control release."""
    control_values: tuple[int, ...]
    """How many, by session."""
    control_versions: tuple[tuple[str, str], ...]
    """The control release by session, whether it has values or not."""

    @classmethod
    def of(cls, series: Series) -> _Blocks:
        return cls(
            tuple([(point.version, point.sessions, point.epochs) for point in series.points]),
            tuple(series.control),
            tuple(map(len, series.control.values())),
            tuple(series.control_versions.items()),
        )


class _Arrangement(NamedTuple):
    """What follows from the blocks of a series alone."""

    of_session: Mapping[str, str]
    scales: tuple[str, ...]
    scale: Ints
    """[values of the points] which of `scales` each is on."""
    newest: str
    """Scale of the newest release, empty where it has no value."""
    cells: Cells | None
    """Of the values of the points and those of the sessions in `beside`; None where sessions have no scale of their
    own."""
    beside: tuple[str, ...]
    """Sessions whose control has values that are not among the points: those of another line."""


@lru_cache(ARRANGEMENTS)
def _arrangement(blocks: _Blocks, by_session: bool) -> _Arrangement:
    control_of = dict(blocks.control_versions)
    declared = {*blocks.control, *(session for session, version in control_of.items() if version)}
    of_session = {
        session: session if by_session and session in declared else epoch
        for _, sessions, epochs in blocks.points
        for session, epoch in zip(sessions, epochs, strict=True)
    }
    newest = next((of_session[min(sessions)] for _, sessions, _ in blocks.points[-1:] if sessions), "")
    scales = {scale: number for number, scale in enumerate(dict.fromkeys(of_session.values()))}
    places = [(session, version) for version, sessions, _ in blocks.points for session in sessions]
    scale = np.array([scales[of_session[session]] for session, _ in places], dtype=np.int64)
    if not by_session:
        return _Arrangement(of_session, tuple(scales), scale, newest, None, ())
    own = set(places)
    beside = []
    for session, count in zip(blocks.control, blocks.control_values, strict=True):
        place = (session, control_of.get(session, ""))
        if session in of_session and place not in own:
            beside.append(session)
            places += [place] * count
    cells = Cells([(of_session[session], version) for session, version in places])
    return _Arrangement(of_session, tuple(scales), scale, newest, cells, tuple(beside))


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
            session, epoch = min(zip(part.points[-1].sessions, part.points[-1].epochs, strict=True))
            groups[member.key.server, session if own else epoch].append(part)
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
        and set(left.epochs).isdisjoint(right.epochs)
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
            for session, epoch, value in zip(point.sessions, point.epochs, point.numbers, strict=True):
                if series.control_of(session) != point.version:
                    values[epoch][point.version].append(value)
    return {
        epoch: {
            version: float(np.median(np.log([value for value in of_version if value > 0])))
            for version, of_version in of_epoch.items()
            if any(value > 0 for value in of_version)
        }
        for epoch, of_epoch in values.items()
    }
