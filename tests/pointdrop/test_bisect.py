"""`pointdrop bisect`: candidates, and a planted change found among the commits of a repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from detector.bisect import begin
from history.errors import BadSettings
from history.metrics import shipped_metrics
from history.model import Release
from pointdrop.cli.main import app
from pointdrop.jobs.bisect import Bisection, BisectionSetup, commit_candidates, release_candidates, state_path
from runners.releases import Catalogue
from runners.releases.archives import remove_tree
from runners.settings import load_benchmark, load_profile, load_server

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
    with pytest.raises(BadSettings, match=r"12\.9 is not a known"):
        release_candidates(known, "12.0", "12.9")
    with pytest.raises(BadSettings, match="GOOD comes before BAD"):
        release_candidates(known, "12.0", "11.1")


def test_commits_along_first_parents(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    first = commit(tmp_path, "first")
    git(tmp_path, "checkout", "--quiet", "-b", "side")
    commit(tmp_path, "aside")
    git(tmp_path, "checkout", "--quiet", "main")
    second = commit(tmp_path, "second")
    git(tmp_path, "merge", "--quiet", "--no-ff", "-m", "merge", "side")
    assert commit_candidates(str(tmp_path), first, "main") == [first, second, git(tmp_path, "rev-parse", "HEAD")]
    with pytest.raises(BadSettings, match="GOOD comes before BAD"):
        commit_candidates(str(tmp_path), "main", first)
    with pytest.raises(BadSettings, match="git rev-parse"):
        commit_candidates(str(tmp_path), "nothing", "main")


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory that the account of the servers may enter."""
    folder = Path(tempfile.mkdtemp(prefix="pd-bisect-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    remove_tree(folder)


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
        machine = begin(("17.1", "17.2"), 40)
        asked = Bisection(dbms="postgres", test="l.i1", metric="ips", config="default", machine=machine)
        return state_path(bench, asked)

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
