"""What Debian builds its own packages from, verified by apt, as a git repository with one commit.

`python -m tests.runners.releases.debian_source mysql` fetches MySQL's from Debian sid, builds it with the recipe of
`configs/dbms/mysql`, asks the server for its version and says how long that took; likewise `mariadb` and `postgres`. A
second argument is the package's version, for when a mirror has not the newest.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

from pointdrop.paths import configs_dir, state_dir
from runners.releases import Catalogue
from runners.releases.archives import unpack
from runners.releases.debian import mirror_lines

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: Suite and package by DBMS.
PACKAGES = {
    "postgres": ("bookworm", "postgresql-15"),
    "mariadb": ("bookworm", "mariadb"),
    "mysql": ("sid", "mysql-9.7"),
}
#: The same commit every time, so that the build of an earlier run is found again.
DATE = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}


def git(tree: Path, *arguments: str) -> str:
    """Run git in `tree`, always as the same author at the same time."""
    command = ["git", "-c", "gc.auto=0", "-c", "user.name=debian", "-c", "user.email=debian@example.org", *arguments]
    environment = DATE | {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def source_repository(folder: Path, dbms: str = "postgres", version: str = "") -> Path:
    """Fetch the source package, of that version or the newest, into `folder` and return the repository made of it."""
    suite, package = PACKAGES[dbms]
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "sources.list").write_text("\n".join(mirror_lines([suite], KEYRING, kind="deb-src")) + "\n")
    options = [f"Dir::Etc::sourcelist={folder}/sources.list", "Dir::Etc::sourceparts=/dev/null", f"Dir::State={folder}",
               f"Dir::State::lists={folder}/lists", f"Dir::Cache={folder}/cache", "APT::Sandbox::User="]  # fmt: skip
    apt = ["apt-get", "-qq", *(word for option in options for word in ("-o", option))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run(
        [*apt, "source", "--download-only", f"{package}={version}" if version else package], cwd=folder, check=True
    )
    tree = folder / "tree"
    unpack(next(path for path in folder.glob("*.orig.tar.*") if path.suffix != ".asc"), tree, subtree="*")
    for command in (["init", "--quiet"], ["add", "--all", "--force"], ["commit", "--quiet", "-m", "release"]):
        git(tree, *command)
    return tree


def main(dbms: str, version: str = "") -> None:
    with TemporaryDirectory(prefix="pointdrop-source-") as folder:
        repository = source_repository(Path(folder), dbms, version)
        began = time.monotonic()
        catalogue = Catalogue(configs_dir(), state_dir())
        installed = catalogue.build_commit(dbms, "HEAD", repository=str(repository))
        wall_s, used = time.monotonic() - began, getrusage(RUSAGE_CHILDREN)
        cpu_s = used.ru_utime + used.ru_stime
        print(f"{installed.release.name}: {wall_s / 60:.1f} minutes, {cpu_s / 60:.1f} of CPU time", flush=True)
        catalogue.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
