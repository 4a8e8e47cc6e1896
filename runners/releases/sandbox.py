"""Run somebody else's code where it sees the system's programs, its own directories, and nothing more. Pure.

bubblewrap gives it new namespaces: no network, no other processes, no home directories, no capabilities. What it may
take of the machine is bounded (`runners.bounds`).

>>> made = sandboxed(["make"], writable=[Path("/w")], directory=Path("/w"), environment={"LC_ALL": "C"})
>>> " ".join(made[-6:])
'--remount-ro / --chdir /w -- make'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from runners.bounds import BUILD, TMPFS_BYTES, Bounds, places

#: Read-only: programs, libraries, and what programs look up about the machine. No /home, /root, /var, /run.
SYSTEM = ("/usr", "/etc/passwd", "/etc/group", "/etc/alternatives", "/etc/ld.so.cache", "/etc/nsswitch.conf")
#: Links or directories, as the distribution has them.
MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")


def sandboxed(
    command: Sequence[str],
    *,
    writable: Iterable[Path],
    directory: Path,
    environment: Mapping[str, str],
    readable: Iterable[Path] = (),
    bounds: Bounds = BUILD,
    tmpfs_bytes: int = TMPFS_BYTES,
) -> list[str]:
    """`command` inside a sandbox that can write below `writable` and in a /tmp of its own, and sees no network."""
    arguments = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    arguments += ["--cap-drop", "ALL", "--clearenv", "--proc", "/proc", "--dev", "/dev"]
    for path in SYSTEM:
        arguments += ["--ro-bind-try", path, path]
    for path in MERGED:
        place = Path(path)
        arguments += ["--symlink", str(place.readlink()), path] if place.is_symlink() else ["--ro-bind-try", path, path]
    for key, value in environment.items():
        arguments += ["--setenv", key, value]
    arguments += places(readable, writable, tmpfs_bytes)
    return bounds.around([*arguments, "--chdir", str(directory), "--", *command])
