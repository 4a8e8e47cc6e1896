"""A history like those people have, written through the real store: Postgres lines with a step, a quiet line, MySQL's
Insert Benchmark with two steps, two configs, functions, plans, samples, a failed block, and a change of kernel."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from history.model import (
    Block,
    Finding,
    FindingEvent,
    Fingerprint,
    FunctionChange,
    FunctionCost,
    GroupSummary,
    IssueLink,
    Measurement,
    Move,
    PlanChange,
    Reading,
    Release,
    Run,
    SeriesKey,
    Session,
    StatementPlan,
    finding_key,
)
from history.store import Store
from presentation.commands import Measurable
from reports import build
from reports.annotations import Annotation
from reports.settings import ReportSettings, TestInfo

START = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)
TESTS = {
    "point-query": "point, part 1",
    "hot-points": "point, part 1",
    "range-covered-pk": "range, part 1",
    "scan": "range, part 1",
    "update-index": "writes",
    "insert": "writes",
}
STEPS = {"l.i0": 88_000.0, "l.x": 160_000.0, "l.i1": 17_000.0, "l.i2": 4_000.0, "qr100": 5_000.0, "qp1000": 9_000.0}
THROUGHPUT = {"l.i0": "ips", "l.x": "indexed rows/s", "l.i1": "ips", "l.i2": "ips", "qr100": "qps", "qp1000": "qps"}
MYSQL = [f"8.0.{point}" for point in (24, 25, 26, 27, 28, 30, 31, 32)]
POSTGRES = [f"17.{point}" for point in range(8)]
QUIET = [f"18.{point}" for point in range(3)]


class Writer:
    """Appends runs to a store, with stable ids and times."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.runs = 0

    def session(self, name: str, server: str, day: int, kernel: str = "6.1.0-40", control: str = "") -> Session:
        facts = {"cpu_model": "Ryzen 7 7840HS", "cores": "8", "kernel": kernel, "thp": "madvise"}
        made = Session(
            id=name,
            host="bee-1",
            server=server,
            plan="local",
            fingerprint=Fingerprint(facts=facts),
            started=START + timedelta(days=day),
            control=control,
        )
        self.store.append_session(made)
        return made

    def run(
        self,
        session: Session,
        release: Release,
        config: str,
        benchmark: str,
        measure: Callable[[random.Random], list[Measurement]],
        *,
        blocks: int = 3,
        failed: int = 0,
        **detail: object,
    ) -> Run:
        self.runs += 1
        lane = "instructions" if benchmark == "sysbench" else "time"
        run = Run(
            id=f"run-{self.runs:03}",
            session_id=session.id,
            release=release,
            config=config,
            benchmark=benchmark,
            profile="published" if release.build == "published" else "",
            lane=lane,
        )
        self.store.append_run(run)
        for number in range(blocks + failed):
            started = session.started + timedelta(minutes=10 * self.runs + number)
            ok = number < blocks
            self.store.append_block(
                Block(
                    id=f"{run.id}-{number}",
                    run_id=run.id,
                    number=number,
                    started=started,
                    ended=started + timedelta(seconds=50),
                    status="ok" if ok else "failed",
                    reason="" if ok else "the server did not answer within 60 s",
                    measurements=tuple(measure(self.random)) if ok else (),
                    **(detail if ok and number == 0 else {}),  # type: ignore[arg-type]
                )
            )
        return run


def _sysbench(level: float, noise: float = 0.001) -> Callable[[random.Random], list[Measurement]]:
    def measure(rng: random.Random) -> list[Measurement]:
        rows = []
        for number, (test, group) in enumerate(TESTS.items()):
            insn = 40_000.0 * (number + 1) * level * (1 + rng.gauss(0, noise))
            pair = {"test": test, "group": group}
            rows.append(Measurement(**pair, metric="insn/o", value=insn, unit="instructions"))  # type: ignore[arg-type]
            rows.append(
                Measurement(
                    **pair, metric="qps", value=4e8 / insn * (1 + rng.gauss(0, 0.02)), unit="/s", better="higher"
                )  # type: ignore[arg-type]
            )
            rows.append(Measurement(**pair, metric="cs/o", value=0.0 if number % 2 else 2.5))  # type: ignore[arg-type]
        return rows

    return measure


def _insert(version: str) -> Callable[[random.Random], list[Measurement]]:
    level = 1.0 if MYSQL.index(version) < 4 else 0.95 if MYSQL.index(version) < 5 else 0.85

    def measure(rng: random.Random) -> list[Measurement]:
        rows = []
        for step, rate in STEPS.items():
            value = rate * level * (1 + rng.gauss(0, 0.003))
            share = 0.8 if (step, version) == ("qp1000", "8.0.32") else 1.0
            if share == 1.0:  # a void step has no query rate, and no cost of a query
                rows.append(Measurement(test=step, metric=THROUGHPUT[step], value=value, unit="/s", better="higher"))
                rows.append(Measurement(test=step, metric="cpupq", value=1e6 / value, unit="us"))
            if step.startswith("q"):
                target = float(step[2:])
                rows.append(Measurement(test=step, metric="ips", value=target * share, unit="/s", better="higher"))
                rows.append(Measurement(test=step, metric="target_ips", value=target, unit="/s", better="higher"))
        return rows

    return measure


def _move(key: SeriesKey, before: float, after: float, *, group: str = "", better: str = "lower") -> Move:
    change = 100 * (after / before - 1)
    worse = (after > before) == (better == "lower")
    return Move(
        key=key,
        group=group,
        unit="",
        better=better,  # type: ignore[arg-type]
        before=before,
        after=after,
        change_pct=change,
        low_pct=change - 0.4,
        high_pct=change + 0.4,
        direction="regression" if worse else "improvement",
        probability=0.997,
        q_value=0.002,
        noise_pct=0.15,
        mde_pct=0.6,
        blocks_before=3,
        blocks_after=3,
    )


def _findings() -> list[Finding]:
    key = {"dbms": "postgres", "line": "17", "server": "local", "config": "default", "benchmark": "sysbench"}
    moves = tuple(
        _move(SeriesKey(**key, test=test, metric="insn/o"), 40_000.0 * (i + 1), 40_000.0 * (i + 1) * 1.03, group=group)
        for i, (test, group) in enumerate(TESTS.items())
    )
    postgres = Finding(
        key=finding_key("postgres", "17", "17.5", "regression"),
        kind="regression",
        tier="confirmed",
        dbms="postgres",
        line="17",
        previous="17.4",
        release="17.5",
        moves=moves,
        groups=(
            GroupSummary(
                server="local", metric="insn/o", group="writes", moved=2, tests=2, median_pct=3.0, worst_pct=3.0,
                worst_test="update-index",
            ),
        ),
        functions=(
            FunctionChange(test="point-query", function="ExecInterpExpr", before=5200, after=6100),
            FunctionChange(test="point-query", function="palloc", before=1900, after=1850),
            FunctionChange(test="point-query", function="pg_new_check", before=0, after=300),
        ),
        plans=(PlanChange(test="scan", statement="SELECT 1", before="Index Scan", after="Seq Scan"),),
        evidence=("3 of 3 blocks agree.",),
    )  # fmt: skip
    insert = {"dbms": "mysql", "line": "8.0", "server": "ser4", "config": "cy10a_bee", "benchmark": "insert"}
    found = [postgres]
    for release, previous, before, after in (("8.0.28", "8.0.27", 1.0, 0.95), ("8.0.30", "8.0.28", 0.95, 0.85)):
        steps = tuple(
            _move(SeriesKey(**insert, test=step, metric=THROUGHPUT[step]), rate * before, rate * after, better="higher")
            for step, rate in STEPS.items()
        )
        found.append(
            Finding(
                key=finding_key("mysql", "8.0", release, "regression"),
                kind="regression",
                tier="provisional",
                dbms="mysql",
                line="8.0",
                previous=previous,
                release=release,
                unmeasured=("8.0.29",) if release == "8.0.30" else (),
                moves=steps,
            )
        )
    return found


def readings(host: str = "bee-1") -> list[Reading]:
    """A host that learns, is steady, has a bad moment, and ends in quarantine; another that is well again."""
    cpu = [100.0] * 8 + [104.9, 130.0, 100.2, 131.0, 132.0, 133.0]
    verdicts = ["learning"] * 5 + ["usual"] * 4 + ["differs", "usual"] + ["differs"] * 3
    found = [
        Reading.model_validate(
            {
                "host": host, "at": START + timedelta(hours=at), "session_id": f"s-{at // 2}", "cpu_ms": value,
                "phase": "after" if at % 2 else "before", "memory_ms": 50.0, "sync_ms": 1.25, "verdict": verdict,
                "reasons": ("CPU: usually 100.0",) if verdict == "differs" else (), "quarantine": at == len(cpu) - 1,
            }
        )
        for at, (value, verdict) in enumerate(zip(cpu, verdicts, strict=True))
    ]  # fmt: skip
    again = found[0].model_copy(update={"host": f"{host}-well", "at": START + timedelta(days=9)})
    return [*found, found[-1].model_copy(update={"host": f"{host}-well"}), again]


def fill(store: Store, seed: int = 1) -> None:
    """The whole history, findings included."""
    writer = Writer(store, seed)
    first = writer.session("s-1", "local", 0, control="17.2")
    second = writer.session("s-2", "local", 7, kernel="6.1.0-41", control="17.2")
    old = {"ExecInterpExpr": 5200.0, "palloc": 1900.0}
    new = {"ExecInterpExpr": 6100.0, "palloc": 1850.0, "pg_new_check": 300.0}
    plans = {"scan": (StatementPlan(statement="SELECT 1", digest="a1", text="Seq Scan"),)}
    samples = {"point-query": {"qps": tuple(1000.0 + second for second in range(30))}}
    for at, version in enumerate(POSTGRES):
        release = Release(
            dbms="postgres", version=version, line="17", released=date(2024, 9, 26) + timedelta(days=91 * at)
        )
        measure = _sysbench(1.03 if at >= 5 else 1.0)
        costs = tuple(FunctionCost(function=f, insn_per_op=c) for f, c in (new if at >= 5 else old).items())
        detail = {"functions": {"point-query": costs}, "plans": plans, "samples": samples} if at >= 4 else {}
        writer.run(first, release, "default", "sysbench", measure, failed=1 if version == "17.6" else 0, **detail)
    control = Release(dbms="postgres", version="17.2", line="17", released=date(2025, 3, 27))
    writer.run(second, control, "default", "sysbench", _sysbench(1.0))
    for version in QUIET:
        release = Release(dbms="postgres", version=version, line="18", released=date(2025, 9, 25))
        writer.run(second, release, "default", "sysbench", _sysbench(0.97))
        writer.run(second, release, "sync_off", "sysbench", _sysbench(0.95))
    published = writer.session("s-3", "ser4", 3)
    for version in MYSQL:
        release = Release(dbms="mysql", version=version, line="8.0", build="published", source="Small Datum 2023-09-18")
        writer.run(published, release, "cy10a_bee", "insert", _insert(version), blocks=1)
    store.append_detection(_findings(), "test")
    key = finding_key("mysql", "8.0", "8.0.30", "regression")
    store.append_event(FindingEvent(key=key, event="detected", at=START + timedelta(days=8)))
    store.append_event(FindingEvent(key=key, event="filed", at=START + timedelta(days=8, minutes=1)))
    store.append_link(IssueLink(key=key, tracker="github:me/db", number=12, url="https://github.com/me/db/issues/12"))
    for reading in readings():
        store.append_reading(reading)


def copy(source: Store, target: Store, shuffle: random.Random | None = None) -> None:
    """Append everything of one history to another, in the same or any order of arrival."""
    sessions, runs = source.sessions(), source.runs()
    blocks = [block for run in runs for block in source.blocks(run.id)]
    findings, taken = source.findings(), source.readings()
    for rows in (sessions, runs, blocks, findings, taken):
        if shuffle:
            shuffle.shuffle(rows)  # type: ignore[arg-type]
    for session in sessions:
        target.append_session(session)
    for run in runs:
        target.append_run(run)
    for block in blocks:
        target.append_block(block)
    target.append_detection(findings, "test")
    for event in source.events():
        target.append_event(event)
    for link in source.links():
        target.append_link(link)
    for reading in taken:
        target.append_reading(reading)


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Read-only for tests; `store` is a copy to write to."""
    with Store.open(f"sqlite:///{tmp_path_factory.mktemp('history') / 'history.db'}") as opened:
        fill(opened)
        yield opened


@pytest.fixture(scope="session")
def built(history: Store, settings: ReportSettings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of `history`; read-only, `site` is a copy to write to."""
    out = tmp_path_factory.mktemp("built") / "site"
    build(history, out, settings)
    return out


@pytest.fixture
def store(history: Store, tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'history.db'}") as opened:
        copy(history, opened)
        yield opened


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "site"))


@pytest.fixture(scope="session")
def settings() -> ReportSettings:
    return ReportSettings(
        tests={test: TestInfo(at, f"SELECT {at}") for at, test in enumerate((*TESTS, "l.i0", "l.x", "l.i1", "l.i2"))},
        measurable=Measurable(
            servers=frozenset({"local"}),
            configs=frozenset({("postgres", "default"), ("postgres", "sync_off")}),
            tests={"sysbench": tuple(TESTS), "insert": ("l.i0", "l.x", "l.i1", "l.i2")},
        ),
        annotations=(
            Annotation(dbms="mysql", release="8.0.29", line="8.0", text="withdrawn", url="https://example.org/8.0.29"),
            Annotation(host="bee-1", date=date(2026, 11, 8), text="kernel upgraded"),
        ),
    )
