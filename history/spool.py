"""Where results go while the database cannot take them: JSON Lines on disk, for `pointdrop history recover`.

One file a process, of the interchange format `pointdrop.run/1`, each line on disk before `keep` returns. A file holds
the session and run of every block in it, so it can be imported into any history. Whoever writes or recovers a file
holds its lock, so that nothing is added to a file between its recovery and its end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from history.errors import StoreUnavailable
from history.files import sync
from history.interchange import Record, header_line, line_of_record

SUFFIX = ".jsonl"


def spool_dirs() -> tuple[Path, ...]:
    """Where to keep results: the state directory, else, should that disk be full too, the temporary directory."""
    state = Path(os.environ.get("POINTDROP_STATE") or "var").resolve()
    return state / "spool", Path(tempfile.gettempdir()) / f"pointdrop-spool-{os.getuid()}"


class Spool:
    """The spool of one process.

    `dirs` are tried in order.
    """

    def __init__(self, dirs: Sequence[Path] | None = None) -> None:
        self.dirs = tuple(dirs) if dirs is not None else spool_dirs()
        self._name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{uuid4().hex}{SUFFIX}"
        self._written: dict[Path, set[tuple[type, str]]] = {}
        """Kind and id of the records in this process's file, by its path."""

    def keep(self, records: Sequence[Record]) -> Path:
        """Write `records` that this process's file does not hold yet; the file.

        StoreUnavailable when no directory takes them.
        """
        problems = []
        for folder in self.dirs:
            path = folder / self._name
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not _is_ours(folder):
                    raise PermissionError(errno.EPERM, "the directory belongs to somebody else")
                self._write(path, records)
            except OSError as error:
                problems.append(f"{path}: {error.strerror or error}")
                continue
            return path
        raise StoreUnavailable(f"the results could not be kept on disk either ({'; '.join(problems)})")

    def _write(self, path: Path, records: Sequence[Record]) -> None:
        """Append whole lines, or leave the file as it was."""
        with locked(path, "ab") as file:
            before = os.fstat(file.fileno()).st_size
            written = self._written.setdefault(path, set()) if before else set()  # recovered meanwhile: begin anew
            new = [record for record in records if (type(record), record.id) not in written]
            lines = ([] if before else [header_line()]) + [line_of_record(record) for record in new]
            try:
                rest = memoryview("".join(f"{line}\n" for line in lines).encode())
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
                if not before:
                    sync(path.parent)
            except OSError:
                os.truncate(path, before)
                if not before:
                    path.unlink()
                raise
            self._written[path] = written | {(type(record), record.id) for record in new}


@contextmanager
def locked(path: Path, mode: str) -> Iterator[IO[Any]]:
    """A spool file, opened and held by nobody else, once whoever holds it is done.

    FileNotFoundError when it is opened to be read and somebody else recovered it.
    """
    while True:
        with path.open(mode, buffering=0) as file:  # no buffer that is written after all when the file is closed
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(path, file):
                yield file
                return


def _is_at(path: Path, file: IO[Any]) -> bool:
    """Whether `file` still has its name: whoever held it before may have removed or replaced it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _is_ours(folder: Path) -> bool:
    """The temporary directory is everybody's: what another account put there is not ours to write to or to read."""
    return not folder.is_symlink() and folder.stat().st_uid == os.getuid()


def spooled(dirs: Sequence[Path] | None = None) -> list[Path]:
    """Files that wait to be recovered, oldest first."""
    folders = [folder for folder in dirs or spool_dirs() if folder.is_dir() and _is_ours(folder)]
    return sorted((path for folder in folders for path in folder.glob(f"*{SUFFIX}")), key=lambda path: path.name)
