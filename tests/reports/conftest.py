"""A history like those people have, written through the real store: Postgres lines with a step, a quiet line, MySQL's
Insert Benchmark with two steps, two configs, functions, plans, samples, a failed block, and a change of kernel."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from history.model import (
    CanaryReading,
    Finding,
    FindingEvent,
    FunctionChange,
    FunctionCost,
    GroupSummary,
    IssueLink,
    Measurement,
    PlanChange,
    Release,
    SeriesKey,
    StatementPlan,
    finding_key,
)
from history.store import Store
from presentation.commands import Measurable
from reports.annotations import Annotation
from reports.settings import ReportSettings, TestInfo
from reports.site import build
from tests.builders import START, Writer, measurement, move

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


def _sysbench(level: float, noise: float = 0.001) -> Callable[[random.Random], list[Measurement]]:
    def measure(rng: random.Random) -> list[Measurement]:
        rows = []
        for number, (test, group) in enumerate(TESTS.items()):
            insn = 40_000.0 * (number + 1) * level * (1 + rng.gauss(0, noise))
            rows += [
                measurement(test, "insn/o", insn, group),
                measurement(test, "qps", 4e8 / insn * (1 + rng.gauss(0, 0.02)), group),
                measurement(test, "cs/o", 0.0 if number % 2 else 2.5, group),
            ]
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
                rows.append(measurement(step, THROUGHPUT[step], value))
                rows.append(measurement(step, "cpupq", 1e6 / value))
            if step.startswith("q"):
                target = float(step[2:])
                rows.append(measurement(step, "ips", target * share))
                rows.append(measurement(step, "target_ips", target))
        return rows

    return measure


def _findings() -> list[Finding]:
    key = {"dbms": "postgres", "line": "17", "server": "local", "config": "default", "benchmark": "sysbench"}
    moves = tuple(
        move(SeriesKey(**key, test=test, metric="insn/o"), 40_000.0 * number, 3.0, group=group)
        for number, (test, group) in enumerate(TESTS.items(), start=1)
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
    faster = postgres.model_copy(
        update={
            "key": finding_key("postgres", "17", "17.3", "improvement"), "kind": "improvement", "previous": "17.2",
            "release": "17.3", "moves": (move(SeriesKey(**key, test="scan", metric="qps"), 2500.0, 6.0),),
            "groups": (), "functions": (), "plans": (),
        }
    )  # fmt: skip
    insert = {"dbms": "mysql", "line": "8.0", "server": "ser4", "config": "cy10a_bee", "benchmark": "insert"}
    findings = [postgres, faster]
    for release, previous, before, after in (("8.0.28", "8.0.27", 1.0, 0.95), ("8.0.30", "8.0.28", 0.95, 0.85)):
        steps = tuple(
            move(
                SeriesKey(**insert, test=step, metric=THROUGHPUT[step]),
                rate * before,
                100 * (after / before - 1),
                group="",
            )
            for step, rate in STEPS.items()
        )
        findings.append(
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
    return findings


def readings(host: str = "bee-1") -> list[CanaryReading]:
    """A host that learns, is steady, has a bad moment, and ends in quarantine; another that is well again."""
    cpu = [100.0] * 8 + [104.9, 130.0, 100.2, 131.0, 132.0, 133.0]
    verdicts = ["learning"] * 5 + ["usual"] * 4 + ["differs", "usual"] + ["differs"] * 3
    history = [
        CanaryReading.model_validate(
            {
                "host": host, "at": START + timedelta(hours=at), "session_id": f"s-{at // 2}", "cpu_ms": value,
                "phase": "after" if at % 2 else "before", "memory_ms": 50.0, "sync_ms": 1.25, "verdict": verdict,
                "reasons": ("CPU: usually 100.0",) if verdict == "differs" else (), "quarantine": at == len(cpu) - 1,
            }
        )
        for at, (value, verdict) in enumerate(zip(cpu, verdicts, strict=True))
    ]  # fmt: skip
    again = history[0].model_copy(update={"host": f"{host}-well", "at": START + timedelta(days=9)})
    return [*history, history[-1].model_copy(update={"host": f"{host}-well"}), again]


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
        # Published figures are of a server and of tests that nobody has here.
        measurable=Measurable(
            servers=frozenset({"local"}),
            configs=frozenset({("postgres", "default")}),
            tests={"sysbench": tuple(TESTS), "insert": ("l.i0", "l.x", "l.i1", "l.i2")},
        ),
        tests={test: TestInfo(at, f"SELECT {at}") for at, test in enumerate((*TESTS, "l.i0", "l.x", "l.i1", "l.i2"))},
        annotations=(
            Annotation(dbms="mysql", release="8.0.29", line="8.0", text="withdrawn", url="https://example.org/8.0.29"),
            Annotation(host="bee-1", date=date(2026, 11, 8), text="kernel upgraded"),
        ),
    )
