"""Stop what a dead harness left running, and remove what a killed server leaves behind.

A server that is killed leaves a socket directory in the temporary folder, shared memory (System V and /dev/shm), and
under valgrind named pipes of its processes. A server that somebody's living harness started is never touched.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import psutil
from filelock import FileLock
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from runners.engines.server_records import RECORDS, ProcessId, ServerRecord, mapped_shared_files, read_records
from runners.errors import ServerLeftOver

#: Seconds until every process of a leftover must be gone after SIGKILL.
GONE_DEADLINE_S = 20.0
POLL_S = 0.05
_SYSV_SEGMENTS = Path("/proc/sysvipc/shm")
_VGDB_PIPE = re.compile(r"vgdb-pipe-.*?(\d+)-by-")


def stop_leftovers(state: Path) -> list[ServerRecord]:
    """Stop every recorded server below `state` whose harness is dead, clean up after it, and forget it.

    One process at a time: what another has stopped already may have made place for a living server in the same
    directory, which is told from the dead one by nothing but the record.

    Returns the records of those that still ran. ServerLeftOver when one does not go.
    """
    stopped = []
    folder = state / RECORDS
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".leftovers.lock"):
        for path, record in read_records(state):
            if record.harness.alive:
                continue
            if kill_server(record):
                stopped.append(record)
            path.unlink(missing_ok=True)
    return stopped


def kill_server(record: ServerRecord) -> bool:
    """End every process of the server at once and remove what it leaves; whether any process ran."""
    pids: set[int] = {record.server.pid} if record.server else set()
    shared = set(record.shared_files)
    struck: set[psutil.Process] = set()

    def running() -> list[str]:
        return [str(process.pid) for process in struck if ProcessId.of(process.pid) and process.is_running()]

    def strike() -> bool:
        members = record.members()
        shared.update(mapped_shared_files(members))
        # What a member started is no longer known as its child once the member is dead, so it is remembered.
        struck.update(members)
        for process in members:
            pids.add(process.pid)
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        return bool(members) or bool(running())

    try:
        Retrying(retry=retry_if_result(bool), stop=stop_after_delay(GONE_DEADLINE_S), wait=wait_fixed(POLL_S))(strike)
    except RetryError:
        left = ", ".join(running())
        raise ServerLeftOver(
            f"the server in {record.directory} does not go {GONE_DEADLINE_S:.0f} s after SIGKILL (pid {left}); "
            "it may hang in the kernel: look at its stack with `cat /proc/PID/stack`, or reboot"
        ) from None
    for name in shared:
        Path(name).unlink(missing_ok=True)
    _remove_segments(record.uid, pids)
    remove_vgdb_pipes(record.uid, pids)
    shutil.rmtree(record.socket_directory, ignore_errors=True)
    return bool(struck)


def remove_vgdb_pipes(uid: int, pids: set[int]) -> None:
    """Remove the named pipes valgrind made for dead processes: of `pids`, and of any other dead one of `uid`."""
    for path in Path(tempfile.gettempdir()).glob("vgdb-pipe-*"):
        named = _VGDB_PIPE.match(path.name)
        try:
            ours = named is not None and (int(named[1]) in pids or path.lstat().st_uid == uid)
        except FileNotFoundError:
            continue
        if named is not None and ours and ProcessId.of(int(named[1])) is None:
            path.unlink(missing_ok=True)


def _remove_segments(uid: int, creators: set[int]) -> None:
    """Remove System V segments that these dead processes made and nobody has attached."""
    if not _SYSV_SEGMENTS.exists():
        return
    header, *rows = (line.split() for line in _SYSV_SEGMENTS.read_text().splitlines())
    for row in rows:
        segment = dict(zip(header, row, strict=False))
        if int(segment["cpid"]) in creators and int(segment["uid"]) == uid and segment["nattch"] == "0":
            subprocess.run(["ipcrm", "-m", segment["shmid"]], check=False, capture_output=True)
