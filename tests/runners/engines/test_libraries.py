"""A library that was renamed is found by its old name, by the real loader."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runners.engines import Installed, engine_for
from runners.engines.mysqlfamily import RENAMED_LIBRARIES, SYSTEM_LIBRARIES, link_libraries, renamed_libraries
from runners.settings.dbms import RenderedOptions

(OLD, NEW), *_ = RENAMED_LIBRARIES.items()


@pytest.fixture
def system(tmp_path: Path) -> Path:
    folder = tmp_path / "system"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "renamed"
    folder.mkdir(mode=0o700)
    return folder


def test_an_old_name_leads_to_the_new_library(system: Path, folder: Path, tmp_path: Path) -> None:
    (system / NEW).touch()
    links = renamed_libraries([tmp_path / "empty", system])
    assert links == {OLD: system / NEW}
    link_libraries(links, folder)
    assert [path.name for path in folder.iterdir()] == [OLD], "no draft is left"
    assert (folder / OLD).readlink() == system / NEW
    assert folder.stat().st_mode & 0o777 == 0o755, "servers run as another account"


def test_links_that_are_right_are_left_alone_and_wrong_ones_replaced(system: Path, folder: Path) -> None:
    """Servers may be using them, and another process may be at the same."""
    (system / NEW).touch()
    links = renamed_libraries([system])
    link_libraries(links, folder)
    before = (folder / OLD).lstat().st_ino
    link_libraries(links, folder)
    assert (folder / OLD).lstat().st_ino == before
    (folder / OLD).unlink()
    (folder / OLD).symlink_to("/gone")
    link_libraries(links, folder)
    assert (folder / OLD).readlink() == system / NEW


def test_a_system_with_the_old_name_or_without_the_library_is_left_alone(system: Path, tmp_path: Path) -> None:
    assert renamed_libraries([system]) == {}
    (system / NEW).touch()
    (system / OLD).touch()
    assert renamed_libraries([tmp_path / "empty", system]) == {}


@pytest.mark.e2e
def test_servers_get_it_from_a_folder_that_is_not_theirs(
    release: Callable[..., Installed], rendered: Callable[..., RenderedOptions], place: Path, system: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What a server left in its own directory, a link that leads elsewhere, is not followed."""
    installed = release("myrocks", "10.11")
    monkeypatch.setattr("runners.engines.mysqlfamily.renamed_libraries", lambda: {OLD: system / NEW})
    engine = engine_for(installed, rendered(installed), place / "server", state=place / "state", sandbox=True)
    engine.installed = replace(engine.installed, loader=None)
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (engine.directory / "renamed").symlink_to(elsewhere)
    try:
        assert str(place / "state" / "renamed") in engine.environment()["LD_LIBRARY_PATH"].split(":")
        assert f"--ro-bind {place}/state/renamed" in " ".join(engine.server.confine(["true"]))
    finally:
        engine.kill()
    assert (place / "state" / "renamed" / OLD).readlink() == system / NEW
    assert not list(elsewhere.iterdir())


def test_the_loader_takes_it(system: Path, folder: Path) -> None:
    """A program asks for the old name on a system that has the new one only."""
    library = next(path for place in SYSTEM_LIBRARIES for path in (place / OLD, place / NEW) if path.exists())
    shutil.copy(library, system / NEW)
    link_libraries(renamed_libraries([system]), folder)
    script = f"import ctypes; ctypes.CDLL({OLD!r}); print(open('/proc/self/maps').read())"
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run(["python3", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert str(system / NEW) in done.stdout, done.stderr
