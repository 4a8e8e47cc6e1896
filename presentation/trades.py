"""What a finding's tests gained, or paid, in another resource: a test can be faster for more CPU. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from history.group_summaries import groups_of
from history.metrics import MetricRegistry
from history.model import Finding, Move
from presentation.near_zero import change_of
from presentation.number_format import count, listing, percent


def trade_words(finding: Finding, named: Sequence[Move], metrics: MetricRegistry, *, partly: bool = True) -> str:
    """`17.8 % more indexed rows/s`: what the tests of the moves `named`, those of the headline, have for it; empty
    where there is nothing, and unless `partly` where only some of them have."""
    places = {_place(move) for move in named}
    moves = [move for move in finding.trade if _place(move) in places]
    phrases = []
    for name in metrics.ranked(move.key.metric for move in moves):
        of_metric = [move for move in moves if move.key.metric == name]
        least, most = (percent(size(abs(move.change_pct) for move in of_metric)) for size in (min, max))
        size = most if least == most else f"{least.removesuffix(' %')} to {most}"
        some = len(of_metric) < len(places)
        if some and not partly:
            continue
        of_them = f" in {len(of_metric)} of them" if some else ""
        phrases.append(f"{size} {metrics[name].said(of_metric[0].change_pct)}{of_them}")
    return listing(phrases) if phrases else ""


def its_way(finding: Finding) -> Finding:
    """A regression or improvement with those moves alone that go the way it is named for, and their groups."""
    moves = [move for move in finding.moves if move.direction == finding.kind]
    tests = {(group.server, group.metric, group.group): group.tests for group in finding.groups}
    return finding.model_copy(update={"moves": tuple(moves), "groups": groups_of(moves, tests)})


def worse_beside(finding: Finding, metrics: MetricRegistry) -> str:
    """What got worse in the tests of an improvement and is no regression of its own: `storage writes per insert +15.0 %
    in 1 test`; may be empty."""
    worse = [move for move in finding.moves if move.direction == "regression"]
    phrases = []
    for name in metrics.ranked(move.key.metric for move in worse):
        of_metric = [move for move in worse if move.key.metric == name]
        largest = max(of_metric, key=lambda move: (not move.near_zero, abs(move.change_pct), move.key.id))
        at_most = "at most " if len(of_metric) > 1 else ""
        tests = count(len({move.key.test for move in of_metric}), "test")
        phrases.append(f"{metrics[name].noun} {at_most}{change_of(largest)} in {tests}")
    return listing(phrases) if phrases else ""


def _place(move: Move) -> tuple[str, str, str, str]:
    key = move.key
    return key.server, key.config, key.benchmark, key.test
