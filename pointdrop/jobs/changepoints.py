"""What `pointdrop changepoints` does between its input and its output.

A table's series go to one of two engines. *Release series* have a label at every position and at most `MOST_RELEASES`
positions: those that share dbms, line, config, benchmark and the labels themselves are judged together. All others are
*commit series*, each judged by itself, as every series is by a method of `ruptures`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from detector.changes import pooled_changes, release_changes
from detector.commits import Analysis, Changepoint, CommitSettings, analyse, answer
from detector.commits.methods import RupturesMethod, analyse_with
from detector.errors import InvalidSeries
from detector.releases.families import unreadable_versions
from detector.series_moves import q_values
from detector.settings import DetectorSettings
from history.metrics import shipped_metrics
from history.model import Better, BlockValue, Move, Point, Series, SeriesKey
from pointdrop.jobs.tidy_csv import TidyPoint, TidySeries

#: More positions than this are no releases.
MOST_RELEASES = 60
#: A level that begins with the newest release needs so many blocks to be confirmed, and to be likely enough.
CONFIRMING_BLOCKS = 2
#: Stands for what the table does not say of a series.
UNSAID = "-"
#: Asked before the first line is read, so that no answer waits for a compiler or a cache.
WARM_UP_MATRIX = '{"type": "matrix", "qps": [[[[9], [8], [9], [8], [4], [4]], [[9], [8], [9], [8], [4], [4]]]]}'
WARM_UP = '{"values": [5, 6, 5, 7, 5, 6, 5, 6, 5, 6, 5, 6, 15, 16, 15, 16, 15, 17, 15, 16, 15, 16, 15, 16]}'
MATRIX_FORM = "must be an array [servers][tests][releases][blocks] of numbers and nulls"

Row = dict[str, Any]


@dataclass(frozen=True)
class Judgement:
    """The rows of a table's changepoints, and what there is to say about series beside them."""

    rows: list[Row]
    notes: list[str]


def judge(series: list[TidySeries], *, pool: bool = True, method: RupturesMethod | None = None) -> Judgement:
    """The changepoints of every series, in the order of the series, then of positions; `method` instead of ours."""
    rows: dict[str, list[Row]] = {member.id: [] for member in series}
    notes: list[str] = []
    pools: dict[tuple[object, ...], list[TidySeries]] = {}
    commits: list[tuple[TidySeries, Analysis]] = []
    for member in series:
        if method is None and is_release_series(member):
            together = tuple(member.description[key] for key in ("dbms", "line", "config", "benchmark"))
            pools.setdefault((*together, member.labels) if pool else (member.id,), []).append(member)
        else:
            values = [_middle(point) for point in member.points.values()]
            settings = _settings(member)
            analysis = analyse(values, settings) if method is None else analyse_with(method, values, settings)
            commits.append((member, analysis))
            notes += [f"series {member.id}: {sentence}" for sentence in _sentences(member, analysis)]
    unread: dict[str, list[TidySeries]] = {}
    for members in pools.values():
        labels = [str(label) for label in members[0].labels]
        unread.setdefault(unreadable_versions(members[0].description["dbms"], labels), []).extend(members)
        for row in _pooled(members):
            rows[row["series_id"]].append(row)
    for sentence, of in unread.items():
        if sentence:
            notes.append(f"{f'series {of[0].id}' if len(of) == 1 else f'{len(of)} series'}: {sentence}")
    for row in _commit_rows(commits):
        rows[row["series_id"]].append(row)
    return Judgement([row for series_rows in rows.values() for row in series_rows], notes)


def is_release_series(series: TidySeries) -> bool:
    """Whether the positions of `series` are releases."""
    return len(series.points) <= MOST_RELEASES and None not in series.labels


def _settings(series: TidySeries) -> CommitSettings:
    """Those of commit series, down to the smallest change of the metric where that is less, as counted ones have it."""
    usual, metrics, name = CommitSettings(), shipped_metrics(), series.description["metric"]
    smallest = metrics[name].smallest_change_pct if name in metrics else usual.smallest_change_pct
    return replace(usual, smallest_change_pct=min(smallest, usual.smallest_change_pct))


def _middle(point: TidyPoint) -> float:
    """The median of a position's blocks; NaN where none was measured."""
    measured = [value for value in point.blocks.values() if math.isfinite(value)]
    return float(np.median(measured)) if measured else math.nan


def _sentences(series: TidySeries, analysis: Analysis) -> Iterator[str]:
    yield from analysis.warnings
    positions = list(series.points)
    for event in analysis.events:
        percent = "" if event.change_pct is None else f" of {event.change_pct:+z.1f} %"
        first, last = positions[event.start], positions[event.end - 1]
        yield f"{event.kind}{percent} from position {first} to {last}, no changepoint"


def _commit_rows(analyses: list[tuple[TidySeries, Analysis]]) -> Iterator[Row]:
    changes = [(series, analysis, change) for series, analysis in analyses for change in analysis.changepoints]
    quality = iter(q_values([change.probability for *_, change in changes if change.probability is not None]))
    for series, analysis, change in changes:
        position = list(series.points)[change.index]
        yield _row(
            series, change, position, series.labels[change.index], series.labels[change.index - 1],
            probability=change.probability,
            q_value=None if change.probability is None else round(next(quality), 6),
            tier=change.tier,
            warnings=[*analysis.warnings, *change.warnings],
        )  # fmt: skip


def _pooled(members: list[TidySeries]) -> Iterator[Row]:
    """The rows of release series that are judged together; their ids come back from the keys they went in with."""
    positions = sorted({position for member in members for position in member.points})
    names = Counter(_names(member) for member in members)
    given = {_key(member, unique=names[_names(member)] == 1).id: member for member in members}
    series = [_series(member, SeriesKey.parse(key), positions) for key, member in given.items()]
    settings = DetectorSettings()
    for change in pooled_changes(series, settings):
        member, move, position = given[change.series], change.move, positions[change.position]
        newest = position == max(member.points)
        unsure = move.blocks_after < CONFIRMING_BLOCKS or move.probability < settings.probability
        yield _row(
            member, move, position, change.release, change.previous,
            probability=round(move.probability, 4),
            q_value=None if move.q_value is None else round(move.q_value, 6),
            tier="provisional" if newest and unsure else "confirmed",
            warnings=list(move.warnings),
        )  # fmt: skip


def _names(series: TidySeries) -> tuple[str, str, str]:
    return series.description["server"], series.description["test"], series.description["metric"]


def _key(series: TidySeries, *, unique: bool) -> SeriesKey:
    """The key of a series; when its description is not its own, its id stands for the test."""
    said = {name: series.description[name] for name in SeriesKey.model_fields}
    if not (unique and said["test"]):
        said["test"] = series.id
    return SeriesKey(**{name: text.replace("|", "/") or UNSAID for name, text in said.items()})


def _series(series: TidySeries, key: SeriesKey, positions: list[int]) -> Series:
    points = []
    for position, point in series.points.items():
        values = tuple(
            BlockValue(value=value, block_id=f"{position}/{name}", session_id=str(position), host=UNSAID, epoch=UNSAID)
            for name, value in sorted(point.blocks.items())
            if math.isfinite(value)
        )
        if values:
            points.append(Point(version=str(point.label), position=positions.index(position), values=values))
    said = series.description
    better = cast(Better, said["better"] or "lower")
    return Series(key=key, group=said["group"], unit=said["unit"], better=better, points=tuple(points))


def _row(
    series: TidySeries,
    change: Changepoint | Move,
    position: int,
    label: str | None,
    previous: str | None,
    **judged: Any,
) -> Row:
    """One changepoint; `judged` are probability, q_value, tier and warnings."""
    direction, better = "change", series.description["better"]
    if better:
        direction = "improvement" if (change.after > change.before) == (better == "higher") else "regression"
    return {
        "series_id": series.id,
        "position": position,
        "label": label,
        "previous": previous,
        "direction": direction,
        "change_pct": round(change.change_pct, 4),
        "low_pct": round(change.low_pct, 4),
        "high_pct": round(change.high_pct, 4),
        **judged,
    }


def answer_lines(lines: Iterable[bytes]) -> Iterator[str]:
    """The answer to each line of UTF-8, in order; blank lines get none. See `detector.commits.protocol`."""
    handlers = {"matrix": matrix}
    for question in (WARM_UP, WARM_UP_MATRIX):
        answer(question.encode(), handlers)
    for line in lines:
        if line.strip():
            yield answer(line, handlers)


def matrix(question: Mapping[str, Any]) -> Row:
    """`{"type": "matrix", "qps": [servers][tests][releases][blocks], "cpu": the same or null}`: every change as
    `[server, test, release]`."""
    qps, cpu = _blocks(question, "qps"), _blocks(question, "cpu")
    if qps is None:
        raise ValueError(f'"qps" {MATRIX_FORM}')
    if cpu is not None and cpu.shape != qps.shape:
        raise ValueError(f'"cpu" has the shape {list(cpu.shape)} and "qps" {list(qps.shape)}; they must be the same')
    try:
        return {"changes": [list(change) for change in release_changes(qps, cpu)]}
    except InvalidSeries as error:
        raise ValueError(str(error)) from error


def _blocks(question: Mapping[str, Any], name: str) -> np.ndarray | None:
    if question.get(name) is None:
        return None
    try:
        blocks = np.array(question[name], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f'"{name}" {MATRIX_FORM}') from error
    if blocks.ndim != 4 or not blocks.size:
        raise ValueError(f'"{name}" must have four dimensions and none empty, got the shape {list(blocks.shape)}')
    return blocks
