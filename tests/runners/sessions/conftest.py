"""Plans small enough to run for real, and a place where an unprivileged server can work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.releases import Catalogue
from runners.sessions import SessionPlan
from tests.folders import open_folder
from tests.small_plans import CONFIGS, small_plan


@pytest.fixture(scope="session")
def state() -> Iterator[Path]:
    """A state directory that others may enter, unlike pytest's own."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def catalogue(download_state: Path) -> Iterator[Catalogue]:
    catalogue = Catalogue(CONFIGS, download_state)
    yield catalogue
    catalogue.close()


@pytest.fixture
def make_plan() -> Callable[..., SessionPlan]:
    """`make_plan(lane=..., releases=..., tests=..., ...)`."""
    return small_plan
