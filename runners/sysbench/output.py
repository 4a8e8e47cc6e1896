"""What sysbench 1.0 prints, read once.

    [ 2s ] thds: 1 tps: 40409.15 qps: 40409.15 (r/w/o: 40409.15/0.00/0.00) lat (ms,99%): 0.03 err/s: 0.00 reconn/s: 0.00
    Latency histogram (values are in milliseconds)
           value  ------------- distribution ------------- count
           0.024 |**************************               12213
    SQL statistics:
        transactions:                        120136 (40025.01 per sec.)
        queries:                             120136 (40025.01 per sec.)
    ...

With --report-checkpoints the statistics come twice, and the last ones, which count from the checkpoint on, are meant.
Our own scripts add `counted: pid=.. events=.. statements=..` and, for explain, `plan: NAME` with indented rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from history.model import StatementPlan
from runners.errors import WorkloadFailed

_SECOND = re.compile(
    r"^\[ (?P<at>\d+)s \] thds: \d+ tps: (?P<tps>[\d.]+) qps: (?P<qps>[\d.]+) .*"
    r"lat \(ms,\d+%\): (?P<latency>[\d.]+) err/s: "
)
_BUCKET = re.compile(r"^\s*(?P<value>\d+\.\d+) \|\**\s+(?P<count>\d+)\s*$")
_COUNTED = re.compile(r"^counted: pid=(\d+) events=(\d+) statements=(\d+)$", re.MULTILINE)
_PLAN = re.compile(r"^plan: (.+)$")
#: Columns of a MySQL-like EXPLAIN that follow statistics, not the plan's shape, by number of columns: `rows` and
#: `filtered`, and `partitions`, which older releases do not print.
_STATISTICS_COLUMNS = {10: {8}, 12: {3, 9, 10}}


@dataclass(frozen=True)
class Second:
    """One line of the per-second report."""

    at_s: int
    tps: float
    qps: float
    latency_ms: float


@dataclass(frozen=True)
class CountedWindow:
    """What our counting hook says: the process counted, and how much it did in the window."""

    pid: int
    events: int
    statements: int


@dataclass(frozen=True)
class SysbenchReport:
    """One run of one test, warm-up excluded from all but `seconds`."""

    events: int
    queries: int
    seconds_measured: float
    errors: int
    latency_max_ms: float
    latency_sum_ms: float
    """Of all events that ended, each from its own begin, over all threads."""
    seconds: tuple[Second, ...]
    histogram: tuple[tuple[float, int], ...]
    """(upper value in ms, count), by value."""
    counted: CountedWindow | None = None


def parse_second(line: str) -> Second | None:
    """The line as a per-second report, None when it is something else."""
    match = _SECOND.match(line)
    if match is None:
        return None
    return Second(
        at_s=int(match["at"]),
        tps=float(match["tps"]),
        qps=float(match["qps"]),
        latency_ms=float(match["latency"]),
    )


def parse_report(text: str) -> SysbenchReport:
    """The whole output of `sysbench ... run`; WorkloadFailed when the final statistics are not there."""
    last = text.rpartition("SQL statistics:")[2]
    if last == text:
        raise WorkloadFailed(f"sysbench printed no statistics; its output ends:\n{_tail(text)}")
    queries, rate = _pair(last, "queries")
    counted = _COUNTED.search(text)
    before = text.rpartition("Latency histogram")[2].partition("SQL statistics:")[0]
    buckets = (_BUCKET.match(line) for line in before.splitlines())
    merged: dict[float, int] = {}
    for bucket in buckets:
        if bucket:
            merged[float(bucket["value"])] = merged.get(float(bucket["value"]), 0) + int(bucket["count"])
    return SysbenchReport(
        events=int(_pair(last, "transactions")[0]),
        queries=int(queries),
        seconds_measured=queries / rate if rate else 0.0,
        errors=int(_pair(last, "ignored errors")[0]),
        latency_max_ms=_number(last, "max"),
        latency_sum_ms=_number(last, "sum"),
        seconds=tuple(second for line in text.splitlines() if (second := parse_second(line))),
        histogram=tuple(sorted(merged.items())),
        counted=CountedWindow(*(int(number) for number in counted.groups())) if counted else None,
    )


def parse_plans(text: str) -> tuple[StatementPlan, ...]:
    """The output of the `explain` command of our scripts."""
    plans: list[StatementPlan] = []
    name, rows = "", list[str]()

    def close() -> None:
        if name:
            plans.append(StatementPlan(statement=name, digest=plan_digest(rows), text="\n".join(rows)))

    for line in text.splitlines():
        match = _PLAN.match(line)
        if match:
            close()
            name, rows = match[1], []
        elif name and line.startswith("  "):
            rows.append(line[2:])
    close()
    return tuple(plans)


def plan_digest(rows: Iterable[str]) -> str:
    """First 16 hex digits of the sha256 over a plan's shape: literals and what follows statistics do not count.

    >>> plan_digest(["Index Cond: (id = 25001)"]) == plan_digest(["Index Cond: (id = 7)"])
    True
    """
    shape = []
    for row in rows:
        columns = row.split("\t")
        dropped = _STATISTICS_COLUMNS.get(len(columns), set())
        shape_columns = "\t".join(column for number, column in enumerate(columns) if number not in dropped)
        shape.append(re.sub(r"\d+(,\d+)*", "N", shape_columns))
    return hashlib.sha256("\n".join(shape).encode()).hexdigest()[:16]


def failure(text: str) -> str:
    """The lines that say why sysbench failed, else the end of its output."""
    fatal = [line.strip() for line in text.splitlines() if line.startswith(("FATAL", "ALERT", "PANIC"))]
    return "\n".join(dict.fromkeys(fatal[:4])) or _tail(text)


def _tail(text: str, lines: int = 6) -> str:
    return "\n".join(text.strip().splitlines()[-lines:]) or "(nothing)"


def _pair(text: str, name: str) -> tuple[float, float]:
    count, rate = _values(text, name, r"(\d+)\s+\(([\d.]+) per sec\.\)")
    return float(count), float(rate)


def _number(text: str, name: str) -> float:
    return float(*_values(text, name, r"([\d.]+)\s*$"))


def _values(text: str, name: str, pattern: str) -> tuple[str, ...]:
    match = re.search(rf"^\s*{name}:\s+{pattern}", text, re.MULTILINE)
    if match is None:
        raise WorkloadFailed(f"sysbench printed no {name!r}; its output ends:\n{_tail(text)}")
    return match.groups()
