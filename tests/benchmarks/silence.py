"""A/A nights: how often a night files an issue where nothing changed: `python -m tests.benchmarks.silence sqlite:///FILE`.

A history of real blocks is read, never written to. Every release of a simulated catalogue is the same release of that
history under another name: whatever a session of the night would measure, it is given blocks that were really measured
of that one release, drawn by lot, for each name anew. All else is `pointdrop nightly` as it is: what is planned,
sessions and their controls, detection, suspects measured again, splits, filing; drawing the site and the canary are
left out. Each night every line has a new point release, so that lines grow from night to night; every few nights a new
history begins, since a first night is the one that knows least.

The blocks of a simulated session are those of one real session where that has two of the release or more, so that
sessions differ as real ones do. No release gets a block twice before it has all; where there are few, blocks repeat,
which makes noise look smaller than it is.

Any issue is false. Prints a Markdown table, and exits with 1 when there was one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from alerts.trackers.files import FilesTracker
from history.model import Block, Lane, Release, Run, Session
from history.settings import read_model
from history.store import Store
from pointdrop.jobs import measurement
from pointdrop.jobs import nightly as job
from pointdrop.jobs.measurement import MeasurementSetup
from pointdrop.jobs.session_records import new_record
from pointdrop.paths import configs_dir
from runners.releases.manifest import Manifest, manifest_path
from runners.sessions import Outcome, SessionPlan
from runners.settings import Plan, load_plan
from runners.settings.plans import Backfill
from tests.benchmarks.real_blocks import FEWEST_BLOCKS, Source, copied, sources_of

#: Lines that the simulated catalogue has, by DBMS, and how many releases of each there are on the first night.
LINES = {
    "postgres": ("16", "17", "18"),
    "mysql": ("8.0", "8.4", "9.7"),
    "mariadb": ("10.6", "10.11", "11.4"),
    "myrocks": ("10.6", "10.11"),
}
FIRST_RELEASES = 5
START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass
class Tally:
    """What became of the nights of one lane."""

    nights: int = 0
    blocks: int = 0
    boundaries: int = 0
    """Of all series on the last night of each history."""
    again: int = 0
    """Boundaries that were measured again."""
    findings: Counter[str] = field(default_factory=Counter)
    """Of the last night of each history, by tier and kind."""
    issues: list[str] = field(default_factory=list)
    real: dict[str, int] = field(default_factory=dict)
    """Real blocks by source."""


class SameRelease:
    """A catalogue whose releases are all one, under as many names as there are nights."""

    warnings: tuple[str, ...] = ()

    def __init__(self, dbms: str) -> None:
        self.dbms, self.releases_of_a_line = dbms, FIRST_RELEASES

    def discover(self, dbms: str) -> None:
        pass

    def manifest(self, dbms: str) -> Manifest:
        return read_model(manifest_path(configs_dir(), dbms), Manifest)

    def list(self, dbms: str) -> list[Any]:
        return [
            SimpleNamespace(release=self.release(f"{line}.{point}", line), state="pinned", cached=True)
            for line in LINES[self.dbms]
            for point in range(self.releases_of_a_line)
        ]

    def release(self, version: str, line: str) -> Release:
        return Release(dbms=self.dbms, version=version, line=line, digest=version.encode().hex().zfill(64))

    def fetch(self, dbms: str, version: str) -> Any:
        return SimpleNamespace(release=self.release(version, version.rpartition(".")[0]))


class Replay:
    """Stands in for `run_session`: gives each planned block a real one of the source."""

    def __init__(self, source: Source, random: Random) -> None:
        self.source, self.random, self.blocks = source, random, 0

    def __call__(
        self, plan: SessionPlan, catalogue: object, sink: Callable[[Session, Run, Block], None], **_: object
    ) -> Outcome:
        began = session_time(plan.session_id)
        session = self.source.session.model_copy(
            update={
                "id": plan.session_id,
                "plan": plan.plan,
                "server": plan.server.name,
                "started": began,
                "control": plan.control.version,
            }
        )
        of_session = self.random.choice(self.source.blocks)
        kept: set[str] = set()
        left: dict[str, list[Block]] = defaultdict(list)
        for at, planned in enumerate(plan.blocks):
            if not left[planned.run.id]:  # no release has a block twice before it has all
                left[planned.run.id] = self.random.sample(of_session, len(of_session))
            drawn = left[planned.run.id].pop()
            run = self.source.run.model_copy(
                update={
                    "id": planned.run.id,
                    "session_id": session.id,
                    "release": planned.run.release,
                    "config": planned.run.config,
                }
            )
            times = {"started": began + timedelta(minutes=at), "ended": began + timedelta(minutes=at + 1)}
            names = {"id": planned.id, "run_id": run.id, "number": planned.number}
            settings = {} if run.id in kept else self.source.settings
            kept.add(run.id)
            sink(session, run, drawn.model_copy(update=names | times | {"settings": settings}))
        self.blocks += len(plan.blocks)
        return Outcome(planned=len(plan.blocks), done=len(plan.blocks))


def session_time(session_id: str) -> datetime:
    """When a session began, which its id says."""
    return datetime.strptime(session_id.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


@contextmanager
def replayed(replay: Replay, clock: Iterator[datetime]) -> Iterator[None]:
    """The nightly job with its sessions replayed, an hour apart, on a host that is never sick."""

    def record(plan: Plan, server: str, work: Any, now: datetime, host: str = "") -> Any:
        return new_record(plan, server, work, next(clock), host)

    with ExitStack() as patches:
        for module, name, stand_in in (
            (measurement, "run_session", replay),
            (measurement, "new_record", record),
            (measurement, "_check", lambda *_: None),
            (job, "build", lambda *_: None),
        ):
            patches.enter_context(patch.object(module, name, stand_in))
        yield


def hours() -> Iterator[datetime]:
    now = START
    while True:
        yield now
        now += timedelta(hours=1)


def plan_of(source: Source, like: Plan) -> Plan:
    """`like` for this source alone: its lane, DBMS, config and server."""
    run = source.run
    measures = [measure for measure in like.measure if measure.lane == run.lane]
    if not measures:
        raise SystemExit(f"the plan {like.name} measures nothing in the lane {run.lane}; name another with --plan")
    change = {"dbms": run.release.dbms, "configs": (run.config,), "benchmark": run.benchmark, "profile": run.profile}
    backfill = measures[0].backfill and Backfill(releases_per_line=FIRST_RELEASES)
    lines = {"newest_lines": len(LINES[run.release.dbms]), "backfill": backfill, "control": ""}
    measure = measures[0].model_copy(update={**change, **lines, "tests": "all"})
    return like.model_copy(update={"servers": (source.session.server,), "measure": (measure,), "budget_minutes": None})


def nights(source: Source, like: Plan, count: int, random: Random, tally: Tally) -> None:
    """So many nights of one new history, each with a new point release of every line."""
    plan, catalogue = plan_of(source, like), SameRelease(source.run.release.dbms)
    replay, clock = Replay(source, random), hours()
    with TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/history.db") as store:
        tracker = FilesTracker(Path(folder) / "issues")
        said: list[str] = []
        setup = MeasurementSetup(configs_dir(), Path(folder), cast("Any", catalogue), store, say=said.append)
        for _ in range(count):
            with replayed(replay, clock):
                summary = job.nightly(setup, plan, plan.servers[0], tracker, Path(folder) / "site")
            if summary.incomplete:
                raise SystemExit(f"a night could not do all: {summary.incomplete[0]}")
            catalogue.releases_of_a_line += 1
            tally.nights += 1
        tally.findings.update(summary.findings)
        tally.boundaries += sum(len(series.points) - 1 for series in store.series())
        tally.again += sum(text.count("..") for text in said if text.startswith("measuring again"))
        tally.issues += [issue.title for issue in tracker.issues()]
    tally.blocks += replay.blocks
    tally.real[source.name] = source.count


def table(tallies: dict[Lane, Tally]) -> Sequence[str]:
    lines = ["| lane | nights | blocks | drawn from | series x boundaries | measured again | findings left | issues |"]
    lines.append("| --- | ---: | ---: | --- | ---: | ---: | --- | ---: |")
    for lane, tally in tallies.items():
        drawn = ", ".join(f"{count} of {name}" for name, count in sorted(tally.real.items()))
        left = ", ".join(f"{count} {name}" for name, count in sorted(tally.findings.items())) or "none"
        numbers = f"{tally.boundaries} | {tally.again} | {left} | {len(tally.issues)}"
        lines.append(f"| {lane} | {tally.nights} | {tally.blocks} | {drawn} | {numbers} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("history", help="sqlite:///FILE with real blocks")
    parser.add_argument("--nights", type=int, default=20, help="of each lane")
    parser.add_argument("--row", type=int, default=4, help="nights in a row of one history")
    parser.add_argument("--lanes", nargs="*", default=["instructions", "time"], choices=["instructions", "time"])
    parser.add_argument("--plan", default="local", help="how each lane is measured: blocks, lines, back-fill")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    like, random = load_plan(options.plan, configs_dir()), Random(options.seed)
    tallies: dict[Lane, Tally] = {}
    with TemporaryDirectory() as folder:
        with Store.open(copied(options.history, folder)) as store:
            sources = {lane: sources_of(store, lane, LINES) for lane in options.lanes}
        for lane, of_lane in sources.items():
            if not of_lane:
                print(f"no release has {FEWEST_BLOCKS} blocks in the lane {lane}: left out", file=sys.stderr)
                continue
            tally = tallies[lane] = Tally()
            while tally.nights < options.nights:
                source = of_lane[len(tally.real) % len(of_lane)] if len(tally.real) < len(of_lane) else None
                source = source or random.choice(of_lane)
                nights(source, like, min(options.row, options.nights - tally.nights), random, tally)
                print(f"{lane}: {tally.nights} nights, {len(tally.issues)} issues", file=sys.stderr)
    for line in table(tallies):
        print(line)
    for lane, tally in tallies.items():
        for title in tally.issues:
            print(f"{lane}: {title}")
    return int(any(tally.issues for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
