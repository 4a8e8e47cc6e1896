"""Servers and builds of code nobody has reviewed run inside bubblewrap: no network, no other processes, no
capabilities, nothing to write but what they are given, and bounds on what they take of the machine.

* `prlimit`: how many processes and threads its account may have, how large a file may grow, and no core dumps. The
  kernel counts by account, so servers that run as the same account at that time count as well.
* `choom`: when memory runs out the kernel ends this first, before anything else on the machine. Any account may take
  that back by a write below /proc, which is read-only inside.

It costs no measurable CPU. Everything keeps its path, so that option files and logs mean the same inside and outside.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runners.errors import NoSandbox

GIB = 1 << 30
#: Of /tmp, and of /dev/shm.
TMPFS_BYTES = 4 * GIB
BUBBLEWRAP = "bwrap"
#: What programs and the C library need of the system, where it exists. No /home, /root, /var, /run.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
#: Postgres looks up the name of its account, and the zone of its log.
LOOKED_UP = ("/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf")


class Bounds(NamedTuple):
    """Of one sandbox."""

    processes: int
    """Processes and threads of the account, those outside the sandbox among them."""
    file_bytes: int
    """Of one file. What writes more gets SIGXFSZ."""

    def around(self, argv: Sequence[str]) -> list[str]:
        """`argv` with these bounds; put it where the account is already the right one.

        >>> " ".join(BUILD.around(["make"]))
        'choom -n 1000 -- prlimit --core=0 --nproc=8192 --fsize=17179869184 -- make'
        """
        limits = ["--core=0", f"--nproc={self.processes}", f"--fsize={self.file_bytes}"]
        return ["choom", "-n", "1000", "--", "prlimit", *limits, "--", *argv]


#: A debug build of MySQL links files of a few GiB.
BUILD = Bounds(processes=8192, file_bytes=16 * GIB)
#: InnoDB keeps a table in one file: 15 GiB on the small server.
SERVER = Bounds(processes=8192, file_bytes=128 * GIB)


def sandboxed(
    argv: Sequence[str],
    *,
    bounds: Bounds,
    readable: Iterable[Path] = (),
    writable: Iterable[Path] = (),
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    share_processes: bool = False,
    tmpfs_bytes: int = TMPFS_BYTES,
) -> list[str]:
    """`argv` inside a sandbox that sees the system and `readable` read-only and may write to `writable`.

    It runs in `directory` with `environment`, or with those of whoever starts it. /tmp and /dev/shm are memory of
    `tmpfs_bytes` each. The root and /dev are memory as well, so nothing more may be written there. Give
    `share_processes` when processes inside must keep their ids. NoSandbox when bubblewrap is missing.

    >>> " ".join(sandboxed(["make"], bounds=BUILD, writable=[Path("/w")], directory=Path("/w"))[-13:])
    '--bind /w /w --remount-ro /proc --remount-ro /dev --remount-ro / --chdir /w -- make'
    """
    if shutil.which(BUBBLEWRAP) is None:
        raise NoSandbox("bubblewrap is missing; run: apt-get install bubblewrap")
    command = [BUBBLEWRAP, "--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if not share_processes:
        command.append("--unshare-pid")
    command += ["--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if environment is not None:
        command += ["--clearenv", *(part for item in environment.items() for part in ("--setenv", *item))]
    for path in (*SYSTEM, *LOOKED_UP):
        command += ["--ro-bind-try", path, path]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for memory in ("/dev/shm", "/tmp"):
        command += ["--size", str(tmpfs_bytes), "--tmpfs", memory]
    for how, folders in (("--ro-bind", readable), ("--bind", writable)):
        for folder in folders:
            command += [how, str(folder), str(folder)]
    for closed in ("/proc", "/dev", "/"):  # below /proc a process says how readily the kernel ends it
        command += ["--remount-ro", closed]
    command += ["--chdir", str(directory)] if directory else []
    return bounds.around([*command, "--", *argv])
