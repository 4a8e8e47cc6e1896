"""Values that the tests of every room build from: series, moves, groups and findings in the shapes that the detector
gives, and sessions, runs and blocks in those that the runners give."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from history.metrics import shipped_metrics
from history.model import (
    Block,
    BlockValue,
    CanaryReading,
    Finding,
    FindingKind,
    Fingerprint,
    FunctionChange,
    GroupSummary,
    Measurement,
    Move,
    PlanChange,
    Point,
    Release,
    Run,
    Series,
    SeriesKey,
    Session,
    Tier,
    finding_key,
)
from history.store import Store

METRICS = shipped_metrics()

#: When SESSION, the sessions of `Writer`, and the nights of alerts begin.
DAY = datetime(2026, 1, 5, tzinfo=UTC)
START = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
NIGHT = timedelta(days=1)

RELEASES = ("17.0", "17.1", "17.2", "17.3", "17.4", "17.5", "17.6")
#: Tests by group.
GROUPS = {
    "point-query": "point, part 1",
    "hot-points": "point, part 1",
    "range-covered": "range, part 1",
    "update-index": "writes",
    "insert": "writes",
}
TESTS = tuple(GROUPS)
#: Instructions per operation of each test at the first release.
BASE = {
    "point-query": 43_029.8,
    "hot-points": 61_220.0,
    "range-covered": 120_330.0,
    "update-index": 180_100.0,
    "insert": 99_500.0,
}
#: The field's per-operation metrics, the same for every test.
FIELD = {"cpu/o": 0.000247, "cs/o": 5.015, "r/o": 0.0, "rKB/o": 0.0, "wKB/o": 0.001, "qps": 48_921.0}
#: Measured lines of `write_history` and their releases.
LINES: dict[tuple[str, str], Sequence[str]] = {
    ("postgres", "17"): RELEASES,
    ("mysql", "8.0"): ("8.0.27", "8.0.28", "8.0.30", "8.0.31"),
    ("mariadb", "10.11"): ("10.11.4", "10.11.5", "10.11.6"),
}
SERVERS = ("local", "medium")


# Series.


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


def series(
    values: Sequence[Sequence[float] | None],
    key: SeriesKey | None = None,
    *,
    test: str = "point-query",
    metric: str = "qps",
    line: str = "17",
    server: str = "small",
    releases: Sequence[str] | None = None,
    sessions: Sequence[str] | None = None,
    epochs: Sequence[str] | None = None,
    control: dict[str, tuple[float, ...]] | None = None,
    group: str | None = None,
) -> Series:
    """A series of blocks by release (`LINE.0`, `LINE.1`, ... unless named); None where a release was not measured.

    `sessions` and `epochs` name those of each release; by default every release has a session of its own in one epoch.
    """
    key = key or series_key(test, metric, line=line, server=server)
    versions = releases or [f"{key.line}.{position}" for position in range(len(values))]
    points = [
        Point(
            version=version,
            position=position,
            values=tuple(
                BlockValue(
                    value=value,
                    block_id=f"{version}/{number}",
                    session_id=sessions[position] if sessions else f"session-{position}",
                    host="host",
                    epoch=epochs[position] if epochs else "epoch",
                )
                for number, value in enumerate(blocks)
            ),
        )
        for position, (version, blocks) in enumerate(zip(versions, values, strict=True))
        if blocks is not None
    ]
    better = METRICS[key.metric].better
    return Series(
        key=key,
        group=GROUPS.get(key.test, "point, part 1") if group is None else group,
        unit="/s" if better == "higher" else "",
        better=better,
        points=tuple(points),
        control=control or {},
        sessions=tuple(dict.fromkeys(block.session_id for point in points for block in point.values)),
    )


def measured_again(one: Series, session: str, blocks: Mapping[str, Sequence[float]]) -> Series:
    """`one` with the blocks, by release, of a session that began after all others."""
    points = tuple(
        point.model_copy(
            update={
                "values": (
                    *point.values,
                    *(
                        BlockValue(value, f"{session}/{point.version}/{number}", session, "host", "epoch")
                        for number, value in enumerate(blocks.get(point.version, ()))
                    ),
                )
            }
        )
        for point in one.points
    )
    return one.model_copy(update={"points": points, "sessions": (*one.sessions, session)})


def level_series(key: SeriesKey, levels: Sequence[float | None], releases: Sequence[str] = RELEASES) -> Series:
    """One block a release; None is a release without a result."""
    return series([None if level is None else [level] for level in levels], key, releases=releases)


def stepped(before: float, change_pct: float, at: int, releases: Sequence[str] = RELEASES) -> list[float]:
    """Levels that change by `change_pct` at index `at`, flat otherwise."""
    return [before * (1 + change_pct / 100) if index >= at else before for index in range(len(releases))]


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
    return [level_series(series_key(test, metric), levels, releases) for metric, levels in columns.items()]


# Findings.


def move(key: SeriesKey, before: float, change_pct: float, *, group: str | None = None) -> Move:
    """A move of a series; its direction follows from the metric's."""
    better = METRICS[key.metric].better
    return Move(
        key=key,
        group=GROUPS.get(key.test, "tests") if group is None else group,
        unit=METRICS[key.metric].unit,
        better=better,
        before=before,
        after=before * (1 + change_pct / 100),
        change_pct=change_pct,
        low_pct=change_pct - 0.2,
        high_pct=change_pct + 0.2,
        direction="regression" if (change_pct > 0) == (better == "lower") else "improvement",
        probability=0.99,
        q_value=0.002,
        noise_pct=0.12,
        mde_pct=0.4,
        blocks_before=12,
        blocks_after=4,
    )


def group_summaries(moves: Iterable[Move], tests: int = 11) -> tuple[GroupSummary, ...]:
    """The groups of the moves, of so many tests each."""
    folded: dict[tuple[str, str, str], list[Move]] = {}
    for moved in moves:
        folded.setdefault((moved.key.server, moved.key.metric, moved.group), []).append(moved)
    summaries = []
    for (server, metric, group), members in folded.items():
        worst = max(members, key=lambda member: abs(member.change_pct))
        summaries.append(
            GroupSummary(
                server=server,
                metric=metric,
                group=group,
                moved=len(members),
                tests=max(tests, len(members)),
                median_pct=median(member.change_pct for member in members),
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
    changes: Mapping[str, float] | None = None,
    moves: Sequence[Move] = (),
    unmeasured: tuple[str, ...] = (),
    functions: bool = True,
    plans: bool = True,
) -> Finding:
    """A finding of these moves, or in counted instructions; `changes` are percent by test."""
    changes = changes or {"point-query": 3.1, "hot-points": 4.9}
    sign = -1 if kind == "improvement" else 1
    moves = tuple(moves) or tuple(
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
        evidence=("4 of 4 blocks of 17.5 agree.",),
    )


def history_of(finding: Finding, releases: Sequence[str] = RELEASES) -> list[Series]:
    """Series that show exactly what the finding says."""
    at = releases.index(finding.release)
    return [
        level_series(moved.key, stepped(moved.before, moved.change_pct, at, releases), releases)
        for moved in finding.moves
    ]


# Records, and histories of them.

SESSION = Session(
    id="s",
    host="bee",
    server="small",
    fingerprint=Fingerprint(facts={"cores": "8", "kernel": "6.1"}),
    started=DAY,
    seed=7,
    control="17.1",
)
READING = CanaryReading(
    host="bee",
    at=DAY - timedelta(minutes=1),
    session_id="s",
    phase="before",
    cpu_ms=100.5,
    memory_ms=50.0,
    sync_ms=1.0,
    verdict="differs",
    reasons=("CPU: 100.5 ms, usually 90.0 (+12 %)",),
    quarantine=True,
)


def run(version: str, line: str = "17", session: str = "s", lane: str = "time") -> Run:
    """A run of one Postgres release."""
    release = Release(dbms="postgres", version=version, line=line)
    values = {"id": f"{session}/{version}", "session_id": session, "release": release}
    return Run.model_validate(values | {"config": "default", "benchmark": "sysbench", "lane": lane})


def block(of: Run, value: float, number: int = 1, **values: object) -> Block:
    """A block with one measurement."""
    rate = Measurement(
        test="point-query", group="point, part 1", metric="qps", value=value, unit="1/s", better="higher"
    )
    fields = {"number": number, "started": DAY, "ended": DAY + timedelta(minutes=1), "measurements": (rate,)}
    return Block.model_validate({"id": f"{of.id}/{number}", "run_id": of.id} | fields | values)


def measurement(test: str, metric: str, value: float, group: str | None = None) -> Measurement:
    """One number, with what the registry knows of its metric."""
    return Measurement(
        test=test,
        group=GROUPS.get(test, "") if group is None else group,
        metric=metric,
        value=value,
        unit=METRICS[metric].unit,
        better=METRICS[metric].better,
    )


Measure = Callable[[random.Random], list[Measurement]]


class Writer:
    """Appends sessions and runs to a store, with ids and times that do not depend on when."""

    def __init__(self, store: Store, seed: int = 1, start: datetime = START) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.start = start
        self.runs = 0

    def session(self, name: str, server: str, day: int, kernel: str = "6.1.0-40", control: str = "") -> Session:
        facts = {"cpu_model": "Ryzen 7 7840HS", "cores": "8", "kernel": kernel, "thp": "madvise"}
        session = Session(
            id=name,
            host="bee-1",
            server=server,
            plan="local",
            fingerprint=Fingerprint(facts=facts),
            started=self.start + timedelta(days=day),
            control=control,
        )
        self.store.append_session(session)
        return session

    def run(
        self,
        session: Session,
        release: Release,
        config: str,
        benchmark: str,
        measure: Measure,
        *,
        blocks: int = 3,
        failed: int = 0,
        lane: str = "",
        **detail: object,
    ) -> Run:
        """One run of `blocks` good and then `failed` bad blocks; `detail` goes with the first."""
        self.runs += 1
        run = Run.model_validate(
            {
                "id": f"run-{self.runs:03}",
                "session_id": session.id,
                "release": release,
                "config": config,
                "benchmark": benchmark,
                "profile": "published" if release.build == "published" else "",
                "lane": lane or ("instructions" if benchmark == "sysbench" else "time"),
            }
        )
        self.store.append_run(run)
        for number in range(blocks + failed):
            started = session.started + timedelta(minutes=10 * self.runs + number)
            ok = number < blocks
            self.store.append_block(
                Block.model_validate(
                    {
                        "id": f"{run.id}-{number}",
                        "run_id": run.id,
                        "number": number,
                        "started": started,
                        "ended": started + timedelta(seconds=50),
                        "status": "ok" if ok else "failed",
                        "reason": "" if ok else "the server did not answer within 60 s",
                        "measurements": tuple(measure(self.random)) if ok else (),
                    }
                    | (detail if ok and number == 0 else {})
                )
            )
        return run


def write_history(path: Path, lines: Mapping[tuple[str, str], Sequence[str]] = LINES) -> None:
    """Flat levels of every test and release of `lines`, one session a server, one block a run."""
    flat = [
        measurement(test, metric, value) for test in TESTS for metric, value in {"insn/o": BASE[test], **FIELD}.items()
    ]
    with Store.open(f"sqlite:///{path}") as store:
        writer = Writer(store, start=NOW)
        for server in SERVERS:
            session = writer.session(f"s-{server}", server, 0)
            for (dbms, line), releases in lines.items():
                for version in releases:
                    release = Release(dbms=dbms, version=version, line=line)
                    writer.run(session, release, "default", "sysbench", lambda _: flat, blocks=1, lane="time")


def detect(store: Store, *findings: Finding) -> None:
    """A new detection that found just these."""
    store.append_detection(findings, "by hand")
