"""Runs a session: every block in its turn, each handed over as soon as it is finished.

    plan = plan_session(session_id="...", releases=..., control=..., ...)
    outcome = run_session(plan, catalogue, sink, configs=configs, state=state, finished=store.block_ids("..."))

The time lane has one block at a time; the instructions lane, which other load does not disturb, one a core.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import Event as Flag
from threading import Lock
from typing import Protocol

from filelock import FileLock, Timeout

from history.errors import BadSettings
from history.metrics import MetricRegistry, load_metrics
from history.model import Block, Run, Session
from runners.engines import Engine, EngineError, Installed, engine_for, stop_leftovers
from runners.errors import HostBusy, HostChanged, OutOfSpace, WorkloadFailed
from runners.host import host_name
from runners.meters.fingerprint import host_fingerprint
from runners.releases import ReleaseError
from runners.sessions.block import Interrupted, as_block, measure_block
from runners.sessions.bundle import bundle_of, workload
from runners.sessions.events import (
    BlockDone,
    BlockStarted,
    DataPrepared,
    Event,
    RunSkipped,
    SessionDone,
    SessionStarted,
    TestDone,
)
from runners.sessions.lanes import TestResult
from runners.sessions.model import Outcome, PlannedBlock, PlannedRun, SessionPlan
from runners.sessions.planning import DATA_SEED, block_seconds, data_bytes, estimate, repeat_of
from runners.sessions.prepared_data import DataRecipe, prepare, prune
from runners.settings import Test
from runners.settings.dbms import ConfigNotRunnable, RenderedOptions, Sizing, load_dbms, render

#: Connections beside the workload's: ours, for settling and explaining.
SPARE_CONNECTIONS = 20
#: One measuring session a host, whoever runs it.
HOST_LOCK = Path(tempfile.gettempdir()) / "pointdrop-measuring.lock"

Sink = Callable[[Session, Run, Block], None]
"""Takes one finished block; when it returns, the block is safe."""


class Fetches(Protocol):
    """What a session needs of the catalogue of releases."""

    def fetch(self, dbms: str, version: str) -> Installed: ...


@dataclass
class _SessionContext:
    """What the workers share."""

    plan: SessionPlan
    catalogue: Fetches
    options: dict[str, RenderedOptions]
    """By run id."""
    outcome: Outcome
    metrics: MetricRegistry
    state: Path
    on_event: Callable[[Event], None]
    sandbox: bool = False
    stop: Flag = field(default_factory=Flag)
    lock: Lock = field(default_factory=Lock)
    engines: dict[int, Engine] = field(default_factory=dict)
    """By slot, the number of a directory of their own."""
    harness_s: float = 0.0

    def tell(self, event: Event) -> None:
        with self.lock:
            self.on_event(event)

    @contextmanager
    def engine(self, run: PlannedRun) -> Iterator[Engine]:
        """An engine in a directory no other worker uses, stopped whatever happens."""
        installed = self.catalogue.fetch(run.release.dbms, run.release.version)
        with self.lock:
            slot = next(number for number in count() if number not in self.engines)
            directory = self.state / "servers" / f"slot-{slot}"
            directory.parent.mkdir(parents=True, exist_ok=True)
            engine = engine_for(installed, self.options[run.id], directory, state=self.state, sandbox=self.sandbox)
            self.engines[slot] = engine
        try:
            with engine:
                yield engine
        finally:
            with self.lock:
                del self.engines[slot]


def run_session(
    plan: SessionPlan,
    catalogue: Fetches,
    sink: Sink,
    *,
    configs: Path,
    state: Path,
    finished: Collection[str] = (),
    session: Session | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    budget_s: float | None = None,
    host_lock: Path = HOST_LOCK,
    sandbox: bool = False,
) -> Outcome:
    """Measure every block of `plan` that is not in `finished`; `sink` gets each one as it ends, in this thread.

    `session` is the stored row of a session that is resumed. No block is begun that cannot be expected to end within
    `budget_s` seconds; the outcome then says so in `stopped`. Ctrl-C stops the servers, drops the blocks under way and
    is passed on. With `sandbox` every program of the releases runs inside bubblewrap.

    Raises HostBusy when another session measures on this host, HostChanged when the machine is no longer what it was
    when a resumed session began, BadSettings when a config is wrong.
    """
    started = time.monotonic()
    settings = load_dbms(plan.control.dbms, configs)
    outcome = Outcome(planned=len(plan.blocks))
    options: dict[str, RenderedOptions] = {}
    for run in plan.runs:
        try:
            overlays = ("instructions",) if plan.lane == "instructions" else ()
            options[run.id] = render(settings, run.config, run.release.version, _sizing(plan), overlays)
        except ConfigNotRunnable as error:
            outcome.skipped[run.id] = str(error)
    outcome.workers = (os.cpu_count() or 1) if plan.lane == "instructions" else 1
    context = _SessionContext(plan, catalogue, options, outcome, load_metrics(configs), state, on_event, sandbox)
    with _only_session(host_lock):
        state.mkdir(parents=True, exist_ok=True)
        for left in stop_leftovers(state):
            outcome.warnings.append(f"stopped a server an earlier run had left behind: {left.directory}")
        current = _session(plan, state)
        if session is not None and session.fingerprint != current.fingerprint:
            raise HostChanged(_change(session, current))
        session = session or current
        end = math.inf if budget_s is None else started + budget_s
        queue = deque(block for block in plan.blocks if block.id not in finished and block.run.id in options)
        outcome.already_done = sum(block.id in finished for block in plan.blocks)
        context.tell(SessionStarted(plan, estimate(plan, finished, outcome.workers), outcome.already_done))
        for run_id, reason in outcome.skipped.items():
            context.tell(RunSkipped(run_id, reason))
        try:
            _work(context, queue, sink, session, end, set(finished))
        finally:
            prune(state / "prepared")
    outcome.wall_s = time.monotonic() - started
    outcome.harness_cpu = context.harness_s / outcome.measured_s if outcome.measured_s and plan.lane == "time" else None
    context.tell(SessionDone(outcome))
    return outcome


def _sizing(plan: SessionPlan) -> Sizing:
    server = plan.server
    return Sizing(
        pool_mib=server.pool_mib,
        log_mib=server.log_mib,
        cores=server.cores or os.cpu_count() or 1,
        connections=plan.scale.threads + SPARE_CONNECTIONS,
    )


def _session(plan: SessionPlan, state: Path) -> Session:
    return Session(
        id=plan.session_id,
        host=host_name(),
        server=plan.server.name,
        plan=plan.plan,
        fingerprint=host_fingerprint(state, workload(plan), counted=plan.lane == "instructions"),
        seed=plan.seed,
        started=datetime.now(UTC),
        control=plan.control.version,
    )


def _change(stored: Session, current: Session) -> str:
    before, now = stored.fingerprint.facts, current.fingerprint.facts
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    facts = "; ".join(f"{name}: {before.get(name, 'unknown')} -> {now.get(name, 'unknown')}" for name in changed)
    return f"session {stored.id} cannot go on, since this machine changed ({facts}); give it up and begin a new one"


@contextmanager
def _only_session(path: Path) -> Iterator[None]:
    try:
        with FileLock(path, timeout=0, mode=0o666):
            yield
    except Timeout:
        raise HostBusy(f"another session measures on this host ({path} is locked); wait for it to end") from None


def _work(
    context: _SessionContext,
    queue: deque[PlannedBlock],
    sink: Sink,
    session: Session,
    end: float,
    taken: set[str],
) -> None:
    """Keep the workers busy until the queue is empty or time is up."""
    plan, outcome, under_way = context.plan, context.outcome, dict[Future[Block], PlannedBlock]()
    planned = max(block.number for block in plan.blocks)
    with ThreadPoolExecutor(outcome.workers, thread_name_prefix="block") as pool:
        try:
            while queue or under_way:
                while queue and len(under_way) < outcome.workers and not outcome.stopped:
                    if time.monotonic() + block_seconds(plan) > end:
                        outcome.stopped = (
                            f"time is up with {len(queue) + len(under_way)} blocks left; run it again to go on"
                        )
                        break
                    block = queue.popleft()
                    if block.run.id in outcome.skipped:
                        continue
                    context.tell(BlockStarted(block))
                    under_way[pool.submit(_measure, context, block)] = block
                if not under_way:
                    break
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    block = under_way.pop(future)
                    row = _finished(context, future, block)
                    if row is None:
                        continue
                    sink(session, _run_row(context, session, block.run), row)
                    taken.add(row.id)
                    _count(outcome, row)
                    if row.status != "ok":
                        again = repeat_of(block.run, planned, plan.noisy_repeats, taken)
                        if again:
                            taken.add(again.id)
                            queue.append(again)
        except BaseException:
            context.stop.set()
            for engine in list(context.engines.values()):
                with suppress(EngineError):
                    engine.kill()
            raise


def _finished(context: _SessionContext, future: Future[Block], block: PlannedBlock) -> Block | None:
    """The block's row; None when its release cannot run at all, or the disk is full."""
    try:
        return future.result()
    except (BadSettings, ReleaseError) as error:
        context.outcome.skipped[block.run.id] = str(error)
        context.tell(RunSkipped(block.run.id, str(error)))
    except OutOfSpace as error:
        context.outcome.stopped = str(error)
    return None


def _count(outcome: Outcome, row: Block) -> None:
    if row.status == "ok":
        outcome.done += 1
    elif row.status == "noisy":
        outcome.noisy += 1
    else:
        outcome.failed += 1
        outcome.warnings.append(f"{row.id}: {row.reason}")


def _run_row(context: _SessionContext, session: Session, run: PlannedRun) -> Run:
    options = context.options[run.id]
    return Run(
        id=run.id,
        session_id=session.id,
        release=run.release,
        config=run.config,
        benchmark=context.plan.benchmark.name,
        profile=context.plan.profile.name,
        lane=context.plan.lane,
        options=options.text,
        bundle=bundle_of(context.plan, run, options),
    )


def _measure(context: _SessionContext, block: PlannedBlock) -> Block:
    """One block, in a worker's thread, which lives as long as its servers."""
    plan, began = context.plan, time.monotonic()
    at = datetime.now(UTC)

    def on_test(test: Test, result: TestResult) -> None:
        with context.lock:
            context.outcome.measured_s += result.seconds
            context.harness_s += result.noise.harness * result.seconds if result.noise else 0.0
        context.tell(TestDone(block, test.name))

    with context.engine(block.run) as engine:
        try:
            recipe = DataRecipe(None) if plan.size else DataRecipe(plan.scale, plan.profile.age_updates, DATA_SEED)
            prepared = prepare(engine, recipe, plan.tests, context.state / "prepared", needed=2 * data_bytes(plan))
        except (EngineError, WorkloadFailed) as error:
            if context.stop.is_set():
                raise Interrupted from error
            row = as_block(block, at, "failed", f"preparing the data: {error}", {})
        else:
            context.tell(DataPrepared(block.run.release.name, prepared.seconds, prepared.reused))
            row = measure_block(plan, block, engine, prepared, context.metrics, stop=context.stop, on_test=on_test)
    context.tell(BlockDone(block, row.status, row.reason, time.monotonic() - began))
    return row
