"""Issues of real detection: histories written through the store, the detector run on them, and the issue rendered.

`python -m tests.alerts.scenarios` writes the golden files; read them before they are committed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from alerts.context import context_from
from alerts.render import render
from alerts.settings import AlertSettings
from alerts.subject import subjects
from alerts.trackers import Draft
from detector import DetectorSettings
from history.model import Finding, FunctionCost, Measurement, Release, StatementPlan
from history.store import Store
from history.versions import version_key
from pointdrop.jobs.detect import find
from pointdrop.jobs.room_settings import measurable
from tests.builders import Writer, measurement

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SETTINGS = AlertSettings(measurable=measurable(ROOT / "configs"))

#: Tests by group; `.range100` follows each in the catalogue.
GROUPS = {
    "point-query": "point, part 1",
    "hot-points": "point, part 1",
    "points-covered-pk": "point, part 1",
    "random-points": "point, part 2",
    "range-covered-pk": "range, part 1",
    "range-notcovered-pk": "range, part 1",
    "scan": "range, part 2",
    "read-only": "range, part 2",
    "update-index": "writes",
    "update-nonindex": "writes",
    "insert": "writes",
    "delete": "writes",
}
TESTS = tuple(GROUPS)
#: Level of each metric in the first test, and the noise of a block.
COUNTED = {"insn/o": (43_000.0, 0.0004)}
TIMED = {"qps": (21_000.0, 0.003), "cpu/o": (0.00048, 0.003), "cs/o": (5.0, 0.004), "wKB/o": (0.4, 0.01)}
POSTGRES = tuple(f"17.{point}" for point in range(8))
MYSQL = ("8.0.24", "8.0.25", "8.0.26", "8.0.27", "8.0.28", "8.0.30", "8.0.31", "8.0.32")

#: Change in percent by (test, metric) of one release.
Changes = Mapping[tuple[str, str], float]


Measure = Callable[[random.Random], list[Measurement]]


def measure(metrics: Mapping[str, tuple[float, float]], changes: Changes) -> Measure:
    """A block of all tests, each test on a level of its own, with noise."""

    def block(rng: random.Random) -> list[Measurement]:
        return [
            measurement(
                f"{test}.range100",
                metric,
                level * (1 + number / 4) * (1 + changes.get((test, metric), 0.0) / 100) * (1 + rng.gauss(0, noise)),
                group,
            )
            for number, (test, group) in enumerate(GROUPS.items())
            for metric, (level, noise) in metrics.items()
        ]

    return block


def release(dbms: str, version: str) -> Release:
    return Release(dbms=dbms, version=version, line=version.rpartition(".")[0])


def since(version: str, versions: Sequence[str], changes: Changes) -> Callable[[str], Changes]:
    """The changes of every release from `version` on."""
    return lambda other: changes if versions.index(other) >= versions.index(version) else {}


def both(tests: Mapping[str, float]) -> Changes:
    """QPS by test, and CPU per operation with it."""
    return {(test, "qps"): change for test, change in tests.items()} | {
        (test, "cpu/o"): 100 * (100 / (100 + change) - 1) for test, change in tests.items()
    }


def counted(store: Store, changes: Callable[[str], Changes], detail: bool = True) -> None:
    """Postgres in both lanes, everything in one session; functions and a plan before and after 17.5, which is measured
    again beside 17.4 in both lanes."""
    writer = Writer(store, 11)
    session = writer.session("s-1", "local", 0, control="17.2")
    for version in POSTGRES:
        late = POSTGRES.index(version) >= POSTGRES.index("17.5")
        functions = {"ExecInterpExpr": 5200.0 + 900.0 * late, "hash_search_with_hash_value": 1500.0 + 210.0 * late}
        costs = tuple(FunctionCost(function=name, insn_per_op=cost) for name, cost in functions.items())
        text = "Seq Scan on sbtest1" if late else "Index Only Scan using k_1 on sbtest1"
        plan = StatementPlan(statement="SELECT count(c) FROM sbtest1 WHERE k BETWEEN $1 AND $2", digest=text, text=text)
        given = {"functions": {"point-query.range100": costs}, "plans": {"scan.range100": (plan,)}} if detail else {}
        of = release("postgres", version)
        writer.run(session, of, "default", "sysbench", measure(COUNTED, changes(version)), lane="instructions", **given)
        writer.run(session, of, "default", "sysbench", measure(TIMED, changes(version)), lane="time")
    for version in ("17.4", "17.5"):
        again = writer.session("s-2", "local", 1, control="17.4")
        of = release("postgres", version)
        counts = measure(COUNTED, changes(version))
        writer.run(again, of, "default", "sysbench", counts, lane="instructions", blocks=1)
        writer.run(again, of, "default", "sysbench", measure(TIMED, changes(version)), lane="time")


def regression_instructions(store: Store) -> None:
    worse = {
        ("point-query", "insn/o"): 3.1,
        ("hot-points", "insn/o"): 4.9,
        ("scan", "insn/o"): 1.2,
    }
    counted(store, since("17.5", POSTGRES, worse))


def regression_with_improvement(store: Store) -> None:
    worse = {
        ("point-query", "insn/o"): 3.1,
        ("hot-points", "insn/o"): 4.9,
        ("scan", "insn/o"): 1.2,
    }
    better = {("insert", "insn/o"): -7.0, ("delete", "insn/o"): -6.0}
    counted(store, since("17.5", POSTGRES, worse | better), detail=False)


def regression_throughput(store: Store) -> None:
    """The time lane on the small server: less QPS for more CPU, one release of the manifest was not measured. The two
    sides were measured again."""
    writer = Writer(store, 12)
    session = writer.session("s-1", "small", 0, control="8.0.26")
    slower = both(
        {
            "point-query": -5.6, "hot-points": -5.1, "range-covered-pk": -12.5, "update-index": -2.6,
            "insert": -4.0,
        }
    )  # fmt: skip
    for version in MYSQL:
        changes = since("8.0.30", MYSQL, slower)(version)
        writer.run(session, release("mysql", version), "default", "sysbench", measure(TIMED, changes), lane="time")
        if version in ("8.0.28", "8.0.30"):
            again = writer.session("s-2", "small", 1, control="8.0.28")
            of = release("mysql", version)
            writer.run(again, of, "default", "sysbench", measure(TIMED, changes), lane="time", blocks=4)
    writer.run(session, release("mysql", "8.0.29"), "default", "sysbench", measure(TIMED, {}), blocks=0, failed=1)


def faster_for_cpu(store: Store) -> None:
    """8.0.27 inserts faster for three times the CPU, and updates faster for more KB written."""
    writer = Writer(store, 16)
    session = writer.session("s-1", "small", 0, control="8.0.26")
    changes = {("insert", "qps"): 17.8, ("insert", "cpu/o"): 214.0, ("update-index", "wKB/o"): 15.0}
    traded = since("8.0.27", MYSQL, both({"update-index": 5.0}) | changes)
    for version in MYSQL:
        of = release("mysql", version)
        writer.run(session, of, "default", "sysbench", measure(TIMED, traded(version)), lane="time")


def drift(store: Store) -> None:
    """A quarter of a percent with each of 24 releases."""
    writer = Writer(store, 13)
    session = writer.session("s-1", "small", 0, control="8.0.20")
    for point in range(11, 35):
        lost = dict.fromkeys(TESTS, 100 * (0.9975 ** (point - 11) - 1))
        of = release("mysql", f"8.0.{point}")
        writer.run(session, of, "default", "sysbench", measure(TIMED, both(lost)), lane="time", blocks=2)


def environment(store: Store) -> None:
    """Counted in two sessions, and the control lost what the newer releases lost."""
    writer = Writer(store, 14)
    slower = {(test, "insn/o"): 6.0 if number < 7 else 8.0 for number, test in enumerate(TESTS)}
    for name, day, versions, changes in (
        ("s-1", 0, POSTGRES[:5], {}),
        ("s-2", 7, ("17.2", *POSTGRES[5:]), slower),
    ):
        session = writer.session(name, "local", day, control="17.2")
        for version in versions:
            of = release("postgres", version)
            writer.run(session, of, "default", "sysbench", measure(COUNTED, changes), lane="instructions")


def majors(store: Store) -> None:
    """The newest release of each line, all in one session: version 17 lost, and again when it was measured again."""
    writer = Writer(store, 15)
    session = writer.session("s-1", "local", 0, control="14.9")
    slower = both(
        {
            "point-query": -6.0,
            "hot-points": -5.0,
            "points-covered-pk": -7.5,
            "scan": -9.0,
        }
    )
    for line in range(11, 18):
        changes = slower if line == 17 else {}
        for point in (8, 9):
            of = release("postgres", f"{line}.{point}")
            writer.run(session, of, "default", "sysbench", measure(TIMED, changes), lane="time")
            if of.version in ("16.9", "17.9"):
                again = writer.session("s-2", "local", 1, control="16.9")
                writer.run(again, of, "default", "sysbench", measure(TIMED, changes), lane="time")


#: Instructions per operation before the fix that turned `pg_mblen` into `pg_mblen_with_len`, and percent it added.
MULTI_BYTE_LEVELS = {
    "point-query": 43_030.0, "hot-points": 97_100.0, "random-points": 205_300.0, "scan": 3_179_530.0,
    "read-only": 561_000.0, "update-index": 121_400.0, "insert": 170_972.0,
}  # fmt: skip
MULTI_BYTE = {"scan": 44.9, "insert": 1.2}
#: Instructions per operation by test and function, before and after it.
MULTI_BYTE_FUNCTIONS = {
    "scan": {
        "pg_mblen": (595_000.0, 0.0),
        "pg_mblen_with_len": (0.0, 1_904_000.0),
        "pg_mbstrlen_with_len": (1_326_000.0, 1_445_000.0),
    },
    "insert": {
        "pg_mblen": (890.0, 0.0),
        "pg_mblen_with_len": (0.0, 2_848.0),
        "pg_mbstrlen_with_len": (1_992.0, 2_170.0),
    },
}
#: The day on which it came to five lines at once, and their releases of that day.
MULTI_BYTE_DAY = date(2026, 2, 12)
MULTI_BYTE_RELEASES = {"14": "14.21", "15": "15.16", "16": "16.12", "17": "17.8", "18": "18.2"}
#: What a night measured: two lines in full, of the others the newest.
MULTI_BYTE_MEASURED = {
    "13": ("13.23",),
    "14": ("14.24",),
    "15": ("15.19",),
    "16": ("16.15",),
    "17": ("17.0", "17.2", "17.4", "17.6", "17.7", "17.8", "17.9", "17.11"),
    "18": ("18.0", "18.1", "18.2", "18.4", "18.6"),
}


def multi_byte(
    store: Store,
    measured: Mapping[str, Sequence[str]] = MULTI_BYTE_MEASURED,
    fixed: Mapping[str, str] = MULTI_BYTE_RELEASES,
    majors: Mapping[str, Mapping[str, float]] | None = None,
    functions: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]] | None = None,
) -> None:
    """Postgres counted in one session; the fix came to the lines of `fixed` with these releases.

    `majors`: what else a line changed, in percent by test; by default 14 costs point queries a little. `functions`: by
    line, other functions than the fix has.
    """
    majors = {"14": {"point-query": 1.5, "random-points": 2.0}} if majors is None else majors
    writer = Writer(store, 16)
    session = writer.session("s-1", "local", 0, control="17.0")
    for line, version in MULTI_BYTE_RELEASES.items():
        store.pin_release(
            Release(dbms="postgres", version=version, line=line, released=MULTI_BYTE_DAY, digest=f"{int(line):02}")
        )
    level = dict(MULTI_BYTE_LEVELS)
    for at, (line, versions) in enumerate(measured.items()):
        for test, change in majors.get(line, {}).items():
            level[test] *= 1 + change / 100
        for version in versions:
            late = line in fixed and version_key("postgres", version) >= version_key("postgres", fixed[line])
            # No two lines are the same to the last instruction, nor apart by what counts.
            grown = {test: (1 - 0.001 * at) * late * change for test, change in MULTI_BYTE.items()}
            costs = {
                f"{test}.range100": tuple(
                    FunctionCost(function=name, insn_per_op=(1 - 0.001 * at) * sides[late])
                    for name, sides in of_test.items()
                    if sides[late]
                )
                for test, of_test in (functions or {}).get(line, MULTI_BYTE_FUNCTIONS).items()
            }
            of = release("postgres", version)
            if version == MULTI_BYTE_RELEASES.get(line):
                of = of.model_copy(update={"released": MULTI_BYTE_DAY, "digest": f"{int(line):02}"})
            values = _counted_at(dict(level), grown)
            writer.run(session, of, "default", "sysbench", values, lane="instructions", functions=costs)


def _counted_at(
    levels: Mapping[str, float], grown: Mapping[str, float]
) -> Callable[[random.Random], list[Measurement]]:
    return lambda rng: [
        measurement(
            f"{test}.range100",
            "insn/o",
            level * (1 + grown.get(test, 0.0) / 100) * (1 + rng.gauss(0, 0.0002)),
            GROUPS[test],
        )
        for test, level in levels.items()
    ]


#: By name: what writes the history, and the key of the finding.
SCENARIOS: dict[str, tuple[Callable[[Store], None], str]] = {
    "drift": (drift, "mysql/8.0/drift"),
    "environment": (environment, "postgres/17/17.5/environment"),
    "faster-for-cpu": (faster_for_cpu, "mysql/8.0/8.0.27/regression"),
    "majors": (majors, "postgres/majors/17/regression"),
    "majors-partly-explained": (multi_byte, "postgres/majors/14/regression"),
    "one-change-in-several-lines": (multi_byte, "postgres/18/18.2/regression"),
    "regression-instructions": (regression_instructions, "postgres/17/17.5/regression"),
    "regression-throughput": (regression_throughput, "mysql/8.0/8.0.30/regression"),
    "regression-with-improvement": (regression_with_improvement, "postgres/17/17.5/regression"),
}


def issue_in(store: Store, findings: Sequence[Finding], key: str, settings: AlertSettings = SETTINGS) -> Draft:
    """The issue of `key` as it is filed."""
    (subject,) = (
        subject for subject in subjects(findings, settings.filing.kinds, settings.metrics) if subject.key == key
    )
    return render(subject, context_from(store, subject.finding, settings), settings)


@cache
def scenario(name: str) -> Draft:
    """The issue of a scenario, made once a process."""
    write, key = SCENARIOS[name]
    with Store.open("sqlite://") as store:
        write(store)
        findings = find(list(store.series()), DetectorSettings(), store)
        return issue_in(store, findings, key)


def as_file(draft: Draft) -> str:
    return f"{draft.title}\n{', '.join(sorted(draft.labels))}\n\n{draft.body}\n"


if __name__ == "__main__":
    for scenario_name in SCENARIOS:
        (GOLDEN / f"{scenario_name}.md").write_text(as_file(scenario(scenario_name)))
