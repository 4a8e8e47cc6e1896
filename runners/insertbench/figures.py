"""What the roles of a step said, and two readings of the meters, to the field's metrics. Pure.

    begin: client=1 at=12.345678
    end: client=1 transactions=400 begin=12.345678 end=15.345901

Throughput is of the window from the first client's first transaction to the last client's last one. Costs are the mean
rate over the window divided by the throughput, as published: cpupq = cpu % / 100 x cores x 1e6 / rate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from runners.errors import WorkloadFailed
from runners.meters.sample import MeterSample
from runners.settings import Step

SLA_SHARE = 0.95
"""Share of the promised insert rate below which a step's queries are void (the field's rule)."""
US = 1e6
KB = 1024
MB = 1024**2

_END = re.compile(r"^end: client=(\d+) transactions=(\d+) begin=([\d.]+) end=([\d.]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Window:
    """What all clients of one role did: transactions, and when, on the monotonic clock."""

    transactions: int
    begin_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.begin_s


def parse_window(text: str, clients: int) -> Window:
    """The `end:` lines of a role's output; WorkloadFailed unless every client has one."""
    ends = [(int(n), float(begin), float(end)) for _, n, begin, end in _END.findall(text)]
    if len(ends) != clients:
        raise WorkloadFailed(f"{len(ends)} of {clients} clients came to their end")
    return Window(
        transactions=sum(n for n, _, _ in ends),
        begin_s=min(begin for _, begin, _ in ends),
        end_s=max(end for _, _, end in ends),
    )


@dataclass(frozen=True)
class Rates:
    """Throughput of a step: what it is for, and what was inserted behind it."""

    metric: str
    """`ips`, `indexed rows/s` or `qps`."""
    value: float
    """Operations a second: rows inserted, rows indexed, or queries."""
    operations: int
    inserted_per_s: float
    """Rows inserted a second by all clients, behind the queries or in front; 0 for the index step."""
    promised_per_s: float | None = None
    """What a step that queries promises."""

    @property
    def void(self) -> bool:
        """Whether the inserts fell behind, so that the queries had less to compete with than they should."""
        return self.promised_per_s is not None and self.inserted_per_s < SLA_SHARE * self.promised_per_s


def measured_rates(step: Step, windows: dict[str, Window], *, clients: int, rows: int, query_s: int) -> Rates:
    """Throughput from the windows of the roles by name. `rows` are those of each client's table.

    Inserts behind queries count against the step's whole time, or longer if they took longer. WorkloadFailed when
    nothing was done.
    """
    [main, *_] = windows.values()
    if not main.transactions or main.seconds <= 0:
        raise WorkloadFailed("no transaction was done")
    if step.does == "index":
        return Rates("indexed rows/s", rows * clients / main.seconds, rows * clients, 0.0)
    if not step.queries:
        inserted = main.transactions * step.rows_per_commit
        return Rates("ips", inserted / main.seconds, inserted, inserted / main.seconds)
    inserts = windows["insert"]
    return Rates(
        metric="qps",
        value=main.transactions / main.seconds,
        operations=main.transactions,
        inserted_per_s=inserts.transactions * step.rows_per_commit / max(float(query_s), inserts.seconds),
        promised_per_s=float(step.rate * clients),
    )


def throughput(rates: Rates) -> dict[str, float]:
    """Rows of the history: a void step has its insert rates, and no query rate that anyone could compare."""
    if rates.promised_per_s is None:
        return {rates.metric: rates.value}
    behind = {"ips": rates.inserted_per_s, "target_ips": rates.promised_per_s}
    return behind if rates.void else {rates.metric: rates.value, **behind}


def efficiency(first: MeterSample, last: MeterSample, rates: Rates) -> dict[str, float]:
    """Costs by metric; a meter that this host does not have gives none, and a void step has none an operation."""
    seconds = last.at_s - first.at_s
    if seconds <= 0:
        return {}
    costs: dict[str, float] = {}
    done = 0.0 if rates.void else rates.value * seconds
    written = (rates.inserted_per_s or rates.value) * seconds

    def per(name: str, amount: float, operations: float) -> None:
        if operations > 0:
            costs[name] = amount / operations

    if first.cpu and last.cpu and last.cpu.total_s > first.cpu.total_s:
        busy = (last.cpu.busy_s - first.cpu.busy_s) / (last.cpu.total_s - first.cpu.total_s)
        cores = (last.cpu.total_s - first.cpu.total_s) / seconds
        costs["cpups"] = 100 * busy
        per("cpupq", busy * cores * seconds * US, done)
    if first.server_cpu_s is not None and last.server_cpu_s is not None:
        per("cpu_us/o", (last.server_cpu_s - first.server_cpu_s) * US, done)
    if first.client_cpu_s is not None and last.client_cpu_s is not None:
        per("clientpq", (last.client_cpu_s - first.client_cpu_s) * US, done)
    if first.context_switches is not None and last.context_switches is not None:
        switches = last.context_switches - first.context_switches
        costs["csps"] = switches / seconds
        per("cspq", switches, done)
    if first.disk and last.disk:
        per("rpq", last.disk.reads - first.disk.reads, done)
        per("rkbpq", (last.disk.read_bytes - first.disk.read_bytes) / KB, done)
        if not rates.void:
            per("wpi", last.disk.writes - first.disk.writes, written)
            per("wkbpi", (last.disk.written_bytes - first.disk.written_bytes) / KB, written)
    if last.rss_bytes is not None:
        costs["rss"] = last.rss_bytes / MB
    return costs
