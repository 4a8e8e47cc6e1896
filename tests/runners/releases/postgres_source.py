"""Postgres 15 as Debian builds its own from, verified by apt, as a git repository with one commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

from runners.releases.archives import unpack
from runners.releases.debian import mirror_lines

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: The same commit every time, so that the build of an earlier run is found again.
DATE = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}


def git(tree: Path, *arguments: str) -> str:
    """Run git in `tree`, always as the same author at the same time."""
    command = ["git", "-c", "user.name=debian", "-c", "user.email=debian@example.org", *arguments]
    environment = DATE | {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def source_repository(folder: Path) -> Path:
    """Fetch the source package into `folder` and return the repository made of it."""
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "sources.list").write_text("\n".join(mirror_lines(["bookworm"], KEYRING, kind="deb-src")) + "\n")
    options = [f"Dir::Etc::sourcelist={folder}/sources.list", "Dir::Etc::sourceparts=/dev/null", f"Dir::State={folder}",
               f"Dir::State::lists={folder}/lists", f"Dir::Cache={folder}/cache", "APT::Sandbox::User="]  # fmt: skip
    apt = ["apt-get", "-qq", *(word for option in options for word in ("-o", option))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "source", "--download-only", "postgresql-15"], cwd=folder, check=True)
    tree = folder / "tree"
    unpack(next(folder.glob("*.orig.tar.*")), tree, subtree="*")
    for command in (["init", "--quiet"], ["add", "--all", "--force"], ["commit", "--quiet", "-m", "release"]):
        git(tree, *command)
    return tree
