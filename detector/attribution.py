"""Why a boundary is there: the product, or something that only looks like it.

* machine: the control release moved too, or every line measured in the same sessions did, or all tests of a server
  moved by one and the same amount, or in throughput while their CPU cost stayed.
* epoch: the two sides were measured on hosts set up differently and no control joins them.
* toolchain, plan, config, sla: `attachments` says so, from what the history knows besides.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np

from detector.arrays import MAD
from detector.releases.epochs import comparable, comparable_at, has_own_sessions, scales_of
from detector.releases.metric_kinds import COSTS, kind_of
from detector.wording import signed
from history.metrics import MetricRegistry
from history.model import BlockValue, Cause, Finding, Move, Series

#: The control explains a move when it shifted by at least this share of it in the same direction.
CONTROL_SHARE = 0.5
#: A finding is the machine's when the control explains at least this share of the moves it can speak about.
EXPLAINED_SHARE = 0.5
#: All tests move alike: at least so many, so large a share of all, and with so little scatter around the median step.
ALIKE_TESTS = 8
ALIKE_SHARE = 0.9
ALIKE_SPREAD = 0.25
#: Throughput moves without CPU cost: so large a share of the tests moved in one and not in the other.
IDLE_TESTS = 4
IDLE_SHARE = 0.7
#: Why two sides cannot be compared.
NOT_JOINED = "The host was set up differently on the two sides and no control release joins them."
#: Each move has such a session, and no session has all moves.
SIDE_BY_SIDE = "Both sides of each move were measured in one session"


def blocks_at(series: Series, version: str) -> list[BlockValue]:
    """The blocks of `version` in `series`."""
    return [block for point in series.points if point.version == version for block in point.values]


def sessions_at(series: Series, version: str) -> set[str]:
    """Sessions that measured `version` in `series`."""
    return {session for point in series.points if point.version == version for session in point.sessions}


def epochs_at(series: Series, version: str) -> set[str]:
    """Epochs in which `version` was measured in `series`."""
    return {epoch for point in series.points if point.version == version for epoch in point.epochs}


def control_shift(series: Series, previous: str, release: str, metrics: MetricRegistry) -> float | None:
    """Log shift of the control release between the sessions of the two sides, beyond what epochs, and sessions of timed
    values, differ by, since the sides are joined by that; None where the sessions share no control.

    0.0 when one session measured both: then the machine was the same.
    """
    before, after = sessions_at(series, previous), sessions_at(series, release)
    if before & after:
        return 0.0
    scales = scales_of(series, metrics)
    sides: list[dict[str, list[float]]] = []
    for sessions in (before, after):
        of_control: dict[str, list[float]] = defaultdict(list)
        for session in sorted(sessions):
            factor = scales.factors.get(scales.of_session[session], 1.0)
            of_control[series.control_of(session)] += [v / factor for v in series.control.get(session, ()) if v > 0]
        sides.append({version: values for version, values in of_control.items() if values})
    common = sorted(sides[0].keys() & sides[1].keys())
    if not common:
        return None
    return fmean(float(np.median(np.log(sides[1][v]))) - float(np.median(np.log(sides[0][v]))) for v in common)


def origin(
    moves: Sequence[Move],
    series: Mapping[str, Series],
    previous: Mapping[str, str],
    release: str,
    tests: Mapping[tuple[str, str, str], int],
    metrics: MetricRegistry,
    moved: Sequence[Move] = (),
) -> tuple[Cause, list[str]]:
    """The cause of a boundary from its moves, with evidence; `series`, and the release before it, by series id; `moved`
    is all that does at the boundary, in this finding or in that of the other direction.

    `tests` counts the tests measured by (server, metric, group).
    """
    explained, asked, epochs, joined = 0, 0, 0, 0
    shifts: dict[str, list[float]] = defaultdict(list)
    shared: list[set[str]] = []
    for move in moves:
        member = series[move.key.id]
        left = previous[move.key.id]
        shift = control_shift(member, left, release, metrics)
        before, after = epochs_at(member, left), epochs_at(member, release)
        side_by_side = sessions_at(member, left) & sessions_at(member, release)
        if before and before != after and not side_by_side:
            epochs += 1
            joined += len(comparable(member, metrics)) == 1
        shared.append(side_by_side)
        if shift is not None and min(move.before, move.after) > 0:
            asked += 1
            explained += _explains(shift, move)
            # What a control joins cannot move relative to it.
            if not side_by_side and not has_own_sessions(member, metrics):
                shifts[move.key.metric].append(shift)
    evidence = []
    same_machine = bool(shared) and all(shared)
    if same_machine:
        sides = "Both sides were measured in one session" if set.intersection(*shared) else SIDE_BY_SIDE
        evidence.append(f"{sides}, so the machine is the same.")
    elif shifts:
        by_metric = ", ".join(
            f"{signed(100.0 * math.expm1(float(np.median(of_metric))))} in {metric}"
            for metric, of_metric in sorted(shifts.items())
        )
        evidence.append(f"The control release moved by {by_metric} between the sessions of the two sides.")
    if asked and explained >= EXPLAINED_SHARE * asked:
        return "machine", [*evidence, f"That explains {explained} of {asked} moves."]
    if epochs > len(moves) / 2:
        if joined < epochs:
            return "epoch", [*evidence, NOT_JOINED]
        evidence.append("The host was set up differently on the two sides; the control release joins them.")
    sentence = "" if same_machine else _alike(moves, tests) or _idle(moves, moved, tests, metrics)
    return ("machine", [*evidence, sentence]) if sentence else ("product", evidence)


def _alike(moves: Sequence[Move], tests: Mapping[tuple[str, str, str], int]) -> str:
    """A sentence when all tests of one server and metric moved by the same amount, which code rarely does."""
    by_place: dict[tuple[str, str], list[float]] = defaultdict(list)
    for move in moves:
        by_place[move.key.server, move.key.metric].append(move.change_pct)
    for (server, metric), changes in sorted(by_place.items()):
        measured = sum(count for place, count in tests.items() if place[:2] == (server, metric))
        if len(changes) < max(ALIKE_TESTS, ALIKE_SHARE * measured):
            continue
        middle = float(np.median(changes))
        scatter = MAD * float(np.median(np.abs(np.array(changes) - middle)))
        if scatter <= ALIKE_SPREAD * abs(middle) / 2.0:
            return (
                f"{len(changes)} of {measured} tests of {server} moved alike in {metric} "
                f"({signed(middle)}, scatter {scatter:.1f} %), which points at the machine or the build."
            )
    return ""


def _idle(
    moves: Sequence[Move], moved: Sequence[Move], tests: Mapping[tuple[str, str, str], int], metrics: MetricRegistry
) -> str:
    """A sentence when most tests moved in throughput, from one block, while their measured CPU cost did not."""
    kinds = {metric: kind_of(metrics[metric]) for _, metric, _ in tests}
    for server in sorted({move.key.server for move in moves}):
        of_metric: dict[str, int] = defaultdict(int)
        for (where, metric, _), count in tests.items():
            if where == server:
                of_metric[metric] += count
        measured: dict[str, int] = defaultdict(int)
        for metric, count in of_metric.items():
            measured[kinds[metric]] = max(measured[kinds[metric]], count)
        on_server = [move for move in moves if move.key.server == server]
        fast = {move.key.test for move in on_server if kinds[move.key.metric] == "throughput"}
        costly = {
            move.key.test
            for move in (*moves, *moved)
            if move.key.server == server and kind_of(metrics[move.key.metric]) in COSTS
        }
        with_cost = max(measured[kind] for kind in COSTS)
        one_block = any(min(move.blocks_before, move.blocks_after) < 2 for move in on_server)
        all_moved = len(fast) >= max(IDLE_TESTS, IDLE_SHARE * measured["throughput"])
        if one_block and all_moved and with_cost >= len(fast) and len(fast & costly) <= (1.0 - IDLE_SHARE) * len(fast):
            return (
                f"{len(fast)} tests of {server} moved in throughput and {len(fast & costly)} of them in CPU cost, with "
                "one block on one side: the machine had less time to give, or more."
            )
    return ""


def one_of_each(series: Iterable[Series]) -> list[Series]:
    """Of all series of a line that were measured in the same sessions, one."""
    by_sessions = {
        (member.key.line, tuple([(point.version, point.sessions) for point in member.points])): member
        for member in series
    }
    return list(by_sessions.values())


def every_line_moved(finding: Finding, all_findings: Iterable[Finding], series: Sequence[Series]) -> str:
    """A sentence when every line whose newest boundary lies in the sessions of this one moved with it, else ''.

    `series` are those of the DBMS, of all lines, or `one_of_each`. Three lines at least must be there to say "every".
    """
    of_line = [member for member in series if member.key.line == finding.line]
    after = {session for member in of_line for session in sessions_at(member, finding.release)}
    fresh = after - {session for member in of_line for session in sessions_at(member, finding.previous)}
    if not fresh:
        return ""
    lines: set[str] = set()
    for member in series:
        for left, right in pairwise(member.points):
            new_sessions = set(right.sessions)
            if new_sessions & fresh and new_sessions.isdisjoint(left.sessions):
                lines.add(member.key.line)
    moved = {
        other.line
        for other in all_findings
        if other.dbms == finding.dbms
        and other.kind == finding.kind
        and any(sessions_at(member, other.release) & fresh for member in series if member.key.line == other.line)
    } | {finding.line}
    if len(lines) >= 3 and lines <= moved:
        return f"Every line measured in these sessions moved: {', '.join(sorted(lines))}."
    return ""


def control_stood_still(finding: Finding, series: Iterable[Series], metrics: MetricRegistry) -> bool:
    """Whether the control release explains less than its share of most moves of `finding` that it can speak about.

    False when it can speak about none. A fix that is back-patched to every line moves all of them on one day; what
    tells it from a machine that moved is a control that did not.
    """
    by_id = {member.key.id: member for member in series}
    explained = []
    for move in finding.moves:
        series_of_move = comparable_at(by_id[move.key.id], finding.previous, finding.release, metrics)
        shift = control_shift(series_of_move, finding.previous, finding.release, metrics)
        if shift is not None and min(move.before, move.after) > 0:
            explained.append(_explains(shift, move))
    return explained.count(False) > len(explained) / 2


def _explains(shift: float, move: Move) -> bool:
    """Whether a log shift of the control goes the way of `move`, by enough of it."""
    step = math.log(move.after / move.before)
    return shift * step > 0 and abs(shift) >= CONTROL_SHARE * abs(step)
