"""`pointdrop bisect`: candidates, blocks that outlive a kill, every kind of answer, and real releases and commits."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

from detector.bisect_answers import Found
from history.errors import BadSettings
from history.metrics import shipped_metrics
from history.model import Block, Fingerprint, Measurement, Release, Run, Session
from pointdrop.cli.main import app
from pointdrop.jobs.bisect import (
    BisectionSetup,
    commit_candidates,
    new_bisection,
    release_candidates,
    run_bisection,
    state_path,
)
from runners.errors import HostBusy, HostChanged
from runners.releases import Catalogue, Installed, ReleaseError
from runners.releases.archives import remove_tree
from runners.sessions.model import Outcome, SessionPlan
from runners.settings import load_benchmark, load_profile, load_server
from tests.killing import die_at

#: Builds by copying: a commit holds what make would have made of it, so that a build takes a second.
CONFIGURE = """#!/bin/sh
for word; do case $word in --prefix=*) prefix=${word#--prefix=} ;; esac; done
printf 'all:\\ninstall:\\n\\tmkdir -p $(DESTDIR)%s\\n\\tcp -R %s/tree/. $(DESTDIR)%s\\n' \\
  "$prefix" "$(dirname "$0")" "$prefix" > Makefile
"""
#: Between these two an index scan of a hundred rows became 9 % cheaper.
BEFORE, AFTER = "10.4", "11.1"


def git(repository: Path, *arguments: str) -> str:
    command = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", str(repository), *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(repository: Path, message: str) -> str:
    git(repository, "add", "--all", "--force")
    git(repository, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(repository, "rev-parse", "HEAD")


def test_releases_of_a_line_and_over_lines() -> None:
    known = [
        Release(dbms="postgres", version=version, line=version.split(".")[0])
        for version in ("9.6.24", "10.4", "10.23", "11.1", "11.22", "12.0", "12.1", "12.2")
    ]
    known[0] = known[0].model_copy(update={"line": "9.6"})
    assert release_candidates(known, "9.6.24", "12.1") == ["9.6.24", "10.4", "11.1", "12.0", "12.1"]
    assert release_candidates(known, "12.0", "12.2") == ["12.0", "12.1", "12.2"]
    known += [Release(dbms="postgres", version=f"12.{minor}+debian", line="12") for minor in (0, 1)]
    assert release_candidates(known, "12.0", "12.2") == ["12.0", "12.1", "12.2"], "of one builder"
    assert "12.1+debian" in release_candidates(known, "12.0+debian", "12.2")
    with pytest.raises(BadSettings, match=r"12\.9 is not a known"):
        release_candidates(known, "12.0", "12.9")
    for wrong in ("11.1", "12.0"):
        with pytest.raises(BadSettings, match="GOOD comes before BAD"):
            release_candidates(known, "12.0", wrong)


def test_commits_along_first_parents(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    first = commit(tmp_path, "first")
    git(tmp_path, "checkout", "--quiet", "-b", "side")
    commit(tmp_path, "aside")
    git(tmp_path, "checkout", "--quiet", "main")
    second = commit(tmp_path, "second")
    git(tmp_path, "merge", "--quiet", "--no-ff", "-m", "merge", "side")
    assert commit_candidates(str(tmp_path), first, "main") == [first, second, git(tmp_path, "rev-parse", "HEAD")]
    for wrong in (first, "main"):
        with pytest.raises(BadSettings, match="GOOD comes before BAD"):
            commit_candidates(str(tmp_path), "main", wrong)
    with pytest.raises(BadSettings, match=f"main~1 does not contain side; they have {first} in common"):
        commit_candidates(str(tmp_path), "side", "main~1")
    with pytest.raises(BadSettings, match="git rev-parse"):
        commit_candidates(str(tmp_path), "nothing", "main")


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory that the account of the servers may enter."""
    folder = Path(tempfile.mkdtemp(prefix="pd-bisect-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    remove_tree(folder)


TEST = "points-covered-si.range100"


@dataclass
class FakeHost:
    """Measures releases of known levels in no time, and writes down every block that it measured."""

    levels: dict[str, float]
    log: Path
    unavailable: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    kernel: str = "6.1"
    toolchains: dict[str, dict[str, str]] = field(default_factory=dict)

    def measured(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []

    def fetch(self, dbms: str, version: str) -> Installed:
        if version in self.unavailable:
            raise ReleaseError(f"{dbms} {version}: the source cannot be reached")
        return Installed(Release(dbms=dbms, version=version, line="18"), Path("/nowhere"))

    def run_session(self, plan: SessionPlan, shelf: Any, sink: Any, **options: Any) -> Outcome:
        begun = Session(
            id=plan.session_id, host="h", server="local", started=datetime.now(UTC),
            fingerprint=Fingerprint(facts={"kernel": self.kernel}),
        )  # fmt: skip
        if options["session"] and options["session"].fingerprint != begun.fingerprint:
            raise HostChanged("the kernel changed")
        outcome = Outcome(planned=len(plan.blocks))
        for planned in plan.blocks:
            version = planned.run.release.version
            if version in self.skipped:
                outcome.skipped[planned.run.id] = f"{version} has no lz4"
                continue
            with self.log.open("a") as log:
                print(version, file=log)
            values = {TEST: self.levels[version], "scan.range100": 7.0}
            block = Block(
                id=planned.id, run_id=planned.run.id, number=planned.number, started=begun.started, ended=begun.started,
                status="failed" if version in self.failing else "ok",
                reason="the server died\nlast lines of its log" if version in self.failing else "",
                measurements=tuple(Measurement(test=t, metric="insn/o", value=v) for t, v in values.items()),
            )  # fmt: skip
            run = planned.run
            values_of_run = {"id": run.id, "session_id": begun.id, "release": run.release, "config": "default"}
            built = self.toolchains.get(version, {})
            sink(begun, Run.model_validate({**values_of_run, "benchmark": "b", "toolchain": built}), block)
        return outcome


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """Releases 18.0 to 18.7 with a step at 18.3, behind the command line."""
    fake = FakeHost({f"18.{i}": 1000.0 if i < 3 else 1100.0 for i in range(8)}, tmp_path / "measured")
    states = [SimpleNamespace(release=fake.fetch("postgres", version).release, state="new") for version in fake.levels]
    catalogue = SimpleNamespace(discover=lambda dbms: None, list=lambda dbms: states, fetch=fake.fetch)
    monkeypatch.setattr("runners.releases.Catalogue", lambda *arguments, **options: catalogue)
    monkeypatch.setattr("pointdrop.jobs.bisect.run_session", fake.run_session)
    monkeypatch.setenv("POINTDROP_STATE", str(tmp_path / "state"))
    return fake


def asked(good: str, bad: str, *more: str) -> Result:
    command = ("bisect", "postgres", good, bad, "--test", TEST, "--format", "json", *more)
    return CliRunner().invoke(app, command, catch_exceptions=False)


def answered(good: str, bad: str, *more: str) -> dict[str, Any]:
    result = asked(good, bad, *more)
    answer: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (0 if answer["exact"] else 4), result.output
    return answer


def test_the_release_that_brought_the_change(host: FakeHost) -> None:
    answer = answered("18.0", "18.7")
    assert (answer["answer"], answer["exact"], answer["differ"]) == ("found", True, True)
    assert (answer["after"], answer["first"], answer["between"], answer["reason"]) == ("18.2", "18.3", [], "")
    assert answer["step"]["before"], answer["step"]["after"] == ("18.2", "18.3")
    assert answer["step"]["change_pct"] == pytest.approx(10.0) and answer["ends"]["blocks_after"] == 2
    measured = host.measured()
    assert set(measured[:4]) == {"18.0", "18.7"}, "the ends come first"
    assert answer["blocks"] == len(measured) == 2 * len(set(measured))
    assert set(answer["levels"]) == set(measured) >= {"18.2", "18.3"}
    assert answered("18.0", "18.7") == answer and host.measured() == measured, "a second time nothing is measured"


def test_no_boundary_between_two_builds_is_crossed_silently(host: FakeHost) -> None:
    edb = {"builder": "EnterpriseDB", "compiler": "GCC", "compiler_version": "4.4.7", "flags": "-O2"}
    zonky = {"builder": "zonky", "compiler": "GCC", "compiler_version": "7.5.0", "flags": "-Os"}
    host.toolchains = {version: edb if version < "18.3" else zonky for version in host.levels}
    answer = answered("18.0", "18.7")
    assert answer["toolchain"].startswith(
        "18.2 was built by EnterpriseDB with GCC 4.4.7 and -O2, 18.3 by zonky with GCC 7.5.0 and -Os: how much of this "
        "is the compiler's is not known. To tell, compare builds of both by one compiler: pointdrop compare "
    )
    text = CliRunner().invoke(app, ["bisect", "postgres", "18.0", "18.7", "--test", TEST], catch_exceptions=False)
    assert answer["toolchain"] in text.stdout, "and again from what was kept"
    assert answered("18.0", "18.2")["toolchain"] == "", "the same build, and no difference"


def test_a_vendor_s_other_compiler_is_said(host: FakeHost) -> None:
    built = {"builder": "zonky", "compiler": "GCC", "compiler_version": "7.5.0"}
    host.toolchains = {
        version: built | ({} if version >= "18.3" else {"compiler_version": "4.8.4"}) for version in host.levels
    }
    assert answered("18.0", "18.7")["toolchain"] == (
        "The compiler changed too, from GCC 4.8.4 to GCC 7.5.0: part of this may be the compiler's."
    )


def test_neighbours_are_measured_before_one_is_named(host: FakeHost) -> None:
    found = answered("18.2", "18.3")
    assert (found["answer"], found["first"], found["blocks"]) == ("found", "18.3", 4)
    same = answered("18.1", "18.2")
    assert (same["answer"], same["after"], same["first"], same["step"]) == ("no-difference", None, None, None)
    assert (same["exact"], same["differ"], same["blocks"]) == (False, False, 4)
    assert same["ends"]["change_pct"] == 0 and "18.1 and 18.2 do not differ: +0.00 %" in same["reason"]
    assert Counter(host.measured()) == {"18.1": 2, "18.2": 4, "18.3": 2}


def test_a_line_on_which_nothing_changed(host: FakeHost) -> None:
    assert answered("18.3", "18.7")["answer"] == "no-difference"
    assert set(host.measured()) == {"18.3", "18.7"}


def test_what_cannot_be_fetched_started_or_run_stays_inside(host: FakeHost) -> None:
    host.unavailable, host.skipped, host.failing = {"18.2"}, {"18.3"}, {"18.4"}
    answer = answered("18.0", "18.7")
    assert (answer["answer"], answer["after"], answer["first"]) == ("interval", "18.1", "18.5")
    assert answer["between"] == ["18.2", "18.3", "18.4"]
    assert answer["reason"] == "18.2, 18.3, 18.4 could not be measured"
    result = CliRunner().invoke(
        app, ("bisect", "postgres", "18.0", "18.7", "--test", TEST, "--format", "csv"), catch_exceptions=False
    )
    rows = {row["candidate"]: row for row in csv.DictReader(io.StringIO(result.stdout))}
    assert {name: (row["side"], row["blocks"]) for name, row in rows.items()} == {
        "18.0": ("end", "2"), "18.1": ("good", "2"), "18.2": ("unusable", "0"), "18.3": ("unusable", "0"),
        "18.4": ("unusable", "0"), "18.5": ("bad", "2"), "18.7": ("end", "2"),
    }  # fmt: skip
    assert rows["18.2"]["note"] == "postgres 18.2: the source cannot be reached"
    assert rows["18.3"]["note"] == "18.3 has no lz4"
    assert rows["18.4"]["note"] == "4 blocks without a value, the last one: the server died"


@pytest.mark.parametrize("how", ["unavailable", "skipped", "failing"])
@pytest.mark.parametrize("end", ["18.0", "18.7"])
def test_an_end_that_cannot_be_measured_is_no_guess(host: FakeHost, how: str, end: str) -> None:
    setattr(host, how, {end})
    answer = answered("18.0", "18.7")
    assert (answer["answer"], answer["after"], answer["first"]) == ("undecided", None, None)
    assert (answer["differ"], answer["ends"]) == (None, None)
    assert answer["reason"].startswith(f"{end} cannot be measured: ")
    setattr(host, how, set())
    assert answered("18.0", "18.7")["first"] == "18.3", "it is tried again"


def test_the_budget_is_of_all_blocks_and_can_be_raised(host: FakeHost) -> None:
    few = answered("18.0", "18.7", "--budget", "5")
    assert (few["answer"], few["after"], few["first"], few["blocks"]) == ("interval", "18.0", "18.7", 4)
    assert few["reason"] == "the budget of 5 blocks is spent"
    more = answered("18.0", "18.7", "--budget", "20")
    assert more["first"] == "18.3" and more["blocks"] == len(host.measured()) <= 20
    assert asked("18.0", "18.7", "--budget", "3").exit_code == 2


def test_blocks_of_another_machine_are_not_joined(host: FakeHost, tmp_path: Path) -> None:
    answered("18.0", "18.7", "--budget", "4")
    host.kernel = "6.2"
    with pytest.raises(HostChanged, match=r"kernel changed: remove .*/bisect/\w+\.json"):
        asked("18.0", "18.7")
    (held,) = (tmp_path / "state" / "bisect").glob("*.json")
    with FileLock(held.with_suffix(".lock")), pytest.raises(HostBusy, match="another process is at this bisection"):
        asked("18.0", "18.7")
    held.unlink()
    assert answered("18.0", "18.7")["first"] == "18.3"


def test_a_state_of_an_older_version_is_refused(host: FakeHost, tmp_path: Path) -> None:
    answered("18.0", "18.7")
    (held,) = (tmp_path / "state" / "bisect").glob("*.json")
    machine = {"candidates": list(host.levels), "tried": {"18.3": {"side": "bad", "blocks": 2}}, "budget": 40}
    older = {"dbms": "postgres", "test": TEST, "metric": "insn/o", "config": "default", "machine": machine}
    held.write_text(json.dumps({**older, "values": {"18.0": [1000.0]}, "notes": {}}))
    with pytest.raises(BadSettings, match="is not a bisection of this version; remove it to begin anew"):
        asked("18.0", "18.7")


def test_a_metric_that_does_not_exist_is_refused_before_anything_runs(host: FakeHost) -> None:
    with pytest.raises(BadSettings, match=r"no metric 'insn'; there are: .*insn/o"):
        asked("18.0", "18.7", "--metric", "insn")
    assert host.measured() == []


def test_a_kill_at_any_step_loses_no_finished_block(host: FakeHost, tmp_path: Path, configs: Path) -> None:
    """The process is killed at each of its writes, fsyncs and renames in turn, and what is run again measures the rest:
    a block twice only where the kill came between its end and its place on the disk."""
    catalogue = load_benchmark("sysbench", configs)
    setup = BisectionSetup(
        get=lambda name: host.fetch("postgres", name), server=load_server("local", configs), benchmark=catalogue,
        test=catalogue.select((TEST,))[-1], profile=load_profile("instructions", configs),
        metric=shipped_metrics()["insn/o"], configs=configs, state=tmp_path,
    )  # fmt: skip
    fresh = new_bisection(setup, "postgres", "default", tuple(host.levels), 40)
    unkilled = None
    for kill in count():
        folder = tmp_path / str(kill)
        path, host.log = folder / "state.json", folder / "measured"
        folder.mkdir()
        child = os.fork()
        if not child:
            try:
                die_at(kill)
                run_bisection(setup, path, fresh)
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL)
        bisection, answer = run_bisection(setup, path, fresh)
        assert isinstance(answer, Found) and answer.first == "18.3"
        if status == 0:
            unkilled = Counter(host.measured())
            break
        assert bisection.machine.spent <= len(host.measured()) <= bisection.machine.spent + 1
        assert json.loads(path.read_text())["machine"]["blocks"].keys() == set(host.measured())
    assert unkilled and kill > 3 * unkilled.total(), "each block was killed at several steps"


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("good", "bad", "test", "found", "change_pct", "built"),
    [
        ("18.1", "18.2", TEST, None, 0.0, ""),
        ("18.0", "18.4", "scan.range100", "18.2", 44.9, ""),
        ("10.4", "12.0", "point-query.range100", "11.1", -9.3, "10.4 was built by EnterpriseDB with GCC 4.4.7 and -O2"),
    ],
)
def test_real_releases(
    download_state: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    good: str,
    bad: str,
    test: str,
    found: str | None,
    change_pct: float,
    built: str,
) -> None:
    """Neighbours that do not differ, a step of one build, and one between two builders, which is said."""
    (state / "cache").symlink_to(download_state / "cache")
    monkeypatch.setenv("POINTDROP_STATE", str(state))
    words = ("bisect", "postgres", good, bad, "--test", test, "--format", "json", "--quiet")
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    answer = json.loads(result.stdout)
    assert answer["blocks"] >= 4 and {good, bad} <= answer["levels"].keys()
    if found is None:
        assert (result.exit_code, answer["answer"], answer["first"]) == (4, "no-difference", None)
        assert answer["levels"][bad] == pytest.approx(answer["levels"][good], rel=0.003)
        assert abs(answer["ends"]["change_pct"]) < 0.3
    else:
        assert (result.exit_code, answer["answer"], answer["first"]) == (0, "found", found)
        assert answer["step"]["change_pct"] == pytest.approx(change_pct, abs=2.0)
    assert answer["toolchain"].startswith(built) and bool(answer["toolchain"]) == bool(built)


@pytest.fixture
def planted(configs: Path, download_state: Path, state: Path) -> tuple[Path, list[str]]:
    """Five commits: the third cannot be built, the fourth has the change."""
    repository = state / "dbms"
    repository.mkdir()
    git(repository, "init", "--quiet")
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    configure, tree = repository / "configure", repository / "tree"
    catalogue = Catalogue(configs, download_state)

    def put(version: str) -> None:
        if tree.exists():
            remove_tree(tree)
        shutil.copytree(catalogue.fetch("postgres", version).prefix, tree, symlinks=True)
        subprocess.run(("chmod", "-R", "u+w", str(tree)), check=True)
        configure.write_text(CONFIGURE)
        configure.chmod(0o755)

    put(BEFORE)
    commits = [commit(repository, "base"), commit(repository, "harmless")]
    configure.write_text("#!/bin/sh\necho no compiler likes this >&2\nexit 1\n")
    commits.append(commit(repository, "does not build"))
    put(AFTER)
    commits += [commit(repository, "the change"), commit(repository, "harmless too")]
    catalogue.close()
    return repository, commits


def test_other_scale_tests_or_durations_are_another_bisection(tmp_path: Path, configs: Path) -> None:
    def stands(server: str = "small", benchmark: str = "insert", profile: str = "quick") -> Path:
        catalogue = load_benchmark(benchmark, configs)
        bench = BisectionSetup(
            get=lambda name: pytest.fail(name), server=load_server(server, configs), benchmark=catalogue,
            test=catalogue.select(("l.i1",))[-1], profile=load_profile(profile, configs),
            metric=shipped_metrics()["ips"], configs=configs, state=tmp_path,
        )  # fmt: skip
        return state_path(bench, new_bisection(bench, "postgres", "default", ("17.1", "17.2"), 40))

    others = (stands(server="medium"), stands(benchmark="insert-io"), stands(profile="standard"))
    assert stands() == stands() and len({stands(), *others}) == 4


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_planted_change_is_found_among_commits(
    planted: tuple[Path, list[str]], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built, counted, judged; what cannot be built stays in the answer; the same question again measures nothing."""
    repository, commits = planted
    monkeypatch.setenv("POINTDROP_STATE", str(state))
    asked = (
        "bisect", "postgres", commits[0], commits[-1], "--repository", str(repository),
        "--test", "point-query.range100", "--format", "json", "--quiet",
    )  # fmt: skip
    result = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert result.exit_code == 4, result.output
    answer = json.loads(result.stdout)
    assert (answer["after"], answer["between"], answer["first"]) == (commits[1], [commits[2]], commits[3])
    assert "could not be measured" in answer["reason"]
    levels = answer["levels"]
    assert levels[commits[1]] == pytest.approx(levels[commits[0]], rel=0.002)
    assert levels[commits[3]] == pytest.approx(0.91 * levels[commits[0]], rel=0.02)

    (held,) = (state / "bisect").glob("*.json")
    before = held.read_bytes()
    again = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert (again.exit_code, json.loads(again.stdout)) == (4, answer)
    assert held.read_bytes() == before
