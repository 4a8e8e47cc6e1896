"""Hot loops are compiled once, kept on disk where a folder can be written, and run where none can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOPS = """
from detector.compilation import compiled

@compiled
def twice(x):
    return 2.0 * x

@compiled
def fourfold(x):
    return twice(twice(x))

print(fourfold(1.5), fourfold.__name__)
"""


@pytest.mark.parametrize("cached_in", ["beside the module", "the cache of the user", "nowhere"])
def test_machine_code_is_kept_where_a_folder_can_be_written(cached_in: str, tmp_path: Path) -> None:
    package, user = tmp_path / "package", tmp_path / "user"
    package.mkdir()
    (package / "loops.py").write_text(LOOPS)
    if cached_in != "beside the module":
        (package / "__pycache__").write_text("not a folder, for root either")
    if cached_in == "nowhere":
        user.write_text("not a folder, for root either")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": f"{ROOT}:{package}", "HOME": str(user), "XDG_CACHE_HOME": str(user)}
    done = subprocess.run(
        (sys.executable, "-c", "import loops"),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("6.0 fourfold\n", "")
    folder = {"beside the module": package, "the cache of the user": user}.get(cached_in)
    cached = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert cached == ({"loops.twice", "loops.fourfold"} if folder else set())
    assert folder is None or list(folder.rglob("*.nbi"))
