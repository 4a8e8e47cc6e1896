"""Where our Lua scripts are, for a sysbench that runs as another account than the harness."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path

from runners.host import shared_tmp

SCRIPTS = Path(__file__).parent / "lua"
"""The scripts as they stand beside this module."""

#: What others need to enter a folder and to read a file.
ENTER, READ = 0o001, 0o004


def readable(folder: Path) -> bool:
    """Whether every account may enter `folder` and read the files in it."""
    folder = folder.resolve()
    ways = all(parent.stat().st_mode & ENTER for parent in (folder, *folder.parents))
    return ways and all(path.stat().st_mode & READ for path in folder.iterdir())


def scripts_digest(scripts: Path = SCRIPTS) -> str:
    """First 16 hex digits of the sha256 over the Lua scripts: a changed script is a changed workload."""
    digest = hashlib.sha256()
    for path in sorted(scripts.glob("*.lua")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def scripts_dir(scripts: Path = SCRIPTS) -> Path:
    """A folder with the scripts that every account may read: `scripts`, or a copy for as long as this process lives
    when the checkout stands where others may not enter, as below /root. Always the same for the same scripts."""
    return _readable_copy(scripts)


@cache
def _readable_copy(scripts: Path) -> Path:
    if readable(scripts):
        return scripts
    folder = Path(tempfile.mkdtemp(prefix="pointdrop-lua-", dir=shared_tmp()))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in scripts.glob("*.lua"):
        shutil.copyfile(path, folder / path.name)
        (folder / path.name).chmod(0o644)
    folder.chmod(0o755)
    return folder
