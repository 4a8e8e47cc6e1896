"""Plans small enough to run for real, and a place where an unprivileged server can work."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from history.model import Release
from runners.releases import Catalogue
from runners.sessions import SessionPlan, plan_session
from runners.settings import Profile, Scale, load_benchmark, load_profile, load_server

CONFIGS = Path(__file__).parents[3] / "configs"


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


def release(version: str, dbms: str = "postgres") -> Release:
    return Release(dbms=dbms, version=version, line=version.split(".")[0], digest=f"{version:0>64}")


@pytest.fixture
def make_plan() -> Callable[..., SessionPlan]:
    """`make_plan(lane=..., releases=..., tests=..., ...)`: seconds of work, not minutes."""

    def make(
        lane: str = "time",
        releases: tuple[str, ...] = ("17.5",),
        control: str = "17.0",
        tests: tuple[str, ...] = ("update-index.range100", "point-query.range100"),
        blocks: int = 1,
        noisy_repeats: int = 0,
        session_id: str = "s",
        dbms: str = "postgres",
        configs: tuple[str, ...] = ("default",),
    ) -> SessionPlan:
        profile = load_profile("instructions", CONFIGS)
        if lane == "time":
            scale = Scale(tables=2, rows=2_000, threads=2)
            profile = Profile(name="tiny", warmup_s=1, read_s=2, write_s=2, warm_s=1, scale=scale)
        benchmark = load_benchmark("sysbench", CONFIGS)
        return plan_session(
            session_id=session_id,
            plan="test",
            server=load_server("local", CONFIGS),
            benchmark=benchmark,
            tests=benchmark.select(tests),
            profile=profile,
            releases=[release(version, dbms) for version in releases],
            control=release(control, dbms),
            configs=configs,
            blocks=blocks,
            seed=11,
            noisy_repeats=noisy_repeats,
        )

    return make
