"""A library that was renamed is found by its old name, by the real loader."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runners.engines.libraries import RENAMED, SYSTEM_LIBRARIES, provide_renamed

(OLD, NEW), *_ = RENAMED.items()


@pytest.fixture
def system(tmp_path: Path) -> Path:
    folder = tmp_path / "system"
    folder.mkdir()
    return folder


def test_an_old_name_leads_to_the_new_library(system: Path, tmp_path: Path) -> None:
    (system / NEW).touch()
    folder = provide_renamed(tmp_path / "renamed", [tmp_path / "empty", system])
    assert folder is not None
    assert (folder / OLD).readlink() == system / NEW
    assert provide_renamed(tmp_path / "renamed", [system]) == folder, "a second start of the same server"


def test_a_system_with_the_old_name_or_without_the_library_is_left_alone(system: Path, tmp_path: Path) -> None:
    assert provide_renamed(tmp_path / "renamed", [system]) is None
    (system / NEW).touch()
    (system / OLD).touch()
    assert provide_renamed(tmp_path / "renamed", [system]) is None
    assert not (tmp_path / "renamed").exists()


def test_the_loader_takes_it(system: Path, tmp_path: Path) -> None:
    """A program asks for the old name on a system that has the new one only."""
    library = next(path for place in SYSTEM_LIBRARIES for path in (place / OLD, place / NEW) if path.exists())
    shutil.copy(library, system / NEW)
    folder = provide_renamed(tmp_path / "renamed", [system])
    script = f"import ctypes; ctypes.CDLL({OLD!r}); print(open('/proc/self/maps').read())"
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run(["python3", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert str(system / NEW) in done.stdout, done.stderr
