"""Start, load, query, settle, copy and stop one release of every era of every DBMS, and print how long each took.

    python tests/e2e/all_releases.py                       # all of them, as a Markdown table
    python tests/e2e/all_releases.py postgres mysql        # only these DBMS
    python tests/e2e/all_releases.py --sandbox --format json

Releases come through the catalogue: fetched, verified, and kept in the state directory (POINTDROP_STATE). The newest
point release that the source offers is taken, so the table says what was run. Exit code 1 when any of them failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pointdrop.paths import configs_dir, state_dir
from runners.engines import Connection, engine_for, stop_leftovers
from runners.errors import RunnersError
from runners.releases import Catalogue
from runners.settings.dbms import Sizing, load_dbms, render

#: DBMS, line (its newest release is taken) or version, source.
WANTED = (
    *(("postgres", line, "maven") for line in ("9.6", "10", "12", "14", "16", "17", "18")),
    ("postgres", "15", "debian-bookworm"),
    ("postgres", "17", "debian-trixie"),
    ("mariadb", "10.2", "maven"),
    ("mariadb", "10.11", "maven"),
    ("mariadb", "10.11", "debian-bookworm"),
    ("mariadb", "11.4", "maven"),
    ("mariadb", "11.8", "debian-trixie"),
    ("mysql", "5.5.9", "maven-mxj"),
    ("mysql", "5.6", "npm"),
    *(("mysql", version, "maven-airlift") for version in ("5.7.19", "5.7.22", "8.0.12")),
    ("mysql", "8.0.15", "maven-presto"),
    ("mysql", "8.0.31", "maven-killbill"),
    ("mysql", "9.7", "debian-sid"),
    ("myrocks", "10.11", "debian-bookworm"),
)
STEPS = ("fetch", "initialise", "ready", "load", "query", "settle", "stop", "copy", "again", "kill")
ROWS = 20_000
QUERY_S = 1
SIZING = Sizing(pool_mib=128, log_mib=128)


@dataclass
class Row:
    """One release; `seconds` by step."""

    dbms: str
    version: str
    source: str
    seconds: dict[str, float] = field(default_factory=dict)
    queries: int = 0
    error: str = ""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - started, 2)


def newest(catalogue: Catalogue, dbms: str, wanted: str, source: str) -> str:
    """The newest version of the line `wanted` that the source has, or `wanted` itself where it is a version; asks the
    source when nothing is known of it."""
    for ask in (False, True):
        if ask:
            catalogue.discover(dbms, source)
        found = [
            known.release.version
            for known in catalogue.list(dbms)
            if wanted in (known.release.line, known.release.version)
            and known.release.build == source
            and known.state in ("pinned", "new")
        ]
        if found:
            return found[-1]
    raise RunnersError(f"{source} has no {dbms} {wanted}")


def sysbench(connection: Connection, test: str, command: str, *more: str) -> str:
    """Run one of sysbench's own tests over the connection; what it printed."""
    driver, socket = connection.driver, str(connection.socket)
    place = {"pgsql": ("pgsql-host", "pgsql-db", "pgsql-user"), "mysql": ("mysql-socket", "mysql-db", "mysql-user")}
    values = zip(place[driver], (socket, connection.database, connection.user), strict=True)
    done = subprocess.run(
        ["sysbench", f"--db-driver={driver}", *(f"--{name}={value}" for name, value in values),
         f"--table-size={ROWS}", f"--time={QUERY_S}", *more, test, command],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise RunnersError(f"sysbench {test} {command}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout


def exercise(row: Row, catalogue: Catalogue, state: Path, sandbox: bool) -> None:
    """The whole life of one server."""
    with row.step("fetch"):
        installed = catalogue.fetch(row.dbms, row.version, row.source)
    options = render(load_dbms(row.dbms, configs_dir()), "default", row.version, SIZING)
    with engine_for(installed, options, state / "servers" / "all-releases", state=state, sandbox=sandbox) as engine:
        with row.step("initialise"):
            engine.initialise()
        with row.step("ready"):
            engine.start()
            engine.wait_ready()
        mysql = engine.connection.driver == "mysql"
        storage = f"--mysql-storage-engine={engine.query('SELECT @@default_storage_engine')[0][0]}" if mysql else ""
        with row.step("load"):
            sysbench(engine.connection, "oltp_read_write", "prepare", *filter(None, [storage]))
        with row.step("query"):
            output = sysbench(engine.connection, "oltp_read_write", "run")
        row.queries = next(int(line.split()[1]) for line in output.splitlines() if "total:" in line)
        with row.step("settle"):
            engine.settle()
        with row.step("stop"):
            warnings = engine.stop()
        if warnings:
            raise RunnersError("; ".join(warnings))
        copy = state / "servers" / "all-releases-copy"
        with row.step("copy"):
            engine.save(copy)
            engine.restore(copy)
        with row.step("again"):
            engine.start()
            engine.wait_ready()
        table = "sbtest1" if engine.connection.driver == "pgsql" else f"{engine.connection.database}.sbtest1"
        kept = engine.query(f"SELECT count(*) FROM {table}")[0][0]
        if kept != ROWS:
            raise RunnersError(f"{kept} of {ROWS} rows are there after the copy")
        with row.step("kill"):
            engine.kill()


def markdown(rows: list[Row]) -> str:
    """The table of times in seconds."""
    head = ("release", "source", *STEPS, "queries/s")
    lines = [" | ".join(head), " | ".join("---" if name in ("release", "source") else "--:" for name in head)]
    for row in rows:
        times = [f"{row.seconds[step]:.2f}" if step in row.seconds else "–" for step in STEPS]
        last = f"**{row.error.splitlines()[0]}**" if row.error else str(row.queries // QUERY_S)
        lines.append(" | ".join((f"{row.dbms} {row.version}", row.source, *times, last)))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dbms", nargs="*", help="only these DBMS")
    parser.add_argument("--sandbox", action="store_true", help="servers run inside bubblewrap")
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    asked = parser.parse_args()
    state = state_dir()
    catalogue = Catalogue(configs_dir(), state)
    stop_leftovers(state)
    rows = []
    for dbms, line, source in WANTED:
        if asked.dbms and dbms not in asked.dbms:
            continue
        row = Row(dbms, line, source)
        rows.append(row)
        try:
            row.version = newest(catalogue, dbms, line, source)
            print(f"{dbms} {row.version}", file=sys.stderr)
            exercise(row, catalogue, state, asked.sandbox)
        except RunnersError as error:
            row.error = str(error)
            print(f"  failed: {error}", file=sys.stderr)
    print(json.dumps([asdict(row) for row in rows]) if asked.format == "json" else markdown(rows))
    return 1 if any(row.error for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
