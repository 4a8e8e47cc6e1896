"""Findings and histories the tests of this room share: small, written by hand, in the shapes the detector gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from history.model import (
    Block,
    BlockValue,
    Finding,
    FindingKind,
    FunctionChange,
    GroupSummary,
    Measurement,
    Move,
    PlanChange,
    Point,
    Series,
    SeriesKey,
    Tier,
    finding_key,
)

NOW = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
NIGHT = timedelta(days=1)
RELEASES = ("17.0", "17.1", "17.2", "17.3", "17.4", "17.5", "17.6")
TESTS = ("point-query", "hot-points", "range-covered", "update-index", "insert")
GROUPS = {
    "point-query": "point, part 1",
    "hot-points": "point, part 1",
    "range-covered": "range, part 1",
    "update-index": "writes",
    "insert": "writes",
}
#: Instructions per operation of each test at the first release.
BASE = {
    "point-query": 43_029.8,
    "hot-points": 61_220.0,
    "range-covered": 120_330.0,
    "update-index": 180_100.0,
    "insert": 99_500.0,
}


def series_key(
    test: str,
    metric: str = "insn/o",
    *,
    dbms: str = "postgres",
    line: str = "17",
    server: str = "local",
    config: str = "default",
    benchmark: str = "sysbench",
) -> SeriesKey:
    return SeriesKey(dbms=dbms, line=line, server=server, config=config, benchmark=benchmark, test=test, metric=metric)


def series(key: SeriesKey, values: Sequence[float | None], releases: Sequence[str] = RELEASES) -> Series:
    """One block a release; None is a release without a result."""
    points = tuple(
        Point(
            version=version,
            position=position,
            values=(BlockValue(value=value, block_id=f"b{position}", session_id="s", host="h", epoch="e"),),
        )
        for position, (version, value) in enumerate(zip(releases, values, strict=True))
        if value is not None
    )
    return Series(key=key, group=GROUPS.get(key.test, "tests"), points=points)


def step(before: float, change_pct: float, at: int, releases: Sequence[str] = RELEASES) -> list[float]:
    """A flat series that changes by `change_pct` at index `at`."""
    return [before * (1 + change_pct / 100) if i >= at else before for i in range(len(releases))]


def move(key: SeriesKey, before: float, change_pct: float, *, better: str = "lower") -> Move:
    worse = (change_pct > 0) == (better == "lower")
    return Move(
        key=key,
        group=GROUPS.get(key.test, "tests"),
        unit="instructions",
        better="lower" if better == "lower" else "higher",
        before=before,
        after=before * (1 + change_pct / 100),
        change_pct=change_pct,
        low_pct=change_pct - 0.2,
        high_pct=change_pct + 0.2,
        direction="regression" if worse else "improvement",
        probability=0.99,
        noise_pct=0.12,
        mde_pct=0.4,
        blocks_before=12,
        blocks_after=4,
    )


def group_summaries(moves: Iterable[Move], tests: int = 11) -> tuple[GroupSummary, ...]:
    folded: dict[tuple[str, str, str], list[Move]] = {}
    for one in moves:
        folded.setdefault((one.key.server, one.key.metric, one.group), []).append(one)
    summaries = []
    for (server, metric, group), members in folded.items():
        worst = max(members, key=lambda m: abs(m.change_pct))
        summaries.append(
            GroupSummary(
                server=server,
                metric=metric,
                group=group,
                moved=len(members),
                tests=max(tests, len(members)),
                median_pct=sorted(m.change_pct for m in members)[len(members) // 2],
                worst_pct=worst.change_pct,
                worst_test=worst.key.test,
            )
        )
    return tuple(summaries)


def finding(
    release: str = "17.5",
    previous: str = "17.4",
    *,
    kind: FindingKind = "regression",
    tier: Tier = "confirmed",
    dbms: str = "postgres",
    line: str = "17",
    servers: Sequence[str] = ("local",),
    changes: dict[str, float] | None = None,
    unmeasured: tuple[str, ...] = (),
    functions: bool = True,
    plans: bool = True,
) -> Finding:
    """A finding in the instructions lane; `changes` are percent by test."""
    changes = changes or {"point-query": 3.1, "hot-points": 4.9}
    sign = -1 if kind == "improvement" else 1
    moves = tuple(
        move(series_key(test, dbms=dbms, line=line, server=server), BASE.get(test, 50_000.0), sign * change)
        for server in servers
        for test, change in changes.items()
    )
    return Finding(
        key=finding_key(dbms, line, release, kind),
        kind=kind,
        tier=tier,
        dbms=dbms,
        line=line,
        previous=previous,
        release=release,
        unmeasured=unmeasured,
        moves=moves,
        groups=group_summaries(moves),
        functions=(
            FunctionChange(test="point-query", function="ExecInterpExpr", before=2100.0, after=2950.0),
            FunctionChange(test="point-query", function="hash_search_with_hash_value", before=1500.0, after=1710.0),
        )
        if functions
        else (),
        plans=(
            PlanChange(
                test="range-covered",
                statement="SELECT count(c) FROM sbtest1 WHERE k BETWEEN $1 AND $2",
                before="Index Only Scan using k_1 on sbtest1",
                after="Seq Scan on sbtest1",
            ),
        )
        if plans
        else (),
        evidence=(
            "4 of 4 blocks of 17.5 lie above all 12 blocks of the releases before.",
            "The control release moved by 0.05 % in the same session.",
        ),
    )


def history_of(one: Finding, releases: Sequence[str] = RELEASES) -> list[Series]:
    """Series that show exactly what the finding says."""
    at = releases.index(one.release)
    return [series(m.key, step(m.before, m.change_pct, at, releases), releases) for m in one.moves]


def field_series(test: str, releases: Sequence[str] = RELEASES) -> list[Series]:
    """The field's per-operation metrics of one test, with a step at 17.5 and no reads at all."""
    columns = {
        "cpu/o": [0.000247, 0.000247, 0.000248, 0.000247, 0.000248, 0.000256, 0.000256],
        "cs/o": [5.015] * 5 + [5.105] * 2,
        "r/o": [0.0] * 7,
        "rKB/o": [0.0] * 6 + [0.4],
        "wKB/o": [0.001] * 7,
        "qps": [48921.0, 48900.0, 48750.0, 48930.0, 48800.0, 47210.0, 47190.0],
    }
    return [series(series_key(test, metric), values, releases) for metric, values in columns.items()]


def blocks(numbers: int, values: dict[str, float], start: datetime = NOW) -> list[Block]:
    """Blocks of one run with the given values by test, a little apart from each other."""
    moments = [start + timedelta(minutes=10 * n) for n in range(numbers + 1)]
    return [
        Block(
            id=f"block-{number}",
            run_id="run",
            number=number,
            started=begin,
            ended=end,
            measurements=tuple(
                Measurement(test=test, group=GROUPS.get(test, "tests"), metric="insn/o", value=value)
                for test, value in values.items()
            ),
        )
        for number, (begin, end) in enumerate(pairwise(moments))
    ]
