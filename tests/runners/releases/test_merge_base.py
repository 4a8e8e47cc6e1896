"""Where a patch left its target, from the history of both."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runners.errors import SourceUnavailable
from runners.releases.git import merge_base


class Repository:
    """A repository on disk, with two branches that parted at `fork`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.git("config", "uploadpack.allowFilter", "true")
        self.commit("first")
        self.fork = self.commit("second")
        self.git("checkout", "--quiet", "-b", "patch")
        self.commit("patch, part 1")
        self.head = self.commit("patch, part 2")
        self.git("checkout", "--quiet", "main")
        self.tip = self.commit("somebody else's")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(self.folder))
        done = subprocess.run(("git", *identity, *arguments), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, text: str) -> str:
        (self.folder / f"{text}.txt").write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", text)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def test_what_others_did_since_is_not_the_patchs(repository: Repository, tmp_path: Path) -> None:
    for url in (str(repository.folder), f"file://{repository.folder}"):
        assert merge_base(url, repository.tip, repository.head, tmp_path / "mirrors") == repository.fork
        assert merge_base(url, repository.fork, repository.head, tmp_path / "mirrors") == repository.fork
    repository.git("checkout", "--quiet", "patch")
    repository.git("merge", "--quiet", "--no-edit", "main")
    later = repository.git("rev-parse", "HEAD")
    assert merge_base(f"file://{repository.folder}", repository.tip, later, tmp_path / "mirrors") == repository.tip


def test_only_commits_are_fetched_where_the_server_can(repository: Repository, tmp_path: Path) -> None:
    merge_base(f"file://{repository.folder}", repository.tip, repository.head, tmp_path / "mirrors")
    (mirror,) = (tmp_path / "mirrors").glob("*.commits")
    kinds = subprocess.run(
        ("git", "--git-dir", mirror, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)"),
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert set(kinds) == {"commit"}


def test_what_has_nothing_in_common_is_told(repository: Repository, tmp_path: Path) -> None:
    repository.git("checkout", "--quiet", "--orphan", "other")
    other = repository.commit("other")
    url, mirrors = str(repository.folder), tmp_path / "mirrors"
    with pytest.raises(SourceUnavailable, match="no commit in common"):
        merge_base(url, repository.tip, other, mirrors)
    with pytest.raises(SourceUnavailable, match=str(repository.folder)):
        merge_base(url, repository.tip, "0" * 40, mirrors)
    with pytest.raises(SourceUnavailable, match="no full SHA"):
        merge_base(url, "--upload-pack=evil", repository.tip, mirrors)
