"""Measures what noise looks like on this machine: `python -m tests.benchmarks.measure_noise > noise.csv`.

Small workloads of different kinds take turns, and each turn is timed: one row a turn, one column a workload, in
microseconds. Nothing changes between turns, so whatever moves is noise.
"""

from __future__ import annotations

import csv
import hashlib
import random
import sqlite3
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

TURNS = 400


def workloads(directory: Path) -> dict[str, Callable[[], object]]:
    """By name; each takes a few milliseconds."""
    numbers = [random.Random(1).random() for _ in range(10_000)]
    data = random.Random(2).randbytes(300_000)
    database = sqlite3.connect(directory / "noise.db")
    database.execute("create table t (k integer primary key, v text)")
    file = directory / "written"

    def insert() -> None:
        with database:
            database.execute("delete from t")
            database.executemany("insert into t values (?, ?)", ((i, "x" * 50) for i in range(2000)))

    def select() -> object:
        return database.execute("select count(*), max(length(v)) from t where k % 7 = 3").fetchall()

    def write() -> None:
        file.write_bytes(data)

    insert()
    return {
        "sort": lambda: sorted(numbers),
        "hash": lambda: hashlib.sha256(data * 5).digest(),
        "compress": lambda: zlib.compress(data, 1),
        "copy": lambda: [bytearray(data) for _ in range(40)],
        "insert": insert,
        "select": lambda: [select() for _ in range(10)],
        "write": write,
        "objects": lambda: {i: [i] for i in range(10_000)},
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        work = workloads(Path(directory))
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(work)
        for _ in range(TURNS):
            row = []
            for run in work.values():
                start = time.perf_counter_ns()
                run()
                row.append((time.perf_counter_ns() - start) // 1000)
            out.writerow(row)


if __name__ == "__main__":
    main()
