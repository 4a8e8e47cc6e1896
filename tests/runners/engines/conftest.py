"""Real releases and engines for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from runners.engines import Engine, Installed, engine_for
from runners.releases import Catalogue
from runners.settings.dbms import RenderedOptions, Sizing, load_dbms, render
from tests.folders import open_folder

SIZING = Sizing(pool_mib=64, log_mib=64, cores=2, connections=20)

MakeEngine = Callable[..., Engine]


@pytest.fixture(scope="session")
def catalogue(configs: Path, download_state: Path) -> Catalogue:
    return Catalogue(configs, download_state)


@pytest.fixture(scope="session")
def release(catalogue: Catalogue) -> Callable[..., Installed]:
    """`release("mariadb", "10.11")`: the newest release of a line that is known, fetched."""

    def fetch(dbms: str, line: str, source: str | None = None) -> Installed:
        for ask in (False, True):
            if ask:
                catalogue.discover(dbms, source)
            versions = [
                state.release.version
                for state in catalogue.list(dbms)
                if state.release.line == line
                and state.state in ("pinned", "new")
                and source in (None, state.release.build)
            ]
            if versions:
                return catalogue.fetch(dbms, versions[-1], source)
        raise AssertionError(f"no source has {dbms} {line}")

    return fetch


@pytest.fixture(scope="session")
def rendered(configs: Path) -> Callable[..., RenderedOptions]:
    """`rendered(installed, "default", "instructions")`: the option file of a config with overlays."""

    def options(installed: Installed, config: str = "default", *overlays: str) -> RenderedOptions:
        release = installed.release
        return render(load_dbms(release.dbms, configs), config, release.version, SIZING, overlays)

    return options


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the account of the servers can reach (pytest's own is closed to others)."""
    with open_folder() as folder:
        yield folder


@pytest.fixture
def make(place: Path, rendered: Callable[..., RenderedOptions]) -> Iterator[MakeEngine]:
    """`make(installed, options)`: an engine in a place of its own that is killed when the test ends."""
    with ExitStack() as stack:
        count = 0

        def engine(installed: Installed, options: RenderedOptions | None = None, **more: object) -> Engine:
            nonlocal count
            count += 1
            engine = engine_for(
                installed,
                options or rendered(installed),
                place / f"server-{count}",
                state=place / "state",
                **more,  # type: ignore[arg-type]
            )
            stack.callback(engine.kill)
            return engine

        yield engine
