"""What is known of a metric before its values are seen: its noise, how it is related to others.

The noise priors are one standard deviation of the log of a value between campaigns that repeated the same build,
server, configuration and test. Throughput and CPU: medians over 159 and 158 repeated series of sysbench on a small
server, published by Small Datum (github.com/mdcallag/mytools, campaigns 2025-08 to 2026-03): QPS 0.5-0.8 % for reads
and 1.2 % for writes, CPU per operation 0.7 % and 2.4 %. Counted instructions: 0.02-0.3 % in our own repeats. The
rest: adjacent point releases of MySQL 5.7 and 8.0 in the published Insert Benchmark series.
A prior weighs little beside sister tests and decides where a line is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

KindName = Literal["throughput", "cpu", "instructions", "traffic", "latency"]


@dataclass(frozen=True)
class Kind:
    """What metrics of one kind have in common."""

    name: KindName
    noise: float
    """Prior standard deviation of a log value between two campaigns."""
    noise_writes: float
    """The same for tests that write."""
    sisters: float
    """Degrees of freedom that the sister tests' noise has in a test's own: few where tests differ by orders."""
    slab: float
    """Typical size of a real change, in log units: width of the Student t from which new levels are drawn."""
    transient: float
    """Prior probability that one release's value is an outlier which the next does not share."""
    shows: float
    """Prior probability that a change of the product shows in this kind of metric."""
    smallest_change: float
    """A smaller relative change is none, where the metric's own entry does not say otherwise."""


KINDS: dict[KindName, Kind] = {
    "throughput": Kind("throughput", 0.008, 0.012, 5.0, 0.06, 0.01, 0.95, 0.012),
    "cpu": Kind("cpu", 0.010, 0.020, 5.0, 0.06, 0.01, 0.8, 0.012),
    "instructions": Kind("instructions", 0.0015, 0.002, 3.0, 0.03, 0.002, 0.8, 0.005),
    "traffic": Kind("traffic", 0.02, 0.03, 1.0, 0.15, 0.02, 0.2, 0.02),
    "latency": Kind("latency", 0.06, 0.08, 2.0, 0.20, 0.05, 0.2, 0.10),
}

#: What a metric measures. Two metrics of one resource tell the same story twice, so only the first of a panel is
#: evidence; one that is not listed is a resource of its own.
RESOURCES: dict[str, tuple[str, ...]] = {
    "throughput": ("qps", "ips", "tps", "o/s", "rows/s", "indexed rows/s"),
    "cpu": ("cpu_us/o", "cpu/o", "cpupq", "cpu"),
    "instructions": ("insn/o",),
    "context switches": ("cs/o", "cspq"),
    "reads": ("r/o", "rKB/o", "rpq", "rkbpq"),
    "writes": ("w/o", "wKB/o", "wkbpi", "wpi"),
    "flushes": ("f/o",),
    # Per second, they repeat the throughput; tails and maxima of one run are too noisy to be evidence of anything.
    "no evidence": ("cpups", "csps", "maxop", "p50", "p95", "p99", "f_await", "max", "avg", "target_ips", "clientpq"),
}
NO_EVIDENCE = "no evidence"
_RESOURCE = {metric: resource for resource, metrics in RESOURCES.items() for metric in metrics}
_KIND_OF: dict[str, KindName] = {
    "throughput": "throughput",
    "cpu": "cpu",
    "instructions": "instructions",
    NO_EVIDENCE: "latency",
}
_WRITES = ("update", "insert", "delete", "write", "l.i", "l.x", "read-write")


def kind_of(metric: str) -> Kind:
    """The kind of a metric by its name; an unknown one is `traffic`, which is judged with care.

    >>> kind_of("qps").name, kind_of("cpu/o").name, kind_of("wKB/o").name
    ('throughput', 'cpu', 'traffic')
    """
    return KINDS[_KIND_OF.get(resource_of(metric), "traffic")]


def resource_of(metric: str) -> str:
    """What a metric measures.

    >>> resource_of("ips"), resource_of("wKB/o"), resource_of("rss")
    ('throughput', 'writes', 'rss')
    """
    return _RESOURCE.get(metric, metric)


def evidence(metrics: Sequence[str]) -> list[bool]:
    """Which of a panel's metrics are evidence: the first of each resource.

    >>> evidence(["qps", "o/s", "cpu/o", "p99", "wKB/o", "w/o"])
    [True, False, True, False, True, False]
    """
    seen = {NO_EVIDENCE}
    found = []
    for metric in metrics:
        resource = resource_of(metric)
        found.append(resource not in seen)
        seen.add(resource)
    return found


def writes(test: str) -> bool:
    """Whether a test writes, by its name: writes are noisier.

    >>> writes("update-index.range100"), writes("point-query.range100"), writes("l.i1")
    (True, False, True)
    """
    return test.startswith(_WRITES)


def noise_prior(metric: str, test: str) -> float:
    """Prior standard deviation of the log of one value."""
    kind = kind_of(metric)
    return kind.noise_writes if writes(test) else kind.noise
