"""What `detect` costs after a year of nights: `python -m tests.benchmarks.year`.

A history grows night by night through the real store. Every night has a session of each lane: the control release, and
the newest releases of all lines but one, in turn. On the first night the lines have releases of before; then, every few
weeks, each gets a new one. Some releases change some tests. Sessions differ, blocks differ, counted ones much less.

Prints, for some nights, how many blocks the control has then and the CPU time that one more detection takes, reading
included, writing not: the least of a few. `--most 2` exits with 1 when that of the last night is more than so many
times that of the first row.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from history.interchange import Record
from history.metrics import shipped_metrics
from history.model import Block, Fingerprint, Lane, Measurement, Release, Run, Session
from history.store import Store
from history.writing import RowKeys
from pointdrop.jobs.detect import load_detector_settings, run_detection
from pointdrop.paths import configs_dir

LINES = ("16", "17", "18")
CONTROL = Release(dbms="postgres", version="17.0", line="17", digest="17".zfill(64))
#: Releases that each line has on the first night, and nights from one new release of all lines to the next.
FIRST_RELEASES = 8
NIGHTS_A_RELEASE = 60
#: Blocks of a release in one session.
BLOCKS: dict[Lane, int] = {"time": 2, "instructions": 1}
METRICS: dict[Lane, tuple[str, ...]] = {
    "time": ("qps", "cpu_us/o", "cs/o", "wKB/o", "rss"),
    "instructions": ("insn/o",),
}
#: Standard deviations of the log of a value: of a session, and of a block.
NOISE: dict[Lane, tuple[float, float]] = {"time": (0.05, 0.02), "instructions": (0.0, 0.0003)}
#: Every so manieth release changes one test in so many, by this share.
CHANGES, CHANGED_TESTS, CHANGE = 4, 6, 0.08
START = datetime(2026, 1, 5, 3, 0, tzinfo=UTC)
HOST = Fingerprint(facts={"cores": "8", "cpu_model": "one"})
#: Detections timed for a row; the least counts.
ROUNDS = 3


def releases_of(line: str, night: int) -> list[Release]:
    """Those that exist on a night, oldest first."""
    count = FIRST_RELEASES + night // NIGHTS_A_RELEASE
    versions = [f"{line}.{point}" for point in range(count)]
    return [Release(dbms="postgres", version=v, line=line, digest=v.encode().hex().zfill(64)) for v in versions]


def measured_on(night: int) -> list[Release]:
    """Control and candidates of a night."""
    if night == 0:
        every = [release for line in LINES for release in releases_of(line, 0)]
    else:
        every = [releases_of(line, night)[-1] for at, line in enumerate(LINES) if at != night % len(LINES)]
    return [CONTROL, *(release for release in every if release.version != CONTROL.version)]


def level(release: Release, test: int, metric: str) -> float:
    """The level of one test in a release, in whatever unit, as a log."""
    point = int(release.version.partition(".")[2])
    steps = sum(1 for before in range(1, point + 1) if before % CHANGES == 0 and (test + before) % CHANGED_TESTS == 0)
    sign = -1.0 if metric == "qps" else 1.0
    return 6.0 + 0.1 * test + 0.05 * int(release.line) + sign * steps * CHANGE


def records(night: int, tests: int) -> Iterator[Record]:
    """Sessions, runs and blocks of one night."""
    random = np.random.default_rng([20_260, night])
    registry = shipped_metrics()
    for lane, blocks in BLOCKS.items():
        began = START + timedelta(days=night, hours=lane == "time")
        control = CONTROL.version
        session = Session(
            id=f"{began:%Y%m%dT%H%M%SZ}-{lane}", host="bee", server="small", fingerprint=HOST, started=began,
            control=control,
        )  # fmt: skip
        yield session
        of_session, of_block = NOISE[lane]
        shift = of_session * random.standard_normal()
        for release in measured_on(night):
            run = Run(
                id=f"{session.id}/{release.version}", session_id=session.id, release=release, config="default",
                benchmark="sysbench", lane=lane,
            )  # fmt: skip
            yield run
            for number in range(blocks):
                measurements = tuple(
                    Measurement(
                        test=f"test-{test}",
                        group="reads" if test % 2 else "writes",
                        metric=metric,
                        value=float(np.exp(level(release, test, metric) + shift + of_block * random.standard_normal())),
                        unit=registry[metric].unit,
                        better=registry[metric].better,
                    )
                    for test in range(tests)
                    for metric in METRICS[lane]
                )
                at = began + timedelta(minutes=number)
                yield Block(
                    id=f"{run.id}/{number}", run_id=run.id, number=number, started=at, ended=at,
                    measurements=measurements,
                )  # fmt: skip


def append(store: Store, night: int, tests: int) -> None:
    """A whole night in one transaction: how long a block takes is measured elsewhere (`history`)."""

    def put(connection: object, row_keys: RowKeys, of_night: Iterable[Record] = tuple(records(night, tests))) -> None:
        for record in of_night:
            store.put(connection, row_keys, record)  # type: ignore[arg-type]

    store.transact(put)


def control_blocks(store: Store) -> int:
    """Timed blocks of the control."""
    return store.measured(dbms="postgres", lane="time")[CONTROL.version]


def cost(url: str, rounds: int = ROUNDS) -> tuple[float, int]:
    """Least CPU seconds of a detection, and its findings."""
    times = []
    settings = load_detector_settings(configs_dir())
    for _ in range(rounds):
        with Store.open(url) as store:
            began = time.process_time()
            findings = run_detection(store, settings, write=False)
            times.append(time.process_time() - began)
    return min(times), len(findings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, nargs="*", default=[22, 65, 130, 200, 260], help="that get a row")
    parser.add_argument("--tests", type=int, default=42)
    parser.add_argument("--most", type=float, help="times the first row that the last may take")
    parser.add_argument("--profile", type=int, metavar="ROWS", help="of the last night: where the time goes")
    options = parser.parse_args()
    rows: list[float] = []
    print("| nights | blocks of the control | findings | seconds of CPU | times the first |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'history.db'}"
        cost(url, 1)  # compiles
        for night in range(max(options.nights)):
            with Store.open(url) as store:
                append(store, night, options.tests)
                blocks = control_blocks(store)
            if night + 1 in options.nights:
                seconds, findings = cost(url)
                rows.append(seconds)
                print(f"| {night + 1} | {blocks} | {findings} | {seconds:.2f} | {seconds / rows[0]:.1f} |", flush=True)
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(cost, url, 1)
            pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(options.profile)
    return int(bool(options.most) and rows[-1] > options.most * rows[0])


if __name__ == "__main__":
    sys.exit(main())
