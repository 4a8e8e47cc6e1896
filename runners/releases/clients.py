"""Run the package clients of this machine (`mvn`, `apt-get`, `npm`, `git`), and say in one sentence why one failed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from runners.errors import SourceUnavailable

#: One download of the largest archive on a slow line.
CLIENT_SECONDS = 1800
#: Lines of a client's output that are worth showing.
SHOWN_LINES = 6


def run_client(
    command: Sequence[str | Path],
    what: str,
    *,
    package: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = CLIENT_SECONDS,
) -> str:
    """Standard output of `command`. SourceUnavailable when it fails, with the lines that name errors.

    `what` begins the message; `package` is what to install when the client is missing.
    """
    try:
        done = subprocess.run(
            [str(argument) for argument in command], capture_output=True, text=True, timeout=timeout, check=False,
            cwd=cwd, env={**os.environ, "LC_ALL": "C", **(environment or {})}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise SourceUnavailable(
            f"{what}: the client {command[0]} is missing; run `make setup`, or install the package {package}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SourceUnavailable(f"{what}: {command[0]} did not finish within {timeout:.0f} s") from error
    if done.returncode:
        lines = (done.stderr + done.stdout).splitlines()
        telling = [line for line in lines if any(mark in line.upper() for mark in ("ERR", "E:", "FATAL"))] or lines
        raise SourceUnavailable(f"{what}: " + "\n  ".join(telling[:SHOWN_LINES]))
    return done.stdout
