"""Measures two of anything side by side until it is clear whether they differ, or the budget is spent.

Every round starts fresh servers of both sides, interleaved; the first round runs all tests, later ones only those that
are UNKNOWN or that differ on one block alone. Nothing goes into the history: a patch is no release.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from pydantic import BaseModel, ConfigDict

from detector.attachments import comparable
from detector.compare import Comparison, compare, family_verdict
from detector.releases.metric_kinds import noise_prior
from history.errors import BadSettings
from history.metrics import MetricRegistry
from history.model import Better, Block, FunctionCost, Lane, Run, Session
from pointdrop.jobs.comparison_sides import Shelf, Side
from runners.releases import Installed
from runners.sessions import Event, plan_session, run_session
from runners.settings import Benchmark, Profile, Server, Test

#: A difference is told only after this many blocks of each side: the second is a fresh server on fresh data.
FEWEST_BLOCKS = 2
#: A machine that is too busy in so many rounds, one after the other, will hardly be quiet in the next.
MOST_NOISY_ROUNDS = 2
MOST_FUNCTIONS = 5


class TestRow(BaseModel):
    """One test and metric."""

    __test__ = False
    model_config = ConfigDict(frozen=True)

    test: str
    group: str
    metric: str
    verdict: str
    """SAME, DIFFERENT or UNKNOWN."""
    direction: str
    """regression, improvement, or empty."""
    before: float
    after: float
    change_pct: float
    low_pct: float | None
    high_pct: float | None
    blocks: int
    """Of each side, at least."""
    functions: tuple[dict[str, Any], ...] = ()
    """name, before, after: instructions per operation of the functions that changed most."""


class CompareReport(BaseModel):
    """The answer of `pointdrop compare`; its JSON is `--format json`."""

    model_config = ConfigDict(frozen=True)

    base: str
    candidate: str
    server: str
    lane: Lane
    profile: str
    verdict: str
    """Of all tests together: DIFFERENT when any surely differs, SAME when all are, else UNKNOWN."""
    rounds: int
    blocks: int
    minutes: float
    stopped: str = ""
    tests: tuple[TestRow, ...]
    warnings: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[TestRow, ...]:
        return tuple(row for row in self.tests if row.direction == "regression")

    @property
    def clear(self) -> bool:
        """Whether it ended because nothing was left to settle, not because of a limit."""
        return not self.stopped and all(row.verdict != "UNKNOWN" for row in self.tests)


@dataclass(frozen=True)
class ComparisonSetup:
    """What is compared, with what, for how long."""

    base: tuple[Side, Installed]
    candidate: tuple[Side, Installed]
    server: Server
    benchmark: Benchmark
    tests: tuple[Test, ...]
    profile: Profile
    metrics: MetricRegistry
    configs: Path
    state: Path
    budget_minutes: float
    most_rounds: int
    seed: int
    sandbox: bool = False
    """Run the servers of both sides inside bubblewrap."""
    on_event: Callable[[Event], None] = lambda event: None
    keep: Callable[[Session, Run, Block], None] = lambda session, run, block: None


@dataclass
class _Values:
    """Block values of both sides, by (test, metric)."""

    sides: tuple[dict[tuple[str, str], list[float]], ...] = field(
        default_factory=lambda: (defaultdict(list), defaultdict(list))
    )
    group: dict[str, str] = field(default_factory=dict)
    better: dict[str, Better] = field(default_factory=dict)
    functions: tuple[dict[str, tuple[FunctionCost, ...]], ...] = field(default_factory=lambda: ({}, {}))
    blocks: int = 0
    unusable: str = ""
    """Why the newest block that does not count does not."""

    def add(self, side: int, block: Block, judged: Set[str]) -> None:
        if block.status != "ok":
            self.unusable = block.reason or block.status
            return
        self.blocks += 1
        for measurement in block.measurements:
            if measurement.metric in judged:
                self.sides[side][measurement.test, measurement.metric].append(measurement.value)
                self.group[measurement.test] = measurement.group
                self.better[measurement.metric] = measurement.better
        self.functions[side].update(block.functions)

    def shared(self) -> dict[tuple[str, str], list[float]]:
        """Values of the base that have some of the candidate beside them."""
        return {key: values for key, values in self.sides[0].items() if key in self.sides[1]}

    def nothing(self) -> str:
        """In words, why there is nothing to judge; empty when there is something."""
        if self.shared():
            return ""
        return f"no block of both sides counts: {self.unusable or 'none has a value to judge by'}"

    def alone(self) -> list[str]:
        """In words, what only one side has: a step of the Insert Benchmark is void where its inserts fell behind."""
        lost = sorted(self.sides[0].keys() ^ self.sides[1].keys())
        return [f"{test}: only one side has {metric}, so it is not compared" for test, metric in lost]


def compare_sides(setup: ComparisonSetup) -> CompareReport:
    """Rounds of interleaved blocks until nothing is UNKNOWN or the budget is spent.

    BadSettings when the sides differ in more than one thing, since then no difference could be explained.
    """
    (base, installed), (candidate, other) = setup.base, setup.candidate
    if base.dbms != candidate.dbms:
        raise BadSettings(f"{base} and {candidate} are two DBMS; `pointdrop report` compares those from the history")
    same_build = installed.release.version == other.release.version
    if not same_build and base.config != candidate.config:
        raise BadSettings(f"{base} and {candidate} differ in build and in config; change one thing at a time")
    if same_build and base.config == candidate.config:
        raise BadSettings(f"{base} and {candidate} are the same build with the same config")
    values, began = _Values(), time.monotonic()
    shelf = Shelf({installed.release.version: installed, other.release.version: other})
    # The others are reported by the session and mean nothing on so few blocks.
    judged = {metric.name for metric in setup.metrics if metric.compared and metric.lane == setup.profile.lane}
    wanted, rounds, stopped, noisy = setup.tests, 0, "", 0
    warnings: list[str] = []
    while wanted and rounds < setup.most_rounds:
        left = setup.budget_minutes * 60 - (time.monotonic() - began)
        if rounds and left <= 0:
            spent = f"the budget of {setup.budget_minutes:g} minutes is spent"
            stopped = "; ".join(filter(None, (spent, values.nothing())))
            break
        plan = plan_session(
            session_id=f"compare-{datetime.now(UTC):%Y%m%dT%H%M%S%f}",
            plan="compare",
            server=setup.server,
            benchmark=setup.benchmark,
            tests=wanted,
            profile=setup.profile,
            releases=(other.release,),
            control=installed.release,
            configs=tuple(dict.fromkeys((base.config, candidate.config))),
            blocks=1 if setup.profile.lane == "instructions" else FEWEST_BLOCKS,
            seed=setup.seed + rounds,
        )

        def sink(session: Session, run: Run, block: Block) -> None:
            is_base = (run.release.version, run.config) == (installed.release.version, base.config)
            values.add(0 if is_base else 1, block, judged)
            setup.keep(session, run, block)

        outcome = run_session(
            plan, shelf, sink, configs=setup.configs, state=setup.state, on_event=setup.on_event,
            budget_s=max(left, 0.0) if rounds else None, sandbox=setup.sandbox,
        )  # fmt: skip
        rounds += 1
        warnings += outcome.warnings
        if outcome.skipped or outcome.stopped:
            stopped = outcome.stopped or "; ".join(outcome.skipped.values())
            break
        if nothing := values.nothing():
            noisy += 1
            if noisy == MOST_NOISY_ROUNDS or rounds == setup.most_rounds:
                stopped = nothing
                break
            continue
        unclear = {test for test, _ in _unclear(values, setup.metrics)}
        wanted = tuple(test for test in setup.tests if test.name in unclear)
    minutes = (time.monotonic() - began) / 60
    return _report(setup, values, rounds, minutes, stopped, warnings)


def judge(
    before: Sequence[float], after: Sequence[float], test: str, metric: str, metrics: MetricRegistry
) -> Comparison:
    """The verdict on one test and metric, held by the metric's known noise and smallest change."""
    floor_pct, noise = metrics[metric].smallest_change_pct, noise_prior(metrics[metric], test)
    return compare(before, after, floor_pct=floor_pct, noise=noise)


def _few(comparison: Comparison) -> bool:
    return min(comparison.blocks_before, comparison.blocks_after) < FEWEST_BLOCKS


def _settled(comparison: Comparison) -> Comparison:
    """What is said of it: a limit may have come before the second block of a difference."""
    return (
        replace(comparison, verdict="UNKNOWN") if comparison.verdict == "DIFFERENT" and _few(comparison) else comparison
    )


def _unclear(values: _Values, metrics: MetricRegistry) -> list[tuple[str, str]]:
    """Tests and metrics that more blocks could settle: UNKNOWN, or different on too few blocks to be told."""
    unclear = []
    for (test, metric), before in values.shared().items():
        comparison = judge(before, values.sides[1][test, metric], test, metric, metrics)
        if _settled(comparison).verdict == "UNKNOWN":
            unclear.append((test, metric))
    return unclear


def _report(
    setup: ComparisonSetup, values: _Values, rounds: int, minutes: float, stopped: str, warnings: Sequence[str]
) -> CompareReport:
    comparisons = {
        key: _settled(judge(before, values.sides[1][key], *key, setup.metrics))
        for key, before in values.shared().items()
    }
    order = {test.name: number for number, test in enumerate(setup.tests)}
    rows = [
        _row(values, key, comparison)
        for key, comparison in sorted(comparisons.items(), key=lambda item: (order[item[0][0]], item[0]))
    ]
    return CompareReport(
        base=f"{setup.base[0]}",
        candidate=f"{setup.candidate[0]}",
        server=setup.server.name,
        lane=setup.profile.lane,
        profile=setup.profile.name,
        verdict=family_verdict(comparisons.values()),
        rounds=rounds,
        blocks=values.blocks,
        minutes=round(minutes, 2),
        stopped=stopped,
        tests=tuple(rows),
        warnings=tuple(dict.fromkeys([*warnings, *values.alone()])),
    )


def _row(values: _Values, key: tuple[str, str], comparison: Comparison) -> TestRow:
    test, metric = key
    before, after = (geometric_mean(side[key]) if min(side[key]) > 0 else fmean(side[key]) for side in values.sides)
    worse = (comparison.change_pct > 0) == (values.better[metric] == "lower")
    direction = "" if comparison.verdict != "DIFFERENT" else "regression" if worse else "improvement"
    return TestRow(
        test=test,
        group=values.group[test],
        metric=metric,
        verdict=comparison.verdict,
        direction=direction,
        before=before,
        after=after,
        change_pct=comparison.change_pct,
        low_pct=comparison.low_pct if math.isfinite(comparison.low_pct) else None,
        high_pct=comparison.high_pct if math.isfinite(comparison.high_pct) else None,
        blocks=min(comparison.blocks_before, comparison.blocks_after),
        functions=_functions(values, test) if direction else (),
    )


def _functions(values: _Values, test: str) -> tuple[dict[str, Any], ...]:
    before, after = ({c.function: c.insn_per_op for c in side.get(test, ())} for side in values.functions)
    return moved_functions(before, after)


def moved_functions(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[dict[str, Any], ...]:
    """The functions whose instructions per operation changed most, of two lists of the most expensive ones.

    >>> moved_functions({"parse": 50.0, "plan": 20.0}, {"parse": 50.0, "plan": 25.0, "audit": 9.0})
    ({'name': 'audit', 'before': 0.0, 'after': 9.0}, {'name': 'plan', 'before': 20.0, 'after': 25.0})
    """
    if not before or not after:
        return ()
    moved = {name: abs(after.get(name, 0.0) - before.get(name, 0.0)) for name in comparable(before, after)}
    largest = sorted((name for name, size in moved.items() if size), key=lambda name: (-moved[name], name))
    return tuple(
        {"name": n, "before": before.get(n, 0.0), "after": after.get(n, 0.0)} for n in largest[:MOST_FUNCTIONS]
    )
