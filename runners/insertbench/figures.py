"""What the roles of a step said, and two samples of the meters, to the field's metrics. Pure.

    begin: client=1 at=12.345678
    end: client=1 transactions=400 begin=12.345678 end=15.345901

Throughput is of the window from the first client's first transaction to the last client's last one. Costs are the mean
rate over the window divided by the throughput, as published: cpupq = cpu % / 100 x cores x 1e6 / rate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from runners.errors import WorkloadFailed
from runners.meters.costs import KB, MB, QPS, RSS, SERVER_CPU, US, divided
from runners.meters.sample import MeterSample, growth
from runners.settings import Step

#: Rows inserted a second.
IPS = "ips"
SLA_SHARE = 0.95
"""Share of the promised insert rate below which a step's queries are void (the field's rule)."""

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
    """Name of the throughput."""
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
        return Rates(IPS, inserted / main.seconds, inserted, inserted / main.seconds)
    inserts = windows["insert"]
    return Rates(
        metric=QPS,
        value=main.transactions / main.seconds,
        operations=main.transactions,
        inserted_per_s=inserts.transactions * step.rows_per_commit / max(float(query_s), inserts.seconds),
        promised_per_s=float(step.rate * clients),
    )


def throughput(rates: Rates) -> dict[str, float]:
    """Rows of the history: a void step has its insert rates, and no query rate that anyone could compare."""
    if rates.promised_per_s is None:
        return {rates.metric: rates.value}
    behind = {IPS: rates.inserted_per_s, "target_ips": rates.promised_per_s}
    return behind if rates.void else {rates.metric: rates.value, **behind}


def efficiency(first: MeterSample, last: MeterSample, rates: Rates) -> dict[str, float]:
    """Costs by metric; a meter that this host does not have gives none, and a void step has none an operation."""
    used = growth(first, last)
    if used.at_s <= 0:
        return {}
    done = 0.0 if rates.void else rates.value * used.at_s
    written = 0.0 if rates.void else (rates.inserted_per_s or rates.value) * used.at_s
    costs: dict[str, float] = {}
    if used.cpu and used.cpu.total_s > 0:
        costs["cpups"] = 100 * used.cpu.busy_s / used.cpu.total_s
        costs |= divided({"cpupq": used.cpu.busy_s}, done / US)
    costs |= divided({SERVER_CPU: used.server_cpu_s, "clientpq": used.client_cpu_s}, done / US)
    costs |= divided({"csps": used.context_switches}, used.at_s) | divided({"cspq": used.context_switches}, done)
    if disk := used.disk:
        costs |= divided({"rpq": disk.reads}, done) | divided({"rkbpq": disk.read_bytes}, done * KB)
        costs |= divided({"wpi": disk.writes}, written) | divided({"wkbpi": disk.written_bytes}, written * KB)
    return costs | divided({RSS: last.rss_bytes}, MB)
