"""Finds the release, or the commit, that brought a change: measures what `detector.bisect` asks for, and tells it.

The state stands below `STATE/bisect` and is written after every block, so a bisection that was stopped goes on where it
was, on the same machine with the same workload. Its blocks hold one test only and therefore stay out of the history.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from detector.bisect import BisectState, Measure, begin, record_block, record_unusable, resumed, sides, step
from detector.bisect_answers import Answer, Found, Interval, Judge, NoDifference
from detector.releases.metric_kinds import noise_prior
from history.errors import BadSettings
from history.files import write_atomically
from history.metrics import Metric
from history.model import Block, Release, Run, Session
from history.toolchains import BUILD, COMPILER, other_builder, sides_in_words, toolchain_changes
from history.versions import build_mark, version_key
from pointdrop.jobs.comparison_sides import Shelf
from pointdrop.jobs.release_selection import releases_by_line
from runners.errors import HostBusy, HostChanged, OutOfSpace
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
    session: Session | None = None
    """The first one; all others have its fingerprint, or values would not be comparable."""
    toolchains: dict[str, dict[str, str]] = Field(default_factory=dict)
    """What each measured candidate was built with."""


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
    last line up to `bad`; what was back-patched to old lines meanwhile is no step from one major to the next. Another
    builder's releases are passed over, but for those of an end's.

    >>> releases = [Release(dbms="postgres", version=v, line=v.split(".")[0])
    ...          for v in ("15.0", "15.9", "16.0", "16.4", "17.0", "17.1", "17.2")]
    >>> release_candidates(releases, "15.9", "17.1")
    ['15.9', '16.0', '17.0', '17.1']
    >>> release_candidates(releases, "17.0", "17.2")
    ['17.0', '17.1', '17.2']
    """
    marks = {build_mark(good), build_mark(bad)}
    releases = [release for release in releases if build_mark(release.version) in marks]
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
    """Commits from `good` to `bad` along first parents, oldest first, as full hashes.

    BadSettings when `good` is no ancestor of `bad`: a change on its own branch would be blamed on the other one.
    """

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(("git", "-C", repository, *arguments), capture_output=True, text=True, check=False)
        if done.returncode:
            raise BadSettings(f"{repository}: git {' '.join(arguments)}: {done.stderr.strip() or 'nothing'}")
        return done.stdout.split()

    first, last = (git("rev-parse", "--verify", f"{name}^{{commit}}")[0] for name in (good, bad))
    shared = git("merge-base", first, last)[0]
    if first == last or shared == last:
        raise BadSettings(f"no commits from {good} to {bad}; GOOD comes before BAD")
    if shared != first:
        raise BadSettings(f"{bad} does not contain {good}; they have {shared} in common, which can be GOOD")
    between = git("rev-list", "--first-parent", "--reverse", f"{first}..{last}")
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
    """`fresh` with the blocks that were measured so far."""
    if not path.is_file():
        return fresh.model_copy()
    try:
        held = Bisection.model_validate_json(path.read_bytes())
        machine = resumed(fresh.machine, held.machine)
        return fresh.model_copy(
            update={"machine": machine, "session": held.session, "toolchains": dict(held.toolchains)}
        )
    except ValidationError as error:
        raise BadSettings(f"{path} is not a bisection of this version; remove it to begin anew") from error


def toolchain_note(bisection: Bisection, answer: Answer) -> str:
    """What the compiler may have to do with an answer: a sentence where the two candidates that it names were built by
    two builders or with two compilers, else empty."""
    match answer:
        case Found() | Interval():
            before, after = answer.after, answer.first
        case NoDifference():
            before, after = answer.ends.before.candidate, answer.ends.after.candidate
        case _:
            return ""
    known = bisection.toolchains
    changes = toolchain_changes(known.get(before, {}), known.get(after, {}))
    built = [change for change in changes if change.part in BUILD | COMPILER]
    if not built:
        return ""
    old, new = (side or "otherwise" for side in sides_in_words(built))
    if other_builder(built):
        return (
            f"{before} was built by {old}, {after} by {new}: how much of this is the compiler's is not known. To tell, "
            "compare builds of both by one compiler: "
            f"pointdrop compare {bisection.dbms}@git:TAG {bisection.dbms}@git:TAG"
        )
    return f"The compiler changed too, from {old} to {new}: part of this may be the compiler's."


def new_bisection(setup: BisectionSetup, dbms: str, config: str, candidates: Sequence[str], budget: int) -> Bisection:
    """A bisection nothing was measured of; InvalidSeries when there is nothing to bisect."""
    judge = Judge(floor_pct=setup.metric.smallest_change_pct, noise=noise_prior(setup.metric, setup.test.name))
    machine = begin(candidates, budget, judge, repeat_ends=setup.profile.lane == "time")
    return Bisection(dbms=dbms, test=setup.test.name, metric=setup.metric.name, config=config, machine=machine)


def run_bisection(setup: BisectionSetup, path: Path, fresh: Bisection) -> tuple[Bisection, Answer]:
    """Measure until there is an answer, going on from what stands at `path`, where every block is kept once finished.

    HostBusy when another process is at it, HostChanged when the blocks at `path` are of another machine or workload.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_suffix(".lock"), timeout=0):
            bisection = load_bisection(path, fresh)
            while isinstance(wanted := step(bisection.machine), Measure):
                setup.say(f"measuring {', '.join(wanted.candidates)} (blocks of each: {wanted.blocks})")
                _measure(setup, path, bisection, wanted)
                for candidate, side in sides(bisection.machine).items():
                    if side and candidate in wanted.candidates:
                        why = bisection.machine.blocks[candidate].unusable
                        setup.say(f"{candidate} is {side}" + (f": {why}" if why else ""))
            return bisection, wanted
    except Timeout:
        raise HostBusy(f"another process is at this bisection ({path}); wait for it to end") from None


def _measure(setup: BisectionSetup, path: Path, bisection: Bisection, wanted: Measure) -> None:
    """One session of what is wanted; a candidate that cannot be fetched, built or started is marked, and the machine
    says what to measure instead."""

    def keep(machine: BisectState) -> None:
        bisection.machine = machine
        write_atomically(path, bisection.model_dump_json(indent=1))

    installed: dict[str, Installed] = {}
    for name in wanted.candidates:
        try:
            installed[name] = setup.get(name)
        except ReleaseError as error:
            keep(record_unusable(bisection.machine, name, str(error).splitlines()[0]))
    by_version = {build.release.version: name for name, build in installed.items()}
    for name in installed.keys() - set(by_version.values()):
        keep(record_unusable(bisection.machine, name, "it builds to the same version as another candidate"))
    if len(by_version) < len(wanted.candidates):
        return
    plan = plan_session(
        session_id=f"bisect-{datetime.now(UTC):%Y%m%dT%H%M%S%f}",
        plan="bisect",
        server=setup.server,
        benchmark=setup.benchmark,
        tests=(setup.test,),
        profile=setup.profile,
        releases=[build.release for build in installed.values()],
        control=installed[wanted.candidates[0]].release,
        configs=(bisection.config,),
        blocks=wanted.blocks,
        seed=setup.seed + bisection.machine.spent,
        noisy_repeats=0,  # the machine asks for more, within the budget
    )

    def sink(session: Session, row: Run, block: Block) -> None:
        bisection.session = bisection.session or session
        value, reason = _value(block, bisection)
        bisection.toolchains[by_version[row.release.version]] = row.toolchain
        keep(record_block(bisection.machine, by_version[row.release.version], value, reason))

    shelf = Shelf({build.release.version: build for build in installed.values()})
    try:
        outcome = run_session(
            plan,
            shelf,
            sink,
            configs=setup.configs,
            state=setup.state,
            session=bisection.session,
            on_event=setup.on_event,
        )
    except HostChanged as error:
        raise HostChanged(f"{error}: remove {path}") from error
    if outcome.stopped:
        raise OutOfSpace(outcome.stopped)
    for run in plan.runs:
        if why := outcome.skipped.get(run.id):
            keep(record_unusable(bisection.machine, by_version[run.release.version], why.splitlines()[0]))


def _value(block: Block, bisection: Bisection) -> tuple[float | None, str]:
    """The block's value, or why it has none that counts."""
    if block.status != "ok":
        return None, (block.reason or block.status).splitlines()[0]
    wanted = (bisection.test, bisection.metric)
    values = [row.value for row in block.measurements if (row.test, row.metric) == wanted]
    return (values[0], "") if values else (None, f"it has no {bisection.metric} of {bisection.test}")
