"""What a change looks like, and whether two findings of one DBMS look like the same change. Pure.

A back-patch comes to several lines at once: Postgres 17.8 and 18.2 both turned `pg_mblen` into `pg_mblen_with_len`, and
`scan` needs 44.2 % and 44.9 % more instructions. What two findings have in common is measured by their *agreement*: of
two sets of signed amounts, the part that both have of the part that one has at least (Ruzicka's similarity).

>>> round(agreement({"f": 1_904_000.0, "g": -595_000.0}, {"f": 1_880_000.0, "g": -590_000.0}), 2)
0.99
>>> agreement({"f": 1.0}, {"f": -1.0}), agreement({"f": 1.0}, {"g": 1.0}), agreement({}, {})
(0.0, 0.0, 0.0)

Functions are the strong evidence: where both findings have functions of one test, these decide, and only how much the
tests moved is asked besides. Tests and sizes alone have to agree more, in two tests or more. Releases of the same day
lower what is asked of either; a day that is not known says nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median
from typing import NamedTuple, TypeVar

from history.metrics import MetricRegistry
from history.model import Finding, FindingKind, Move, Series, goes_its_way

#: Part of the functions in a similarity where both findings have them; the rest is of tests and sizes.
FUNCTIONS_PART = 0.7
#: Similarity from which two findings are one change: with functions, and by tests and sizes alone.
ENOUGH, ENOUGH_WITHOUT_FUNCTIONS = 0.7, 0.85
#: So much less is enough where both can be of releases of one day.
SAME_DAY = 0.1
#: A test moved in two lines alike when the one shows so much of the step of the other, in logs.
SHARED = 0.5
#: By sizes alone, so many tests have to agree; one is enough on the same day.
FEWEST_TESTS = 2


class StepKey(NamedTuple):
    """What lines have in common of a series; server and config may differ."""

    benchmark: str
    test: str
    metric: str


Amount = TypeVar("Amount", bound=Hashable)
#: Instructions per operation that a function of a test costs more or less than before.
FunctionSteps = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Signature:
    """What a change looks like."""

    dbms: str
    line: str
    kind: FindingKind
    steps: Mapping[StepKey, float]
    """Log steps of what moved, the median over servers and configs."""
    measured: frozenset[StepKey]
    """What was measured on both sides, whether it moved or not."""
    counted: frozenset[StepKey]
    """Steps of counted instructions, which are exact."""
    functions: FunctionSteps
    days: frozenset[date]
    """On which the releases came out that can hold the change; those that are known."""


class Similarity(NamedTuple):
    """How alike two findings are, 0 to 1, and by what."""

    value: float
    tests: int
    """That moved in both."""
    by_functions: bool
    same_day: bool

    @property
    def enough(self) -> bool:
        """Whether the two are one change."""
        needed = ENOUGH if self.by_functions else ENOUGH_WITHOUT_FUNCTIONS
        few = not self.by_functions and self.tests < FEWEST_TESTS
        return self.value >= needed - SAME_DAY * self.same_day and (self.same_day or not few)


def signature_of(
    finding: Finding, measured: Collection[StepKey], days: Iterable[date], metrics: MetricRegistry
) -> Signature:
    """The signature of a finding; `measured` as of `measured_across`, `days` those of its suspect releases."""
    steps = log_steps(finding.moves)
    return Signature(
        dbms=finding.dbms,
        line=finding.line,
        kind=finding.kind,
        steps=steps,
        measured=frozenset({*measured, *steps}),
        counted=frozenset(key for key in steps if metrics[key.metric].lane == "instructions"),
        functions={(change.test, change.function): change.after - change.before for change in finding.functions},
        days=frozenset(days),
    )


def log_steps(moves: Iterable[Move]) -> dict[StepKey, float]:
    """By what lines have in common: log(after / before), the median over servers and configs; without zeros."""
    steps: dict[StepKey, list[float]] = defaultdict(list)
    for move in moves:
        if move.before > 0 and move.after > 0:
            steps[StepKey(move.key.benchmark, move.key.test, move.key.metric)].append(
                math.log(move.after / move.before)
            )
    return {key: median(values) for key, values in steps.items()}


def measured_across(series: Sequence[Series], previous: str, release: str) -> frozenset[StepKey]:
    """What `series` of a line have of both releases."""
    return frozenset(
        StepKey(member.key.benchmark, member.key.test, member.key.metric)
        for member in series
        if {previous, release} <= {point.version for point in member.points}
    )


def agreement(left: Mapping[Amount, float], right: Mapping[Amount, float]) -> float:
    """What both have of the larger of the two, 0 to 1, over all names; opposite signs have nothing in common."""
    return _share(left, right, lambda a, b: max(a, b, 0.0) - min(a, b, 0.0))


def contained(part: Mapping[Amount, float], whole: Mapping[Amount, float]) -> float:
    """What `whole` has of `part`, 0 to 1, whatever else is in it."""
    own = {name: whole.get(name, 0.0) for name in part}
    return _share(part, own, lambda a, _: abs(a))


def _share(left: Mapping[Amount, float], right: Mapping[Amount, float], most: Callable[[float, float], float]) -> float:
    pairs = [(left.get(name, 0.0), right.get(name, 0.0)) for name in {*left, *right}]
    # fsum is exact, so the order of a set does not matter.
    common = math.fsum(min(abs(a), abs(b)) for a, b in pairs if (a > 0) == (b > 0))
    total = math.fsum(most(a, b) for a, b in pairs)
    return common / total if total > 0 else 0.0


def similarity(left: Signature, right: Signature) -> Similarity:
    """How alike two findings are; symmetric. 0 for other DBMS and kinds, and for one line, whose changes are two.

    Only what both lines measured is compared: a test that one of them does not have says nothing.
    """
    both_measured = left.measured & right.measured
    steps = [{key: step for key, step in side.steps.items() if key in both_measured} for side in (left, right)]
    counted = left.counted & right.counted & both_measured
    if counted:
        # Where both counted a change, the noise of time adds nothing to it.
        metrics = {key.metric for key in counted}
        steps = [{key: step for key, step in side.items() if key.metric in metrics} for side in steps]
    same_day = bool(left.days & right.days)
    tests = len({key.test for key in steps[0].keys() & steps[1].keys()})
    if (left.dbms, left.kind) != (right.dbms, right.kind) or left.line == right.line:
        return Similarity(0.0, tests, by_functions=False, same_day=same_day)
    sizes = agreement(*steps)
    of_functions = functions_alike(left, right, agreement)
    if of_functions is None:
        return Similarity(sizes, tests, by_functions=False, same_day=same_day)
    value = FUNCTIONS_PART * of_functions + (1.0 - FUNCTIONS_PART) * sizes
    return Similarity(value, tests, by_functions=True, same_day=same_day)


def own_moves(moves: Sequence[Move], other: Signature, metrics: MetricRegistry) -> list[Move]:
    """Those of one line's moves whose tests the other line measured and does not show: what came to this line besides.

    A test is common to both when one of its metrics that lead moved in both, by half as much there or more. What is too
    small for the other line to show, was refuted, or was not measured there, says nothing.
    """
    common, own = set(), set()
    for move in moves:
        key = StepKey(move.key.benchmark, move.key.test, move.key.metric)
        if not metrics[key.metric].leads or key not in other.measured or min(move.before, move.after) <= 0:
            continue
        size, there = math.log(move.after / move.before), other.steps.get(key, 0.0)
        shared = max(there if size > 0 else -there, 0.0)
        unseen = math.log1p(max(move.mde_pct, metrics[key.metric].smallest_change_pct) / 100.0)
        if shared >= SHARED * abs(size):
            common.add(key.test)
        elif goes_its_way(other.kind, move) and move.tier != "unconfirmed" and abs(size) - shared > unseen:
            own.add(key.test)
    return [move for move in moves if move.key.test in own - common]


def functions_alike(
    left: Signature, right: Signature, alike: Callable[[FunctionSteps, FunctionSteps], float]
) -> float | None:
    """`alike` of the functions of each test that both have functions of, weighted by how far the test moved; None
    without such a test. A scan has a hundred times the instructions of a point query and counts for no more."""
    of_test = [_by_test(side.functions) for side in (left, right)]
    values, weights = [], []
    for test in sorted(of_test[0].keys() & of_test[1].keys()):
        values.append(alike(of_test[0][test], of_test[1][test]))
        weights.append(_moved(left, test) + _moved(right, test))
    total = math.fsum(weights)
    if not values:
        return None
    if total == 0:
        return math.fsum(values) / len(values)
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / total


def _moved(signature: Signature, test: str) -> float:
    """How far the counted instructions of a test moved, in logs."""
    return max((abs(signature.steps[key]) for key in signature.counted if key.test == test), default=0.0)


def _by_test(functions: FunctionSteps) -> dict[str, dict[tuple[str, str], float]]:
    of_test: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for (test, function), step in functions.items():
        if step:
            of_test[test][test, function] = step
    return of_test
