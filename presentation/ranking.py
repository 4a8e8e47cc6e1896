"""What goes first: log loss weighted by certainty, the same for lists, for filing and for measuring again. Pure.

A cost that rises by 214 % and a rate that falls by 68 % are one loss: both are a factor of three. A test counts for at
most a factor of four, so that one counter of next to nothing outranks no benchmark that lost everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, log

from history.metrics import MetricRegistry
from history.model import MAJORS, TIERS, Finding, FindingKind, Move, goes_its_way

#: The most that one test adds to a loss, however much it changed: a factor of four.
MOST_OF_A_TEST = log(4.0)
#: The order of kinds.
KINDS: tuple[FindingKind, ...] = ("regression", "drift", "environment", "improvement")
#: Titles of the sections that findings stand in: steps between majors hold years of work and are no point releases.
POINT_RELEASES, BETWEEN_MAJORS = "Point releases", "Between majors"

Severity = tuple[int, bool, float]
"""Kind, whether only what explains moved, and minus the loss: the smallest goes first."""


def loss(moves: Iterable[Move]) -> float:
    """What tests lose, or gain: |log(after / before)| times the probability of the move, summed over tests on each
    server and config, of each the metric that says most. A level of zero or below has no ratio and adds nothing.

    >>> from history.model import SeriesKey
    >>> key = SeriesKey(dbms="d", line="1", server="s", config="c", benchmark="b", test="t", metric="qps")
    >>> rest = {"low_pct": 0, "high_pct": 0, "direction": "regression", "noise_pct": 1, "mde_pct": 1}
    >>> def lost(after, probability=1.0):
    ...     return loss([Move(key=key, before=100, after=after, change_pct=0, probability=probability, **rest)])
    >>> round(lost(50.0), 3), round(lost(200.0), 3), round(lost(200.0, 0.5), 3), round(lost(1e9), 3)
    (0.693, 0.693, 0.347, 1.386)
    """
    of_test: dict[tuple[str, str, str, str], float] = {}
    for move in moves:
        if move.before > 0 < move.after:
            place = (move.key.server, move.key.config, move.key.benchmark, move.key.test)
            size = move.probability * min(abs(log(move.after) - log(move.before)), MOST_OF_A_TEST)
            of_test[place] = max(size, of_test.get(place, 0.0))
    return fsum(of_test.values())


def severity(finding: Finding, moves: Sequence[Move], metrics: MetricRegistry) -> Severity:
    """Sort key of a finding by some of its moves: regressions first, those that cost throughput, instructions or CPU,
    then the largest loss. Of the moves those count that go the finding's way, and what explains only by itself."""
    of_finding = [move for move in moves if goes_its_way(finding.kind, move)] or list(moves)
    leading = [move for move in of_finding if metrics[move.key.metric].leads]
    return KINDS.index(finding.kind), not leading, -loss(leading or of_finding)


def finding_order(finding: Finding, metrics: MetricRegistry) -> tuple[bool, int, Severity, str]:
    """Sort key of lists and of filing: point releases before the steps between majors, of each the surest first, then
    by severity."""
    own = severity(finding, finding.moves, metrics)
    return finding.line == MAJORS, -TIERS.index(finding.tier), own, finding.key


def section_of(line: str) -> str:
    """The title of the section in which a finding of a line stands."""
    return BETWEEN_MAJORS if line == MAJORS else POINT_RELEASES
