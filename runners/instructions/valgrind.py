"""Starts a server under callgrind, and finds what it counted."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from runners.engines.server_process import open_no_follow
from runners.errors import CountingFailed
from runners.instructions.callgrind import CallgrindProfile, parse_profile
from runners.instructions.counted_cpu import pins

#: Milliseconds before vgdb interrupts a server that waits for its client, as it does whenever we talk to it.
INVOKE_MS = 1
#: The largest of a DBMS have a few MiB.
LARGEST_DUMP_BYTES = 256 << 20


#: Where every server of MySQL's family takes a statement from its client: the thread that ran this is the session's.
_SESSION_FUNCTION = "dispatch_command"
#: Where a session reads from its client, as callgrind's patterns have it. Whether it has to wait there, and so looks
#: twice, depends on how soon the client answers: a percent of a point query. What it executes there is not counted.
_READ_FUNCTIONS = ("secure_read", "vio_read", "vio_read(*")


class Callgrind:
    """Callgrind of one server; profiles and control pipes are in `directory`, which the server's account owns.

    A server with a process for each session is counted by process. With `threads`, a server with a thread for each
    session is counted by thread, and the session's is taken: what background threads do meanwhile depends on wall time,
    which under callgrind has nothing to do with the work.
    """

    def __init__(self, directory: Path, threads: bool = False) -> None:
        if shutil.which("valgrind") is None or shutil.which("vgdb") is None:
            raise CountingFailed("valgrind is missing; install it, or leave the instructions lane out of the plan")
        self._directory = directory
        self._threads = threads

    @property
    def wrapper(self) -> list[str]:
        """The command line that goes before the server's. What it says of the CPU is here and not in the environment of
        the harness, so that it reaches the server through whatever changes account and closes a sandbox."""
        variables = [f"{name}={value}" for name, value in pins().items()]
        return [
            *(["env", *variables] if variables else []),
            "valgrind",
            "--tool=callgrind",
            "--trace-children=yes",
            "--instr-atstart=no",
            *(f"--toggle-collect={function}" for function in _READ_FUNCTIONS),
            "--collect-atstart=yes",
            "--dump-line=no",
            "--vgdb=yes",
            f"--vgdb-prefix={self._directory}/vgdb-pipe",
            f"--callgrind-out-file={self._directory}/callgrind.%p",
            *(["--separate-threads=yes"] if self._threads else []),
            "--quiet",
        ]

    @property
    def vgdb(self) -> str:
        """How the client talks to it, as the shell takes it."""
        return f"vgdb --max-invoke-ms={INVOKE_MS} --vgdb-prefix={self._directory}/vgdb-pipe"

    def take(self, pid: int) -> CallgrindProfile:
        """The session's part of the last profile that process `pid` dumped; all files of earlier tests are removed.

        Files are `callgrind.PID.PART`, and with threads `callgrind.PID.PART-THREAD`.
        """
        dumps: dict[int, list[Path]] = {}
        for path in self._directory.glob(f"callgrind.{pid}.*"):
            dumps.setdefault(int(path.suffix[1:].partition("-")[0]), []).append(path)
        if not dumps:
            raise CountingFailed(f"process {pid} dumped no profile into {self._directory}")
        profiles = [parse_profile(_read(path)) for path in sorted(dumps[max(dumps)])]
        for path in self._directory.glob("callgrind.*"):
            path.unlink(missing_ok=True)
        profile = session_profile(profiles) if self._threads else profiles[-1]
        if profile.total == 0:
            raise CountingFailed(f"process {pid} executed no instruction while it was counted")
        return profile


def _read(path: Path) -> str:
    """A dump; CountingFailed when the server has put something else there, which would never end or be another's."""
    try:
        with open(path, errors="replace", opener=open_no_follow) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_DUMP_BYTES:
                return file.read()
    except OSError as error:
        raise CountingFailed(f"{path} cannot be read: {error.strerror}") from error
    raise CountingFailed(f"{path} is no profile of callgrind")


def session_profile(threads: list[CallgrindProfile]) -> CallgrindProfile:
    """Of all threads the one that served the session, which is the busiest of those that took statements.

    CountingFailed when none did: the server has lost its symbols, or nothing was counted.
    """
    sessions = [
        profile
        for profile in threads
        if any(function.startswith(_SESSION_FUNCTION) for function, _ in profile.functions)
    ]
    if not sessions:
        raise CountingFailed(
            f"none of {len(threads)} threads executed {_SESSION_FUNCTION}; was the server stripped of its symbols?"
        )
    return max(sessions, key=lambda profile: profile.total)
