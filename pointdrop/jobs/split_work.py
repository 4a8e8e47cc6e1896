"""Settings or code, of a finding: which boundaries get a third arm, and the sessions that measure them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from detector.attachments import SPLIT_CAUSES
from detector.compare import REPORTED_BLOCKS
from history.errors import BadSettings
from history.metrics import MetricRegistry
from history.model import Finding, Release, carrying_moves
from history.store import Store
from pointdrop.jobs.measured_splits import by_place, third_arms
from pointdrop.jobs.measurement import MeasurementSetup
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.session_estimates import session_of
from pointdrop.jobs.session_records import new_record
from pointdrop.jobs.settings_split import third_arm
from pointdrop.jobs.suspects import Suspect, confirmation_work, suspects
from runners.errors import RunnersError
from runners.settings import Plan

#: Sessions that may end without an answer before a boundary is no longer measured for one.
MOST_SESSIONS = 2


def splits_to_measure(findings: Iterable[Finding], store: Store, metrics: MetricRegistry) -> list[Suspect]:
    """Confirmed regressions at which a default changed and that no third arm has divided yet, the largest first."""
    asked = {
        finding.key: finding
        for finding in findings
        if finding.kind == "regression"
        and finding.tier == "confirmed"
        and finding.cause in SPLIT_CAUSES
        and any(change.cause == "default" for change in finding.settings)
        and not (finding.split and finding.split.cause)
        and all(len(third_arms(finding, place, store)) < MOST_SESSIONS for place in by_place(finding, metrics))
    }
    return suspects([_as_new(finding) for finding in asked.values()], metrics)


def _as_new(finding: Finding) -> Finding:
    """`finding` as if nothing had been measured again, with the moves that it is told by."""
    new = {"tier": "provisional", "judged_in": 0}
    moves = tuple(move.model_copy(update=new) for move in carrying_moves(finding))
    return finding.model_copy(update={"tier": "provisional", "moves": moves})


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
        blocks = max(item.measure.blocks, REPORTED_BLOCKS)  # a part is judged as any other difference is
        item = replace(item, measure=item.measure.model_copy(update={"blocks": blocks}))
        session = session_of(setup, new_record(plan, server, item, datetime.now(UTC)))
        runs = {run.release.version: run for run in session.runs}
        before, after = runs[suspect.previous], runs[suspect.release]
        setup.say(f"asking {before.release.name} and {after.release.version} for their settings")
        try:
            arm = third_arm(session, before, after, setup.catalogue, configs=setup.configs, state=setup.state)
        except (RunnersError, BadSettings) as error:
            lost.append(f"{suspect}: settings and code cannot be separated: {error}")
            continue
        if arm.options:
            work.append(replace(item, held=((after.release, arm),)))
        else:
            lost.append(f"{suspect}: {after.release.name} takes none of the settings that differ")
    return work, lost
