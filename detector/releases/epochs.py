"""Epochs of a series joined through the control release.

Values of two hosts, or of one before and after it was set up anew, have no scale in common. What both measured of one
and the same control release gives it. Epochs that no control joins are judged apart (`judged_apart`); what reads
differently where one ends and another begins (`breaks`) is the hosts' and never a finding about the product.

>>> joined({"new": {"17.0": 0.25}, "old": {"17.0": 0.0, "18.0": 0.5}, "alone": {"9.6": 0.75}}, "new")
{'new': 0.0, 'old': -0.25}
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from itertools import pairwise
from statistics import fmean

import numpy as np

from history.model import Series

Levels = dict[str, float]
"""Log level by version of a control release."""


def epoch_factors(series: Series) -> tuple[dict[str, float], str]:
    """By epoch, what to divide its values by so that the control release reads the same in all; and a sentence.

    The epoch of the newest release is the reference. An epoch that no control joins to it has no factor. Without any
    to join there are no factors.
    """
    epoch_of = {block.session_id: block.epoch for point in series.points for block in point.values}
    newest = [block.epoch for point in series.points[-1:] for block in point.values]
    epochs = set(epoch_of.values())
    if len(epochs) < 2 or not newest:
        return {}, ""
    shifts = joined(_control_levels(series, epoch_of), newest[0])
    where = f"{series.key.server}: {len(epochs)} epochs"
    if apart := len(epochs - shifts.keys()):
        sentence = f"{where}, {apart} of which no control release joins to that of the newest release"
    else:
        sentence = f"{where} joined through the control release"
    return {epoch: math.exp(shift) for epoch, shift in shifts.items()}, sentence


def comparable(series: Series) -> list[Series]:
    """The series in parts, each of epochs that a control joins, the part of the newest release first."""
    parts, rest = [], series
    while (epochs := epoch_factors(rest)[0].keys()) and (others := _of_epochs(rest, epochs, others=True)).points:
        parts.append(_of_epochs(rest, epochs))
        rest = others
    return [*parts, rest]


def judged_apart(series: Iterable[Series]) -> list[list[Series]]:
    """The parts of all series in groups, each to be judged by itself: first what is joined to the newest release of its
    series, then by server and epoch what is not."""
    groups: dict[tuple[str, ...], list[Series]] = defaultdict(list)
    for member in series:
        newest, *older = comparable(member)
        groups[()].append(newest)
        for part in older:
            groups[member.key.server, part.points[-1].values[0].epoch].append(part)
    return [groups[place] for place in sorted(groups)]


def comparable_at(series: Series, previous: str, release: str) -> Series:
    """The newest part of the series that measured both releases; where none did, the whole."""
    parts = (part for part in comparable(series) if {previous, release} <= {point.version for point in part.points})
    return next(parts, series)


def breaks(series: Series) -> list[tuple[str, str]]:
    """Releases next to each other between which nothing can be compared: no part was measured before and after."""
    parts = comparable(series)
    spans = [(part.points[0].position, part.points[-1].position) for part in parts if part.points]
    return [
        (left.version, right.version)
        for left, right in pairwise(series.points)
        if len(parts) > 1 and not any(first <= left.position and right.position <= last for first, last in spans)
    ]


def _of_epochs(series: Series, epochs: Container[str], *, others: bool = False) -> Series:
    """The series as it were with the blocks of these epochs alone, or of all others."""
    points = (
        point.model_copy(update={"values": tuple(v for v in point.values if (v.epoch in epochs) != others)})
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
