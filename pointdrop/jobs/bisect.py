"""Finds the release, or the commit, that brought a change: measures what `detector.bisect` asks for, and tells it.

The state stands below `STATE/bisect` and is written after every block, so a bisection that was stopped goes on where it
was. Its blocks hold one test only and therefore stay out of the history.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from detector.bisect import Answer, BisectState, Measure, nothing_to_find, record, side_of, step
from detector.releases.metric_kinds import noise_prior
from history.errors import BadSettings
from history.files import write_atomically
from history.metrics import Metric
from history.model import Block, Release, Run, Session
from history.versions import version_key
from pointdrop.jobs.comparison_sides import Shelf
from pointdrop.jobs.release_selection import releases_by_line
from runners.releases import Installed, ReleaseError
from runners.sessions import Event, plan_session, run_session
from runners.settings import Benchmark, Profile, Server, Test

#: How many commits one bisection may be about; more than that begins with releases.
MOST_COMMITS = 5000


class Bisection(BaseModel):
    """A bisection as it stands."""

    model_config = ConfigDict(extra="forbid")

    dbms: str
    test: str
    metric: str
    config: str
    machine: BisectState
    values: dict[str, tuple[float, ...]] = {}
    """Block values of the metric by candidate."""
    notes: dict[str, str] = {}
    """Why a candidate could not be measured."""


@dataclass(frozen=True)
class BisectionSetup:
    """Where and with what a bisection measures."""

    get: Callable[[str], Installed]
    """The candidate, fetched or built; ReleaseError when it cannot be had."""
    server: Server
    benchmark: Benchmark
    test: Test
    profile: Profile
    metric: Metric
    configs: Path
    state: Path
    seed: int = 1
    """Order of blocks."""
    on_event: Callable[[Event], None] = lambda event: None
    say: Callable[[str], None] = lambda text: None


def release_candidates(releases: Iterable[Release], good: str, bad: str) -> list[str]:
    """Releases from `good` to `bad`, oldest first.

    Inside one line: every release between. Over several: the first release of each line in between, then those of the
    last line up to `bad`; what was back-patched to old lines meanwhile is no step from one major to the next.

    >>> releases = [Release(dbms="postgres", version=v, line=v.split(".")[0])
    ...          for v in ("15.0", "15.9", "16.0", "16.4", "17.0", "17.1", "17.2")]
    >>> release_candidates(releases, "15.9", "17.1")
    ['15.9', '16.0', '17.0', '17.1']
    >>> release_candidates(releases, "17.0", "17.2")
    ['17.0', '17.1', '17.2']
    """
    releases = list(releases)
    lines = releases_by_line(releases)
    place = {release.version: release for release in releases}
    for version in (good, bad):
        if version not in place:
            raise BadSettings(f"{version} is not a known, runnable release; see: pointdrop releases list")
    dbms = place[good].dbms

    if not version_key(dbms, good) < version_key(dbms, bad):
        raise BadSettings(f"GOOD comes before BAD; {good} does not come before {bad}")
    names = list(lines)
    last = lines[place[bad].line]
    if place[good].line == place[bad].line:
        versions = [r.version for r in last]
    else:
        between = names[names.index(place[good].line) + 1 : names.index(place[bad].line)]
        versions = [good, *(lines[line][0].version for line in between), *(r.version for r in last)]
    low, high = version_key(dbms, good), version_key(dbms, bad)
    return [version for version in versions if low <= version_key(dbms, version) <= high]


def commit_candidates(repository: str, good: str, bad: str) -> list[str]:
    """Commits from `good` to `bad` along first parents, oldest first, as full hashes."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(("git", "-C", repository, *arguments), capture_output=True, text=True, check=False)
        if done.returncode:
            raise BadSettings(f"{repository}: git {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.split()

    (first,) = git("rev-parse", "--verify", f"{good}^{{commit}}")
    between = git("rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
    if not between:
        raise BadSettings(f"no commits from {good} to {bad}; GOOD comes before BAD")
    if len(between) > MOST_COMMITS:
        raise BadSettings(f"{len(between)} commits from {good} to {bad}; bisect releases first")
    return [first, *between]


def state_path(setup: BisectionSetup, bisection: Bisection) -> Path:
    """Where the state of this bisection stands; the same question, at the same scale and durations, always has the same
    file."""
    scale = (bisection.config, setup.server.name, setup.benchmark.name, setup.profile.name)
    asked = (bisection.dbms, setup.test.name, bisection.metric, *scale, *bisection.machine.candidates)
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()
    return setup.state / "bisect" / f"{digest[:16]}.json"


def load_bisection(path: Path, fresh: Bisection) -> Bisection:
    """What was found so far, with the budget asked for now, or `fresh`."""
    if not path.is_file():
        return fresh
    try:
        held = Bisection.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise BadSettings(f"{path} is not a bisection of this version; remove it to begin anew") from error
    held.machine = held.machine.model_copy(update={"budget": fresh.machine.budget})
    return held


def run_bisection(setup: BisectionSetup, path: Path, bisection: Bisection) -> Answer:
    """Measure until there is an answer; every block is in `bisection` and `path` as soon as it is finished."""
    path.parent.mkdir(parents=True, exist_ok=True)
    good, *between, bad = bisection.machine.candidates
    floor_pct, noise = setup.metric.smallest_change_pct, noise_prior(setup.metric, bisection.test)
    while isinstance(wanted := step(bisection.machine), Measure):
        candidate = wanted.candidate
        setup.say(f"measuring {candidate} ({wanted.blocks} blocks), between {good} and {bad}")
        try:
            _measure(setup, path, bisection, wanted)
        except ReleaseError as error:
            bisection.notes[candidate] = str(error).splitlines()[0]
            bisection.machine = record(bisection.machine, candidate, "unusable", 0)
            write_atomically(path, bisection.model_dump_json(indent=1))
            setup.say(f"{candidate} cannot be measured: {bisection.notes[candidate]}")
            continue
        low, high, middle = (bisection.values.get(name, ()) for name in (good, bad, candidate))
        side = side_of(low, high, middle, floor_pct=floor_pct, noise=noise) if middle else "unusable"
        bisection.machine = record(bisection.machine, candidate, side, wanted.blocks)
        write_atomically(path, bisection.model_dump_json(indent=1))
        if low and high and (reason := nothing_to_find(low, high, floor_pct=floor_pct, noise=noise)):
            return Answer(good, bad, tuple(between), False, reason, differ=False)
        setup.say(f"{candidate} is {side}")
    return wanted


def _measure(setup: BisectionSetup, path: Path, bisection: Bisection, wanted: Measure) -> None:
    """One session: the candidate beside both ends; counted ends are not counted again, since they do not change."""
    counted = setup.profile.lane == "instructions"
    ends = (bisection.machine.candidates[0], bisection.machine.candidates[-1])
    needed = [end for end in ends if not (counted and len(bisection.values.get(end, ())) >= wanted.blocks)]
    installed = {name: setup.get(name) for name in dict.fromkeys((wanted.candidate, *needed))}
    by_version = {build.release.version: name for name, build in installed.items()}
    if len(by_version) < len(installed):
        raise ReleaseError(f"{wanted.candidate} builds to the same version as another candidate")
    plan = plan_session(
        session_id=f"bisect-{datetime.now(UTC):%Y%m%dT%H%M%S%f}",
        plan="bisect",
        server=setup.server,
        benchmark=setup.benchmark,
        tests=(setup.test,),
        profile=setup.profile,
        releases=[build.release for build in installed.values()],
        control=installed[wanted.candidate].release,
        configs=(bisection.config,),
        blocks=wanted.blocks,
        seed=setup.seed + len(bisection.values),
    )

    def sink(session: Session, row: Run, block: Block) -> None:
        name = by_version[row.release.version]
        values = [m.value for m in block.measurements if m.metric == bisection.metric and block.status == "ok"]
        bisection.values[name] = (*bisection.values.get(name, ()), *values)
        write_atomically(path, bisection.model_dump_json(indent=1))

    shelf = Shelf({build.release.version: build for build in installed.values()})
    outcome = run_session(plan, shelf, sink, configs=setup.configs, state=setup.state, on_event=setup.on_event)
    for why in outcome.skipped.values():
        raise ReleaseError(why)
