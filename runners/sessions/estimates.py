"""How long a session will take, as a range: from blocks that this host finished, else from priors. Pure.

`known` are finished blocks of the same DBMS, server, benchmark and profile with their phases. Blocks of the very tests
that are planned say how long another one takes; others say it test by test. A session is its rounds of blocks, each as
long as the lower or the upper end: blocks of one session are slow or fast together, so ends are added up, not averaged.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from history.model import Block
from runners.sessions.model import Estimate, SessionPlan
from runners.sessions.phases import LOAD, WAIT
from runners.sessions.planning import data_bytes, settle_seconds, step_seconds, test_seconds
from runners.sessions.prepared_data import HEAT_LIMIT_S
from runners.settings import Test
from runners.settings.benchmarks import SETTLED_PHASES, settled_parts

#: So many of the newest blocks are learned from: what the host was like a year ago is of no use.
NEWEST_BLOCKS = 40
#: Quantiles of what was seen.
LOW, HIGH = 0.1, 0.9
#: The range is wider by this share when one block is known, by a tenth of it when a hundred are.
MARGIN = 0.5


@dataclass(frozen=True)
class Range:
    """Seconds, from and to."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def times(self, low: float, high: float | None = None) -> Range:
        """So many of them, or from so many to so many."""
        return Range(self.low * low, self.high * (low if high is None else high))

    @property
    def middle(self) -> float:
        """As many times the lower end as the upper is of it."""
        return math.sqrt(self.low * self.high)


NOTHING = Range(0.0, 0.0)

# Priors, for a host that has finished no such block. The lower end is a quiet machine, the upper one has two cores and
# five other processes on each; what takes hours (loading millions of rows, steps that end by rows) is for quiet ones.
#: Beginning and ending a session: the fingerprint, the machine canary, removing old data.
SESSION_S = Range(1.0, 20.0)
#: Copying the data, starting and stopping the server.
BLOCK_S = Range(2.0, 90.0)
#: A test of the time lane besides its durations: connect, prepare statements, explain, the last report.
TEST_S = Range(0.3, 4.0)
#: A test under callgrind: translating the server's code, warming up, counting, reading the profile.
COUNTED_TEST_S = Range(1.5, 30.0)
#: Steps of the Insert Benchmark that end by rows, as a share of what two cores take.
STEP_SHARE = Range(0.7, 1.5)
#: Reading table and indexes before each part of the time lane, which ends by rows or after HEAT_LIMIT_S.
HEAT_LOW_S, HEAT_S_PER_MILLION_ROWS = 0.5, 10.0
INITIALISE_S = Range(1.0, 25.0)
LOAD_S_PER_MILLION_ROWS = Range(8.0, 18.0)
AGE_S_PER_THOUSAND_UPDATES = Range(0.2, 4.0)


def estimate(
    plan: SessionPlan,
    finished: Collection[str] = (),
    workers: int = 1,
    known: Sequence[Block] = (),
    prepared: Collection[str] = (),
) -> Estimate:
    """What is left of the session, `finished` being ids of blocks: its blocks, their wall time, and bytes on disk.

    Instructions do not depend on what else runs, so that lane has `workers` blocks at a time. `prepared` are versions
    whose data is kept from an earlier session, as far as the lower end is concerned: it may be other data. Where blocks
    were noisy, so many more are repeated at the upper end.
    """
    known = newest(known)
    left = [block for block in plan.blocks if block.id not in finished]
    at_once = workers if plan.lane == "instructions" else 1
    versions = {block.run.id: block.run.release.version for block in left}
    block, load = block_range(plan, known), load_range(plan, known)
    if not left:
        return Estimate(blocks=0, low_s=0.0, high_s=0.0, disk_bytes=0, block_s=0.0, known=len(known))
    noisy = sum(each.status == "noisy" for each in known) / len(known) if known else 0.0
    repeats = math.ceil(noisy * plan.noisy_repeats * len(versions))
    loads = sum(version not in prepared for version in versions.values())
    seconds = (
        SESSION_S
        + block.times(_rounds(len(left), at_once), _rounds(len(left) + repeats, at_once))
        + load.times(_rounds(loads, at_once), _rounds(len(versions), at_once))
    )
    return Estimate(
        blocks=len(left),
        low_s=seconds.low,
        high_s=seconds.high,
        disk_bytes=data_bytes(plan) * (len(versions) + at_once),
        block_s=needed_s(plan, known, load=left[0].run.release.version not in prepared),
        known=len(known),
    )


def _rounds(count: int, at_once: int) -> int:
    return -(-count // at_once)


def newest(known: Iterable[Block]) -> list[Block]:
    """Those to learn from: a block that failed has not done all its tests."""
    learnt = [block for block in known if block.phases.keys() >= {"block", "tests"} and _tests(block)]
    learnt = [block for block in learnt if block.status != "failed"]
    return sorted(learnt, key=lambda block: (block.started, block.id))[-NEWEST_BLOCKS:]


def block_range(plan: SessionPlan, known: Sequence[Block]) -> Range:
    """Wall time of one block, its data being prepared."""
    if same := _same(plan, known):
        return _spread(same)
    pooled: dict[str, list[float]] = {}
    for block in known:
        for name, seconds in _tests(block).items():
            pooled.setdefault(name, []).append(seconds)
    if not pooled:
        return _prior(plan)
    any_test = _spread([seconds for values in pooled.values() for seconds in values])
    total = NOTHING
    for test in plan.tests:
        unknown = any_test if plan.lane == "instructions" else _prior_test(plan, test)
        total += _spread(pooled[test.name]) if test.name in pooled else unknown
    # What is no test grows with their number or does not: a server may be started for each group of them, or for all.
    rest = [(_seconds(block) - sum(_tests(block).values()), len(plan.tests) / len(_tests(block))) for block in known]
    fewer = _spread([seconds * min(1.0, ratio) for seconds, ratio in rest])
    more = _spread([seconds * max(1.0, ratio) for seconds, ratio in rest])
    return total + Range(fewer.low, more.high)


def needed_s(plan: SessionPlan, known: Sequence[Block], *, load: bool) -> float:
    """Seconds that must be left before a block begins, where `load` is to be counted in.

    The longest that was seen, or the middle of the range when that is more or nothing was, within the upper end: the
    margin of a range is ignorance, and a night that shrinks from it learns nothing new.
    """
    seconds = _enough(block_range(plan, known), _same(plan, known))
    return seconds + (_enough(load_range(plan, known), _loads(known)) if load else 0.0)


def _enough(expected: Range, seen: Sequence[float]) -> float:
    return min(expected.high, max((expected.middle, *seen)))


def load_range(plan: SessionPlan, known: Sequence[Block]) -> Range:
    """Wall time of preparing the data of one release."""
    if loads := _loads(known):
        return _spread(loads)
    if plan.size:
        return INITIALISE_S
    rows, updates = plan.scale.rows * plan.scale.tables, plan.profile.age_updates
    return INITIALISE_S + LOAD_S_PER_MILLION_ROWS.times(rows / 1e6) + AGE_S_PER_THOUSAND_UPDATES.times(updates / 1e3)


def _same(plan: SessionPlan, known: Sequence[Block]) -> list[float]:
    """What blocks of the very tests took."""
    names = {test.name for test in plan.tests}
    return [_seconds(block) for block in known if _tests(block).keys() == names]


def _loads(known: Sequence[Block]) -> list[float]:
    return [block.phases["block"][LOAD] for block in known if LOAD in block.phases["block"]]


def _tests(block: Block) -> dict[str, float]:
    return block.phases["tests"]


def _seconds(block: Block) -> float:
    """Without preparing the data, or waiting until somebody else had."""
    others = sum(seconds for name, seconds in block.phases["block"].items() if name not in (LOAD, WAIT))
    return others + sum(_tests(block).values())


def _spread(seconds: Sequence[float]) -> Range:
    margin = MARGIN / math.sqrt(len(seconds))
    low, high = np.quantile(seconds, (LOW, HIGH))
    return Range(float(low) * (1 - margin), float(high) * (1 + margin))


def _prior(plan: SessionPlan) -> Range:
    total = BLOCK_S
    for test in plan.tests:
        total += _prior_test(plan, test)
    if plan.lane == "instructions":
        return total
    seconds = settle_seconds(plan) * len({test.phase for test in plan.tests} & set(SETTLED_PHASES))
    total += Range(seconds, seconds)
    return total if plan.size else total + _prior_heat(plan).times(len(settled_parts(plan.tests)))


def _prior_heat(plan: SessionPlan) -> Range:
    millions = plan.scale.rows * plan.scale.tables / 1e6
    return Range(HEAT_LOW_S, min(HEAT_LIMIT_S, 2 * HEAT_LOW_S + HEAT_S_PER_MILLION_ROWS * millions))


def _prior_test(plan: SessionPlan, test: Test) -> Range:
    if plan.lane == "instructions":
        return COUNTED_TEST_S.times(plan.profile.events_factor)
    if plan.size:
        assert test.step is not None
        seconds = step_seconds(test, plan.size)
        return TEST_S + (Range(seconds, seconds) if test.step.queries else STEP_SHARE.times(seconds))
    seconds = float(plan.profile.warmup_s + test_seconds(test, plan.profile))
    return TEST_S + Range(seconds, seconds)
