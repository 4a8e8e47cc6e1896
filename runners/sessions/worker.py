"""One block in a worker's thread: its server's directory, its data, and how long each part took."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Flag
from threading import Lock
from typing import Protocol

from filelock import FileLock, Timeout

from history.metrics import MetricRegistry
from history.model import Block, EffectiveSetting
from runners.engines import Engine, EngineError, Installed, engine_for
from runners.engines.effective_settings import differing
from runners.engines.toolchain import linked_toolchain, toolchain_of
from runners.errors import HostBusy, WorkloadFailed
from runners.releases.toolchain import Toolchain
from runners.sessions.block import Interrupted, as_block, measure_block
from runners.sessions.events import BlockDone, DataPrepared, Event, TestDone
from runners.sessions.lanes import TestResult
from runners.sessions.model import DataRecipe, Outcome, PlannedBlock, PlannedRun, SessionPlan
from runners.sessions.phases import LOAD, WAIT, PhaseClock
from runners.sessions.planning import data_bytes, recipe_of
from runners.sessions.prepared_data import Prepared, prepare
from runners.settings import Test
from runners.settings.dbms import RenderedOptions


class Fetches(Protocol):
    """What a session needs of the catalogue of releases."""

    def fetch(self, dbms: str, version: str) -> Installed: ...


@dataclass
class SessionContext:
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
    cores: list[int] = field(default_factory=list)
    """Held by this session, and not in use."""
    begun: set[str] = field(default_factory=set)
    """Runs whose data this session prepared, or found: that of their version, of one scale or another."""
    begin_one: bool = False
    """The next block begins whatever is expected of it."""
    known: list[Block] = field(default_factory=list)
    """Blocks that say how long another one takes."""
    settings: dict[str, dict[str, EffectiveSetting]] = field(default_factory=dict)
    """By run id: of the first block measured here."""
    engines: dict[int, Engine] = field(default_factory=dict)
    """By core, which names a directory that no other session uses either."""
    harness_s: float = 0.0
    toolchains: dict[str, Toolchain] = field(default_factory=dict)
    """By run id: what its row has, or will have. The first word of a run stays, since its row is written once."""

    def tell(self, event: Event) -> None:
        with self.lock:
            self.on_event(event)

    def once_a_run(self, row: Block) -> Block:
        """`row` without its settings where they are those of the run's first block; with a warning where not."""
        if not row.settings:
            return row
        with self.lock:
            first = self.settings.setdefault(row.run_id, row.settings)
        if first is row.settings:
            return row
        if not (changes := differing(first, row.settings)):
            return row.model_copy(update={"settings": {}})
        warning = f"the server had other settings than that of the run's first block: {'; '.join(changes)}"
        return row.model_copy(update={"warnings": (*row.warnings, warning)})

    @contextmanager
    def engine(self, run: PlannedRun) -> Iterator[Engine]:
        """An engine in a directory no other worker uses, stopped whatever happens."""
        installed = self.catalogue.fetch(run.release.dbms, run.release.version)
        with self.lock:
            core = self.cores[0]
            directory = self.state / "servers" / f"slot-{core}"
            directory.parent.mkdir(parents=True, exist_ok=True)
            engine = engine_for(installed, self.options[run.id], directory, state=self.state, sandbox=self.sandbox)
            slot = FileLock(directory.with_suffix(".lock"), timeout=0)
            try:
                slot.acquire()
            except Timeout:
                raise HostBusy(
                    f"another session has its server in {directory} and locks its cores elsewhere than in "
                    f"{tempfile.gettempdir()}; set the same TMPDIR for both, or give each a POINTDROP_STATE of its own"
                ) from None
            self.engines[core] = engine
            self.cores.remove(core)
        try:
            with engine:
                yield engine
        finally:
            slot.release()
            with self.lock:
                del self.engines[core]
                self.cores.insert(0, core)


def _prepared(context: SessionContext, engine: Engine) -> dict[DataRecipe, Prepared]:
    """All data that the tests of a block begin with."""
    plan, tests = context.plan, dict[DataRecipe, list[Test]]()
    for test in plan.tests:
        tests.setdefault(recipe_of(plan, test), []).append(test)
    folder, needed = context.state / "prepared", 2 * data_bytes(plan)
    return {recipe: prepare(engine, recipe, of_it, folder, needed=needed) for recipe, of_it in tests.items()}


def measure(context: SessionContext, block: PlannedBlock) -> Block:
    """One block, in a worker's thread, which lives as long as its servers."""
    plan, clock = context.plan, PhaseClock()
    at = datetime.now(UTC)

    def on_test(test: Test, result: TestResult) -> None:
        with context.lock:
            context.outcome.measured_s += result.seconds
            context.harness_s += result.noise.harness * result.seconds if result.noise else 0.0
        context.tell(TestDone(block, test.name))

    with context.engine(block.run) as engine:
        linked = linked_toolchain(engine)
        try:
            prepared = _prepared(context, engine)
        except (EngineError, WorkloadFailed) as error:
            if context.stop.is_set():
                raise Interrupted from error
            row = as_block(block, at, "failed", f"preparing the data: {error}", {})
        else:
            for data in prepared.values():
                clock.add(WAIT if data.reused else LOAD, data.seconds)
            seconds, reused = sum(data.seconds for data in prepared.values()), all(d.reused for d in prepared.values())
            context.tell(DataPrepared(block.run.release.name, seconds, reused))
            row = measure_block(
                plan, block, engine, prepared, context.metrics, stop=context.stop, clock=clock, on_test=on_test
            )
    with context.lock:
        context.toolchains.setdefault(block.run.id, toolchain_of(engine.installed, linked))
    row = context.once_a_run(row.model_copy(update={"phases": clock.phases()}))
    context.tell(BlockDone(block, row.status, row.reason, time.monotonic() - clock.made))
    return row
