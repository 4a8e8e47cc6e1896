"""Runs what a plan wants on this machine: picks releases, fetches and verifies them, measures, appends, resumes.

What a job that was killed had begun (`begun.py`) is finished by the next job before anything new is begun.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from history.errors import StoreUnavailable
from history.model import Block, Phase, Reading, Release, Run, Session
from history.store import Store
from pointdrop.jobs.begun import Begun, begin, keep_record, unfinished
from pointdrop.jobs.kept import bring_in
from pointdrop.jobs.nights import SECONDS_A_MINUTE, begins, in_turn, left_out
from pointdrop.jobs.picks import Work, pick, pick_named
from runners.canary import Canary, Quarantine
from runners.releases import Catalogue, ReleaseError
from runners.sessions import Estimate, Event, Outcome, SessionPlan, estimate, plan_session, run_session
from runners.sessions.session import HOST_LOCK
from runners.settings import Measure, Plan, load_benchmark, load_profile, load_server


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
    wall_s: float = 0.0
    measured_s: float = 0.0

    def merge(self, other: Measured) -> None:
        """Add what another call measured."""
        self.releases |= other.releases
        self.done += other.done
        self.noisy += other.noisy
        self.failed += other.failed
        self.incomplete += other.incomplete
        self.warnings += other.warnings
        self.wall_s += other.wall_s
        self.measured_s += other.measured_s

    def add(self, outcome: Outcome, work: Work) -> None:
        self.done += outcome.done
        self.noisy += outcome.noisy
        self.failed += outcome.failed
        self.wall_s += outcome.wall_s
        self.measured_s += outcome.measured_s
        self.incomplete += [f"{run}: {why}" for run, why in outcome.skipped.items()]
        self.warnings += outcome.warnings
        if outcome.failed:
            self.incomplete.append(f"{outcome.failed} blocks failed, the last: {outcome.warnings[-1]}")
        if outcome.stopped:
            self.incomplete.append(outcome.stopped)


@dataclass(frozen=True)
class Bench:
    """Where a job measures and what it writes to."""

    configs: Path
    state: Path
    catalogue: Catalogue
    store: Store
    on_event: Callable[[Event], None] = lambda event: None
    say: Callable[[str], None] = lambda text: None
    sink: Callable[[Session, Run, Block], None] | None = None
    """Takes each block besides the history."""
    keep_reading: Callable[[Reading], None] | None = None
    """Takes each reading of the machine canary besides the history."""

    @property
    def canary(self) -> Canary:
        """Whether this host is still the machine it was."""
        return Canary(self.state, lock=HOST_LOCK)


def planned(bench: Bench, plan: Plan, server: str, dbms: Collection[str] = ()) -> list[Work]:
    """What `plan` wants measured on `server`, of the DBMS named (all when none is), in the order in which it is done.

    The sources are asked what there is.
    """
    work: list[Work] = []
    asked: set[str] = set()
    for measure in _measures(plan, dbms):
        if measure.dbms not in asked:
            bench.catalogue.discover(measure.dbms)
            _pin_known(bench, measure.dbms)
            asked.add(measure.dbms)
        for config in measure.configs:
            measured = bench.store.measured(measure.dbms, config, measure.benchmark, measure.lane, server)
            work += pick(measure, config, runnable(bench, measure.dbms), measured)
    return in_turn(work)


def named(bench: Bench, plan: Plan, dbms: Collection[str], versions: Collection[str]) -> list[Work]:
    """Those releases and no others as `plan` measures them, whatever the history holds; no source is asked."""
    return in_turn(
        [
            work
            for measure in _measures(plan, dbms)
            for config in measure.configs
            for work in pick_named(measure, config, runnable(bench, measure.dbms), versions)
        ]
    )


def _measures(plan: Plan, dbms: Collection[str]) -> list[Measure]:
    return [measure for measure in plan.measure if not dbms or measure.dbms in dbms]


def _pin_known(bench: Bench, dbms: str) -> None:
    """Write the manifest's pins into the history, so that findings can name releases nobody measured."""
    held = {release.version for release in bench.store.releases(dbms)}
    for known in bench.catalogue.list(dbms):
        if known.state == "pinned" and known.release.digest and known.release.version not in held:
            bench.store.pin_release(known.release)


def runnable(bench: Bench, dbms: str) -> list[Release]:
    """Releases that may be measured, in version order, as last discovered."""
    return [known.release for known in bench.catalogue.list(dbms) if known.state in ("pinned", "new")]


def session_of(bench: Bench, begun: Begun) -> SessionPlan:
    """The blocks of a session; the same for the same record and configuration."""
    benchmark = load_benchmark(begun.measure.benchmark, bench.configs)
    return plan_session(
        session_id=begun.id,
        plan=begun.plan,
        server=load_server(begun.server, bench.configs),
        benchmark=benchmark,
        tests=benchmark.select(begun.measure.tests),
        profile=load_profile(begun.measure.profile, bench.configs),
        releases=begun.work.releases,
        control=begun.control,
        configs=(begun.config,),
        blocks=begun.measure.blocks,
        seed=begun.seed,
        noisy_repeats=begun.measure.noisy_repeats,
    )


def estimates(bench: Bench, plan: Plan, server: str, work: Iterable[Work], workers: int) -> list[Estimate]:
    """Machine time of each piece of work, without downloads."""
    now = datetime.now(UTC)
    return [estimate(session_of(bench, begin(plan, server, item, now)), workers=workers) for item in work]


def left_of(bench: Bench, begun: Begun, workers: int) -> Estimate:
    """What the session still takes."""
    return estimate(session_of(bench, begun), bench.store.block_ids(begun.id), workers)


def measure_all(
    bench: Bench, plan: Plan, server: str, work: Sequence[Work], *, budget_minutes: float | None = None
) -> Measured:
    """Bring in what an earlier job kept on disk and finish what it left, then do `work`, until the budget is used up.

    A release that cannot be fetched or verified, and work of which not even a block fits, is left out and named in
    `incomplete`; the rest is measured.
    """
    later: list[Work] = []
    measured = Measured(incomplete=bring_in(bench.store, bench.state, bench.say))
    started = time.monotonic()

    def left() -> float | None:
        if budget_minutes is None:
            return None
        return budget_minutes * SECONDS_A_MINUTE - (time.monotonic() - started)

    for begun in unfinished(bench.state):
        bench.say(f"resuming the session {begun.id}")
        _run(bench, begun, measured, left())
    for item in work:
        candidates = _still_wanted(bench, item, server)
        if not candidates:
            continue
        (wanted,) = estimates(bench, plan, server, [item], os.cpu_count() or 1)
        if not begins(wanted, left()):
            later.append(item)
            continue
        fetched = _fetch(bench, (*candidates, item.control), measured)
        if item.control.version not in fetched:
            continue
        ready = tuple(fetched[r.version] for r in candidates if r.version in fetched)
        if not ready:
            continue
        if not begins(wanted, left()):  # fetching took what was left
            later.append(item)
            continue
        item = Work(item.measure, item.config, item.line, ready, fetched[item.control.version], item.again)
        _run(bench, begin(plan, server, item, datetime.now(UTC)), measured, left())
    if later and budget_minutes is not None:
        measured.incomplete.append(left_out(later, budget_minutes))
    return measured


def _still_wanted(bench: Bench, work: Work, server: str) -> list[Release]:
    """Candidates that the sessions resumed just now have not given enough blocks; a confirmation wants all of its."""
    if work.again:
        return list(work.candidates)
    measure = work.measure
    measured = bench.store.measured(measure.dbms, work.config, measure.benchmark, measure.lane, server)
    return [release for release in work.candidates if measured.get(release.version, 0) < measure.blocks]


def _fetch(bench: Bench, releases: Iterable[Release], measured: Measured) -> dict[str, Release]:
    """Releases by version, verified and unpacked, their pins in the history."""
    fetched: dict[str, Release] = {}
    for release in releases:
        if release.version in fetched:
            continue
        try:
            fetched[release.version] = bench.catalogue.fetch(release.dbms, release.version).release
        except ReleaseError as error:
            measured.incomplete.append(str(error))
            continue
        bench.store.pin_release(fetched[release.version])
    return fetched


def _check(bench: Bench, phase: Phase, begun: Begun, measured: Measured) -> Quarantine | None:
    """Whether the host is sick; what it took goes into the history.

    When that cannot take it, nothing is measured that it could not take either; but a session that is stored is not
    lost for want of the readings after it.
    """
    checked = bench.canary.check(phase, begun.id)
    if bench.keep_reading:
        for reading in checked.readings:
            bench.keep_reading(reading)
    try:
        for reading in checked.readings:
            bench.store.append_reading(reading)
    except StoreUnavailable as error:
        if phase == "before":
            raise
        measured.incomplete.append(f"{begun.id} was measured, but not how the machine was after it: {error}")
    return checked.quarantine


def _run(bench: Bench, begun: Begun, measured: Measured, budget_s: float | None) -> None:
    plan = session_of(bench, begun)
    watched = plan.lane == "time" and plan.server.canary
    if watched and (sick := _check(bench, "before", begun, measured)):
        measured.incomplete.append(f"{begun.id}: {sick}")
        return
    record = keep_record(bench.state, begun)
    finished = bench.store.block_ids(begun.id)
    stored = next((s for s in bench.store.sessions() if s.id == begun.id), None)

    def sink(session: Session, run: Run, block: Block) -> None:
        bench.store.append_session(session)
        bench.store.append_run(run)
        bench.store.append_block(block)
        if bench.sink:
            bench.sink(session, run, block)
        if block.status == "ok":
            measured.releases[run.release.name] = None

    outcome = run_session(
        plan,
        bench.catalogue,
        sink,
        configs=bench.configs,
        state=bench.state,
        finished=finished,
        session=stored,
        on_event=bench.on_event,
        budget_s=budget_s,
    )
    measured.add(outcome, begun.work)
    if not outcome.stopped:
        record.unlink()
    if watched and (sick := _check(bench, "after", begun, measured)):
        measured.incomplete.append(f"{begun.id} was measured, but {sick}")
