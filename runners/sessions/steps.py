"""One step of the Insert Benchmark on a running server, as rows of the history."""

from __future__ import annotations

from dataclasses import dataclass

from history.metrics import MetricRegistry
from history.model import StatementPlan
from runners.engines import Engine
from runners.insertbench.driver import run_step
from runners.insertbench.figures import IPS, SLA_SHARE, Rates, efficiency, measured_rates, parse_window, throughput
from runners.insertbench.roles import explain_command, prepare_command, role_commands
from runners.meters.costs import QPS, foreign_noise
from runners.meters.proc import Meter
from runners.sessions.lanes import GRACE_S, MS, TestResult, database_size, measurements, storage_warnings
from runners.sessions.prepared_data import EXPLAIN_DEADLINE_S
from runners.settings import InsertSize, Test
from runners.sysbench.driver import run_sysbench
from runners.sysbench.output import SysbenchReport, parse_plans, parse_report

#: Rows a second that even a slow disk with sync on commit takes; past that the step is stuck.
SLOWEST_ROWS_PER_S = 50.0


@dataclass
class StepLane:
    """Steps in their order on one server, each measured from its first transaction to its last."""

    size: InsertSize
    clients: int
    metrics: MetricRegistry

    def measure(self, engine: Engine, test: Test, seed: int) -> TestResult:
        """WorkloadFailed when a role fails, or when nothing was done."""
        assert test.step is not None
        as_account, size, clients = engine.account.command, self.size, self.clients
        if test.step.does == "load":
            run_sysbench(as_account(prepare_command(engine.connection, clients=clients)), deadline_s=GRACE_S)
        meter = Meter(engine.server.pid, engine.data)
        done = run_step(
            role_commands(engine.connection, test, size, clients=clients, seed=seed),
            clients=clients,
            meter=meter,
            as_account=as_account,
            deadline_s=self._deadline_s(test),
        )
        windows = {role: parse_window(text, clients) for role, text in done.outputs.items()}
        rates = measured_rates(test.step, windows, clients=clients, rows=size.rows, query_s=size.query_s)
        reports = {role: parse_report(text) for role, text in done.outputs.items()}
        main = next(iter(reports))
        first, last = done.meter_samples[0], done.meter_samples[-1]
        values = throughput(rates) | efficiency(first, last, rates)
        values["maxop"] = reports[main].latency_max_ms / MS
        values |= database_size(engine)
        result = TestResult(
            measurements=measurements(test, values, self.metrics, rates.operations),
            plans=self._explain(engine, test),
            samples=samples(test.step.rows_per_commit, reports),
            noise=foreign_noise(first, last),
            stalls=done.stalls,
            seconds=windows[main].seconds,
        )
        result.warnings += storage_warnings(test, done.stalls)
        if rates.void:
            result.warnings.append(sla_warning(test.name, rates))
        result.warnings += [
            f"{test.name}: {report.errors} transactions of {role} failed and were repeated"
            for role, report in reports.items()
            if report.errors
        ]
        return result

    def _explain(self, engine: Engine, test: Test) -> tuple[StatementPlan, ...]:
        """The plans of the step's statements on the data as it now is."""
        command = explain_command(engine.connection, test)
        if command is None:
            return ()
        return parse_plans(run_sysbench(engine.account.command(command), deadline_s=EXPLAIN_DEADLINE_S))

    def _deadline_s(self, test: Test) -> float:
        assert test.step is not None
        if test.step.queries:
            return GRACE_S + self.size.query_s
        rows = self.size.replaced.get(test.name, self.size.rows)
        return GRACE_S + rows * self.clients / SLOWEST_ROWS_PER_S


def sla_warning(step: str, rates: Rates) -> str:
    """Why a step's queries do not count."""
    assert rates.promised_per_s
    share = rates.inserted_per_s / rates.promised_per_s
    return (
        f"{step}: {rates.inserted_per_s:.0f} of {rates.promised_per_s:.0f} inserts/s were reached "
        f"({share:.0%}, SLA {SLA_SHARE:.0%}), so its queries do not count"
    )


def samples(rows_per_commit: int, reports: dict[str, SysbenchReport]) -> dict[str, tuple[float, ...]]:
    """By the second, and the distribution of response times: of the measured role, and with its name of each other."""
    by_name: dict[str, tuple[float, ...]] = {}
    main = next(iter(reports))
    for role, report in reports.items():
        prefix = "" if role == main else f"{role}_"
        if role == "query":
            by_name[QPS] = tuple(second.tps for second in report.seconds)
        elif role in ("insert", "delete"):
            name = IPS if role == "insert" else "dps"
            by_name[name] = tuple(second.tps * rows_per_commit for second in report.seconds)
        by_name[f"{prefix}max_ms"] = tuple(second.latency_ms for second in report.seconds)
        by_name[f"{prefix}histogram_ms"] = tuple(value for value, _ in report.histogram)
        by_name[f"{prefix}histogram_count"] = tuple(float(count) for _, count in report.histogram)
    return {name: values for name, values in by_name.items() if values}
