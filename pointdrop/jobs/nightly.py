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
from pointdrop.jobs.confirm import confirmations, to_be_had, within
from pointdrop.jobs.detect import load_detector_settings, run_detection
from pointdrop.jobs.measurable import measurable
from pointdrop.jobs.measuring import Bench, Measured, measure_all, planned, runnable
from pointdrop.jobs.nights import SECONDS_A_MINUTE
from pointdrop.jobs.requests import settle_requests, to_measure
from pointdrop.jobs.site import site_settings
from pointdrop.jobs.summary import Summary, count_findings
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


def nightly(bench: Bench, night: Night, dbms: Collection[str] = ()) -> Summary:
    """Run the whole job on this machine.

    Raises HostBusy when another job measures here, BadSettings for a plan that cannot be used; what could not be done
    is in the summary's `incomplete`.
    """
    began = time.monotonic()
    detector, site = load_detector_settings(bench.configs), site_settings(bench.configs)  # wrong ones stop it here
    measured = measure_all(
        bench,
        night.plan,
        night.server,
        planned(bench, night.plan, night.server, dbms),
        budget_minutes=night.plan.budget_minutes,
    )
    bench.say("looking for changes")
    findings = _detected(bench, detector)
    if night.confirm:
        findings = _confirmed(bench, night, detector, findings, measured, began)
    issues, incomplete = _filed(bench, night)
    bench.say("drawing the site")
    build(bench.store, night.site, site)
    return Summary(
        plan=night.plan.name,
        releases=tuple(measured.releases),
        blocks=measured.done,
        noisy=measured.noisy,
        failed=measured.failed,
        series=sum(1 for _ in bench.store.series()),
        findings=count_findings(findings),
        issues=issues,
        incomplete=(*measured.incomplete, *incomplete, *bench.catalogue.warnings),
        notes=tuple(dict.fromkeys(measured.warnings)),
        minutes=(time.monotonic() - began) / SECONDS_A_MINUTE,
        history=str(bench.store.url),
        site=night.site,
        issues_at=str(bench.state / "issues") if night.tracker.name == "files" else night.tracker.name,
    )


def _detected(bench: Bench, settings: DetectorSettings) -> list[Finding]:
    """The newest detection; requests that it answers are settled."""
    findings = run_detection(bench.store, settings)
    sources = load_alert_settings(bench.configs).links.source
    settle_requests(bench.store, findings, sources, settings.metrics)
    return findings


def _filed(bench: Bench, night: Night) -> tuple[dict[str, int], tuple[str, ...]]:
    """What the tracker was told, and what it could not be told; the night goes on without it."""
    try:
        settings = load_alert_settings(bench.configs, measurable(bench.configs))
        report = sync(bench.store, night.tracker, settings)
    except TrackerError as error:
        return {}, (f"{night.tracker.name}: {error}",)
    return dict(report.counts), (*report.refused, *report.failed, *report.warnings)


def _confirmed(
    bench: Bench, night: Night, detector: DetectorSettings, findings: list[Finding], measured: Measured, began: float
) -> list[Finding]:
    """Measure suspects again beside their predecessors, and what people asked for; then detect with that."""
    mine = [
        one
        for one in within(to_measure(bench.store, findings, detector.metrics), night.plan)
        if one.server == night.server
    ]
    known = {dbms: runnable(bench, dbms) for dbms in {suspect.dbms for suspect in mine}}
    here, lost = to_be_had(mine, known)
    measured.warnings += lost
    work = confirmations(here, night.plan, known)
    if not work:
        return findings
    bench.say(f"measuring again, beside their predecessors: {', '.join(f'{s.previous}..{s.release}' for s in here)}")
    budget = night.plan.budget_minutes
    left = None if budget is None else budget - (time.monotonic() - began) / SECONDS_A_MINUTE
    measured.merge(measure_all(bench, night.plan, night.server, work, budget_minutes=left))
    return _detected(bench, detector)
