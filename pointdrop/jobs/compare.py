"""Measures two of anything side by side until it is clear whether they differ, or the budget is spent.

Every round starts fresh servers of both sides, interleaved; the first round runs all tests, later ones only those that
are UNKNOWN or that differ on one block alone. Nothing goes into the history: a patch is no release.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from detector.compare import REPORTED_BLOCKS, Comparison, Verdict, family_verdict
from detector.settings_split import split_of
from history.errors import BadSettings
from history.function_costs import function_changes
from history.metrics import MetricRegistry
from history.model import Block, FunctionCost, Lane, Release, Run, Session, SettingsSplit, UnknownSide
from history.toolchains import toolchain_changes, toolchain_sentences
from pointdrop.jobs.arm_values import ArmValues
from pointdrop.jobs.comparison_sides import Shelf, Side
from pointdrop.jobs.settings_split import third_arm
from runners.releases import Installed
from runners.sessions import Event, HeldConfig, SessionPlan, plan_session, run_session
from runners.settings import Benchmark, Profile, Server, Test

#: A machine that is too busy in so many rounds, one after the other, will hardly be quiet in the next.
MOST_NOISY_ROUNDS = 2
MOST_FUNCTIONS = 5

Count = Annotated[int, Field(ge=0, le=100_000)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
Held = tuple[Release, HeldConfig]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Function(_Part):
    """Instructions per operation of one function, under its base name."""

    name: str
    before: Number
    after: Number
    at_most: UnknownSide = ""
    """The side on which it is not among the most expensive functions: it costs at most that much there."""


class TestRow(_Part):
    """One test and metric."""

    __test__ = False

    test: str
    group: str
    metric: str
    verdict: Verdict
    direction: Literal["", "regression", "improvement"]
    before: Number
    after: Number
    change_pct: Number
    low_pct: Number | None
    high_pct: Number | None
    blocks: Count
    """Of each side, at least."""
    functions: tuple[Function, ...] = ()
    """Those that changed most."""


class CompareReport(_Part):
    """The answer of `pointdrop compare`; its JSON is `--format json`."""

    base: str
    candidate: str
    server: str
    lane: Lane
    profile: str
    verdict: Verdict
    """Of all tests together: DIFFERENT when any surely differs, SAME when all are, else UNKNOWN."""
    rounds: Count
    blocks: Count
    minutes: Number
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


class SplitReport(CompareReport):
    """The answer of `pointdrop compare --split-settings`."""

    split: SettingsSplit
    """What the difference is made of: settings, code, or both."""


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
    split_settings: bool = False
    """Measure a third arm: the candidate with the settings of the base."""
    on_event: Callable[[Event], None] = lambda event: None


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
    values, began = ArmValues(), time.monotonic()
    shelf = Shelf({installed.release.version: installed, other.release.version: other})
    # The others are reported by the session and mean nothing on so few blocks.
    judged = {metric.name for metric in setup.metrics if metric.compared and metric.lane == setup.profile.lane}
    arm = _third_arm(setup, shelf) if setup.split_settings else None
    held: list[Held] = [(other.release, arm)] if arm and arm.options else []
    arms = {(installed.release.version, base.config): 0, (other.release.version, candidate.config): 1}
    arms |= {(release.version, config.name): 2 for release, config in held}
    wanted, rounds, stopped, noisy = setup.tests, 0, "", 0
    warnings: list[str] = []
    known: list[Block] = []
    toolchains: dict[str, dict[str, str]] = {}
    while wanted and rounds < setup.most_rounds:
        left = setup.budget_minutes * 60 - (time.monotonic() - began)
        if rounds and left <= 0:
            spent = f"the budget of {setup.budget_minutes:g} minutes is spent"
            stopped = "; ".join(filter(None, (spent, values.nothing())))
            break
        plan = _plan(setup, wanted, rounds, held)

        def sink(session: Session, run: Run, block: Block) -> None:
            values.add(arms[run.release.version, run.config], block, judged)
            toolchains[run.release.version] = run.toolchain
            known.append(block)

        outcome = run_session(
            plan, shelf, sink, configs=setup.configs, state=setup.state, on_event=setup.on_event,
            budget_s=max(left, 0.0) if rounds else None, sandbox=setup.sandbox, known=known,
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
        unclear = values.unclear(setup.metrics, split=arm is not None)
        wanted = tuple(test for test in setup.tests if test.name in unclear)
    builds = (toolchains.get(side.release.version, {}) for side in (installed, other))
    warnings += toolchain_sentences(toolchain_changes(*builds))
    minutes = (time.monotonic() - began) / 60
    report = _report(setup, values, rounds, minutes, stopped, warnings)
    if arm is None or not (steps := values.steps(setup.metrics)):
        return report
    return SplitReport(**dict(report), split=split_of(steps, arm.held, arm.left))


def _plan(setup: ComparisonSetup, wanted: Sequence[Test], rounds: int, held: Sequence[Held] = ()) -> SessionPlan:
    """One round."""
    (base, installed), (candidate, other) = setup.base, setup.candidate
    return plan_session(
        session_id=f"compare-{datetime.now(UTC):%Y%m%dT%H%M%S%f}",
        plan="compare",
        server=setup.server,
        benchmark=setup.benchmark,
        tests=wanted,
        profile=setup.profile,
        releases=(other.release,),
        control=installed.release,
        configs=tuple(dict.fromkeys((base.config, candidate.config))),
        blocks=1 if setup.profile.lane == "instructions" else REPORTED_BLOCKS,
        seed=setup.seed + rounds,
        held=held,
    )


def _third_arm(setup: ComparisonSetup, shelf: Shelf) -> HeldConfig:
    """The candidate with the settings of the base."""
    plan = _plan(setup, setup.tests, 0)
    runs = {(run.release.version, run.config): run for run in plan.runs}
    before, after = (runs[installed.release.version, side.config] for side, installed in (setup.base, setup.candidate))
    return third_arm(plan, before, after, shelf, configs=setup.configs, state=setup.state, sandbox=setup.sandbox)


def _report(
    setup: ComparisonSetup, values: ArmValues, rounds: int, minutes: float, stopped: str, warnings: Sequence[str]
) -> CompareReport:
    comparisons = values.comparisons(setup.metrics)
    order = {test.name: number for number, test in enumerate(setup.tests)}
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
        tests=tuple(
            _row(values, key, comparisons[key]) for key in sorted(comparisons, key=lambda key: (order[key[0]], key))
        ),
        warnings=tuple(dict.fromkeys([*warnings, *values.alone()])),
    )


def _row(values: ArmValues, key: tuple[str, str], comparison: Comparison) -> TestRow:
    test, metric = key
    before, after = (geometric_mean(side[key]) if min(side[key]) > 0 else fmean(side[key]) for side in values.sides[:2])
    worse = (comparison.change_pct > 0) == (values.newest[key].better == "lower")
    different = comparison.verdict == "DIFFERENT"
    return TestRow(
        test=test,
        group=values.newest[key].group,
        metric=metric,
        verdict=comparison.verdict,
        direction="" if not different else "regression" if worse else "improvement",
        before=before,
        after=after,
        change_pct=comparison.change_pct,
        low_pct=comparison.low_pct if math.isfinite(comparison.low_pct) else None,
        high_pct=comparison.high_pct if math.isfinite(comparison.high_pct) else None,
        blocks=min(comparison.blocks_before, comparison.blocks_after),
        functions=moved_functions(*(side.get(test, ()) for side in values.functions[:2])) if different else (),
    )


def moved_functions(before: Sequence[FunctionCost], after: Sequence[FunctionCost]) -> tuple[Function, ...]:
    """The functions whose instructions per operation changed most, of two lists of the most expensive ones.

    >>> def costs(**functions):
    ...     return [FunctionCost(function=name, insn_per_op=insn) for name, insn in functions.items()]
    >>> moved_functions(costs(parse=50.0, plan=20.0), costs(parse=50.0, plan=25.0))
    (Function(name='plan', before=20.0, after=25.0, at_most=''),)
    """
    return tuple(
        Function(name=change.function, before=change.before, after=change.after, at_most=change.at_most)
        for change in function_changes("", before, after)[:MOST_FUNCTIONS]
        if change.before != change.after
    )
