"""Issues of real detection: histories written through the store, the detector run on them, and the issue rendered.

`python -m tests.alerts.scenarios` writes the golden files; read them before they are committed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
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


def measure(
    metrics: Mapping[str, tuple[float, float]], changes: Changes
) -> Callable[[random.Random], list[Measurement]]:
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
    """Postgres in both lanes, everything in one session; functions and a plan before and after 17.5."""
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
    """The time lane on the small server: less QPS for more CPU, one release of the manifest was not measured."""
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
    writer.run(session, release("mysql", "8.0.29"), "default", "sysbench", measure(TIMED, {}), blocks=0, failed=1)


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
    """The newest release of each line, all in one session: version 17 lost."""
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


#: By name: what writes the history, and the key of the finding.
SCENARIOS: dict[str, tuple[Callable[[Store], None], str]] = {
    "drift": (drift, "mysql/8.0/drift"),
    "environment": (environment, "postgres/17/17.5/environment"),
    "majors": (majors, "postgres/majors/17/regression"),
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
