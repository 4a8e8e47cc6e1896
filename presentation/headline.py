"""What a finding is named for: the test that lost most, in one metric, and how many tests moved beside it. Pure.

A headline is of the metric that moved in most tests; rates and costs of the processor go before what explains them.
Issue titles, pages, the terminal and JSON all read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from history.keys import boundary
from history.metrics import MetricRegistry
from history.model import MAJORS, Finding, Move, Row, carrying_moves, goes_its_way
from presentation.number_format import ABSENT, count, interval, listing, median_of, percent, signed
from presentation.trades import trade_words

#: A title names at most so many groups of tests.
GROUPS_IN_TITLE = 3

PER_OPERATION = " per operation"

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
    """That moved, by name: on two servers a test counts once."""
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
    def typical(self) -> str:
        """`median −5.6 %`; empty for few tests, and for tests that moved both ways: no number stands for those."""
        middle = median_of(self.median_pct, self.tests)
        return "" if self.mixed or middle == ABSENT else f"median {middle}"

    @property
    def size(self) -> str:
        """`−5.6 %`, `up to −45.0 %`, or `−12.0 to +3.0 %` where tests moved both ways."""
        if self.mixed:
            return interval(self.low_pct, self.high_pct)
        worst = signed(self.worst_pct)
        return worst if signed(self.least_pct) == worst else f"up to {worst}"

    @property
    def ends(self) -> str:
        """`+1.1 to +45.0 %`, or `+45.0 %` where all tests moved by as much."""
        low, high = (self.low_pct, self.high_pct) if self.mixed else (self.least_pct, self.worst_pct)
        return signed(high) if signed(low) == signed(high) else interval(low, high)


class Headline(Row):
    """The metric a finding is named for, and how far it spread."""

    change: MetricChange
    others: tuple[MetricChange, ...]
    """The other metrics that moved, in order."""
    words: str
    """`more instructions`, `lower QPS`."""
    verb: str
    """What a test does with it: `needs` or `gets`."""
    per: str
    """` per operation` where the metric is."""
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
    def changed(self) -> str:
        """What the worst test does: `needs 44.9 % more instructions`."""
        return f"{self.verb} {percent(self.change.worst_pct)} {self.words}"

    @property
    def what(self) -> str:
        """What the tests are: their groups, or the benchmark where there are many; empty where they have none."""
        if len(self.groups) <= GROUPS_IN_TITLE:
            return "" if self.groups == (group_noun(""),) else listing(self.groups)
        return listing([BENCHMARK_NAMES.get(name, name) for name in self.benchmarks])

    @property
    def spread(self) -> str:
        """`8 of 11 tests moved, median +3.1 %`."""
        tests = f"{self.moved} of {count(self.tests, 'test')}" if self.tests else count(self.moved, "test")
        typical = "both ways" if self.change.mixed else self.change.typical
        return ", ".join(filter(None, (f"{tests} moved", typical)))


def dbms_name(dbms: str) -> str:
    return DBMS_NAMES.get(dbms, dbms)


def group_noun(group: str) -> str:
    """`point, part 1` is said `point queries`."""
    base = group.partition(",")[0].strip()
    return GROUP_NAMES.get(base, base or "tests")


def named_moves(finding: Finding) -> list[Move]:
    """The moves that carry the finding's tier and go its way, or all that carry it where none does; those near zero
    only where all are."""
    told = carrying_moves(finding)
    moves = [move for move in told if goes_its_way(finding.kind, move)] or list(told)
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
        tests=len({(move.key.benchmark, move.key.test) for move in of_metric}),
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
    told = [move for move in carrying_moves(finding) if not move.near_zero]
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
        words=metric.said(change.worst_pct),
        verb=metric.verb,
        per=PER_OPERATION if metric.noun.endswith(PER_OPERATION) else "",
        groups=tuple(sorted(set(nouns), key=lambda noun: (-nouns.count(noun), noun))),
        moved=on_server.count(server),
        tests=sum(measured.values()),
        server=server,
        servers=tuple(sorted(set(on_server))),
        benchmarks=tuple(sorted({move.key.benchmark for move in moves})),
        probability=max(move.probability for move in carrying_moves(finding)),
        trade=trade_words(finding, moves, metrics),
        whole_trade=trade_words(finding, moves, metrics, partly=False),
    )


def title(finding: Finding, lead: Headline) -> str:
    """`postgres 17.5: scan needs 44.9 % more instructions (1 of 8 tests moved; range queries, small)`."""
    if finding.kind == "environment":
        return f"{listing(lead.servers)}: {verdict(finding, lead)}"
    name = f"{finding.dbms} {finding.line}" if finding.kind == "drift" else release_name(finding)
    return f"{name}: {verdict(finding, lead)}"


def verdict(finding: Finding, lead: Headline) -> str:
    """A title without the name of what it is about."""
    changed = f"{lead.change.worst_test} {lead.changed}"
    if finding.kind == "environment":
        groups = f"; {lead.what}" if lead.what else ""
        return f"{changed} at {release_name(finding)}, not the product ({lead.spread}{groups})"
    if finding.kind == "drift":
        # The change is that of the newest release, not of the one at which it was clear.
        changed += f" than {finding.previous}, a slow drift"
    trade = f" for {lead.whole_trade}" if lead.whole_trade else ""
    place = ", ".join(filter(None, (lead.what, listing(lead.servers))))
    return f"{changed}{trade} ({lead.spread}; {place})"


def step_name(finding: Finding) -> str:
    """What changed: the release; between majors the two lines, since no point release did it: `13 → 14`."""
    if finding.line != MAJORS:
        return finding.release
    return " → ".join(boundary(finding.dbms, MAJORS, side) for side in (finding.previous, finding.release))


def release_name(finding: Finding) -> str:
    """`mysql 8.0.30`, or `postgres 13 → 14`."""
    return f"{finding.dbms} {step_name(finding)}"


def step_sides(finding: Finding) -> str:
    """What was compared: `after 17.4`; between majors the releases that stand for the lines: `14.24 against 13.23`."""
    if finding.line == MAJORS:
        return f"{finding.release} against {finding.previous}"
    return f"after {finding.previous}"
