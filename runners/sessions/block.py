"""One block: every test once, on restored data."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event as Flag

from history.metrics import MetricRegistry
from history.model import Block, BlockStatus, EffectiveSetting, Measurement
from runners.engines import Engine, EngineError
from runners.engines.toolchain import ask_toolchain
from runners.errors import CountingFailed, ServerDied, WorkloadFailed
from runners.instructions.valgrind import Callgrind
from runners.sessions.judgement import judge
from runners.sessions.lanes import CountedLane, LaneRunner, TestResult, TimeLane
from runners.sessions.model import DataRecipe, PlannedBlock, SessionPlan
from runners.sessions.phases import PhaseClock
from runners.sessions.planning import recipe_of, settle_seconds, workload_seed
from runners.sessions.prepared_data import Prepared, heat
from runners.sessions.steps import StepLane
from runners.settings import Test
from runners.settings.benchmarks import SETTLED_PHASES, settled_parts

#: Seconds from the end of a server's session to the end of the server, or to its new beginning, and between two looks.
RESTART_S = 3.0
RESTART_POLL_S = 0.1


class Interrupted(Exception):
    """The session is being stopped; the block is dropped."""


def measure_block(
    plan: SessionPlan,
    block: PlannedBlock,
    engine: Engine,
    prepared: Mapping[DataRecipe, Prepared],
    metrics: MetricRegistry,
    *,
    stop: Flag,
    clock: PhaseClock,
    on_test: Callable[[Test, TestResult], None],
) -> Block:
    """Run every test. A server or workload that fails gives a `failed` block, not an error."""
    started = datetime.now(UTC)
    work = _BlockRun(plan, block.number, engine, prepared, metrics, stop, clock, on_test)
    try:
        warnings = work.timed() if plan.lane == "time" else work.counted()
    except (EngineError, WorkloadFailed, CountingFailed) as error:
        failure = work.failure(error)
        engine.kill()
        if stop.is_set():
            raise Interrupted from error
        return as_block(block, started, "failed", failure, {})
    status, reason = judge(list(work.results.items()), plan.server)
    row = as_block(block, started, status, reason, work.results, warnings)
    return row.model_copy(update={"settings": work.settings})


@dataclass
class _BlockRun:
    """A block under way."""

    plan: SessionPlan
    number: int
    engine: Engine
    prepared: Mapping[DataRecipe, Prepared]
    metrics: MetricRegistry
    stop: Flag
    clock: PhaseClock
    on_test: Callable[[Test, TestResult], None]
    results: dict[str, TestResult] = field(default_factory=dict)
    settings: dict[str, EffectiveSetting] = field(default_factory=dict)
    """What the server said its options are."""
    incarnation: str = ""
    """Of the timed server, once it was started."""

    def timed(self) -> tuple[str, ...]:
        """All tests in their order on one server, as published, storage settled in between. What the server warned
        of."""
        plan, engine = self.plan, self.engine
        (data,) = self.prepared.values()
        with self.clock.phase("restore"):
            engine.restore(data.path)
        self._check_stop()
        with self.clock.phase("start"):
            engine.start()
            engine.wait_ready()
        # Before anything is warm, so that nothing measured sees it; and before settling sets variables.
        self.settings = engine.effective_settings()
        self.incarnation = engine.incarnation()
        lane: LaneRunner = TimeLane(plan.profile, plan.scale, self.metrics)
        if plan.size:
            lane = StepLane(plan.size, plan.server.threads, self.metrics)
        for part in settled_parts(plan.tests):
            if not plan.size:
                with self.clock.phase("heat"):
                    heat(engine, plan.scale)
            for test in part:
                with self.clock.test(test.name):
                    self._measure(lane, test)
                self._check_same(test.name)
            if part[-1].phase in SETTLED_PHASES:
                with self.clock.phase("settle"):
                    engine.settle()
                    self.stop.wait(settle_seconds(plan))
                self._check_same(f"settling after {part[-1].name}")
        ask_toolchain(engine)
        with self.clock.phase("stop"):
            return engine.stop()

    def counted(self) -> tuple[str, ...]:
        """Each test on a server that was started for it, on data that no other test has touched: what it counts is then
        the same whatever else the plan measures."""
        plan, engine = self.plan, self.engine
        for test in plan.tests:
            with self.clock.test(test.name):
                data = self.prepared[recipe_of(plan, test)]
                engine.restore(data.path)
                self._check_stop()
                callgrind = Callgrind(engine.directory, threads=engine.connection.driver == "mysql")
                engine.start(wrapper=callgrind.wrapper)
                engine.wait_ready()
                heat(engine, plan.scale)
                with engine.purge_paused():
                    self._measure(CountedLane(plan.profile, plan.scale, self.metrics, callgrind, data.plans), test)
                if not self.settings:  # once a block: all its servers are started alike; and after the count
                    self.settings = engine.effective_settings()
                ask_toolchain(engine)  # after the count, which must not know of it
                engine.kill()  # what it leaves is not used again
        return ()

    def _check_stop(self) -> None:
        """Interrupted when the session is being stopped: a server that is started now would not be killed with the
        others."""
        if self.stop.is_set():
            raise Interrupted

    def _measure(self, lane: LaneRunner, test: Test) -> None:
        self._check_stop()
        result = lane.measure(self.engine, test, workload_seed(self.plan, test, self.number))
        if test.reported:
            self.results[test.name] = result
        self.on_test(test, result)

    def failure(self, error: Exception) -> str:
        """Why the block failed: where sysbench lost its connection, that the server crashed."""
        crash = isinstance(error, WorkloadFailed) and self.incarnation and not self.stop.is_set()
        if crash and (restart := self._restart(RESTART_S)):
            return f"{str(error).partition(':')[0]}: {restart}"
        return str(error)

    def _check_same(self, after: str) -> None:
        """ServerDied when the server is no longer the one that was started: later tests find its caches cold."""
        if restart := self._restart():
            raise ServerDied(f"{after}: {restart}")

    def _restart(self, within_s: float = 0.0) -> str:
        """That the server ends or begins anew within so many seconds, and the end of its log; empty when it does
        not."""
        server, until = self.engine.server, time.monotonic() + within_s
        while True:
            try:
                if self.engine.incarnation() != self.incarnation:
                    return f"{server.name} crashed and began anew; the end of its log:\n{server.log_tail()}"
            except EngineError as error:
                return str(error)
            if time.monotonic() >= until:
                return ""
            time.sleep(RESTART_POLL_S)


def as_block(
    block: PlannedBlock,
    started: datetime,
    status: BlockStatus,
    reason: str,
    results: dict[str, TestResult],
    warnings: tuple[str, ...] = (),
) -> Block:
    """The row of the history."""
    rows: list[Measurement] = [row for result in results.values() for row in result.measurements]
    return Block(
        id=block.id,
        run_id=block.run.id,
        number=block.number,
        started=started,
        ended=datetime.now(UTC),
        status=status,
        reason=reason,
        measurements=tuple(rows),
        functions={name: result.functions for name, result in results.items() if result.functions},
        calls={name: result.calls for name, result in results.items() if result.calls},
        plans={name: result.plans for name, result in results.items() if result.plans},
        samples={name: result.samples for name, result in results.items() if result.samples},
        warnings=(*warnings, *(text for result in results.values() for text in result.warnings)),
    )
