"""Two samples of the meters and a rate to costs an operation. Pure.

The field's definition: mean rate over the test divided by its throughput, so the window of the samples may be a
little shorter than that of the operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runners.meters.sample import MeterSample, growth

US = 1e6
KB = 1024
MB = 1024**2
#: Metrics that both benchmarks have.
QPS, SERVER_CPU, RSS = "qps", "cpu_us/o", "rss"


@dataclass(frozen=True)
class Noise:
    """Shares of all CPU time in a window that were not this test's."""

    steal: float | None
    """Taken by other guests of the same hardware."""
    foreign: float | None
    """Used by processes that are neither server, client nor harness."""
    harness: float
    """Used by the harness itself, as a share of one core."""


def per_operation(first: MeterSample, last: MeterSample, operations_per_s: float) -> dict[str, float]:
    """Costs by metric name; a meter this host does not have is absent, and so is everything when nothing was done.

    >>> from runners.meters.sample import Cpu
    >>> a = MeterSample(0.0, Cpu(0.0, 0.0, 0.0), 0, None, 0.0, None, 0.0, None)
    >>> b = MeterSample(2.0, Cpu(1.0, 3.0, 0.0), 8000, None, 0.8, None, 0.0, None)
    >>> per_operation(a, b, 1000.0)
    {'cpu/o': 0.025, 'cpu_us/o': 400.0, 'cs/o': 4.0}
    """
    used = growth(first, last)
    if used.at_s <= 0 or operations_per_s <= 0:
        return {}
    operations = operations_per_s * used.at_s
    costs: dict[str, float] = {}
    if used.cpu and used.cpu.total_s > 0:
        costs["cpu/o"] = 100 * used.cpu.busy_s / used.cpu.total_s / operations_per_s
    costs |= divided({SERVER_CPU: used.server_cpu_s}, operations / US)
    costs |= divided({"cs/o": used.context_switches}, operations)
    if disk := used.disk:
        costs |= divided({"r/o": disk.reads, "w/o": disk.writes, "f/o": disk.flushes}, operations)
        costs |= divided({"rKB/o": disk.read_bytes, "wKB/o": disk.written_bytes}, operations * KB)
        costs |= divided({"f_await": disk.flush_ms}, disk.flushes or 0)
    return costs | divided({RSS: last.rss_bytes}, MB)


def divided(totals: Mapping[str, float | None], by: float) -> dict[str, float]:
    """Each total that is known, divided; none when there is nothing to divide by."""
    return {name: total / by for name, total in totals.items() if total is not None and by > 0}


def foreign_noise(first: MeterSample, last: MeterSample) -> Noise:
    """How much of the machine others had between two samples."""
    used = growth(first, last)
    harness = used.harness_cpu_s / max(used.at_s, 1e-9)
    if not used.cpu or used.cpu.total_s <= 0:
        return Noise(steal=None, foreign=None, harness=harness)
    steal, foreign = used.cpu.steal_s / used.cpu.total_s, None
    if used.server_cpu_s is not None and used.client_cpu_s is not None:
        ours = used.harness_cpu_s + used.server_cpu_s + used.client_cpu_s
        foreign = max(0.0, (used.cpu.busy_s - ours) / used.cpu.total_s)
    return Noise(steal, foreign, harness)
