"""Settings or code, of a finding: which boundaries get a third arm, and what the history says once one was measured.

The session of a third arm holds both sides and the release with the settings of the one before it, interleaved; the run
of the third arm says in its bundle whose settings it had. Its config is no line of the history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from detector.compare import compare
from detector.releases.metric_kinds import noise_prior
from detector.settings_split import Steps, split_of
from history.errors import BadSettings
from history.metrics import MetricRegistry
from history.model import HELD_MARK, Finding, Lane, Move, Release, Run, SettingsSplit
from history.store import Store
from pointdrop.jobs.measurement import MeasurementSetup
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.session_estimates import session_of
from pointdrop.jobs.session_records import new_record
from pointdrop.jobs.settings_split import third_arm
from pointdrop.jobs.suspects import Suspect, confirmation_work, suspects
from runners.errors import RunnersError
from runners.sessions import HeldConfig, held_of
from runners.settings import Plan

Place = tuple[str, str, str, Lane]
Values = dict[tuple[str, str], list[float]]


def measured_split(finding: Finding, store: Store, metrics: MetricRegistry) -> SettingsSplit | None:
    """The split of the moves that a session with a third arm can speak about; None while there is none."""
    steps: dict[tuple[str, str], Steps] = {}
    held: HeldConfig | None = None
    for place, moves in _by_place(finding, metrics).items():
        for run in reversed(_third_arms(finding, place, store)):
            held = held_of(run)
            for move, of_move in _steps(run, finding, place[1], moves, store, metrics):
                steps.setdefault((move.key.test, move.key.metric), of_move)
            break
    return split_of(steps, held.held, held.left) if steps and held else None


def _by_place(finding: Finding, metrics: MetricRegistry) -> dict[Place, list[Move]]:
    places: dict[Place, list[Move]] = defaultdict(list)
    for move in finding.moves:
        key = move.key
        places[key.server, key.config, key.benchmark, metrics[key.metric].lane].append(move)
    return dict(sorted(places.items()))


def _third_arms(finding: Finding, place: Place, store: Store) -> list[Run]:
    """Runs of the release with the settings of the one before it, oldest first."""
    server, config, benchmark, lane = place
    found = store.runs(dbms=finding.dbms, version=finding.release, server=server, benchmark=benchmark, lane=lane)
    arms = [run for run in found if run.config.startswith(f"{config}{HELD_MARK}")]
    return [run for run in arms if (held := held_of(run)) and held.of == finding.previous]


def _steps(
    arm: Run, finding: Finding, config: str, moves: Iterable[Move], store: Store, metrics: MetricRegistry
) -> Iterable[tuple[Move, Steps]]:
    """The three steps of each move that all arms of the session have values of."""
    beside = store.runs(arm.session_id, config=config, benchmark=arm.benchmark, lane=arm.lane)
    by_version = {run.release.version: run for run in beside}
    if not {finding.previous, finding.release} <= by_version.keys():
        return
    base, candidate = (_values(by_version[version], store) for version in (finding.previous, finding.release))
    middle = _values(arm, store)
    for move in moves:
        key = (move.key.test, move.key.metric)
        if key in base.keys() & middle.keys() & candidate.keys():
            metric = metrics[move.key.metric]
            # Of one block: what a move calls noise is how far releases lie apart.
            floor, noise = metric.smallest_change_pct, noise_prior(metric, move.key.test)
            sides = ((base, candidate), (middle, candidate), (base, middle))
            whole, settings, code = (compare(a[key], b[key], floor_pct=floor, noise=noise) for a, b in sides)
            yield move, (whole, settings, code)


def _values(run: Run, store: Store) -> Values:
    values: Values = defaultdict(list)
    for block in store.blocks(run.id, details=False):
        if block.status == "ok":
            for measured in block.measurements:
                values[measured.test, measured.metric].append(measured.value)
    return dict(values)


def splits_to_measure(findings: Iterable[Finding], store: Store, metrics: MetricRegistry) -> list[Suspect]:
    """Confirmed regressions at which a default changed and of which no third arm was measured, the largest first."""
    asked = {
        finding.key: finding
        for finding in findings
        if finding.kind == "regression"
        and finding.tier == "confirmed"
        and any(change.cause == "default" for change in finding.settings)
        and not any(_third_arms(finding, place, store) for place in _by_place(finding, metrics))
    }
    return suspects([f.model_copy(update={"tier": "provisional"}) for f in asked.values()], metrics)


def split_work(
    setup: MeasurementSetup,
    plan: Plan,
    server: str,
    wanted: Iterable[Suspect],
    releases: Mapping[str, Iterable[Release]],
) -> tuple[list[Work], list[str]]:
    """A session for each boundary, with its third arm, and a sentence about each that cannot have one."""
    work, lost = [], []
    for suspect in wanted:
        sides = {d: [r for r in of if r.version in (suspect.previous, suspect.release)] for d, of in releases.items()}
        (item,) = confirmation_work([suspect], plan, sides)
        session = session_of(setup, new_record(plan, server, item, datetime.now(UTC)))
        runs = {run.release.version: run for run in session.runs}
        before, after = runs[suspect.previous], runs[suspect.release]
        setup.say(f"asking {before.release.name} and {after.release.version} for their settings")
        try:
            arm = third_arm(session, before, after, setup.catalogue, configs=setup.configs, state=setup.state)
        except (RunnersError, BadSettings) as error:
            lost.append(f"{suspect}: settings and code are not told apart: {error}")
            continue
        if arm.options:
            work.append(replace(item, held=((after.release, arm),)))
        else:
            lost.append(f"{suspect}: {after.release.name} takes none of the settings that differ")
    return work, lost
