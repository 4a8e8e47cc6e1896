"""Postgres from the source package that Debian builds its own from, as a git commit, with and without a patch.

About 80 seconds on two idle cores the first time; the state directory of the tests keeps the builds and ccache.
"""

from __future__ import annotations

import difflib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.engines.account import server_account
from runners.releases import Catalogue, Installed
from runners.releases.archives import remove_tree
from tests.runners.releases.debian_source import source_repository

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

PATCHED = "src/backend/utils/adt/version.c"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source_repository(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def catalogue(configs: Path, download_state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    """The committed recipe but for the optimiser, which takes most of the time and changes nothing here."""
    copy = tmp_path_factory.mktemp("configs") / "configs"
    shutil.copytree(configs, copy)
    recipe = copy / "dbms" / "postgres" / "recipes" / "configure.toml"
    recipe.write_text(recipe.read_text().replace("-O2 -g", "-O0"))
    enterable = server_account().barrier(download_state / "cache") is None
    state = download_state if enterable else Path(tempfile.mkdtemp(prefix="pointdrop-builds-"))
    state.chmod(0o755)
    catalogue = Catalogue(copy, state)
    yield catalogue
    catalogue.close()
    if not enterable:
        remove_tree(state)


def answer(installed: Installed, sql: str) -> str:
    """What a server of this release, on its own and without a socket, says to one statement."""
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="pointdrop-data-") as name:
        Path(name).chmod(0o755)
        data = Path(name, "data")
        data.mkdir()
        account.own(data)

        def run(program: str, *arguments: str, given: str = "") -> str:
            command = account.command(installed.command(program, *arguments))
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=name)
            assert done.returncode == 0, done.stderr
            return done.stdout

        run("initdb", "-D", str(data), "--no-sync", "--auth=trust")
        return run("postgres", "--single", "-D", str(data), "postgres", given=sql)


def test_a_commit_of_postgres_is_built_with_and_without_a_patch(
    catalogue: Catalogue, source: Path, tmp_path: Path
) -> None:
    before = (source / PATCHED).read_text()
    after = before.replace("(PG_VERSION_STR)", '(PG_VERSION_STR " with a patch")')
    assert after != before
    lines = difflib.unified_diff(
        before.splitlines(True), after.splitlines(True), f"a/{PATCHED}", f"b/{PATCHED}"
    )  # fmt: skip
    (tmp_path / "a.patch").write_text("".join(lines))

    plain = catalogue.build_commit("postgres", "HEAD", repository=str(source))
    patched = catalogue.build_commit("postgres", "HEAD", repository=str(source), patch=tmp_path / "a.patch")

    assert plain.release.version.startswith("15.") and "+g" in plain.release.version
    assert plain.release.line == patched.release.line == "15"
    assert ".p" in patched.release.version and plain.prefix != patched.prefix
    assert "with a patch" not in answer(plain, "select version()")
    assert "with a patch" in answer(patched, "select version()")
    assert catalogue.build_commit("postgres", "HEAD", repository=str(source)) == plain, "built once"
