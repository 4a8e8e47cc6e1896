"""What a plan wants measured on a server, of the releases that the sources offer and the history lacks."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime

from history.model import Release
from pointdrop.jobs.measurement import MeasurementSetup
from pointdrop.jobs.night_schedule import in_night_order
from pointdrop.jobs.release_selection import Work, pick, select_named
from runners.releases import Catalogue
from runners.releases.lines import LineCalendar
from runners.settings import Measure, Plan


def planned_work(
    setup: MeasurementSetup,
    plan: Plan,
    server: str,
    dbms: Collection[str] = (),
    *,
    discover: bool = True,
    today: date | None = None,
) -> list[Work]:
    """What `plan` wants measured on `server`, of the DBMS named (all when none is), in the order in which it is done.

    The sources are asked what there is, unless `discover` says that what they last offered will do. `today`, by UTC
    unless it is given, decides which lines are still supported.
    """
    work: list[Work] = []
    measures = _measures(plan, dbms)
    for name in dict.fromkeys(measure.dbms for measure in measures if discover):
        _discover(setup, name)
    for measure in measures:
        for config in measure.configs:
            measured = setup.store.measured(measure.dbms, config, measure.benchmark, measure.lane, server)
            releases = runnable_releases(setup.catalogue, measure.dbms)
            work += pick(measure, config, releases, measured, _calendar(setup, measure.dbms, today))
    return in_night_order(work)


def named_work(setup: MeasurementSetup, plan: Plan, dbms: Collection[str], versions: Collection[str]) -> list[Work]:
    """Those releases as `plan` measures them, with their control and what stands beside them, whatever the history
    holds; no source is asked."""
    work: list[Work] = []
    for measure in _measures(plan, dbms):
        for config in measure.configs:
            releases = runnable_releases(setup.catalogue, measure.dbms)
            work += select_named(measure, config, releases, versions, _calendar(setup, measure.dbms))
    return in_night_order(work)


def _calendar(setup: MeasurementSetup, dbms: str, today: date | None = None) -> LineCalendar:
    return LineCalendar(setup.catalogue.manifest(dbms).line, today or datetime.now(UTC).date())


def _measures(plan: Plan, dbms: Collection[str]) -> list[Measure]:
    return [measure for measure in plan.measure if not dbms or measure.dbms in dbms]


def _discover(setup: MeasurementSetup, dbms: str) -> None:
    """Ask the sources, and write the manifest's pins into the history, so that findings can name releases nobody
    measured."""
    setup.catalogue.discover(dbms)
    held = {release.version for release in setup.store.releases(dbms)}
    for state in setup.catalogue.list(dbms):
        if state.state == "pinned" and state.release.digest and state.release.version not in held:
            setup.store.pin_release(state.release)


def runnable_releases(catalogue: Catalogue, dbms: str) -> list[Release]:
    """Releases that may be measured, in version order, as last discovered."""
    return [state.release for state in catalogue.list(dbms) if state.state in ("pinned", "new")]
