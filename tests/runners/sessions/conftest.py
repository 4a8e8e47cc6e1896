"""Plans small enough to run for real, and a place where an unprivileged server can work."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.releases import Catalogue
from runners.sessions import SessionPlan
from tests.small_plans import CONFIGS, small_plan


@pytest.fixture(scope="session")
def state() -> Iterator[Path]:
    """A state directory that others may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="pointdrop-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def catalogue(download_state: Path) -> Iterator[Catalogue]:
    catalogue = Catalogue(CONFIGS, download_state)
    yield catalogue
    catalogue.close()


@pytest.fixture
def make_plan() -> Callable[..., SessionPlan]:
    """`make_plan(lane=..., releases=..., tests=..., ...)`."""
    return small_plan
