"""The published figures of Small Datum as records of a history, and what is known about them.

Every measured value is one block's; benchmark `insert` for the Insert Benchmark, `sysbench` for the rest. Releases
carry their source. The labels say which changes a detector should find, the controls where it should find nothing.

>>> len(records()), len(labels()), len(quiet_series())
(245, 64, 6)
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from history.interchange import Record
from history.metrics import shipped_metrics
from history.model import Block, Fingerprint, Measurement, Release, Run, SeriesKey, Session
from history.versions import line_of

DATA = Path(__file__).parent / "data" / "smalldatum"
PLAN = "published by Small Datum"

#: Groups of Insert Benchmark steps, by how their names begin.
STEP_GROUPS = (
    ("l.i0", "load"),
    ("l.x", "index"),
    ("l.i", "writes"),
    ("qp", "point queries"),
    ("q", "range queries"),
)

#: When the figures of a source were published, by how the source begins.
PUBLISHED = {
    "mdcallag.github.io:reports/23_09_18": datetime(2023, 9, 18, tzinfo=UTC),
    "mdcallag.github.io:reports/24_01_25": datetime(2024, 1, 25, tzinfo=UTC),
    "Small Datum 2024-04-11": datetime(2024, 4, 11, tzinfo=UTC),
    "Small Datum 2024-09-24": datetime(2024, 9, 24, tzinfo=UTC),
}
#: What the posts say about their servers.
SERVERS = {
    "ser4": {"cpu_model": "AMD Ryzen 7 4700U", "cores": "8", "memory_gib": "16", "os": "Ubuntu 22.04"},
    "small": {"cpu_model": "AMD Ryzen 7 7840HS", "cores": "8", "smt": "off", "memory_gib": "32", "os": "Ubuntu 22.04"},
    "medium": {
        "cpu_model": "GCP c2d-highcpu-32",
        "cores": "16",
        "smt": "off",
        "memory_gib": "64",
        "os": "Ubuntu 22.04",
    },
}


class Label(NamedTuple):
    """A change that is known to be there."""

    key: SeriesKey
    """The series at `version`; `previous` may be of another line."""
    previous: str
    version: str
    direction: str
    """`regression` or `improvement`."""
    step_pct: float
    level_shift_pct: float
    tier: str
    """A: a post says so and the data agrees. B: visible in the data."""
    cause: str
    source: str


class _Row(NamedTuple):
    key: SeriesKey
    version: str
    value: float
    unit: str
    workload: str
    source: str


def _table(name: str) -> list[dict[str, str]]:
    path = DATA / name
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.DictReader(StringIO(content.decode("utf-8"), newline="")))


def _key(row: dict[str, str], benchmark: str) -> SeriesKey:
    return SeriesKey(
        dbms=row["dbms"],
        line=line_of(row["dbms"], row["version"]),
        server=row["server"],
        config=row["config"],
        benchmark="insert" if benchmark.startswith("ibench") else benchmark,
        test=row["test"],
        metric=shipped_metrics().named(row["metric"]),
    )


def _rows() -> Iterator[_Row]:
    rows = [(row["benchmark"], row) for row in _table("insert_benchmark.csv.gz")]
    rows += [("sysbench", row) for row in _table("config_matrix.csv")]
    for workload, row in rows:
        yield _Row(_key(row, workload), row["version"], float(row["value"]), row["unit"], workload, row["source"])


def group_of(benchmark: str, test: str) -> str:
    """The group of a test: that of its step, or `writes`, which all published sysbench tables are of."""
    if benchmark != "insert":
        return "writes"
    return next(group for prefix, group in STEP_GROUPS if test.startswith(prefix))


def _published(source: str) -> datetime:
    return next(moment for prefix, moment in PUBLISHED.items() if source.startswith(prefix))


def _session_name(row: _Row) -> str:
    """Figures of one report or post on one server were made together."""
    return f"smalldatum/{_published(row.source):%Y-%m-%d}/{row.key.server}/{row.workload}"


def records() -> list[Record]:
    """Sessions, runs and blocks; the same at every call."""
    by_id: dict[str, Record] = {}
    blocks: dict[str, list[_Row]] = defaultdict(list)
    for row in _rows():
        key, session = row.key, _session_name(row)
        by_id.setdefault(session, _session(session, row))
        run = f"{session}/{key.dbms}/{row.version}/{key.config}"
        by_id.setdefault(
            run,
            Run(
                id=run,
                session_id=session,
                release=Release(
                    dbms=key.dbms, version=row.version, line=key.line, source=row.source.partition(", ")[0]
                ),
                config=key.config,
                benchmark=key.benchmark,
                profile="published",
            ),
        )
        blocks[run].append(row)
    for run, rows in blocks.items():
        started = _published(rows[0].source)
        by_id[f"{run}/1"] = Block(
            id=f"{run}/1",
            run_id=run,
            number=1,
            started=started,
            ended=started + timedelta(0),
            measurements=tuple(_measurement(row) for row in rows),
        )
    return list(by_id.values())


def _session(name: str, row: _Row) -> Session:
    return Session(
        id=name,
        host=f"small-datum-{row.key.server}",
        server=row.key.server,
        plan=PLAN,
        fingerprint=Fingerprint(facts=SERVERS[row.key.server] | {"workload": row.workload}),
        started=_published(row.source),
    )


def _measurement(row: _Row) -> Measurement:
    metric = shipped_metrics()[row.key.metric]
    return Measurement(
        test=row.key.test,
        group=group_of(row.key.benchmark, row.key.test),
        metric=metric.name,
        value=row.value,
        unit=row.unit or metric.unit,
        better=metric.better,
    )


def labels() -> list[Label]:
    """Known changes, by series."""
    rows = _table("insert_benchmark.csv.gz")
    keys = {(row["series_id"], row["version"]): _key(row, row["benchmark"]) for row in rows}
    return [
        Label(
            key=keys[row["series_id"], row["version"]],
            previous=row["prev_version"],
            step_pct=float(row["step_pct"]),
            level_shift_pct=float(row["level_shift_pct"]),
            **{name: row[name] for name in ("version", "direction", "tier", "cause", "source")},
        )
        for row in _table("labels_insert_benchmark.csv")
    ]


def quiet_series() -> dict[SeriesKey, str]:
    """Series in which nothing should be found, with the statement that says so."""
    first = {row["series_id"]: row for row in reversed(_table("insert_benchmark.csv.gz"))}
    rows = ((first[row["series_id"]], row["statement"]) for row in _table("negative_controls.csv"))
    return {_key(row, row["benchmark"]): statement for row, statement in rows}


def statements() -> list[dict[str, str]]:
    """Changes that posts state in percent: the columns of `prose_facts.csv`."""
    return _table("prose_facts.csv")


def quotients() -> list[dict[str, str]]:
    """Published relative QPS: the columns of `relative_qps.csv`."""
    return _table("relative_qps.csv")


def group_summaries() -> list[dict[str, str]]:
    """Published statistics over groups of tests: the columns of `group_summaries.csv`."""
    return _table("group_summaries.csv")
