"""What code nobody has reviewed may take of the memory and the disk of the machine it is built and run on.

* `systemd-run --scope`: a bound on memory and on processes of all of it together, where systemd runs and lets this
  account make a scope. There is no bound on memory elsewhere: one on addresses would stop a DBMS that reserves more
  than it uses.
* What eats the disk is ended by `DiskWatch` when LEAST_FREE_BYTES are left: a server, or a step of a build
  (`run_within`).

Bounds of processes and of files come with the sandbox (`runners.sandbox`).
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import psutil

from runners.sandbox import GIB, SERVER

#: Of the machine's memory, for everything in one scope.
MEMORY_SHARE = 0.9
#: A build or a server ends when less is free on its disk.
LEAST_FREE_BYTES = 2 * GIB
#: Between two looks at the disk.
LOOK_S = 1.0
#: There when systemd is the first process.
BOOTED = Path("/run/systemd/system")
#: systemd answers at once, or not at all.
PROBE_S = 10.0


def scope_command(uid: int, memory_bytes: int) -> list[str]:
    """The beginning of a command line that has a scope of its own, for a process with nothing in its environment.

    >>> " ".join(scope_command(uid=0, memory_bytes=100))
    'systemd-run --scope --quiet --collect -p MemoryMax=90 -p MemorySwapMax=0 -p TasksMax=8192 --'
    >>> " ".join(scope_command(uid=1000, memory_bytes=100)[:4])
    'env XDG_RUNTIME_DIR=/run/user/1000 systemd-run --user'
    """
    limits = [f"MemoryMax={int(MEMORY_SHARE * memory_bytes)}", "MemorySwapMax=0", f"TasksMax={SERVER.processes}"]
    run = ["systemd-run"] if uid == 0 else ["env", f"XDG_RUNTIME_DIR=/run/user/{uid}", "systemd-run", "--user"]
    return [*run, "--scope", "--quiet", "--collect", *(f for limit in limits for f in ("-p", limit)), "--"]


@functools.cache
def scope() -> tuple[str, ...]:
    """What to put before a command line for a bound on its memory; nothing where systemd makes no scope for us.

    It goes before the account is changed, since only root and the account of a login may ask systemd.
    """
    if not BOOTED.is_dir() or shutil.which("systemd-run") is None:
        return ()
    command = scope_command(os.geteuid(), psutil.virtual_memory().total)
    plain = {"PATH": os.environ.get("PATH", os.defpath)}
    try:
        done = subprocess.run([*command, "true"], env=plain, capture_output=True, timeout=PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(command) if done.returncode == 0 else ()


class DiskWatch:
    """Calls `end`, from a thread of its own, at each look while less than `least_free` bytes are free beside `place`.

    Not once, since what is to be ended may not have begun yet. Between `start` and `stop`.
    """

    def __init__(self, place: Path, least_free: int, end: Callable[[], object]) -> None:
        self.place = place
        self.message = ""
        """Why it was ended, or what went wrong at that or at looking; empty while there was nothing to do."""
        self._least_free = least_free
        self._end = end
        self._over = Event()
        self._thread = Thread(target=self._look, name="disk watch", daemon=True)

    def start(self) -> None:
        """Begin to look; without a bound there is nothing to look for."""
        if self._least_free:
            self._thread.start()

    def stop(self) -> None:
        """Stopping twice is fine."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            about = f"the disk of {self.place} cannot be watched"
            try:
                if shutil.disk_usage(self.place).free < self._least_free:
                    free = f"less than {self._least_free / GIB:.0f} GiB are free"
                    self.message = about = f"{free} on the disk of {self.place}"
                    self._end()
            except FileNotFoundError:
                pass  # the place is not there yet, or no longer
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look may do better
                self.message = f"{about}; {error}"
            self._over.wait(LOOK_S)


class DiskFull(Exception):
    """A command was ended since it left too little of the disk."""


def run_within(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], out: int, deadline_s: float, least_free: int
) -> int:
    """Run `command` to its end, with its output to the file descriptor `out`; its status.

    It and what it started is ended, and subprocess.TimeoutExpired or DiskFull raised, past the deadline or when less
    than `least_free` bytes are left on the disk of `cwd`.
    """
    process = subprocess.Popen(
        list(command), cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
    )

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    watch = DiskWatch(cwd, least_free, end)
    try:
        watch.start()
        status = process.wait(deadline_s)
    except BaseException:
        end()
        process.wait()
        raise
    finally:
        watch.stop()
    if status == -signal.SIGKILL and watch.message:
        raise DiskFull(watch.message)
    return status
