"""A place servers can reach when root keeps the state where nobody else may enter (`/root`, a private home).

Servers never run as root, and a folder on the way that only root may enter hides release and data from them. Instead of
opening that folder we mirror what a server needs below `/var/lib/pointdrop`: releases as hard links, which take no
room on the same file system, and the server's own directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from filelock import FileLock

from runners.engines.account import Account
from runners.errors import EngineError
from runners.releases.installed import Installed, find_loader

MIRRORS = Path("/var/lib/pointdrop")
#: Beside each mirrored release a file of its name and this, which holds the path it mirrors.
NOTE = ".source"


def reachable_directory(directory: Path, account: Account, mirrors: Path = MIRRORS) -> Path:
    """`directory`, or its stand-in below `mirrors` when `account` cannot get to it."""
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    if not account.drops or account.barrier(directory) is None:
        return directory
    standin = _mirror(mirrors, account) / "servers" / _name(directory)
    standin.mkdir(parents=True, exist_ok=True)
    return standin


def reachable_release(installed: Installed, account: Account, mirrors: Path = MIRRORS) -> Installed:
    """`installed`, or the same release below `mirrors` when `account` cannot get to it."""
    source = installed.prefix.resolve()
    if not account.drops or account.barrier(source / "bin") is None:
        return installed
    releases = _mirror(mirrors, account) / "releases"
    releases.mkdir(exist_ok=True)
    target = releases / _name(source)
    with FileLock(releases / ".lock"):  # blocks are measured side by side, and each begins here
        _forget_gone(releases)
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=releases, ignore_cleanup_errors=True) as draft:
                copy_tree(source, Path(draft) / "release", links=True)
                (releases / f"{target.name}{NOTE}").write_text(str(source))
                (Path(draft) / "release").rename(target)
    return dataclasses.replace(installed, prefix=target, loader=find_loader(target))


def _mirror(mirrors: Path, account: Account) -> Path:
    try:
        mirrors.mkdir(parents=True, exist_ok=True)
        mirrors.chmod(0o711)
        barrier = account.barrier(mirrors)
    except OSError as error:
        raise EngineError(
            f"servers run as {account.name}, which may not enter the state directory, and {mirrors} cannot be used "
            f"instead ({error.strerror}); set POINTDROP_STATE to a folder that others may enter"
        ) from error
    if barrier is not None:
        raise EngineError(f"{account.name} may not enter {barrier}; run: chmod o+x {barrier}")
    return mirrors


def _name(path: Path) -> str:
    """A short name for a path, the same every time and different for every path."""
    return f"{path.name}-{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"


def copy_tree(source: Path, target: Path, *, links: bool = False) -> None:
    """A copy that shares blocks where the file system can; with `links` hard links where source and target are on one.

    EngineError when it cannot be made; nothing of it is left then.
    """
    for how in ("--link", "--reflink=auto")[0 if links else 1 :]:
        done = subprocess.run(
            ["cp", "--archive", how, "--", str(source), str(target)], check=False, capture_output=True, text=True
        )
        if done.returncode == 0:
            return
        shutil.rmtree(target, ignore_errors=True)
    raise EngineError(f"cannot copy {source} to {target}: {done.stderr.strip()}")


def _forget_gone(releases: Path) -> None:
    """Remove mirrors of releases that the cache has dropped."""
    for note in releases.glob(f"*{NOTE}"):
        if not Path(note.read_text()).exists():
            with tempfile.TemporaryDirectory(dir=releases, ignore_cleanup_errors=True) as going:
                # Away at once: what a kill leaves of it must not be taken for the mirror when the release comes back.
                with contextlib.suppress(FileNotFoundError):
                    (releases / note.name.removesuffix(NOTE)).rename(Path(going) / "release")
                note.unlink()
