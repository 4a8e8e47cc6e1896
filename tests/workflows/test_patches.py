"""Patches of pull requests: the workflows as they are shipped, run by act on real servers in a sandbox."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.releases import Catalogue
from runners.releases.archives import remove_tree
from tests.fake_github import FakeGitHub
from tests.fake_github.state import Issue
from tests.workflows.acting import Ran, Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

MEASURE = "Build and measure both commits in the sandbox"
#: Builds by copying: the repository holds what make would have made, so that a build takes a second.
CONFIGURE = """#!/bin/sh
for word; do case $word in --prefix=*) prefix=${word#--prefix=} ;; esac; done
if [ -e /root ] || [ -e /home ]; then echo "not in the sandbox" >&2; exit 1; fi
printf 'all:\\ninstall:\\n\\tmkdir -p $(DESTDIR)%s\\n\\tcp -R %s/tree/. $(DESTDIR)%s\\n' \\
  "$prefix" "$(dirname "$0")" "$prefix" > Makefile
"""


@pytest.fixture(scope="module")
def commits(configs: Path, download_state: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A repository of a DBMS with a base and a head: Postgres 17.7, and the patch that makes it 17.8."""
    repository = tmp_path_factory.mktemp("dbms")

    def git(*arguments: str) -> str:
        command = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", str(repository), *arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    (repository / "configure").write_text(CONFIGURE)
    (repository / "configure").chmod(0o755)
    catalogue = Catalogue(configs, download_state)
    shas = []
    for version in ("17.7", "17.8"):
        tree = repository / "tree"
        if tree.exists():
            remove_tree(tree)
        shutil.copytree(catalogue.fetch("postgres", version).prefix, tree, symlinks=True)
        subprocess.run(("chmod", "-R", "u+w", str(tree)), check=True)
        git("add", "--all", "--force")
        git("commit", "--quiet", "-m", version)
        shas.append(git("rev-parse", "HEAD"))
    catalogue.close()
    return repository, shas[0], shas[1]


@pytest.fixture(scope="module")
def machine() -> Iterator[Path]:
    """State of the measuring machine, which outlives a job: builds and loaded data are there the second time."""
    folder = Path(tempfile.mkdtemp(prefix="pd-machine-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    remove_tree(folder)


@pytest.fixture
def pull(github: FakeGitHub, commits: tuple[Path, str, str]) -> Issue:
    """A pull request from a fork."""
    _, base, head = commits
    issue = github.pull(github.state.repos["o/r"], "eve", head, head_repo="eve/r")
    issue.base_sha = base
    return issue


def moved_on(repository: Path, base: str) -> str:
    """A commit that somebody else put on the target branch after `base`; it does not even build."""
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", str(repository))
    tree = subprocess.run((*git, "mktree"), input="", check=True, capture_output=True, text=True).stdout.strip()
    made = subprocess.run(
        (*git, "commit-tree", tree, "-p", base, "-m", "later"), check=True, capture_output=True, text=True
    )
    return made.stdout.strip()


def command(pull: Issue, body: str, who: str, association: str) -> dict[str, Any]:
    return {
        "action": "created",
        "issue": {"number": pull.number, "state": "open", "pull_request": {"url": "x"}},
        "comment": {"id": 5, "body": body, "user": {"login": who}, "author_association": association},
        "sender": {"login": who},
        "repository": {"full_name": "o/r", "private": False},
    }


def surroundings(workplace: Workplace, machine: Path, repository: Path) -> dict[str, str]:
    """The environment of the measuring machine's runner."""
    return {
        "POINTDROP_STATE": str(machine), "POINTDROP_REPOSITORY": str(repository),
        "POINTDROP_CONFIGS": str(workplace.checkout / "configs"),
    }  # fmt: skip


def bench(workplace: Workplace, github: FakeGitHub, machine: Path, repository: Path, event: dict[str, Any]) -> Ran:
    environment = surroundings(workplace, machine, repository)
    return workplace.act("bench-command.yml", "issue_comment", event, github.url, environment)


def test_a_maintainers_command_ends_in_one_comment_and_a_check(
    workplace: Workplace, github: FakeGitHub, machine: Path, commits: tuple[Path, str, str], pull: Issue
) -> None:
    """The first time the machine cannot build it; the second run says so no longer, in the same place."""
    repository, base, head = commits
    checks = github.state.repos["o/r"].check_runs
    workplace.measure_little()
    ran = bench(workplace, github, machine, Path("/nonexistent"), command(pull, "/bench", "mark", "OWNER"))
    assert ran.steps("Benchmark the patch").get(MEASURE) == "failure"
    assert ran.jobs["Validate and comment"] == "success", ran.log[-4000:]
    (first,) = pull.comments
    assert "could not be measured" in first.body
    (check,) = checks.values()
    assert (check["conclusion"], check["output"]["title"]) == ("neutral", "Not measured")

    ran = bench(workplace, github, machine, repository, command(pull, f"/bench small {head[:10]}", "mark", "MEMBER"))
    assert ran.exit_code == 0, ran.log[-6000:]
    assert set(ran.jobs.values()) == {"success"}
    assert {"Check who asks and fix the commit", "Benchmark the patch", "Validate and comment"} <= set(ran.jobs)
    (comment,) = pull.comments
    assert comment.id == first.id and "could not be measured" not in comment.body
    assert "1 slower; most `scan.range100`, +4" in comment.body
    assert f"`postgres@{base[:10]}`" in comment.body and f"`{head}`" in comment.body
    assert "pg_mblen" in comment.body
    (check,) = checks.values()
    assert (check["head_sha"], check["conclusion"], check["name"]) == (head, "failure", "Pointdrop")


@pytest.mark.parametrize(
    ("who", "association", "body"),
    [
        ("eve", "COLLABORATOR", "/bench"),
        ("mark", "MEMBER", "/bench small; curl evil"),
        ("mark", "MEMBER", "/bench small 0123456789"),
        ("mark", "MEMBER", "/bench\n$(id)"),
    ],
)
def test_who_may_not_write_or_asks_for_something_else_is_refused(
    workplace: Workplace, github: FakeGitHub, tmp_path: Path, pull: Issue, who: str, association: str, body: str
) -> None:
    ran = bench(workplace, github, tmp_path, Path("/nonexistent"), command(pull, body, who, association))
    assert ran.steps("Check who asks").get("Gate") == "failure", ran.log[-4000:]
    assert "Benchmark the patch" not in ran.jobs and "Validate and comment" not in ran.jobs
    assert pull.comments == [] and github.state.repos["o/r"].check_runs == {}


def test_a_stranger_does_not_even_start_the_gate(
    workplace: Workplace, github: FakeGitHub, tmp_path: Path, pull: Issue
) -> None:
    ran = bench(workplace, github, tmp_path, Path("/nonexistent"), command(pull, "/bench", "eve", "NONE"))
    assert (ran.exit_code, ran.jobs) == (0, {})


def published(workplace: Workplace, github: FakeGitHub, head: str, result: dict[str, Any]) -> Ran:
    """pr-publish.yml after a run of pr-bench.yml that left `result`."""
    artifact = {"pr-result/result.json": json.dumps(result)}
    run = {"id": 9, "event": "pull_request", "conclusion": "success", "head_sha": head}
    event = {"action": "completed", "workflow_run": run, "repository": {"full_name": "o/r", "private": True}}
    return workplace.act("pr-publish.yml", "workflow_run", event, github.url, artifacts=artifact)


def test_a_hostile_artifact_is_refused(workplace: Workplace, github: FakeGitHub, pull: Issue) -> None:
    ran = published(workplace, github, pull.head, {"pr": 1, "head_sha": pull.head, "report": "<script>@everyone"})
    assert ran.steps("Validate and comment").get("Validate and publish") == "failure", ran.log[-4000:]
    (comment,) = pull.comments
    assert "wrong form" in comment.body and "script" not in comment.body


def test_the_label_way_publishes_at_the_pull_request_of_the_commit(
    workplace: Workplace, github: FakeGitHub, machine: Path, pull: Issue, commits: tuple[Path, str, str]
) -> None:
    """Compared with where it branched off, though the target has moved on since."""
    target = moved_on(commits[0], commits[1])
    event = {
        "action": "labeled", "label": {"name": "bench"}, "number": pull.number,
        "pull_request": {"number": pull.number, "head": {"sha": commits[2]}, "base": {"sha": target}},
        "repository": {"full_name": "o/r", "private": True},
    }  # fmt: skip
    workplace.measure_little()
    environment = surroundings(workplace, machine, commits[0])
    ran = workplace.act("pr-bench.yml", "pull_request", event, github.url, environment)
    assert ran.jobs == {"Benchmark the patch": "success"}, ran.log[-4000:]
    result = json.loads((workplace.artifacts / "pr-result" / "result.json").read_text())
    assert result["base_sha"] == commits[1]
    assert published(workplace, github, pull.head, result).jobs == {"Validate and comment": "success"}
    (comment,) = pull.comments
    assert "1 slower" in comment.body


CALLER = """
name: Instructions
on: pull_request
permissions: {{}}
jobs:
  compare:
    runs-on: ubuntu-24.04
    permissions: {{}}
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1
      - id: pointdrop
        uses: ./
        with: {{repository: "{repository}", head: {head}}}
      - name: Look
        env:
          VERDICT: ${{{{ steps.pointdrop.outputs.verdict }}}}
          RESULT: ${{{{ steps.pointdrop.outputs.result }}}}
        run: test "$VERDICT" = DIFFERENT && cp "$RESULT" "$FAKE_ARTIFACTS/result.json"
"""


def test_the_action_compares_with_the_first_parent(
    workplace: Workplace, github: FakeGitHub, machine: Path, commits: tuple[Path, str, str]
) -> None:
    repository, base, head = commits
    workplace.measure_little()
    caller = workplace.checkout / ".github" / "workflows" / "caller.yml"
    caller.write_text(CALLER.format(repository=repository, head=head))
    environment = surroundings(workplace, machine, repository)
    ran = workplace.act("caller.yml", "pull_request", {"action": "opened", "number": 1}, github.url, environment)
    assert ran.jobs == {"compare": "success"}, ran.log[-6000:]
    result = json.loads((workplace.artifacts / "result.json").read_text())
    assert (result["base_sha"], result["head_sha"]) == (base, head)
