"""A fake GitHub with a repository `o/r`, and a place where workflows run against it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_github import FakeGitHub
from tests.workflows.acting import TOKEN, Workplace

BOT = "github-actions[bot]"


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """What breaks GitHub's description fails the test. `mark` may write, `eve` may only read."""
    with FakeGitHub() as fake:
        fake.token(TOKEN, BOT, "workflow", issues="write", checks="write", pull_requests="write", contents="write")
        fake.repo("o/r", roles={"mark": "write", BOT: "write"})
        yield fake
        assert fake.violations == []


@pytest.fixture
def workplace(download_state: Path) -> Iterator[Workplace]:
    """Below a folder that the account of the servers may enter."""
    folder = Path(tempfile.mkdtemp(prefix="pd-act-", dir="/tmp"))
    folder.chmod(0o755)
    yield Workplace(folder, download_state)
    shutil.rmtree(folder, ignore_errors=True)
