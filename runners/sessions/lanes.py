"""One test on a running server, in either lane: what was measured, as rows of the history."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from history.metrics import MetricRegistry
from history.model import TOP_FUNCTIONS, FunctionCost, Measurement, StatementPlan
from runners.engines import Engine
from runners.errors import WorkloadFailed
from runners.instructions.valgrind import Callgrind
from runners.meters.costs import QPS, SERVER_CPU, Noise, foreign_noise, per_operation
from runners.meters.perf import EVENTS, PerfStat, supported_events
from runners.meters.proc import Meter, directory_bytes
from runners.meters.progress import ProgressWatch
from runners.meters.sample import MeterSample
from runners.meters.stalls import CAUSE_WORDS, Stalls
from runners.sessions.planning import counted_events, test_seconds
from runners.sessions.prepared_data import explain
from runners.settings import Profile, Scale, Test
from runners.sysbench.commands import count_command, run_command
from runners.sysbench.driver import run_sysbench
from runners.sysbench.output import SysbenchReport, parse_report, parse_second

GB = 1e9
MS = 1e3
#: The last reading is taken this long before a test ends, while the server's sessions still exist.
LAST_READING_BEFORE_END_S = 0.05
#: Seconds a test may take beyond its duration: connecting, preparing statements, and a server that stalls.
GRACE_S = 60.0
#: Share of a test above which it is worth a warning that everything waited for storage.
STORAGE_WAIT_SHARE = 0.02
#: Seconds a test may take under callgrind.
COUNT_DEADLINE_S = 1_800.0


@dataclass
class TestResult:
    """What one test gave."""

    measurements: list[Measurement] = field(default_factory=list)
    functions: tuple[FunctionCost, ...] = ()
    plans: tuple[StatementPlan, ...] = ()
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    noise: Noise | None = None
    stalls: Stalls | None = None
    """None where time is not measured."""
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)

    __test__ = False  # pytest would take the class for one of its own


class LaneRunner(Protocol):
    """How a test is measured on a started engine."""

    def measure(self, engine: Engine, test: Test, seed: int) -> TestResult: ...


def measurements(test: Test, values: dict[str, float], metrics: MetricRegistry, operations: int) -> list[Measurement]:
    """Rows for `values` by metric, with the units and directions of `configs/metrics.toml`."""
    return [
        Measurement(
            test=test.name,
            group=test.group,
            metric=name,
            value=value,
            unit=metrics[name].unit,
            better=test.better if metrics[name].kind == "throughput" else metrics[name].better,
            operations=operations,
        )
        for name, value in values.items()
    ]


def storage_warnings(test: Test, stalls: Stalls | None) -> list[str]:
    """That a test stood still while it waited for storage: product and disk did that, so it condemns nothing."""
    if stalls is None or stalls.storage_s <= STORAGE_WAIT_SHARE * stalls.window_s:
        return []
    return [f"{test.name}: {CAUSE_WORDS['storage']} for {stalls.storage_s:.1f} of {stalls.window_s:.1f} s"]


def database_size(engine: Engine) -> dict[str, float]:
    """The data directory as it is, by metric."""
    return {"dbgb": directory_bytes(engine.data) / GB}


def operations_of(test: Test, statements: int, events: int, scale: Scale) -> float:
    """Operations in so many statements: a statement each, or `rows_per_operation` rows of each scan."""
    if test.rows_per_operation:
        return events * scale.rows / test.rows_per_operation
    return float(statements)


def rate_of(test: Test, report: SysbenchReport, scale: Scale) -> float:
    """Operations a second.

    A scan can be as long as the warm-up, and a test be a handful of them. The one that began in the warm-up would count
    whole against the part of it that came after, and sysbench prints the rate with two decimals, so 0.09. So scans are
    divided by the time they took themselves.
    """
    operations = operations_of(test, report.queries, report.events, scale)
    if test.rows_per_operation:
        return operations / (report.latency_sum_ms / MS / scale.threads)
    return operations / report.seconds_measured


@dataclass
class TimeLane:
    """A test for a number of seconds, with meters read on sysbench's own seconds."""

    profile: Profile
    scale: Scale
    metrics: MetricRegistry

    def measure(self, engine: Engine, test: Test, seed: int) -> TestResult:
        """WorkloadFailed when sysbench fails, or when no statement was executed."""
        warmup, seconds = self.profile.warmup_s, test_seconds(test, self.profile)
        meter = Meter(engine.server.pid, engine.data)
        progress = ProgressWatch(meter)
        meter_samples: list[MeterSample] = []
        perf, rates = PerfStat(supported_events()), dict[str, float]()

        def on_line(line: str) -> None:
            second = parse_second(line)
            if second and warmup <= second.at_s < warmup + seconds:
                if not meter_samples:
                    progress.start()
                    perf.start(meter.pids())
                meter_samples.append(meter.read())

        def on_wake() -> None:
            meter_samples.append(meter.read())
            rates.update(perf.stop())

        command = run_command(engine.connection, test, self.scale, seconds=seconds, warmup_s=warmup, seed=seed)
        try:
            text = run_sysbench(
                engine.account.command(command),
                deadline_s=warmup + seconds + GRACE_S,
                on_start=meter.watch_client,
                on_line=on_line,
                wake_at_s=warmup + seconds - LAST_READING_BEFORE_END_S,
                on_wake=on_wake,
            )
        finally:
            perf.stop()
            stalls = progress.stop()
        report = parse_report(text)
        if not report.queries:
            raise WorkloadFailed(f"{test.name} executed no statement in {seconds} s")
        result = self._result(engine, test, report, meter_samples, rates)
        result.stalls = stalls
        result.warnings += storage_warnings(test, stalls)
        return result

    def _result(
        self,
        engine: Engine,
        test: Test,
        report: SysbenchReport,
        meter_samples: list[MeterSample],
        rates: dict[str, float],
    ) -> TestResult:
        operations = operations_of(test, report.queries, report.events, self.scale)
        rate = rate_of(test, report, self.scale)
        values = {QPS: rate}
        result = TestResult(seconds=float(test_seconds(test, self.profile)))
        result.plans = explain(engine, test, self.scale) if test.reported else ()
        if len(meter_samples) >= 2:
            values |= per_operation(meter_samples[0], meter_samples[-1], rate)
            result.noise = foreign_noise(meter_samples[0], meter_samples[-1])
        else:
            result.warnings.append(f"{test.name}: too short for the meters; it has throughput only")
        values |= {EVENTS[event]: per_s / rate for event, per_s in rates.items()}
        values |= database_size(engine)
        result.measurements = measurements(test, values, self.metrics, round(operations))
        per_statement = operations / report.queries
        counted = [second for second in report.seconds if second.at_s > self.profile.warmup_s]
        result.samples = {
            QPS: tuple(second.qps * per_statement for second in counted),
            "p99_ms": tuple(second.latency_ms for second in counted),
            "histogram_ms": tuple(value for value, _ in report.histogram),
            "histogram_count": tuple(float(count) for _, count in report.histogram),
            **_costs_by_second(meter_samples, rate),
        }
        if report.errors:
            result.warnings.append(f"{test.name}: {report.errors} statements failed and were repeated")
        return result


def _costs_by_second(meter_samples: list[MeterSample], rate: float) -> dict[str, tuple[float, ...]]:
    """Server CPU between successive meter_samples, in microseconds an operation at the test's mean rate."""
    pairs = pairwise(meter_samples)
    costs = [per_operation(first, last, rate) for first, last in pairs if last.at_s - first.at_s > 0.5]
    by_second = tuple(cost[SERVER_CPU] for cost in costs if SERVER_CPU in cost)
    return {SERVER_CPU: by_second} if by_second else {}


@dataclass
class CountedLane:
    """A fixed number of events, counted under callgrind."""

    profile: Profile
    scale: Scale
    metrics: MetricRegistry
    callgrind: Callgrind
    plans: dict[str, tuple[StatementPlan, ...]]
    """By test, on the data as loaded: explaining under callgrind is slow."""

    def measure(self, engine: Engine, test: Test, seed: int) -> TestResult:
        """WorkloadFailed when sysbench fails; CountingFailed when there is no usable count."""
        events = counted_events(test, self.profile)
        own = -1 if engine.connection.driver == "pgsql" else engine.server.pid
        command = count_command(
            engine.connection,
            test,
            self.scale,
            pid=own,
            events=events,
            vgdb=self.callgrind.vgdb,
            seed=seed,
        )
        started = time.monotonic()
        report = parse_report(run_sysbench(engine.account.command(command), deadline_s=COUNT_DEADLINE_S))
        seconds = time.monotonic() - started
        if report.counted is None or not report.counted.statements:
            raise WorkloadFailed(f"{test.name} ended before its {events} events were counted")
        profile = self.callgrind.take(report.counted.pid)
        operations = operations_of(test, report.counted.statements, events, self.scale)
        return TestResult(
            measurements=measurements(test, {"insn/o": profile.total / operations}, self.metrics, round(operations)),
            functions=tuple(
                FunctionCost(function=function, object=obj, insn_per_op=cost / operations)
                for function, obj, cost in profile.top(TOP_FUNCTIONS)
            ),
            plans=self.plans.get(test.name, ()),
            seconds=seconds,
        )
