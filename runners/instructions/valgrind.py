"""Starts a server under callgrind, and finds what it counted."""

from __future__ import annotations

import shutil
from pathlib import Path

from runners.errors import CountingFailed
from runners.instructions.callgrind import Profile, parse_profile

#: Functions kept of each test; the rest is below a few tenths of a percent.
TOP_FUNCTIONS = 40
#: Milliseconds before vgdb interrupts a server that waits for its client, as it does whenever we talk to it.
INVOKE_MS = 1


class Counter:
    """Callgrind of one server; profiles and control pipes are in `directory`, which the server's account owns."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("valgrind") is None or shutil.which("vgdb") is None:
            raise CountingFailed("valgrind is missing; install it, or leave the instructions lane out of the plan")
        self._directory = directory

    @property
    def wrapper(self) -> list[str]:
        """The command line that goes before the server's."""
        return [
            "valgrind",
            "--tool=callgrind",
            "--trace-children=yes",
            "--instr-atstart=no",
            "--dump-line=no",
            "--vgdb=yes",
            f"--vgdb-prefix={self._directory}/vgdb-pipe",
            f"--callgrind-out-file={self._directory}/callgrind.%p",
            "--quiet",
        ]

    @property
    def vgdb(self) -> str:
        """How the client talks to it, as the shell takes it."""
        return f"vgdb --max-invoke-ms={INVOKE_MS} --vgdb-prefix={self._directory}/vgdb-pipe"

    def take(self, pid: int) -> Profile:
        """The last profile that process `pid` dumped; all files of earlier tests are then removed."""
        dumps = sorted(self._directory.glob(f"callgrind.{pid}.*"), key=lambda path: int(path.suffix[1:]))
        if not dumps:
            raise CountingFailed(f"process {pid} dumped no profile into {self._directory}")
        profile = parse_profile(dumps[-1].read_text(errors="replace"))
        for path in self._directory.glob("callgrind.*"):
            path.unlink(missing_ok=True)
        if profile.total == 0:
            raise CountingFailed(f"process {pid} executed no instruction while it was counted")
        return profile
