"""Settings or code, of a finding: what the history says once a third arm was measured.

The session of a third arm holds both sides and the release with the settings of the one before it, interleaved; the run
of the third arm says in its bundle whose settings it had. Its config is no line of the history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any

from detector.compare import judge
from detector.settings_split import Steps, split_of, steps_of
from history.metrics import MetricRegistry
from history.model import HELD_MARK, Finding, Lane, LeftSetting, Move, Run, SettingChange, SettingsSplit
from history.store import Store

Place = tuple[str, str, str, Lane]
Values = dict[tuple[str, str], list[float]]


def measured_split(finding: Finding, store: Store, metrics: MetricRegistry) -> SettingsSplit | None:
    """The split of the place (server, config, benchmark and lane) whose newest session with a third arm can speak about
    most moves; None while there is none."""
    best: dict[tuple[str, str], Steps] = {}
    held: dict[str, Any] = {}
    for place, moves in by_place(finding, metrics).items():
        for run in reversed(third_arms(finding, place, store)):
            if steps := dict(_steps(run, finding, place[1], moves, store, metrics)):
                if len(steps) > len(best):
                    best, held = steps, run.bundle["held"]
                break  # an older session says nothing that the newest does not
    if not best:
        return None
    changes = [SettingChange.model_validate(change) for change in held["held"]]
    return split_of(best, changes, [LeftSetting.model_validate(left) for left in held["left"]])


def by_place(finding: Finding, metrics: MetricRegistry) -> dict[Place, list[Move]]:
    """The moves by server, config, benchmark and lane: what one session measures."""
    places: dict[Place, list[Move]] = defaultdict(list)
    for move in finding.moves:
        key = move.key
        places[key.server, key.config, key.benchmark, metrics[key.metric].lane].append(move)
    return dict(sorted(places.items()))


def third_arms(finding: Finding, place: Place, store: Store) -> list[Run]:
    """Runs of the release with the settings of the one before it, oldest first."""
    server, config, benchmark, lane = place
    found = store.runs(dbms=finding.dbms, version=finding.release, server=server, benchmark=benchmark, lane=lane)
    arms = [run for run in found if run.config.startswith(f"{config}{HELD_MARK}")]
    return [run for run in arms if run.bundle.get("held", {}).get("of") == finding.previous]


def _steps(
    arm: Run, finding: Finding, config: str, moves: Iterable[Move], store: Store, metrics: MetricRegistry
) -> Iterable[tuple[tuple[str, str], Steps]]:
    """The three steps of each (test, metric) that moved and that all arms of the session have values of."""
    beside = store.runs(arm.session_id, config=config, benchmark=arm.benchmark, lane=arm.lane)
    by_version = {run.release.version: run for run in beside}
    if not {finding.previous, finding.release} <= by_version.keys():
        return
    base, candidate = (_values(by_version[version], store) for version in (finding.previous, finding.release))
    middle = _values(arm, store)
    for move in moves:
        key = (move.key.test, move.key.metric)
        if key in base.keys() & middle.keys() & candidate.keys():
            verdict = partial(judge, test=key[0], metric=key[1], metrics=metrics)
            yield key, steps_of(base[key], middle[key], candidate[key], verdict)


def _values(run: Run, store: Store) -> Values:
    values: Values = defaultdict(list)
    for block in store.blocks(run.id, details=False):
        if block.status == "ok":
            for measured in block.measurements:
                values[measured.test, measured.metric].append(measured.value)
    return dict(values)
