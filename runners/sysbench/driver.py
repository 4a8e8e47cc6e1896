"""Runs one sysbench process: every line is seen as it comes, and nothing stays behind."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO

from runners.errors import WorkloadFailed
from runners.sysbench.commands import environment
from runners.sysbench.output import failure

READ_BYTES = 65_536


def run_sysbench(
    argv: Sequence[str],
    *,
    deadline_s: float,
    on_start: Callable[[int], None] | None = None,
    on_line: Callable[[str], None] | None = None,
    wake_at_s: float | None = None,
    on_wake: Callable[[], None] | None = None,
    pass_fds: Sequence[int] = (),
) -> str:
    """Run `argv` to its end and return all it printed.

    `on_start` gets its process id. `on_line` is called with every line as it arrives, so that meters keep sysbench's
    own clock; `on_wake` once, `wake_at_s` seconds after its threads started. The files `pass_fds` stay open in it.
    WorkloadFailed when it fails or is not done by the deadline.
    """
    process = subprocess.Popen(
        list(argv),
        env=environment({"PATH": os.defpath + ":/usr/local/bin", "HOME": "/nonexistent", "TZ": "UTC"}, argv),
        pass_fds=tuple(pass_fds),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        if on_start:
            on_start(process.pid)
        assert process.stdout is not None
        output = _follow(process.stdout, time.monotonic() + deadline_s, on_line, wake_at_s, on_wake)
        if output is None:
            raise WorkloadFailed(f"{_brief(argv)} is not done after {deadline_s:.0f} s")
        process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode:
        raise WorkloadFailed(f"{_brief(argv)} failed ({process.returncode}): {failure(output)}")
    return output


def _follow(
    pipe: IO[bytes],
    deadline: float,
    on_line: Callable[[str], None] | None,
    wake_at_s: float | None,
    on_wake: Callable[[], None] | None,
) -> str | None:
    """All output up to its end; None at the deadline."""
    text: list[bytes] = []
    partial = b""
    wake: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if now >= deadline:
                return None
            if wake is not None and now >= wake and on_wake is not None:
                on_wake()
                wake, on_wake = None, None
            until = deadline if wake is None else min(wake, deadline)
            if not selector.select(max(0.0, until - now)):
                continue
            data = os.read(pipe.fileno(), READ_BYTES)
            if not data:
                return (b"".join(text) + partial).decode(errors="replace")
            *lines, partial = (partial + data).split(b"\n")
            for line in lines:
                text.append(line + b"\n")
                decoded = line.decode(errors="replace")
                if on_line:
                    on_line(decoded)
                if decoded.startswith("Threads started!") and wake_at_s is not None:
                    wake = time.monotonic() + wake_at_s


def _brief(argv: Sequence[str]) -> str:
    """What ran, without its dozen options."""
    scripts = [part.rpartition("/")[2] for part in argv if part.endswith(".lua")]
    return " ".join(["sysbench", *scripts, argv[-1]])
