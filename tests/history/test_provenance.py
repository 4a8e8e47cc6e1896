"""Which Pointdrop wrote a row: the version, and the commit where it runs from one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from history import records, schema
from history.database import reading
from history.interchange import header_line
from history.records import tool_version, writer
from history.store import Store
from pointdrop.cli.main import app
from tests.builders import SESSION

INSTALLED = distribution("pointdrop").version


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    tool_version.cache_clear()
    yield
    tool_version.cache_clear()


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@y")
    command = ["git", *identity, "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that the module seems to be in."""
    root = tmp_path / "checkout"
    (root / "history").mkdir(parents=True)
    (root / "history" / "records.py").write_text("# as committed\n")
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    git(root, "tag", "v9")
    monkeypatch.setattr(records, "__file__", str(root / "history" / "records.py"))
    return root


def test_a_checkout_has_its_commit_and_whether_it_was_changed(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")[:12]
    assert tool_version() == f"{INSTALLED}+g{commit}"
    (checkout / "history" / "records.py").write_text("# changed\n")
    assert tool_version() == f"{INSTALLED}+g{commit}", "asked once"
    tool_version.cache_clear()
    assert tool_version() == f"{INSTALLED}+g{commit}.dirty"


def test_a_linked_checkout_has_its_own_commit(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(checkout, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(tmp_path / "linked", "commit", "-q", "--allow-empty", "-m", "y")
    monkeypatch.setattr(records, "__file__", str(tmp_path / "linked" / "history" / "records.py"))
    commit = git(tmp_path / "linked", "rev-parse", "HEAD")[:12]
    assert tool_version() == f"{INSTALLED}+g{commit}"
    assert commit != git(checkout, "rev-parse", "HEAD")[:12]


def test_without_git_it_is_the_installed_version(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert tool_version() == INSTALLED


@pytest.mark.parametrize(
    ("origin", "rest"),
    [
        (None, ""),
        ({"url": "file:///x", "dir_info": {}}, ""),
        ({"url": "https://x", "vcs_info": {"vcs": "git", "commit_id": "3f2a9c1d44e0" + "0" * 28}}, "+g3f2a9c1d44e0"),
    ],
)
def test_a_package_has_the_commit_it_was_installed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: object, rest: str
) -> None:
    monkeypatch.setattr(records, "__file__", str(tmp_path / "history" / "records.py"))
    monkeypatch.setattr(Distribution, "read_text", lambda *_: None)
    installed = type(distribution("pointdrop"))
    metadata = f"Metadata-Version: 2.1\nName: pointdrop\nVersion: {INSTALLED}\n"
    files = {"direct_url.json": json.dumps(origin) if origin else None, "METADATA": metadata}
    monkeypatch.setattr(installed, "read_text", lambda _, name: files.get(name))
    assert tool_version() == INSTALLED + rest


def test_rows_files_and_the_command_line_name_the_same(store: Store) -> None:
    store.append_session(SESSION)
    with reading(store.engine) as connection:
        assert connection.execute(select(schema.writer.c.version)).scalars().all() == [writer()]
    assert json.loads(header_line())["writer"] == writer() == f"pointdrop {tool_version()}"
    assert CliRunner().invoke(app, ["--version"]).output == f"{writer()}\n"
