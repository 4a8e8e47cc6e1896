"""Runs a session: every block in its turn, each handed over as soon as it is finished.

    plan = plan_session(session_id="...", releases=..., control=..., ...)
    outcome = run_session(plan, catalogue, sink, configs=configs, state=state, finished=store.block_ids("..."))

The time lane has the whole host and one block at a time; the instructions lane, which other load does not disturb, a
block on each core that is free.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from history.errors import BadSettings
from history.metrics import load_metrics
from history.model import Block, Run, Session
from runners.cores import Cores
from runners.engines import EngineError, stop_leftovers
from runners.errors import HostChanged, OutOfSpace
from runners.host import host_name
from runners.meters.fingerprint import host_fingerprint
from runners.releases import ReleaseError
from runners.sessions.bundle import bundle_of, workload
from runners.sessions.estimates import estimate, needed_s, newest
from runners.sessions.events import (
    BlockStarted,
    Event,
    RunSkipped,
    SessionDone,
    SessionStarted,
)
from runners.sessions.model import Outcome, PlannedBlock, PlannedRun, SessionPlan
from runners.sessions.planning import repeat_of
from runners.sessions.prepared_data import prepared_versions, prune
from runners.sessions.worker import Fetches, SessionContext, measure
from runners.settings.dbms import ConfigNotRunnable, DbmsSettings, RenderedOptions, Sizing, load_dbms, render

#: Connections beside the workload's: ours, for settling and explaining.
SPARE_CONNECTIONS = 20

Sink = Callable[[Session, Run, Block], None]
"""Takes one finished block; when it returns, the block is safe."""


def run_session(
    plan: SessionPlan,
    catalogue: Fetches,
    sink: Sink,
    *,
    configs: Path,
    state: Path,
    finished: Collection[str] = (),
    session: Session | None = None,
    toolchains: Mapping[str, dict[str, str]] | None = None,
    known: Sequence[Block] = (),
    on_event: Callable[[Event], None] = lambda event: None,
    budget_s: float | None = None,
    begin_one: bool = False,
    cores: Cores | None = None,
    sandbox: bool = False,
) -> Outcome:
    """Measure every block of `plan` that is not in `finished`; `sink` gets each one as it ends, in this thread.

    `session` is the stored row of a session that is resumed, `toolchains` those of its stored runs, by id. No block is
    begun that cannot be expected to end within `budget_s` seconds, by `known` blocks of this host and those of this
    session; the outcome then says so in `stopped`.
    With `begin_one` the first one begins whatever is expected of it: what it takes is known then. Ctrl-C stops the
    servers, drops the blocks under way and is passed on. With `sandbox` every program of the releases runs inside
    bubblewrap. `cores` are those of this host.

    Raises HostBusy when other sessions hold the cores it needs (one for counting, all for timing), HostChanged when the
    machine is no longer what it was when a resumed session began, BadSettings when a config is wrong.
    """
    started = time.monotonic()
    settings = load_dbms(plan.control.dbms, configs)
    outcome = Outcome(planned=len(plan.blocks))
    options: dict[str, RenderedOptions] = {}
    for run in plan.runs:
        try:
            options[run.id] = rendered_options(plan, run, settings)
        except ConfigNotRunnable as error:
            outcome.skipped[run.id] = str(error)
    context = SessionContext(plan, catalogue, options, outcome, load_metrics(configs), state, on_event, sandbox)
    context.toolchains |= toolchains or {}
    queue = deque(block for block in plan.blocks if block.id not in finished and block.run.id in options)
    host = cores or Cores()
    with host.whole_host() if plan.lane == "time" else host.free(len(queue)) as held:
        context.cores, context.known, context.begin_one = list(held.numbers), list(known), begin_one
        outcome.workers = len(held.numbers) if plan.lane == "instructions" else 1
        state.mkdir(parents=True, exist_ok=True)
        for left in stop_leftovers(state):
            outcome.warnings.append(f"stopped a server an earlier run had left behind: {left.directory}")
        current = _session(plan, state)
        if session is not None and session.fingerprint != current.fingerprint:
            raise HostChanged(_change(session, current))
        session = session or current
        end = math.inf if budget_s is None else started + budget_s
        outcome.already_done = sum(block.id in finished for block in plan.blocks)
        kept = prepared_versions(state / "prepared", plan.control.dbms)
        context.begun = {run.id for run in plan.runs if run.release.version in kept}
        expected = estimate(plan, finished, outcome.workers, known, kept)
        context.tell(SessionStarted(plan, expected, outcome.already_done))
        for run_id, reason in outcome.skipped.items():
            context.tell(RunSkipped(run_id, reason))
        try:
            _work(context, queue, sink, session, end, set(finished))
        finally:
            with held.alone() as alone:
                if alone:  # what is removed, another session may be copying
                    prune(state / "prepared")
    outcome.wall_s = time.monotonic() - started
    outcome.harness_cpu = context.harness_s / outcome.measured_s if outcome.measured_s and plan.lane == "time" else None
    context.tell(SessionDone(outcome))
    return outcome


def rendered_options(plan: SessionPlan, run: PlannedRun, settings: DbmsSettings) -> RenderedOptions:
    """The options of a run. ConfigNotRunnable when its release cannot run the config."""
    held = next((config for config in plan.held if config.name == run.config), None)
    name = held.base if held else run.config
    overlays = ("instructions",) if plan.lane == "instructions" else ()
    options = render(settings, name, run.release.version, _sizing(plan), overlays)
    return options.holding(run.config, dict(held.options)) if held else options


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


def _work(
    context: SessionContext,
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
                    load = queue[0].run.id not in context.begun
                    needed = needed_s(plan, newest(context.known), load=load)
                    if time.monotonic() + needed > end and not context.begin_one:
                        outcome.stopped = (
                            f"time is up with {len(queue) + len(under_way)} blocks left; run it again to go on"
                        )
                        break
                    block = queue.popleft()
                    if block.run.id in outcome.skipped:
                        continue
                    context.tell(BlockStarted(block))
                    context.begun.add(block.run.id)
                    context.begin_one = False
                    under_way[pool.submit(measure, context, block)] = block
                if not under_way:
                    break
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    block = under_way.pop(future)
                    row = _finished(context, future, block)
                    if row is None:
                        continue
                    sink(session, _run_row(context, session, block.run), row)
                    context.known.append(row)
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


def _finished(context: SessionContext, future: Future[Block], block: PlannedBlock) -> Block | None:
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


def _run_row(context: SessionContext, session: Session, run: PlannedRun) -> Run:
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
        toolchain=context.toolchains.get(run.id, {}),
    )
