"""How far the history is from the physical limit of its database.

`python -m tests.benchmarks.history --measurements 10000000` fills a history, then measures three things people wait
for, each beside the same rows through the bare driver, into and out of a table of the same shape and size:

* append a night: 50,000 measurements in 100 blocks, each block one durable transaction; beside it `sqlite3`
  executemany, or psycopg COPY, with one transaction a block;
* load all series of one line, streaming; beside it the same rows fetched as tuples, or copied out;
* the findings of the newest detection; beside it the same bytes fetched, decompressed and parsed.

The two sides take turns, ROUNDS each; times are the best of each, a ratio is the median of ours / bare over the
rounds, so that a busy machine does not make the news. Memory is what Python holds at most while it loads.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from sqlalchemy import Connection

from history.database import sqlite_path
from history.interchange import Record
from history.model import (
    Block,
    Finding,
    Fingerprint,
    Measurement,
    Move,
    Release,
    Run,
    SeriesKey,
    Session,
)
from history.store import Store
from history.writing import RowKeys, insert_measurements
from tests.history.postgres import Cluster

#: One block: 42 tests with 12 metrics, rounded.
TESTS, METRICS = 50, 10
BLOCK = TESTS * METRICS
#: One night: 10 lines, 10 blocks each.
LINES, BLOCKS_A_LINE = 10, 10
NIGHT = BLOCK * LINES * BLOCKS_A_LINE
ROUNDS = 7
DAY = datetime(2026, 1, 5, tzinfo=UTC)
#: One detection.
FINDINGS, MOVES = 40, 60


def night(number: int, *, empty: bool = False) -> tuple[list[Session | Run], list[Block]]:
    """The records of one night: a new release of every line."""
    random = Random(number)
    started = DAY + timedelta(days=number)
    prints = Fingerprint(facts={"cores": "8"})
    session = Session(id=f"n{number}", host="bee", server="small", fingerprint=prints, started=started)
    parents: list[Session | Run] = [session]
    blocks = []
    for line in range(LINES):
        release = Release(dbms="mysql", version=f"8.{line}.{number}", line=f"8.{line}")
        run = Run(id=f"n{number}/{line}", session_id=session.id, release=release, config="z12c", benchmark="sysbench")
        parents.append(run)
        for index in range(BLOCKS_A_LINE):
            measurements = tuple(
                Measurement(
                    test=f"test-{test}", group="writes", metric=f"metric-{metric}", value=random.gauss(1000, 10)
                )
                for test in range(0 if empty else TESTS)
                for metric in range(METRICS)
            )
            name = f"{run.id}/{index}"
            values: Any = {"started": started, "ended": started, "measurements": measurements}
            blocks.append(Block(id=name, run_id=run.id, number=index, **values))
    return parents, blocks


def append(store: Store, number: int) -> float:
    """Seconds to append a night, block by block."""
    parents, blocks = night(number)
    for one in parents:
        store.append_session(one) if isinstance(one, Session) else store.append_run(one)
    began = time.perf_counter()
    for block in blocks:
        store.append_block(block)
    return time.perf_counter() - began


def detection() -> list[Finding]:
    key = SeriesKey.parse("mysql|8.0|small|z12c|sysbench|test-0|metric-0")
    level: dict[str, Any] = {"before": 1000.1, "after": 900.2, "change_pct": -10.0, "low_pct": -11.0, "high_pct": -9.0}
    move = Move(key=key, direction="regression", probability=0.99, noise_pct=1.0, mde_pct=2.0, **level)
    return [
        Finding(
            key=f"mysql/8.0/8.0.{number}/regression",
            kind="regression",
            tier="confirmed",
            dbms="mysql",
            line="8.0",
            previous=f"8.0.{number - 1}",
            release=f"8.0.{number}",
            moves=(move,) * MOVES,
        )
        for number in range(1, FINDINGS + 1)
    ]


def fill(store: Store, nights: int) -> None:
    """The first night through the store; of the others the sessions, runs and blocks, and their values in bulk.

    Values that nobody asks back one by one need no digest, and ten million of them would take their time.
    """
    append(store, 0)
    series = [row[0] for row in _query(store, "SELECT pk FROM series ORDER BY pk")]
    for number in range(1, nights):
        parents, blocks = night(number, empty=True)

        def put(connection: Connection, row_keys: RowKeys, records: Sequence[Record] = (*parents, *blocks)) -> None:
            for one in records:
                store.put(connection, row_keys, one)
            random, insert = Random(1), insert_measurements
            names = ",".join(f"'{one.id}'" for one in records if isinstance(one, Block))
            pks = connection.exec_driver_sql(f"SELECT pk FROM block WHERE id IN ({names}) ORDER BY pk").scalars().all()
            for at, pk in enumerate(pks):
                of_line = series[at // BLOCKS_A_LINE * BLOCK :][:BLOCK]
                insert(connection, [(one, pk, random.gauss(1000, 10), None, None) for one in of_line])

        store.transact(put)
        print(f"\r{number + 1} of {nights} nights", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


class Bare:
    """The same rows in a table of the same shape, through the driver alone."""

    def __init__(self, store: Store, scratch: Path) -> None:
        path = sqlite_path(store.url)
        self.sqlite = path is not None
        self.connection: Any
        if path is not None:
            store.engine.dispose()
            self.connection = sqlite3.connect(scratch / "bare.db", isolation_level=None)
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("PRAGMA synchronous=FULL")
            self.connection.execute("PRAGMA cache_size=-65536")
            self.connection.execute(
                "CREATE TABLE bare (series_pk INTEGER, block_pk INTEGER, value REAL, operations INTEGER, warnings TEXT,"
                " PRIMARY KEY (series_pk, block_pk)) WITHOUT ROWID"
            )
            self.connection.execute("ATTACH ? AS h", (str(path),))
            self.connection.execute("INSERT INTO bare SELECT * FROM h.measurement")
            self.connection.execute("DETACH h")
        else:
            url = store.url.set(drivername="postgresql").render_as_string(hide_password=False)
            self.connection = psycopg.connect(url, autocommit=True)
            self.connection.execute(
                "CREATE TABLE bare (series_pk bigint, block_pk bigint, value double precision, operations bigint,"
                " warnings text, PRIMARY KEY (series_pk, block_pk))"
            )
            self.connection.execute("INSERT INTO bare SELECT * FROM measurement")
            self.connection.execute("VACUUM ANALYZE bare")
            self.connection.execute("VACUUM ANALYZE measurement")

    def rows_of_night(self, number: int) -> list[list[tuple[Any, ...]]]:
        found = self.connection.execute("SELECT max(block_pk) FROM bare").fetchone()[0]
        values = [one.value for block in night(number)[1] for one in block.measurements]
        rows = []
        for block in range(LINES * BLOCKS_A_LINE):
            line = block // BLOCKS_A_LINE
            part = values[block * BLOCK : (block + 1) * BLOCK]
            rows.append([(line * BLOCK + at + 1, found + block + 1, one, None, None) for at, one in enumerate(part)])
        return rows

    def append(self, number: int) -> float:
        rows = self.rows_of_night(number)
        began = time.perf_counter()
        for block in rows:
            if self.sqlite:
                self.connection.execute("BEGIN IMMEDIATE")
                self.connection.executemany("INSERT INTO bare VALUES (?,?,?,?,?)", block)
                self.connection.execute("COMMIT")
            else:
                with self.connection.cursor() as cursor, cursor.copy("COPY bare FROM STDIN") as copy:
                    for row in block:
                        copy.write_row(row)
        return time.perf_counter() - began

    def load(self, series: list[int]) -> float:
        """Rows of the series, grouped as they come, which is the least anybody can do with them."""
        names = ",".join(map(str, series))
        query = f"SELECT series_pk, block_pk, value FROM bare WHERE series_pk IN ({names}) ORDER BY series_pk, block_pk"
        began = time.perf_counter()
        rows: Any = self.connection.execute(query) if self.sqlite else self._copied(query)
        count = sum(len([row[2] for row in group]) for _, group in groupby(rows, key=lambda row: row[0]))
        assert count
        return time.perf_counter() - began

    def _copied(self, query: str) -> Iterator[tuple[Any, ...]]:
        with self.connection.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
            copy.set_types(["int8", "int8", "float8"])
            yield from copy.rows()

    def findings(self) -> float:
        began = time.perf_counter()
        rows = self.connection.execute(
            "SELECT content FROM finding WHERE detection_pk = (SELECT max(pk) FROM detection)"
        ).fetchall()
        assert all(json.loads(zlib.decompress(row[0])) for row in rows)
        return time.perf_counter() - began


def turns(name: str, ours: Callable[[int], float], bare: Callable[[int], float]) -> dict[str, float]:
    """Seconds of both, the best, and the median ratio."""
    pairs = [(ours(at), bare(at)) for at in range(ROUNDS)]
    return {
        f"{name}_s": min(one for one, _ in pairs),
        f"{name}_bare_s": min(one for _, one in pairs),
        f"{name}_ratio": statistics.median(one / other for one, other in pairs),
    }


def peak_mib(work: Callable[[], object]) -> float:
    """The most that Python holds for `work` at a time, MiB; a database's page cache is not in it."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def measure(url: str, measurements: int, scratch: Path) -> dict[str, float]:
    """Fill a history and measure it. Seconds, MiB and ratios by name."""
    found: dict[str, float] = {}
    nights = max(measurements // NIGHT, 1)
    with Store.open(url) as store:
        began = time.perf_counter()
        fill(store, nights)
        found["fill_s"] = time.perf_counter() - began
        found["measurements"] = nights * NIGHT
        for _ in range(3):
            store.append_detection(detection(), str(time.perf_counter()))

        bare = Bare(store, scratch)
        found |= turns("append", lambda at: append(store, nights + at), lambda at: bare.append(nights + at))
        of_line = [row[0] for row in _query(store, "SELECT pk FROM series WHERE line = '8.0' ORDER BY pk")]

        found["load_peak_mib"] = peak_mib(lambda: _load(store))
        found["load_values"] = sum(len(point.values) for one in store.series(line="8.0") for point in one.points)
        found |= turns("load", lambda _: _load(store), lambda _: bare.load(of_line))

        if bare.sqlite:
            bare.connection.close()
            bare.connection = sqlite3.connect(str(sqlite_path(store.url)))
        found |= turns("findings", lambda _: _findings(store), lambda _: bare.findings())
        bare.connection.close()
    return {name: round(value, 4) for name, value in found.items()}


def _query(store: Store, query: str) -> list[Any]:
    with store.engine.connect() as connection:
        return list(connection.exec_driver_sql(query))


def _load(store: Store) -> float:
    """Every number, with its release; the block, session and host of each can be asked for and are not."""
    began = time.perf_counter()
    assert sum(len([point.numbers for point in one.points]) for one in store.series(line="8.0"))
    return time.perf_counter() - began


def _findings(store: Store) -> float:
    began = time.perf_counter()
    assert len(store.findings()) == FINDINGS
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measurements", type=int, default=1_000_000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="pointdrop-bench-") as folder:
        if options.database == "sqlite":
            found = measure(f"sqlite:///{folder}/history.db", options.measurements, Path(folder))
        else:
            cluster = Cluster(durable=True)
            try:
                found = measure(cluster.new_url(), options.measurements, Path(folder))
            finally:
                cluster.close()
    print(json.dumps({"database": options.database, **found}, indent=2))


if __name__ == "__main__":
    main()
