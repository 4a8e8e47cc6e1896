"""Where results go while the database cannot take them: JSON Lines on disk, for `pointdrop history recover`.

One file a process, of the interchange format `pointdrop.run/1`, each line on disk before `keep` returns. A file holds
the session and run of every block in it, so it can be imported into any history.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from history.errors import StoreUnavailable
from history.interchange import HEADER, Record, line_of_record

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
        self._name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}-{id(self):x}{SUFFIX}"
        self._kept: dict[Path, set[tuple[str, str]]] = {}

    def keep(self, records: Sequence[Record]) -> Path:
        """Write `records` that this process's file does not hold yet; the file.

        StoreUnavailable when no directory takes them.
        """
        problems = []
        for folder in self.dirs:
            path = folder / self._name
            held = self._kept.setdefault(path, set())
            new = [one for one in records if (type(one).__name__, one.id) not in held]
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not _is_ours(folder):
                    raise PermissionError(errno.EPERM, "the directory belongs to somebody else")
                self._write(path, [line_of_record(one) for one in new])
            except OSError as error:
                problems.append(f"{path}: {error.strerror or error}")
                continue
            held.update((type(one).__name__, one.id) for one in new)
            return path
        raise StoreUnavailable(f"the results could not be kept on disk either ({'; '.join(problems)})")

    @staticmethod
    def _write(path: Path, lines: Sequence[str]) -> None:
        """Append whole lines, or leave the file as it was."""
        before = path.stat().st_size if path.exists() else 0
        text = "".join(f"{line}\n" for line in ([] if before else [HEADER]) + list(lines))
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            if not before:
                path.unlink(missing_ok=True)
            elif path.exists():
                os.truncate(path, before)
            raise


def _is_ours(folder: Path) -> bool:
    """The temporary directory is everybody's: what another account put there is not ours to write to or to read."""
    return not folder.is_symlink() and folder.stat().st_uid == os.getuid()


def spooled(dirs: Sequence[Path] | None = None) -> list[Path]:
    """Files that wait to be recovered, oldest first."""
    folders = [folder for folder in dirs or spool_dirs() if folder.is_dir() and _is_ours(folder)]
    found = [path for folder in folders for path in folder.glob(f"*{SUFFIX}")]
    return sorted(found, key=lambda path: path.name)
