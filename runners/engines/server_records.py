"""Every server we start is on record on disk before it is started, so that a later run can find what a dead one left.

A record is one small JSON file in `<state>/servers`. It names the harness that started the server; a record whose
harness is alive is somebody's running server and is never touched. A process belongs to a record when it is the one
that was started, when its environment carries the record's marker, when it runs the recorded executable inside the
recorded directory (Postgres overwrites the environment of its backends, and puts each of them into a session of its
own, so neither alone would do), or when a process of the record started it. In a sandbox a process may hide from all of
these, but not from its mounts: it has the record's socket directory among them, and no way to another set of mounts.

    {"id": "5f0c...", "directory": "/srv/pointdrop/var/servers/b1", "uid": 65534, "harness": {"pid": 812, ...},
     "server": {"pid": 815, "ticks": 992101, "boot": "e2..."}, "executable": "/.../bin/postgres", ...}
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from history.files import write_atomically

#: Environment variable by which a process says which record it belongs to.
MARKER = "POINTDROP_SERVER"
RECORDS = "servers"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: Fields of /proc/PID/stat after the command's closing parenthesis: state is 0, start time in clock ticks is 19.
_STATE, _START_TICKS = 0, 19
#: Field of a line of /proc/PID/mountinfo, and what ends it when the folder is there no longer.
_MOUNT_ROOT, _REMOVED = 3, "//deleted"
#: Postgres's dynamic shared memory.
_SHARED_FILE = re.compile(r"/dev/shm/PostgreSQL\.\d+")


class ProcessId(BaseModel):
    """A process for good: a pid alone is used again, also after a reboot."""

    model_config = ConfigDict(frozen=True)

    pid: int
    ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The process that has `pid` now; None when there is none, or only a zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        if fields[_STATE] in "ZX":
            return None
        return cls(pid=pid, ticks=int(fields[_START_TICKS]), boot=_BOOT_ID.read_text().strip())

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return ProcessId.of(self.pid) == self


class ServerRecord(BaseModel):
    """One server: who started it, where it runs and what it holds outside its directory."""

    model_config = ConfigDict(frozen=True)

    id: str
    directory: Path
    uid: int
    harness: ProcessId
    socket_directory: Path
    server: ProcessId | None = None
    executable: str = ""
    """What the server process runs (valgrind's tool or a private loader, where one is in front)."""
    shared_files: tuple[str, ...] = ()
    """Files in /dev/shm that the server has mapped."""

    @classmethod
    def new(cls, directory: Path, uid: int, socket_directory: Path) -> ServerRecord:
        harness = ProcessId.of(os.getpid())
        assert harness is not None, "this process runs"
        return cls(
            id=uuid.uuid4().hex, directory=directory, uid=uid, harness=harness, socket_directory=socket_directory
        )

    def path(self, state: Path) -> Path:
        return state / RECORDS / f"{self.id}.json"

    def write(self, state: Path) -> None:
        """Put the record on disk, whole or not at all."""
        write_atomically(self.path(state), self.model_dump_json())

    def members(self) -> list[psutil.Process]:
        """The processes that belong to this server and run now, with all they started."""
        processes: dict[int, psutil.Process] = {}
        for process in filter(self._owns, psutil.process_iter()):
            processes[process.pid] = process
            try:
                processes |= {child.pid: child for child in process.children(recursive=True)}
            except psutil.NoSuchProcess:
                continue
        return list(processes.values())

    def _owns(self, process: psutil.Process) -> bool:
        try:
            account = process.uids().real
            if account not in (self.uid, 0):
                return False
            if account == self.uid and self._encloses(process.pid):
                return True
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if self.server is not None and process.pid == self.server.pid and self.server.alive:
                return True  # its environment cannot be read in the moment it becomes another program
            if process.environ().get(MARKER) == self.id:
                return True
            inside = Path(process.cwd()).is_relative_to(self.directory)
            return bool(self.executable) and inside and process.exe() == self.executable
        except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
            return False

    def _encloses(self, pid: int) -> bool:
        """Whether the process is inside a sandbox of this server, known by the one folder that is in no other's.

        It holds from the first program inside to the last, needs nothing on record that a kernel uses again, and is
        read where every account may read. The folder's name is compared as its own file system has it, which nobody
        inside can change; the path to it inside leads through a /tmp that is theirs.
        """
        # By thread: a process whose first thread has ended looks like a zombie while the others run.
        for path in Path(f"/proc/{pid}/task").glob("*/mountinfo"):
            try:
                mounts = path.read_text(errors="replace")
            except OSError:  # the thread has ended
                continue
            roots = (line.split(" ", _MOUNT_ROOT + 1)[_MOUNT_ROOT] for line in mounts.splitlines())
            return any(Path(root.removesuffix(_REMOVED)).name == self.socket_directory.name for root in roots)
        return False


def read_records(state: Path) -> Iterator[tuple[Path, ServerRecord]]:
    """All records below `state`; what is no record (a torn or foreign file) is left where it is."""
    for path in sorted((state / RECORDS).glob("*.json")):
        try:
            yield path, ServerRecord.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            continue


def mapped_shared_files(processes: Iterable[psutil.Process]) -> set[str]:
    """Names in /dev/shm that any of the processes has mapped."""
    files: set[str] = set()
    for process in processes:
        try:
            maps = Path(f"/proc/{process.pid}/maps").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        files |= {path for line in maps.split("\n") if (path := _shared_file(line))}
    return files


def _shared_file(line: str) -> str | None:
    """The file in our /dev/shm that a line of /proc/PID/maps is of; None when it is of something else.

    Only where it is the same file here: a process names what it maps as it likes, and a sandbox has a /dev/shm of its
    own, where the name is another file.
    """
    fields = line.split(maxsplit=5)
    if len(fields) < 6 or not _SHARED_FILE.fullmatch(fields[5]):
        return None
    try:
        status = os.lstat(fields[5])
    except FileNotFoundError:
        return None
    same = fields[3:5] == [f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}", str(status.st_ino)]
    return fields[5] if same else None
