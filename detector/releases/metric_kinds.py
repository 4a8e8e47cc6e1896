"""What is known of a metric before its values are seen: its noise, how it is related to others.

The noise priors are one standard deviation of the log of a value between sessions that repeated the same build,
server, configuration and test. Throughput and CPU: medians over 159 and 158 repeated series of sysbench on a small
server, published by Small Datum (github.com/mdcallag/mytools, sessions of 2025-08 to 2026-03): QPS 0.5-0.8 % for reads
and 1.2 % for writes, CPU per operation 0.7 % and 2.4 %. Counted instructions: in our own
nights of Postgres and MySQL blocks of one release 0.00-0.03 % for reads and 0.1 % for writes, releases of Postgres with
the same code, each with data of its own, 0.02-0.1 %. The rest: adjacent point releases of MySQL 5.7 and 8.0 in the
published Insert Benchmark series.
A prior weighs little beside sister tests and decides where a line is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from history.metrics import Metric, MetricKind


@dataclass(frozen=True)
class Kind:
    """What metrics of one kind have in common."""

    noise: float
    """Prior standard deviation of a log value between two sessions."""
    noise_writes: float
    """The same for tests that write."""
    sisters: float
    """Degrees of freedom that the sister tests' noise has in a test's own: few where tests differ by orders."""
    slab: float
    """Typical size of a real change, in log units: width of the Cauchy density that new levels are drawn from."""
    transient: float
    """Prior probability that one release's value is an outlier which the next does not share."""
    shows: float
    """Prior probability that a change of the product shows in this kind of metric."""
    interval_df: float = 0.0
    """The fewest degrees of freedom of an interval. In a line where every release moves a test nothing of its own is
    left to learn from: the one that `sisters` gives makes intervals of 13 standard errors, with zero inside those of
    steps that are sure. With three, 95 in 100 hold the truth where the noise of tests differs by a factor of two."""


_TRAFFIC = Kind(0.02, 0.03, 1.0, 0.15, 0.02, 0.2)
KINDS: dict[MetricKind, Kind] = {
    "throughput": Kind(0.008, 0.012, 5.0, 0.06, 0.01, 0.95),
    "cpu": Kind(0.010, 0.020, 5.0, 0.06, 0.01, 0.8),
    "instructions": Kind(0.0005, 0.001, 1.0, 0.03, 0.002, 0.8, interval_df=3.0),
    "counts": _TRAFFIC,
    "io": _TRAFFIC,
    "memory": _TRAFFIC,
    "latency": Kind(0.06, 0.08, 2.0, 0.20, 0.05, 0.2),
}
#: Kinds that say what one operation costs the processor; they bear a throughput out, and do not share its luck.
COSTS: tuple[MetricKind, ...] = ("cpu", "instructions")
_WRITES = ("update", "insert", "delete", "write", "l.i", "l.x", "read-write")


def kind_of(metric: Metric) -> MetricKind:
    """What a metric is judged as: its kind, and one that is no evidence as a latency, the noisiest."""
    return metric.kind if metric.evidence else "latency"


def evidence(metrics: Sequence[Metric]) -> list[bool]:
    """Which of a panel's metrics are evidence: the first of each resource, since the others tell the same story.

    >>> from history.metrics import shipped_metrics
    >>> evidence([shipped_metrics()[name] for name in ("qps", "tps", "cpu/o", "p99", "wKB/o", "w/o")])
    [True, False, True, False, True, False]
    """
    seen: set[str] = set()
    first = []
    for metric in metrics:
        first.append(metric.evidence and metric.resource not in seen)
        if metric.evidence:
            seen.add(metric.resource)
    return first


def writes(test: str) -> bool:
    """Whether a test writes, by its name: writes are noisier.

    >>> writes("update-index.range100"), writes("point-query.range100"), writes("l.i1")
    (True, False, True)
    """
    return test.startswith(_WRITES)


def noise_prior(metric: Metric, test: str) -> float:
    """Prior standard deviation of the log of one value."""
    kind = KINDS[kind_of(metric)]
    return kind.noise_writes if writes(test) else kind.noise
