"""Where our Lua scripts are, for a sysbench that runs as another account than the harness."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

SCRIPTS = Path(__file__).parent / "lua"
"""The scripts as they stand beside this module."""

#: What others need to enter a folder and to read a file.
ENTER, READ = 0o001, 0o004


def readable(folder: Path) -> bool:
    """Whether every account may enter `folder` and read the files in it."""
    folder = folder.resolve()
    ways = all(parent.stat().st_mode & ENTER for parent in (folder, *folder.parents))
    return ways and all(path.stat().st_mode & READ for path in folder.iterdir())


@cache
def scripts_dir() -> Path:
    """A folder with the scripts that every account may read: `SCRIPTS`, or a copy for as long as this process lives
    when the checkout stands where others may not enter, as below /root."""
    if readable(SCRIPTS):
        return SCRIPTS
    folder = Path(tempfile.mkdtemp(prefix="pointdrop-lua-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in SCRIPTS.glob("*.lua"):
        shutil.copyfile(path, folder / path.name)
        (folder / path.name).chmod(0o644)
    folder.chmod(0o755)
    return folder
