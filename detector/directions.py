"""Which finding a move belongs to: that of its own direction, for what each resource did is judged for itself.

Throughput and the cost of the processor (CPU, instructions) make findings: a test that is faster for more CPU is in
both, its throughput in the improvement, its CPU in the regression. What explains them (storage, switches, memory)
stays with them: where all of them went one way, the rest of the test is in that finding whichever way it went.

>>> from history.metrics import shipped_metrics
>>> from history.model import SeriesKey
>>> def moved(metric, change):
...     key = SeriesKey.parse(f"mysql|8.0|small|default|insert|l.x|{metric}")
...     better = shipped_metrics()[metric].better
...     way = "improvement" if (change > 0) == (better == "higher") else "regression"
...     return Move(key=key, better=better, before=1.0, after=1.0 + change / 100, change_pct=change, low_pct=change,
...                 high_pct=change, direction=way, probability=0.99, noise_pct=1.0, mde_pct=2.0)
>>> def kinds(**changes):
...     moves = [moved(metric, change) for metric, change in changes.items()]
...     return {kind: [m.key.metric for m in of] for kind, of in by_kind(moves, shipped_metrics()).items()}
>>> kinds(ips=17.8, cpupq=214.0, wpi=15.0)
{'improvement': ['ips'], 'regression': ['cpupq', 'wpi']}
>>> kinds(ips=17.8, wpi=15.0)
{'improvement': ['ips', 'wpi']}
>>> kinds(ips=-5.0, cpupq=-9.0)
{'regression': ['ips', 'cpupq']}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from history.metrics import MetricRegistry
from history.model import Move

#: Kinds of findings that a move of the product can belong to.
Way = Literal["regression", "improvement"]
OPPOSITE: dict[str, Way] = {"regression": "improvement", "improvement": "regression"}


def by_kind(moves: Sequence[Move], metrics: MetricRegistry) -> dict[Way, list[Move]]:
    """`moves` of one boundary by the kind of finding they belong to, each in exactly one.

    Every kind has a move of its own direction that is not near zero, unless all moves of its tests are.
    """
    by_test: dict[str, list[Move]] = defaultdict(list)
    for move in moves:
        by_test[move.key.test].append(move)
    kinds: dict[Way, list[Move]] = defaultdict(list)
    for of_test in by_test.values():
        for move, way in _ways(of_test, metrics):
            kinds[way].append(move)
    return dict(kinds)


def leads(move: Move, metrics: MetricRegistry) -> bool:
    """Whether a move makes a finding of its direction by itself, whatever else its test did."""
    return metrics[move.key.metric].leads and not move.near_zero


def _ways(of_test: Sequence[Move], metrics: MetricRegistry) -> Iterator[tuple[Move, Way]]:
    """Each move of one test, on all servers, and where it belongs."""
    ways = {move.key.id: _way_of(move) for move in of_test}
    leading = [move for move in of_test if leads(move, metrics)]
    rates = {move.key.id for move in leading if metrics[move.key.metric].kind == "throughput"}
    slower = {move.key.server for move in leading if move.key.id in rates and ways[move.key.id] == "regression"}
    for move in leading:
        # Less work done at less cost each is time spent waiting: one regression, and no gain in CPU.
        if move.key.server in slower and move.key.id not in rates:
            ways[move.key.id] = "regression"
    taken = {ways[move.key.id] for move in leading} or {_majority(of_test)}
    if len(taken) == 1:
        ways = dict.fromkeys(ways, taken.pop())
    for move in of_test:
        yield move, ways[move.key.id]


def _way_of(move: Move) -> Way:
    return "improvement" if move.direction == "improvement" else "regression"


def _majority(moves: Sequence[Move]) -> Way:
    """Where most of the moves go, those near zero only where all are; else where the largest goes."""
    voting = [move for move in moves if not move.near_zero] or list(moves)
    balance = sum(1 if _way_of(move) == "regression" else -1 for move in voting)
    if balance:
        return "regression" if balance > 0 else "improvement"
    return _way_of(max(voting, key=lambda move: (abs(move.change_pct), move.key.id)))


def traded(kind: str, moves: Sequence[Move], others: Sequence[Move], metrics: MetricRegistry) -> tuple[Move, ...]:
    """What the tests that a finding of `kind` is about gained, or paid: of `others`, the moves of the finding of the
    other kind, those of the same places that lead and went that one's way."""
    places = {_place(move) for move in moves if leads(move, metrics) and move.direction == kind}
    wanted = OPPOSITE.get(kind)
    return tuple(
        move for move in others if _place(move) in places and leads(move, metrics) and move.direction == wanted
    )


def _place(move: Move) -> tuple[str, str, str, str]:
    key = move.key
    return key.server, key.config, key.benchmark, key.test
