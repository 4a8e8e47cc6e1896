"""Runs what a plan wants on this machine: fetches and verifies releases, measures, appends, resumes.

What a job that was killed had begun (`session_records.py`) is finished by the next job before anything new is begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from history.errors import StoreUnavailable
from history.maintenance import recover_spool
from history.model import Block, Phase, Release, Run, Session
from history.spool import Spool
from history.store import Store
from pointdrop.jobs.night_schedule import (
    SECONDS_A_MINUTE,
    fits,
    is_whole,
    postponed_text,
    without_pending,
)
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.session_estimates import estimates, session_of, timed_blocks
from pointdrop.jobs.session_records import (
    SessionRecord,
    claim,
    new_record,
    one_begins,
    record_path,
    sessions_under_way,
    unfinished_sessions,
    write_record,
)
from runners.canary import Canary, Quarantine
from runners.cores import Cores, usable_cores
from runners.errors import HostBusy, HostChanged
from runners.host import host_name
from runners.releases import Catalogue, ReleaseError
from runners.sessions import Event, Outcome, run_session
from runners.settings import Plan

FETCHES_AT_ONCE = 2


@dataclass
class Measured:
    """What a job measured."""

    releases: dict[str, None] = field(default_factory=dict)
    """Names of releases that got blocks, in order."""
    done: int = 0
    noisy: int = 0
    failed: int = 0
    incomplete: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        """Of whatever status."""
        return self.done + self.noisy + self.failed

    def add(self, outcome: Outcome) -> None:
        self.done += outcome.done
        self.noisy += outcome.noisy
        self.failed += outcome.failed
        self.incomplete += [f"{run}: {why}" for run, why in outcome.skipped.items()]
        self.warnings += outcome.warnings
        if outcome.failed:
            self.incomplete.append(f"{outcome.failed} blocks failed, the last: {outcome.warnings[-1]}")
        if outcome.stopped:
            self.incomplete.append(outcome.stopped)


@dataclass(frozen=True)
class MeasurementSetup:
    """Where a job measures and what it writes to."""

    configs: Path
    state: Path
    catalogue: Catalogue
    store: Store
    on_event: Callable[[Event], None] = lambda event: None
    say: Callable[[str], None] = lambda text: None
    spool: Spool | None = None
    """Takes each block, and each reading of the machine canary, besides the history."""

    @property
    def canary(self) -> Canary:
        """Whether this host is still the machine it was."""
        return Canary(self.state, cores=Cores())


def measure_all(
    setup: MeasurementSetup,
    plan: Plan,
    server: str,
    work: Sequence[Work],
    *,
    budget_minutes: float | None = None,
    spent_s: float = 0.0,
    measured: Measured | None = None,
) -> Measured:
    """Bring in what an earlier job kept on disk and finish what it left, then do `work`, until the budget is used up.

    The spool first: a session that is resumed asks the history which of its blocks are finished, and a block measured
    a second time could no longer be told from the one that was kept.

    What a session of another process measures now is left to it. A release that cannot be fetched or verified, and work
    of which not even a block fits, is left out and named in `incomplete`; the rest is measured. While the whole budget
    is left, one block begins whatever is expected of it. It is added to `measured`, what the same job measured before,
    which took `spent_s` seconds of the budget.

    A session whose cores others hold is left out and named, too; HostBusy when that was all there was to do.
    """
    later: list[Work] = []
    measured = measured or Measured()
    for report in recover_spool(setup.store, [setup.state / "spool"]):
        if blocks := report.new.get("block"):
            setup.say(f"brought in {blocks} blocks that were kept in {report.file}")
        for rejection in report.rejected[:1]:
            measured.incomplete.append(
                f"{report.file}, line {rejection.line}: {rejection.reason}; it stays for `pointdrop history recover`"
            )
    started = time.monotonic() - spent_s
    budget_s = None if budget_minutes is None else budget_minutes * SECONDS_A_MINUTE

    def left() -> float | None:
        return None if budget_s is None else budget_s - (time.monotonic() - started)

    busy: HostBusy | None = None

    def run(begun: SessionRecord) -> None:
        nonlocal busy
        try:
            _run(setup, begun, measured, left(), begin_one=is_whole(left(), budget_s))
        except HostBusy as error:
            busy = error
            measured.incomplete.append(f"{begun.id}: {error}")

    for begun in unfinished_sessions(setup.state):
        with claim(setup.state, begun.id) as ours:
            if ours and record_path(setup.state, begun.id).exists():  # nobody was quicker
                setup.say(f"resuming the session {begun.id}")
                run(begun)
    told: set[str] = set()

    def remaining(item: Work) -> Work | None:
        """What of it the history lacks, and no other process measures now; nor is it in a session that goes on later,
        since this job could not finish it."""
        under_way = [session for session in sessions_under_way(setup.state) if session.server == server]
        for session in under_way:
            if session.id not in told:
                setup.say(f"another process measures the session {session.id}: what is in it is left to it")
                told.add(session.id)
        later_on = [session for session in unfinished_sessions(setup.state) if session.server == server]
        for rest in without_pending([item], [*under_way, *later_on]):
            if candidates := _still_wanted(setup, rest, server):
                return replace(rest, candidates=tuple(candidates))
        return None

    for planned in work:
        item = remaining(planned)
        if item is None:
            continue
        (wanted,) = estimates(setup, plan, server, [item], len(usable_cores()))
        if not fits(wanted, left(), budget_s):
            later.append(item)
            continue
        fetched = _fetch(setup, item.releases, measured)
        ready = tuple(fetched[r.version] for r in item.candidates if r.version in fetched)
        if not ready or item.control.version not in fetched:
            continue
        if not fits(wanted, left(), budget_s):  # fetching may have taken what was left
            later.append(item)
            continue
        with ExitStack() as claimed:
            with one_begins(setup.state):  # another process may have begun it, or ended it, while this one fetched
                beside = tuple(fetched[release.version] for release in item.beside if release.version in fetched)
                item = replace(item, candidates=ready, control=fetched[item.control.version], beside=beside)
                item = remaining(item)
                if item is None:
                    continue
                begun = new_record(plan, server, item, datetime.now(UTC))
                if not claimed.enter_context(claim(setup.state, begun.id)):
                    measured.incomplete.append(f"{begun.id}: another process began such a session in the same second")
                    continue
                write_record(setup.state, begun)
            run(begun)
    if later and budget_minutes is not None:
        measured.incomplete.append(postponed_text(later, budget_minutes - spent_s / SECONDS_A_MINUTE))
    if busy and not measured.blocks:
        raise busy
    return measured


def _still_wanted(setup: MeasurementSetup, work: Work, server: str) -> list[Release]:
    """Candidates that the sessions resumed just now have not given enough blocks; a confirmation wants all of its."""
    if work.again:
        return list(work.candidates)
    measure = work.measure
    measured = setup.store.measured(measure.dbms, work.config, measure.benchmark, measure.lane, server)
    return [release for release in work.candidates if measured.get(release.version, 0) < measure.blocks]


def _fetch(setup: MeasurementSetup, releases: Iterable[Release], measured: Measured) -> dict[str, Release]:
    """Releases by version, verified and unpacked, their pins in the history; the next one is downloaded while the one
    before is unpacked."""
    wanted = {release.version: release for release in releases}
    fetched: dict[str, Release] = {}
    with ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
        under_way = [(name, pool.submit(setup.catalogue.fetch, r.dbms, name)) for name, r in wanted.items()]
        for version, fetch in under_way:
            try:
                fetched[version] = fetch.result().release
            except ReleaseError as error:
                measured.incomplete.append(str(error))
                continue
            setup.store.pin_release(fetched[version])
    return fetched


def _check(setup: MeasurementSetup, phase: Phase, begun: SessionRecord, measured: Measured) -> Quarantine | None:
    """Whether the host is sick; what it took goes into the history.

    When that cannot take it, nothing is measured that it could not take either; but a session that is stored is not
    lost for want of the readings after it.
    """
    checked = setup.canary.check(phase, begun.id)
    if setup.spool:
        for reading in checked.readings:
            setup.spool.keep([reading])
    try:
        for reading in checked.readings:
            setup.store.append_reading(reading)
    except StoreUnavailable as error:
        if phase == "before":
            raise
        measured.incomplete.append(f"{begun.id} was measured, but not how the machine was after it: {error}")
    return checked.quarantine


def _run(
    setup: MeasurementSetup,
    begun: SessionRecord,
    measured: Measured,
    budget_s: float | None,
    *,
    begin_one: bool = False,
) -> None:
    """Measure what is left of a session whose record is written and claimed."""
    plan, record = session_of(setup, begun), record_path(setup.state, begun.id)
    finished = setup.store.block_ids(begun.id)

    def not_begun() -> None:
        if not finished:  # there is nothing to go on with
            record.unlink(missing_ok=True)

    watched = plan.lane == "time" and plan.server.canary
    if watched and (sick := _check(setup, "before", begun, measured)):
        measured.incomplete.append(f"{begun.id}: {sick}")
        not_begun()
        return
    stored = next((s for s in setup.store.sessions() if s.id == begun.id), None)

    def sink(session: Session, run: Run, block: Block) -> None:
        setup.store.append_session(session)
        setup.store.append_run(run)
        setup.store.append_block(block)
        if setup.spool:
            setup.spool.keep([session, run, block])
        if block.status == "ok":
            measured.releases[run.release.name] = None

    try:
        outcome = run_session(
            plan,
            setup.catalogue,
            sink,
            configs=setup.configs,
            state=setup.state,
            finished=finished,
            session=stored,
            toolchains={run.id: run.toolchain for run in setup.store.runs(begun.id)},
            known=timed_blocks(setup.store, plan, host_name()),
            on_event=setup.on_event,
            budget_s=budget_s,
            begin_one=begin_one,
        )
    except HostBusy:
        not_begun()
        raise
    except HostChanged as error:
        record.unlink(missing_ok=True)
        measured.incomplete.append(f"{error}: it was given up, and its {len(finished)} blocks stay in the history")
        return
    measured.add(outcome)
    if not outcome.stopped:
        record.unlink(missing_ok=True)
    if watched and (sick := _check(setup, "after", begun, measured)):
        measured.incomplete.append(f"{begun.id} was measured, but {sick}")
