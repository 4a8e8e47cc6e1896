"""Scripts that a sysbench of another account can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.sysbench import scripts


def test_scripts_below_a_closed_folder_are_copied_where_everybody_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "home"
    (closed / "lua").mkdir(parents=True)
    (closed / "lua" / "a.lua").write_text("-- a")
    closed.chmod(0o700)
    monkeypatch.setattr(scripts, "SCRIPTS", closed / "lua")
    scripts.scripts_dir.cache_clear()
    try:
        folder = scripts.scripts_dir()
        assert folder != closed / "lua"
        assert scripts.readable(folder)
        assert (folder / "a.lua").read_text() == "-- a"
        assert scripts.scripts_dir() == folder, "one copy a process"
    finally:
        scripts.scripts_dir.cache_clear()
