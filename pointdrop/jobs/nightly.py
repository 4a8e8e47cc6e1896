"""The main job: measure what is new, detect, confirm suspects, file, draw.

    discover -> measure -> detect -> confirm -> detect -> file -> draw

Each part stands on the history alone, so a job that was killed anywhere is simply run again.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from alerts import load_settings as load_alert_settings
from alerts import sync
from alerts.errors import TrackerError
from alerts.trackers import Tracker
from detector import DetectorSettings
from history.model import Finding
from pointdrop.jobs.detect import load_detector_settings, run_detection
from pointdrop.jobs.measurement import Measured, MeasurementSetup, measure_all, planned_work, runnable_releases
from pointdrop.jobs.measurement_requests import settle_requests, suspects_to_measure
from pointdrop.jobs.night_schedule import SECONDS_A_MINUTE
from pointdrop.jobs.room_settings import measurable, site_settings
from pointdrop.jobs.summary import Summary, count_findings
from pointdrop.jobs.suspects import confirmation_work, in_plan, with_available_releases
from reports import build
from runners.settings import Plan


@dataclass(frozen=True)
class Night:
    """What one night is told."""

    plan: Plan
    server: str
    tracker: Tracker
    site: Path
    confirm: bool = True


def nightly(setup: MeasurementSetup, night: Night, dbms: Collection[str] = ()) -> Summary:
    """Run the whole job on this machine.

    Raises HostBusy when another job measures here, BadSettings for a plan that cannot be used; what could not be done
    is in the summary's `incomplete`.
    """
    began = time.monotonic()
    detector, site = load_detector_settings(setup.configs), site_settings(setup.configs)  # wrong ones stop it here
    measured = measure_all(
        setup,
        night.plan,
        night.server,
        planned_work(setup, night.plan, night.server, dbms),
        budget_minutes=night.plan.budget_minutes,
    )
    setup.say("looking for changes")
    findings = _detected(setup, detector)
    if night.confirm:
        findings = _confirmed(setup, night, detector, findings, measured, began)
    issues, incomplete = _filed(setup, night)
    setup.say("drawing the site")
    build(setup.store, night.site, site)
    return Summary(
        plan=night.plan.name,
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
        site=night.site,
        issues_at=str(setup.state / "issues") if night.tracker.name == "files" else night.tracker.name,
    )


def _detected(setup: MeasurementSetup, settings: DetectorSettings) -> list[Finding]:
    """The newest detection; requests that it answers are settled."""
    findings = run_detection(setup.store, settings)
    sources = load_alert_settings(setup.configs).links.source
    settle_requests(setup.store, findings, sources, settings.metrics)
    return findings


def _filed(setup: MeasurementSetup, night: Night) -> tuple[dict[str, int], tuple[str, ...]]:
    """What the tracker was told, and what it could not be told; the night goes on without it."""
    try:
        settings = load_alert_settings(setup.configs, measurable(setup.configs))
        report = sync(setup.store, night.tracker, settings)
    except TrackerError as error:
        return {}, (f"{night.tracker.name}: {error}",)
    return dict(report.counts), (*report.refused, *report.failed, *report.warnings)


def _confirmed(
    setup: MeasurementSetup,
    night: Night,
    detector: DetectorSettings,
    findings: list[Finding],
    measured: Measured,
    began: float,
) -> list[Finding]:
    """Measure suspects again beside their predecessors, and what people asked for; then detect with that."""
    suspects = [
        suspect
        for suspect in in_plan(suspects_to_measure(setup.store, findings, detector.metrics), night.plan)
        if suspect.server == night.server
    ]
    releases = {dbms: runnable_releases(setup.catalogue, dbms) for dbms in {suspect.dbms for suspect in suspects}}
    available, lost = with_available_releases(suspects, releases)
    measured.warnings += lost
    work = confirmation_work(available, night.plan, releases)
    if not work:
        return findings
    setup.say(
        f"measuring again, beside their predecessors: {', '.join(f'{s.previous}..{s.release}' for s in available)}"
    )
    budget = night.plan.budget_minutes
    left = None if budget is None else budget - (time.monotonic() - began) / SECONDS_A_MINUTE
    measure_all(setup, night.plan, night.server, work, budget_minutes=left, measured=measured)
    return _detected(setup, detector)
