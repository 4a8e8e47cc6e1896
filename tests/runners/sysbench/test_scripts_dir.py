"""Scripts that a sysbench of another account can read."""

from __future__ import annotations

from pathlib import Path

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
