"""What a finding is named for: one metric, how much of it, in how many tests. Pure.

A headline is of the metric that moved in most tests; rates and costs of the processor go before what explains them.
Issue titles, pages, the terminal and JSON all read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from statistics import median

from history.keys import boundary
from history.metrics import MetricRegistry
from history.model import MAJORS, Finding, Move, Row
from presentation.number_format import count, interval, listing, percent, signed
from presentation.trades import trade_words

#: A title names at most so many groups of tests.
GROUPS_IN_TITLE = 3
#: Up to so many tests whose largest change is more than so many times the smallest get a range and no median.
FEW_TESTS, RANGE_FACTOR = 4, 10.0

DBMS_NAMES = {"mysql": "MySQL", "postgres": "Postgres", "mariadb": "MariaDB", "myrocks": "MyRocks"}
BENCHMARK_NAMES = {"insert": "Insert Benchmark", "insert-io": "Insert Benchmark (IO-bound)", "sysbench": "sysbench"}
GROUP_NAMES = {"point": "point queries", "range": "range queries", "write": "writes", "writes": "writes"}
#: The mark of each kind carries what its colour carries.
KIND_MARKS = {"regression": "▼", "improvement": "▲", "environment": "◆", "drift": "↘"}
KIND_CLASSES = {"regression": "worse", "drift": "worse", "improvement": "better", "environment": "other"}


class MetricChange(Row):
    """What moved in one metric of a finding: tests of all its servers, configs and benchmarks."""

    metric: str
    tests: int
    """That moved; a test on two servers counts twice."""
    median_pct: float
    least_pct: float
    worst_pct: float
    """The smallest and the largest change, by size."""
    worst_test: str
    low_pct: float
    high_pct: float
    """The two ends: of the other sign where some tests got slower and others faster."""

    @property
    def mixed(self) -> bool:
        return self.low_pct < 0 < self.high_pct

    @property
    def ranged(self) -> bool:
        """Whether few tests moved by so different amounts that no median describes them."""
        return 1 < self.tests <= FEW_TESTS and abs(self.worst_pct) > RANGE_FACTOR * abs(self.least_pct)

    @property
    def signed(self) -> str:
        """`−5.6 %`, or `−1.1 to −45.0 %`."""
        if self.mixed:
            return interval(self.low_pct, self.high_pct)
        return interval(self.least_pct, self.worst_pct) if self.ranged else signed(self.median_pct)


class Headline(Row):
    """The metric a finding is named for, and how far it spread."""

    change: MetricChange
    others: tuple[MetricChange, ...]
    """The other metrics that moved, in order."""
    noun: str
    words: str
    """`more instructions`, `lower QPS`."""
    verb: str
    groups: tuple[str, ...]
    """In words, most tests first."""
    moved: int
    """Tests that moved on `server`."""
    tests: int
    """Tests of the benchmark measured in this metric on both sides, on the server where most moved; 0 if unknown."""
    server: str
    servers: tuple[str, ...]
    benchmarks: tuple[str, ...]
    probability: float
    """Of the surest move."""
    trade: str = ""
    """What its tests gained or paid in another resource: `17.8 % more indexed rows/s`; empty where there is nothing."""
    whole_trade: str = ""
    """The same, of what all of the tests did."""

    @property
    def metric(self) -> str:
        return self.change.metric

    @property
    def size(self) -> str:
        """The change without its sign: `23 %`, or `1.1 to 45 %`; with signs where there are both, `−12 to +3.0 %`."""
        change = self.change
        if change.mixed:
            return interval(change.low_pct, change.high_pct)
        if change.ranged:
            return f"{percent(change.least_pct).removesuffix(' %')} to {percent(change.worst_pct)}"
        return percent(change.median_pct)

    @property
    def changed(self) -> str:
        """`3.1 % more instructions`."""
        return f"{self.noun} {self.size}" if self.change.mixed else f"{self.size} {self.words}"

    @property
    def what(self) -> str:
        """What the tests are: their groups, or the benchmark where there are many."""
        if len(self.groups) <= GROUPS_IN_TITLE:
            return listing(self.groups)
        return f"{listing([BENCHMARK_NAMES.get(name, name) for name in self.benchmarks])} tests"

    @property
    def spread(self) -> str:
        """`8 of 11 tests, small`."""
        tests = f"{self.moved} of {count(self.tests, 'test')}" if self.tests else count(self.moved, "test")
        return f"{tests}, {listing(self.servers)}"


def dbms_name(dbms: str) -> str:
    return DBMS_NAMES.get(dbms, dbms)


def group_noun(group: str) -> str:
    """`point, part 1` is said `point queries`."""
    base = group.partition(",")[0].strip()
    return GROUP_NAMES.get(base, base or "tests")


def goes_its_way(finding: Finding, move: Move) -> bool:
    """Whether a move goes the way the finding is named for."""
    return finding.kind not in ("regression", "drift", "improvement") or move.direction in (
        "change",
        "improvement" if finding.kind == "improvement" else "regression",
    )


def named_moves(finding: Finding) -> list[Move]:
    """The moves that go the finding's way, or all where none does; those near zero only where all are."""
    moves = [move for move in finding.moves if goes_its_way(finding, move)] or list(finding.moves)
    return [move for move in moves if not move.near_zero] or moves


def metric_order(moves: Sequence[Move], metrics: MetricRegistry) -> list[str]:
    """The metrics of the moves: those that lead first, of these the one that moved in most tests, then by rank."""
    names = [move.key.metric for move in moves]
    return sorted(set(names), key=lambda name: (not metrics[name].leads, -names.count(name), metrics.rank(name)))


def metric_change(metric: str, moves: Iterable[Move]) -> MetricChange:
    """One metric of a finding, of the moves in it."""
    of_metric = [move for move in moves if move.key.metric == metric]
    by_size = sorted(of_metric, key=lambda move: (abs(move.change_pct), move.key.id))
    changes = [move.change_pct for move in of_metric]
    return MetricChange(
        metric=metric,
        tests=len(of_metric),
        median_pct=median(changes),
        least_pct=by_size[0].change_pct,
        worst_pct=by_size[-1].change_pct,
        worst_test=by_size[-1].key.test,
        low_pct=min(changes),
        high_pct=max(changes),
    )


def headline_moves(finding: Finding, metrics: MetricRegistry) -> list[Move]:
    """The moves that the headline is made of, the largest first."""
    moves = named_moves(finding)
    leading = metric_order(moves, metrics)[:1]
    return sorted(
        (move for move in moves if move.key.metric in leading), key=lambda move: (-abs(move.change_pct), move.key.id)
    )


def headline(finding: Finding, metrics: MetricRegistry) -> Headline | None:
    """None when the finding has no moves."""
    moves = headline_moves(finding, metrics)
    if not moves:
        return None
    metric = metrics[moves[0].key.metric]
    change = metric_change(metric.name, moves)
    told = [move for move in finding.moves if not move.near_zero]
    others = [name for name in metric_order(told, metrics) if name != metric.name]
    on_server = [move.key.server for move in moves]
    server = max(sorted(set(on_server)), key=on_server.count)
    # A group that several configs or benchmarks have is counted once, where it has most tests.
    measured: dict[str, int] = {}
    for group in finding.groups:
        if (group.metric, group.server) == (metric.name, server):
            measured[group.group] = max(group.tests, measured.get(group.group, 0))
    nouns = [group_noun(move.group) for move in moves]
    return Headline(
        change=change,
        others=tuple(metric_change(name, told) for name in others),
        noun=metric.noun,
        words=metric.said(change.median_pct),
        verb=metric.verb,
        groups=tuple(sorted(set(nouns), key=lambda noun: (-nouns.count(noun), noun))),
        moved=on_server.count(server),
        tests=sum(measured.values()),
        server=server,
        servers=tuple(sorted(set(on_server))),
        benchmarks=tuple(sorted({move.key.benchmark for move in moves})),
        probability=max(move.probability for move in finding.moves),
        trade=trade_words(finding, moves, metrics),
        whole_trade=trade_words(finding, moves, metrics, partly=False),
    )


def title(finding: Finding, lead: Headline) -> str:
    """`postgres 17.5: point queries 3.1 % more instructions (8 of 11 tests, small)`."""
    if finding.kind == "environment":
        return f"{listing(lead.servers)}: {lead.changed} at {release_name(finding)}, not the product ({lead.spread})"
    if finding.kind == "drift":
        # The change is that of the newest release, not of the one at which it was clear.
        change = f"{lead.changed} than {finding.previous}, a slow drift"
        return f"{finding.dbms} {finding.line}: {lead.what} {change} ({lead.spread})"
    trade = f" for {lead.whole_trade}" if lead.whole_trade else ""
    return f"{release_name(finding)}: {lead.what} {lead.changed}{trade} ({lead.spread})"


def release_name(finding: Finding) -> str:
    """`mysql 8.0.30`; on the line of majors the line, and the releases that stand for both: `postgres 18 (18.6 against
    17.11)`."""
    if finding.line != MAJORS:
        return f"{finding.dbms} {finding.release}"
    line = boundary(finding.dbms, finding.line, finding.release)
    return f"{finding.dbms} {line} ({finding.release} against {finding.previous})"


def loss(finding: Finding, metrics: MetricRegistry) -> float:
    """What a finding costs its users, or gives them: |log(after / before)| summed over the headline's tests."""
    moves = headline_moves(finding, metrics)
    return sum(abs(log(move.after / move.before)) for move in moves if move.before > 0 < move.after)


def finding_order(finding: Finding, metrics: MetricRegistry) -> tuple[int, int, bool, float, str]:
    """Sort key: the surest first, regressions first, those that cost throughput, instructions or CPU, the largest."""
    moves = headline_moves(finding, metrics)
    return (
        ("confirmed", "provisional", "unconfirmed").index(finding.tier),
        ("regression", "drift", "environment", "improvement").index(finding.kind),
        not (moves and metrics[moves[0].key.metric].leads),
        -loss(finding, metrics),
        finding.key,
    )
