"""What a line is looked at through: throughput, instructions, or one of the CPU metrics.

A view names the metrics that answer one question. Throughput has several because each Insert Benchmark step has its
own (`ips`, `indexed rows/s`, `qps`); the two CPU metrics are two views, since they are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.model import Series


@dataclass(frozen=True)
class View:
    """One tab of a line page."""

    id: str
    title: str
    metrics: tuple[str, ...]
    """In order of preference, where a test has more than one."""
    decimals: int
    """Of relative values: instructions repeat to 0.1-0.3 %, so a third decimal is real there and noise elsewhere."""
    note: str


VIEWS: tuple[View, ...] = (
    View("throughput", "Throughput", ("qps", "ips", "indexed rows/s"), 2, "relative throughput: above 1 is faster"),
    View("insn", "Instructions/op", ("insn/o",), 3, "relative server instructions per operation: above 1 is slower"),
    View("cpu-us", "Server CPU/op", ("cpu_us/o",), 2, "relative server CPU time per operation: above 1 is slower"),
    View("cpu", "Machine CPU/op", ("cpu/o",), 2, "relative machine CPU per operation (us+sy / QPS): above 1 is slower"),
    View("cpupq", "CPU/query", ("cpupq",), 2, "relative machine CPU per query or insert: above 1 is slower"),
)


def pick(series: Iterable[Series], view: View) -> list[Series]:
    """At most one series a test: the one whose metric the view prefers; tests keep the order they came in."""
    best: dict[str, Series] = {}
    for one in series:
        if one.key.metric not in view.metrics:
            continue
        held = best.get(one.key.test)
        if held is None or view.metrics.index(one.key.metric) < view.metrics.index(held.key.metric):
            best[one.key.test] = one
    return list(best.values())


def offered(series: Sequence[Series]) -> list[View]:
    """Views that have data, the one that covers most (test, release) pairs first, ties in the order of `VIEWS`.

    A nightly back-fills in one lane only, so the fullest table is the one a newcomer should see.
    """
    cover = {view.id: sum(len(one.points) for one in pick(series, view)) for view in VIEWS}
    return sorted((view for view in VIEWS if cover[view.id]), key=lambda view: -cover[view.id])
