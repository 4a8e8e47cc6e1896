"""One block: every test once, on restored data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Event as Flag

from history.metrics import MetricRegistry
from history.model import Block, BlockStatus, Measurement
from runners.engines import Engine, EngineError
from runners.errors import CountingFailed, WorkloadFailed
from runners.instructions.valgrind import Callgrind
from runners.sessions.lanes import CountedLane, LaneRunner, TestResult, TimeLane
from runners.sessions.model import DataRecipe, PlannedBlock, SessionPlan
from runners.sessions.planning import recipe_of, settle_seconds, workload_seed
from runners.sessions.prepared_data import Prepared, heat
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
    prepared: Mapping[DataRecipe, Prepared],
    metrics: MetricRegistry,
    *,
    stop: Flag,
    on_test: Callable[[Test, TestResult], None],
) -> Block:
    """Restore, start, run every test, stop. A server or workload that fails gives a `failed` block, not an error."""
    started = datetime.now(UTC)
    results: dict[str, TestResult] = {}

    def measure(lane: LaneRunner, test: Test) -> None:
        if stop.is_set():
            raise Interrupted
        result = lane.measure(engine, test, workload_seed(plan, test, block.number))
        if test.reported:
            results[test.name] = result
        on_test(test, result)

    failure = ""
    warnings: tuple[str, ...] = ()
    try:
        if plan.lane == "time":
            warnings = _run_timed(plan, engine, prepared, metrics, measure, stop)
        else:
            _run_counted(plan, engine, prepared, metrics, measure)
    except (EngineError, WorkloadFailed, CountingFailed) as error:
        engine.kill()
        if stop.is_set():
            raise Interrupted from error
        failure = str(error)
    if failure:
        return as_block(block, started, "failed", failure, {}, warnings)
    status, reason = judge(list(results.items()), plan.server)
    return as_block(block, started, status, reason, results, warnings)


Measure = Callable[[LaneRunner, Test], None]


def _run_timed(
    plan: SessionPlan,
    engine: Engine,
    prepared: Mapping[DataRecipe, Prepared],
    metrics: MetricRegistry,
    measure: Measure,
    stop: Flag,
) -> tuple[str, ...]:
    """All tests in their order on one server, as published, storage settled in between. What the server warned of."""
    (data,) = prepared.values()
    engine.restore(data.path)
    engine.start()
    engine.wait_ready()
    if plan.size:
        lane: LaneRunner = StepLane(plan.size, plan.server.threads, metrics)
    else:
        lane = TimeLane(plan.profile, plan.scale, metrics)
    for part in settled_parts(plan.tests):
        if not plan.size:
            heat(engine, plan.scale)
        for test in part:
            measure(lane, test)
        if part[-1].phase in SETTLED_PHASES:
            engine.settle()
            stop.wait(settle_seconds(plan))
    return engine.stop()


def _run_counted(
    plan: SessionPlan,
    engine: Engine,
    prepared: Mapping[DataRecipe, Prepared],
    metrics: MetricRegistry,
    measure: Measure,
) -> None:
    """Each test on a server that was started for it, on data that no other test has touched: what it counts is then
    the same whatever else the plan measures."""
    for test in plan.tests:
        data = prepared[recipe_of(plan, test)]
        engine.restore(data.path)
        callgrind = Callgrind(engine.directory, threads=engine.connection.driver == "mysql")
        engine.start(wrapper=callgrind.wrapper)
        engine.wait_ready()
        heat(engine, plan.scale)
        with engine.purge_paused():
            measure(CountedLane(plan.profile, plan.scale, metrics, callgrind, data.plans), test)
        engine.kill()  # what it leaves is not used again


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
        plans={name: result.plans for name, result in results.items() if result.plans},
        samples={name: result.samples for name, result in results.items() if result.samples},
        warnings=(*warnings, *(text for result in results.values() for text in result.warnings)),
    )
