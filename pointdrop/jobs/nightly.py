"""The main job: measure what is new, detect, confirm suspects, file, draw.

    discover -> measure -> detect -> confirm -> detect -> tell settings from code -> detect -> file -> draw

Each part stands on the history alone, so a job that was killed anywhere is simply run again.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from alerts import load_settings as load_alert_settings
from alerts import sync
from alerts.errors import TrackerError
from alerts.trackers import Tracker
from detector import DetectorSettings
from history.model import Finding, Release
from pointdrop.jobs.detect import load_detector_settings, run_detection
from pointdrop.jobs.measurement import Measured, MeasurementSetup, measure_all
from pointdrop.jobs.measurement_requests import settle_requests, suspects_to_measure
from pointdrop.jobs.night_schedule import SECONDS_A_MINUTE
from pointdrop.jobs.planned_work import planned_work, runnable_releases
from pointdrop.jobs.room_settings import measurable, site_settings
from pointdrop.jobs.split_work import split_work, splits_to_measure
from pointdrop.jobs.summary import Summary, count_findings
from pointdrop.jobs.suspects import Suspect, confirmation_work, in_plan, with_available_releases
from reports.site import build
from runners.errors import HostBusy
from runners.settings import Plan

#: The first session of a suspect may find that a release between its two sides did it; what it discovered is then
#: measured again the same night. Nothing is measured again twice in a night.
CONFIRMING_ROUNDS = 2


def nightly(
    setup: MeasurementSetup, plan: Plan, server: str, tracker: Tracker, folder: Path, confirm: bool = True
) -> Summary:
    """Run the whole job on this machine, which is the plan's `server`; the site is built in `folder`.

    Raises HostBusy when another job measures here and nothing could be measured beside it, BadSettings for a plan that
    cannot be used; what could not be done is in the summary's `incomplete`.
    """
    began = time.monotonic()
    detector, site = load_detector_settings(setup.configs), site_settings(setup.configs)  # wrong ones stop it here
    work = planned_work(setup, plan, server)
    measured = measure_all(setup, plan, server, work, budget_minutes=plan.budget_minutes)
    setup.say("looking for changes")
    findings = _detected(setup, detector)
    if confirm:
        findings = _confirmed(setup, plan, server, findings, detector, measured, began)
    splits = splits_to_measure(findings, setup.store, detector.metrics) if confirm else []
    if _split(setup, plan, server, splits, measured, began):
        findings = _detected(setup, detector)
    issues, incomplete = _filed(setup, tracker)
    setup.say("drawing the site")
    build(setup.store, folder, site)
    return Summary(
        plan=plan.name,
        releases=tuple(measured.releases),
        blocks=measured.done,
        noisy=measured.noisy,
        failed=measured.failed,
        series=sum(1 for _ in setup.store.series()),
        findings=count_findings(findings),
        issues=issues,
        incomplete=(*measured.incomplete, *incomplete, *setup.catalogue.warnings),
        notes=tuple(dict.fromkeys(measured.warnings)),
        minutes=(time.monotonic() - began) / SECONDS_A_MINUTE,
        history=str(setup.store.url),
        site=folder,
        issues_at=str(setup.state / "issues") if tracker.name == "files" else tracker.name,
    )


def _detected(setup: MeasurementSetup, settings: DetectorSettings) -> list[Finding]:
    """The newest detection; requests that it answers are settled."""
    findings = run_detection(setup.store, settings)
    sources = load_alert_settings(setup.configs).links.source
    settle_requests(setup.store, findings, sources, settings.metrics)
    return findings


def _filed(setup: MeasurementSetup, tracker: Tracker) -> tuple[dict[str, int], tuple[str, ...]]:
    """What the tracker was told, and what it could not be told; the night goes on without it."""
    try:
        settings = load_alert_settings(setup.configs, measurable(setup.configs))
        report = sync(setup.store, tracker, settings)
    except TrackerError as error:
        return {}, (f"{tracker.name}: {error}",)
    return dict(report.counts), (*report.refused, *report.failed, *report.warnings)


def _confirmed(
    setup: MeasurementSetup,
    plan: Plan,
    server: str,
    findings: list[Finding],
    settings: DetectorSettings,
    measured: Measured,
    began: float,
) -> list[Finding]:
    """The findings once their suspects were measured again, each at most once."""
    asked = set[Suspect]()
    for _ in range(CONFIRMING_ROUNDS):
        wanted = suspects_to_measure(setup.store, findings, settings.metrics)
        suspects = [suspect for suspect in wanted if suspect not in asked]
        asked.update(suspects)
        if not _measured_again(setup, plan, server, suspects, measured, began):
            break
        findings = _detected(setup, settings)
    return findings


def _measured_again(
    setup: MeasurementSetup, plan: Plan, server: str, suspects: list[Suspect], measured: Measured, began: float
) -> bool:
    """Whether suspects that the plan measures on this server were measured again beside their predecessors."""
    available, releases = _available(setup, plan, server, suspects, measured)
    if not available:
        return False
    boundaries = ", ".join(f"{suspect.previous}..{suspect.release}" for suspect in available)
    setup.say(f"measuring again, beside their predecessors: {boundaries}")
    work = confirmation_work(available, plan, releases)
    spent_s = time.monotonic() - began
    with suppress(HostBusy):  # the summary names it; what was detected is filed all the same
        measure_all(setup, plan, server, work, budget_minutes=plan.budget_minutes, spent_s=spent_s, measured=measured)
    return True


def _split(
    setup: MeasurementSetup, plan: Plan, server: str, suspects: list[Suspect], measured: Measured, began: float
) -> bool:
    """Whether steps at which a default changed were measured with the settings of before besides."""
    available, releases = _available(setup, plan, server, suspects, measured)
    if plan.budget_minutes is not None and time.monotonic() - began >= plan.budget_minutes * SECONDS_A_MINUTE:
        measured.warnings += [f"{suspect}: settings and code will be separated the next night" for suspect in available]
        return False
    work, lost = split_work(setup, plan, server, available, releases)
    measured.warnings += lost
    if not work:
        return False
    setup.say("telling settings from code: " + ", ".join(f"{s.previous}..{s.release}" for s in available))
    spent_s = time.monotonic() - began
    with suppress(HostBusy):
        measure_all(setup, plan, server, work, budget_minutes=plan.budget_minutes, spent_s=spent_s, measured=measured)
    return True


def _available(
    setup: MeasurementSetup, plan: Plan, server: str, suspects: list[Suspect], measured: Measured
) -> tuple[list[Suspect], dict[str, list[Release]]]:
    """Those that the plan measures on this server and whose releases can be had, and the releases by DBMS."""
    wanted = [suspect for suspect in in_plan(suspects, plan) if suspect.server == server]
    releases = {dbms: runnable_releases(setup.catalogue, dbms) for dbms in {suspect.dbms for suspect in wanted}}
    available, lost = with_available_releases(wanted, releases)
    measured.warnings += lost
    return available, releases
