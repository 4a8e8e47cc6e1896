"""Which blocks a session has, and in which order. Pure.

Blocks are interleaved so that a drift of the machine falls on all releases alike: a seeded shuffle of the releases,
then the same backwards, then a new shuffle ("ABBA", with as many letters as there are releases):

    block 1: 17.0 17.5 17.4        block 2: 17.4 17.5 17.0
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterable, Sequence

from history.errors import BadSettings
from history.model import Release
from runners.sessions.model import DataRecipe, HeldConfig, PlannedBlock, PlannedRun, SessionPlan
from runners.settings import Benchmark, InsertSize, Profile, Server, Test
from runners.settings.profiles import size_of

#: Seed of the rows, in every session ever: releases are compared on the same table.
DATA_SEED = 1
COUNTED_SEED = 1
#: Rows a second of the Insert Benchmark's steps on two cores, about.
STEP_ROWS_PER_S = {"load": 50_000.0, "index": 200_000.0, "replace": 4_000.0}
#: Bytes on disk of a row with both its indexes, and of an empty server with its logs.
ROW_BYTES = 300
EMPTY_SERVER_BYTES = 200 * 1024**2


def plan_session(
    *,
    session_id: str,
    plan: str,
    server: Server,
    benchmark: Benchmark,
    tests: Sequence[Test],
    profile: Profile,
    releases: Sequence[Release],
    control: Release,
    configs: Sequence[str] = ("default",),
    blocks: int,
    seed: int,
    noisy_repeats: int = 1,
    held: Sequence[tuple[Release, HeldConfig]] = (),
) -> SessionPlan:
    """The session that measures `releases` and the control with every config, `blocks` times each, and with as many
    blocks each release of `held` with settings of another one.

    The same arguments give the same blocks with the same ids. BadSettings when there is nothing to measure, or
    when the profile does not say how much of it.
    """
    if profile.lane == "instructions":
        tests = [test for test in tests if test.reported]  # each is counted on a server of its own, which it warms
    if not tests:
        raise BadSettings(f"session {session_id}: no tests to run")
    chosen = {release.version: release for release in (*releases, control)}
    if size_of(benchmark, profile):
        tests = benchmark.select(tuple(test.name for test in tests))  # a step starts from what those before it left
    dbms = {release.dbms for release in chosen.values()}
    if len(dbms) != 1:
        raise BadSettings(f"session {session_id}: one session measures one DBMS, not {', '.join(sorted(dbms))}")
    arms = [(release, config) for release in chosen.values() for config in configs]
    arms += [(release, config.name) for release, config in held]
    runs = [
        PlannedRun(f"{session_id}/{release.version}/{config}/{benchmark.name}/{profile.lane}", release, config)
        for release, config in arms
    ]
    return SessionPlan(
        session_id=session_id,
        plan=plan,
        server=server,
        benchmark=benchmark,
        tests=tuple(tests),
        profile=profile,
        control=control,
        seed=seed,
        blocks=tuple(_interleaved(runs, blocks, seed)),
        noisy_repeats=noisy_repeats,
        held=tuple({config.name: config for _, config in held}.values()),
    )


def _interleaved(runs: Sequence[PlannedRun], blocks: int, seed: int) -> Iterable[PlannedBlock]:
    order = sorted(runs, key=lambda run: run.id)
    shuffler = random.Random(seed)
    for number in range(1, blocks + 1):
        if number % 2:
            shuffler.shuffle(order)
        else:
            order.reverse()
        for run in order:
            yield block_of(run, number)


def block_of(run: PlannedRun, number: int) -> PlannedBlock:
    """Block `number` of a run."""
    return PlannedBlock(f"{run.id}/{number}", run, number)


def repeat_of(run: PlannedRun, planned: int, budget: int, taken: Collection[str]) -> PlannedBlock | None:
    """The next repeat of a noisy block: numbers after the planned ones, at most `budget` of them; None when used up."""
    for number in range(planned + 1, planned + budget + 1):
        block = block_of(run, number)
        if block.id not in taken:
            return block
    return None


def workload_seed(plan: SessionPlan, test: Test, number: int) -> int:
    """Seed of a test's random numbers: the same for every release in blocks of one number.

    Other blocks and other nights of the time lane draw others, so that no lucky row decides. A count is always of the
    same work, night after night: where an index page splits is worth a percent.
    """
    draw = f"{plan.seed}/{number}" if plan.lane == "time" else str(COUNTED_SEED)
    return int.from_bytes(hashlib.sha256(f"{test.name}/{draw}".encode()).digest()[:4], "big")


def test_seconds(test: Test, profile: Profile) -> int:
    """Measured seconds of a test in the time lane."""
    return {"read": profile.read_s, "write": profile.write_s, "warm": profile.warm_s}[test.kind]


def counted_events(test: Test, profile: Profile) -> int:
    """Counted events of a test in the instructions lane."""
    assert test.counted_events is not None
    return max(1, round(test.counted_events * profile.events_factor))


def recipe_of(plan: SessionPlan, test: Test) -> DataRecipe:
    """The data that a test begins with, or in the time lane the first test of a block.

    A counted test has data of its own, whatever else the plan measures: what a test before the writes counts is of
    tables just loaded, what all others count is of tables whose indexes were updated since.
    """
    if plan.size:
        return DataRecipe(None)
    aged = plan.lane == "instructions" and test.phase != "pre"
    return DataRecipe(plan.scale, plan.profile.age_updates if aged else 0, DATA_SEED)


def step_seconds(test: Test, size: InsertSize) -> float:
    """Expected seconds of a step of the Insert Benchmark."""
    assert test.step is not None
    if test.step.queries:
        return float(size.query_s)
    return size.replaced.get(test.name, size.rows) / STEP_ROWS_PER_S[test.step.does]


def settle_seconds(plan: SessionPlan) -> float:
    """Wait after the postwrite steps: 60 s and 1 s per million rows, as published, within the profile's bound."""
    rows = plan.scale.rows * plan.scale.tables
    return min(60.0 + rows / 1e6, float(plan.profile.settle_max_s))


def data_bytes(plan: SessionPlan) -> int:
    """Expected size of one data directory."""
    return EMPTY_SERVER_BYTES + plan.scale.rows * plan.scale.tables * ROW_BYTES
