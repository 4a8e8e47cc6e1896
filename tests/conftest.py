"""What tests of every room share: where downloads are kept between runs, and that long files are begun first."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from detector import DetectorSettings
from history.datasets import load
from history.store import Store
from pointdrop.jobs.detect import find

# No test depends on how busy the machine is.
settings.register_profile("pointdrop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pointdrop")

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    # One measuring session a host: the lock that sees to it is in the temporary directory, so each worker is a host,
    # and so is that of another run on the same machine.
    own = Path(tempfile.gettempdir()) / f"pd-{os.environ['PYTEST_XDIST_TESTRUNUID'][:6]}-{worker}"
    own.mkdir(exist_ok=True)
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    own.chmod(0o1777)
    os.environ["TMPDIR"] = tempfile.tempdir = str(own)

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with end-to-end tests come first, so that no worker is left with a long one when the others are done."""
    long = {item.path for item in items if item.get_closest_marker("e2e")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def configs() -> Path:
    """The committed configuration."""
    return REPOSITORY / "configs"


@pytest.fixture(scope="session")
def download_state() -> Path:
    """A state directory whose cache of releases outlives the test run, so that only the first one downloads."""
    named = os.environ.get("POINTDROP_TEST_STATE")
    path = Path(named) if named else REPOSITORY / "var" / "tests"
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="session")
def published() -> Iterator[Store]:
    """The published figures that ship, with the findings in them; tests only read it."""
    with Store.open("sqlite://") as store:
        load(store, "smalldatum")
        store.append_detection(find(list(store.series()), DetectorSettings(), store), "test")
        yield store
