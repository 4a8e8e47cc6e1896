"""One block: a fresh server on restored data, then every test once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from threading import Event as Flag

from history.metrics import MetricRegistry
from history.model import Block, BlockStatus, Measurement
from runners.engines import Engine, EngineError
from runners.errors import CountingFailed, WorkloadFailed
from runners.instructions.valgrind import Callgrind
from runners.sessions.lanes import CountedLane, LaneRunner, TestResult, TimeLane
from runners.sessions.model import PlannedBlock, SessionPlan
from runners.sessions.planning import settle_seconds, workload_seed
from runners.sessions.prepared_data import Prepared
from runners.sessions.steps import StepLane
from runners.settings import Server, Test
from runners.settings.benchmarks import SETTLED_PHASES, settled_parts

#: One bad test may be this many times above a limit before it spoils a block whose mean is within it.
SINGLE_TEST_TOLERANCE = 3.0


class Interrupted(Exception):
    """The session is being stopped; the block is dropped."""


def measure_block(
    plan: SessionPlan,
    block: PlannedBlock,
    engine: Engine,
    prepared: Prepared,
    metrics: MetricRegistry,
    *,
    stop: Flag,
    on_test: Callable[[Test, TestResult], None],
) -> Block:
    """Restore, start, run every test, stop. A server or workload that fails gives a `failed` block, not an error."""
    started = datetime.now(UTC)
    results: dict[str, TestResult] = {}
    failure = ""
    warnings: tuple[str, ...] = ()
    try:
        engine.restore(prepared.path)
        lane = _start(plan, engine, metrics, prepared)
        for part in settled_parts(plan.tests):
            with engine.purge_paused() if plan.lane == "instructions" else nullcontext():
                for test in part:
                    if stop.is_set():
                        raise Interrupted
                    result = lane.measure(engine, test, workload_seed(plan, test, block.number))
                    if test.reported:
                        results[test.name] = result
                    on_test(test, result)
            if part[-1].phase in SETTLED_PHASES:
                engine.settle()
                if plan.lane == "time":
                    stop.wait(settle_seconds(plan))
        warnings = engine.stop()
    except (EngineError, WorkloadFailed, CountingFailed) as error:
        engine.kill()
        if stop.is_set():
            raise Interrupted from error
        failure = str(error)
    if failure:
        return as_block(block, started, "failed", failure, {}, warnings)
    status, reason = judge(list(results.items()), plan.server)
    return as_block(block, started, status, reason, results, warnings)


def _start(plan: SessionPlan, engine: Engine, metrics: MetricRegistry, prepared: Prepared) -> LaneRunner:
    if plan.lane == "time":
        engine.start()
        engine.wait_ready()
        if plan.size:
            return StepLane(plan.size, plan.server.threads, metrics)
        return TimeLane(plan.profile, plan.scale, metrics)
    callgrind = Callgrind(engine.directory, threads=engine.connection.driver == "mysql")
    engine.start(wrapper=callgrind.wrapper)
    engine.wait_ready()
    return CountedLane(plan.profile, plan.scale, metrics, callgrind, prepared.plans)


def judge(results: list[tuple[str, TestResult]], server: Server) -> tuple[BlockStatus, str]:
    """`noisy` with the reason when others had too much of the machine, over the block or grossly in one test."""
    timed = [(name, result.noise, result.seconds) for name, result in results if result.noise]
    seconds = sum(each for _, _, each in timed)
    for what, limit in (("steal", server.steal_limit), ("foreign", server.foreign_limit)):
        shares = [(getattr(noise, what), each, name) for name, noise, each in timed]
        noise_shares = [(share, each, name) for share, each, name in shares if share is not None]
        if not noise_shares:
            continue
        mean = sum(share * each for share, each, _ in noise_shares) / seconds
        worst, _, where = max(noise_shares)
        if mean > limit or worst > SINGLE_TEST_TOLERANCE * limit:
            label = "steal" if what == "steal" else "foreign load"
            return "noisy", (
                f"{label} {100 * mean:.1f} % of the CPUs over the block (limit {100 * limit:.0f} %), "
                f"at worst {100 * worst:.1f} % in {where}"
            )
    return "ok", ""


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
