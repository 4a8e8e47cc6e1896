"""Two readings and a rate to costs an operation. Pure.

The field's definition: mean rate over the test divided by its throughput, so the window of the readings may be a
little shorter than that of the operations.
"""

from __future__ import annotations

from dataclasses import dataclass

from runners.meters.sample import MeterSample

US = 1e6
KB = 1024
MB = 1024**2


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
    seconds = last.at_s - first.at_s
    if seconds <= 0 or operations_per_s <= 0:
        return {}
    operations = operations_per_s * seconds
    costs: dict[str, float] = {}
    if first.cpu and last.cpu and last.cpu.total_s > first.cpu.total_s:
        busy_pct = 100 * (last.cpu.busy_s - first.cpu.busy_s) / (last.cpu.total_s - first.cpu.total_s)
        costs["cpu/o"] = busy_pct / operations_per_s
    if first.server_cpu_s is not None and last.server_cpu_s is not None:
        costs["cpu_us/o"] = (last.server_cpu_s - first.server_cpu_s) * US / operations
    if first.context_switches is not None and last.context_switches is not None:
        costs["cs/o"] = (last.context_switches - first.context_switches) / operations
    if first.disk and last.disk:
        costs["r/o"] = (last.disk.reads - first.disk.reads) / operations
        costs["rKB/o"] = (last.disk.read_bytes - first.disk.read_bytes) / KB / operations
        costs["w/o"] = (last.disk.writes - first.disk.writes) / operations
        costs["wKB/o"] = (last.disk.written_bytes - first.disk.written_bytes) / KB / operations
        costs |= _flushes(first, last, operations)
    if last.rss_bytes is not None:
        costs["rss"] = last.rss_bytes / MB
    return costs


def _flushes(first: MeterSample, last: MeterSample, operations: float) -> dict[str, float]:
    assert first.disk and last.disk
    if first.disk.flushes is None or last.disk.flushes is None:
        return {}
    flushes = last.disk.flushes - first.disk.flushes
    costs = {"f/o": flushes / operations}
    if flushes and first.disk.flush_ms is not None and last.disk.flush_ms is not None:
        costs["f_await"] = (last.disk.flush_ms - first.disk.flush_ms) / flushes
    return costs


def foreign_noise(first: MeterSample, last: MeterSample) -> Noise:
    """How much of the machine others had between two readings."""
    seconds = max(last.at_s - first.at_s, 1e-9)
    harness_s = last.harness_cpu_s - first.harness_cpu_s
    harness = harness_s / seconds
    if not (first.cpu and last.cpu) or last.cpu.total_s <= first.cpu.total_s:
        return Noise(steal=None, foreign=None, harness=harness)
    total = last.cpu.total_s - first.cpu.total_s
    steal = (last.cpu.steal_s - first.cpu.steal_s) / total
    clocks = [(first.server_cpu_s, last.server_cpu_s), (first.client_cpu_s, last.client_cpu_s)]
    ours = harness_s
    for before, after in clocks:
        if before is None or after is None:
            return Noise(steal=steal, foreign=None, harness=harness)
        ours += after - before
    return Noise(steal=steal, foreign=max(0.0, (last.cpu.busy_s - first.cpu.busy_s - ours) / total), harness=harness)
