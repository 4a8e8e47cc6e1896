"""Titles and sentences: what, where, how much, in the field's terms.

>>> percent(3.14), percent(-11.2), percent(0.04)
('3.1 %', '11 %', '0.04 %')
>>> signed(3.14), signed(-11.2)
('+3.1 %', '−11 %')
>>> listing(["point queries", "range queries", "writes"])
'point queries, range queries and writes'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from alerts.safetext import title as safe_title
from history.keys import boundary
from history.model import MAJORS, Finding, GroupSummary, Move, Row

#: From here on a percentage is shown without decimals, below the other with two.
WHOLE_PERCENT, SMALL_PERCENT = 10.0, 0.1
#: A title names at most so many groups of tests.
GROUPS_IN_TITLE = 3
#: Up to so many tests whose largest change is more than so many times the smallest are told by both.
FEW_TESTS, APART = 4, 10.0

DBMS = {"mysql": "MySQL", "postgres": "Postgres", "mariadb": "MariaDB", "myrocks": "MyRocks"}
BENCHMARKS = {"insert": "Insert Benchmark", "insert-io": "Insert Benchmark (IO-bound)", "sysbench": "sysbench"}
GROUPS = {"point": "point queries", "range": "range queries", "write": "writes", "writes": "writes"}


class MetricWords(NamedTuple):
    """How a change of a metric is said: `need 3 % more instructions`, `get 5 % less QPS`."""

    verb: str
    more: str
    less: str
    noun: str


METRICS: dict[str, MetricWords] = {
    "qps": MetricWords("get", "more QPS", "less QPS", "QPS"),
    "ips": MetricWords("get", "more inserts/s", "fewer inserts/s", "inserts/s"),
    "indexed rows/s": MetricWords("get", "more rows indexed/s", "fewer rows indexed/s", "indexed rows/s"),
    "insn/o": MetricWords("need", "more instructions", "fewer instructions", "instructions per operation"),
    "cpu_us/o": MetricWords("need", "more server CPU", "less server CPU", "server CPU per operation"),
    "cpupq": MetricWords("need", "more CPU", "less CPU", "CPU per operation"),
    "cpu/o": MetricWords("need", "more CPU", "less CPU", "CPU per operation"),
    "cspq": MetricWords("need", "more context switches", "fewer context switches", "context switches per operation"),
    "rpq": MetricWords("need", "more storage reads", "fewer storage reads", "storage reads per operation"),
    "rkbpq": MetricWords("need", "more KB read", "fewer KB read", "KB read per operation"),
    "wpi": MetricWords("need", "more storage writes", "fewer storage writes", "storage writes per insert"),
    "wkbpi": MetricWords("need", "more KB written", "fewer KB written", "KB written per insert"),
    "cs/o": MetricWords("need", "more context switches", "fewer context switches", "context switches per operation"),
    "r/o": MetricWords("need", "more storage reads", "fewer storage reads", "storage reads per operation"),
    "rKB/o": MetricWords("need", "more KB read", "fewer KB read", "KB read per operation"),
    "w/o": MetricWords("need", "more storage writes", "fewer storage writes", "storage writes per operation"),
    "wKB/o": MetricWords("need", "more KB written", "fewer KB written", "KB written per operation"),
    "f/o": MetricWords("need", "more flushes", "fewer flushes", "flushes per operation"),
    "f_await": MetricWords("need", "more time a flush", "less time a flush", "flush latency"),
    "rss": MetricWords("need", "more memory", "less memory", "memory"),
    "dbgb": MetricWords("need", "more disk space", "less disk space", "database size"),
}
#: Which metric leads when several moved in as many tests.
LEADING: tuple[str, ...] = tuple(METRICS)
#: Rates and costs of the processor; the others explain, and are counted, not told one by one.
PRIMARY = frozenset({"qps", "ips", "indexed rows/s", "insn/o", "cpu_us/o", "cpupq", "cpu/o"})


def metric_words(metric: str) -> MetricWords:
    return METRICS.get(metric) or MetricWords("show", f"more {metric}", f"less {metric}", metric)


def percent(value: float) -> str:
    """A change without its sign: two figures that count."""
    size = abs(value)
    decimals = 0 if size >= WHOLE_PERCENT else 1 if size >= SMALL_PERCENT else 2
    return f"{size:.{decimals}f} %"


def signed(value: float) -> str:
    """A change with its sign, a real minus for the negative."""
    return f"{'−' if value < 0 else '+'}{percent(value)}"


def listing(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def dbms_name(dbms: str) -> str:
    return DBMS.get(dbms, dbms)


def group_noun(group: str) -> str:
    """`point, part 1` is said `point queries`."""
    base = group.partition(",")[0].strip()
    return GROUPS.get(base, base or "tests")


def far_apart(least: float, worst: float, moved: int) -> bool:
    """Whether few tests moved by so different amounts that no median tells of them."""
    return 1 < moved <= FEW_TESTS and abs(worst) > APART * abs(least)


class Headline(Row):
    """The one metric a finding is told by, and how far it spread."""

    metric: str
    change_pct: float
    """Median over the tests that moved."""
    least_pct: float
    worst_pct: float
    low_pct: float
    high_pct: float
    """The two ends: of the other sign where a machine made some tests slower and others faster."""
    worst_test: str
    groups: tuple[str, ...]
    """In words, most tests first."""
    moved: int
    tests: int
    """Those of the benchmark that were measured in this metric on both sides, on the server where most moved."""
    server: str
    servers: tuple[str, ...]
    benchmarks: tuple[str, ...]

    @property
    def mixed(self) -> bool:
        return self.low_pct < 0 < self.high_pct

    @property
    def apart(self) -> bool:
        return not self.mixed and far_apart(self.least_pct, self.worst_pct, self.moved)

    @property
    def size(self) -> str:
        """The change without its sign: `23 %`, or `1.1 to 45 %`; with signs where there are both, `−12 to +3.0 %`."""
        if self.mixed:
            return f"{signed(self.low_pct).removesuffix(' %')} to {signed(self.high_pct)}"
        if self.apart:
            return f"{percent(self.least_pct).removesuffix(' %')} to {percent(self.worst_pct)}"
        return percent(self.change_pct)

    @property
    def change(self) -> str:
        words = metric_words(self.metric)
        if self.mixed:
            return f"{words.noun} {self.size}"
        return f"{self.size} {words.more if self.change_pct > 0 else words.less}"

    @property
    def what(self) -> str:
        if len(self.groups) <= GROUPS_IN_TITLE:
            return listing(self.groups)
        return f"{listing([BENCHMARKS.get(name, name) for name in self.benchmarks])} tests"


def leads(finding: Finding, move: Move) -> bool:
    """Whether a move goes the way the finding is named for."""
    return finding.kind not in ("regression", "drift", "improvement") or move.direction in (
        "change",
        "improvement" if finding.kind == "improvement" else "regression",
    )


def headline(finding: Finding) -> Headline | None:
    """The metric that moved in most tests; None when the finding has no moves or no groups to count by."""
    moves = [move for move in finding.moves if leads(finding, move)] or list(finding.moves)
    if not moves or not finding.groups:
        return None
    metric = min(
        {move.key.metric for move in moves},
        key=lambda m: (-sum(move.key.metric == m for move in moves), metric_place(m), m),
    )
    told = [move for move in moves if move.key.metric == metric]
    counts: dict[str, list[GroupSummary]] = {}
    for group in finding.groups:
        if group.metric == metric:
            counts.setdefault(group.server, []).append(group)
    if not counts:
        return None
    # Counted from what is told: the groups also count tests whose throughput got worse though this metric got better.
    moved = Counter(move.key.server for move in told)
    server = max(counts, key=lambda s: (moved[s], s))
    weight = Counter(group_noun(move.group) for move in told)
    measured: dict[str, int] = {}
    for group in counts[server]:
        measured[group.group] = max(group.tests, measured.get(group.group, 0))
    worst = max(told, key=lambda move: (abs(move.change_pct), move.key.id))
    return Headline(
        metric=metric,
        change_pct=median(move.change_pct for move in told),
        least_pct=min(told, key=lambda move: (abs(move.change_pct), move.key.id)).change_pct,
        worst_pct=worst.change_pct,
        worst_test=worst.key.test,
        low_pct=min(move.change_pct for move in told),
        high_pct=max(move.change_pct for move in told),
        groups=tuple(sorted(weight, key=lambda noun: (-weight[noun], noun))) or ("tests",),
        moved=moved[server],
        tests=sum(measured.values()),
        server=server,
        servers=tuple(sorted({move.key.server for move in told})),
        benchmarks=tuple(sorted({move.key.benchmark for move in told})),
    )


def metric_place(metric: str) -> int:
    """Where a metric stands among those that lead."""
    return LEADING.index(metric) if metric in LEADING else len(LEADING)


def issue_title(finding: Finding, lead: Headline) -> str:
    """`postgres 17.5: point queries 3.1 % more instructions (8 of 11 tests, small)`."""
    spread = f"({lead.moved} of {count(lead.tests, 'test')}, {listing(lead.servers)})"
    if finding.kind == "environment":
        text = f"{listing(lead.servers)}: {lead.change} at {finding.dbms} {finding.release}, not the product {spread}"
    elif finding.kind == "drift":
        where = f"{finding.dbms} {finding.line}"
        text = f"{where}: {lead.what} {lead.change} by {finding.release} than {finding.previous}, drifting {spread}"
    elif finding.line == MAJORS:
        where = f"{finding.dbms} {boundary(finding.dbms, finding.line, finding.release)}"
        text = f"{where} ({finding.release} against {finding.previous}): {lead.what} {lead.change} {spread}"
    else:
        text = f"{finding.dbms} {finding.release}: {lead.what} {lead.change} {spread}"
    return safe_title(text)


def beside_in_words(finding: Finding, lead: Headline) -> str:
    """The other metrics that moved: `QPS −5.6 % in 32 tests and CPU per operation +5.7 % in 30 tests`; may be empty."""
    told = []
    others = sorted({m.key.metric for m in finding.moves} - {lead.metric}, key=lambda m: (metric_place(m), m))
    for metric in [metric for metric in others if metric in PRIMARY]:
        changes = [move.change_pct for move in finding.moves if move.key.metric == metric]
        tests = len({(m.key.server, m.key.config, m.key.test) for m in finding.moves if m.key.metric == metric})
        least, worst = min(changes, key=abs), max(changes, key=abs)
        both_ends = f"{signed(least).removesuffix(' %')} to {signed(worst)}"
        size = both_ends if far_apart(least, worst, tests) else signed(median(changes))
        told.append(f"{metric_words(metric).noun} {size} in {count(tests, 'test')}")
    rest = [metric for metric in others if metric not in PRIMARY]
    if rest:
        told.append(f"{count(len(rest), 'other metric')}" if told else listing([metric_words(m).noun for m in rest]))
    return listing(told) if told else ""


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def middle(values: Iterable[float]) -> float:
    return median(values)
