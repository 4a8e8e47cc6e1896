"""Scripts that a sysbench of another account can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.sysbench import scripts


def test_scripts_below_a_closed_folder_are_copied_where_everybody_may_read(tmp_path: Path) -> None:
    closed = tmp_path / "home"
    (closed / "lua").mkdir(parents=True)
    (closed / "lua" / "a.lua").write_text("-- a")
    closed.chmod(0o700)
    folder = scripts.scripts_dir(closed / "lua")
    assert folder != closed / "lua"
    assert scripts.readable(folder)
    assert (folder / "a.lua").read_text() == "-- a"
    assert scripts.scripts_dir(closed / "lua") == folder, "one copy a process"


def test_there_is_one_copy_however_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a command line would name another one than the bundle leaves out, and a resumed session would not match."""
    monkeypatch.setattr(scripts, "readable", lambda folder: False)
    scripts._readable_copy.cache_clear()
    try:
        assert scripts.scripts_dir() == scripts.scripts_dir(scripts.SCRIPTS) != scripts.SCRIPTS
    finally:
        scripts._readable_copy.cache_clear()
