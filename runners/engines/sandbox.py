"""Servers and builds of code nobody has reviewed run inside bubblewrap: no network, no other processes, nothing to
write but what they are given.

What they may take of the machine is bounded (`runners.bounds`). It costs no measurable CPU. Everything keeps its path,
so that option files and logs mean the same inside and outside.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from runners.bounds import SERVER, TMPFS_BYTES, Bounds, places
from runners.engines.errors import NoSandbox

SANDBOX = "bwrap"
#: What programs and the C library need of the system, where it exists.
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
#: Postgres looks up the name of its account.
ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf")


def sandboxed(
    argv: Sequence[str],
    *,
    readable: Sequence[Path],
    writable: Sequence[Path],
    share_processes: bool = False,
    bounds: Bounds = SERVER,
    tmpfs_bytes: int = TMPFS_BYTES,
) -> list[str]:
    """`argv` inside a sandbox that sees the system and `readable` read-only and may write to `writable`.

    Give `share_processes` when processes inside must keep their ids. NoSandbox when bubblewrap is missing.

    >>> " ".join(sandboxed(["true"], readable=[], writable=[Path("/srv/data")])[-11:])
    '--bind /srv/data /srv/data --remount-ro /proc --remount-ro /dev --remount-ro / -- true'
    """
    if shutil.which(SANDBOX) is None:
        raise NoSandbox("bubblewrap is missing; run: apt-get install bubblewrap")
    command = [SANDBOX, "--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if not share_processes:
        command.append("--unshare-pid")
    command += ["--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in (*SYSTEM, *ACCOUNTS):
        command += ["--ro-bind-try", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", *places(readable, writable, tmpfs_bytes)]
    return bounds.around([*command, "--", *argv])
