"""A history in each database, and values to put in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from history.store import Store
from tests.history.postgres import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    one = Cluster()
    yield one
    one.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty history in each database; spooled results stay in the test's own directory."""
    monkeypatch.setenv("POINTDROP_STATE", str(tmp_path / "var"))
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    one: Cluster = request.getfixturevalue("cluster")
    return one.new_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as one:
        yield one
