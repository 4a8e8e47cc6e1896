"""Files that are written whole: a reader, or whoever comes after a crash, finds the old file or the new one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


def write_atomically(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Replace the contents of `path`; its folder is made. OSError leaves the file as it was.

    On disk when it returns; `durable=False` leaves that to the operating system, for files that can be made again.
    """
    with replaced(path, durable=durable) as draft:
        draft.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def replaced(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A path beside `path`, of a file that is not there yet; what is written to it replaces `path` at the end.

    The names of two writers never meet; the last one wins. An error leaves `path` as it was and removes the draft.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid4().hex}.part")
    try:
        yield draft
        if durable:
            sync(draft)
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    if durable:
        with suppress(PermissionError):  # a folder that may be written to and not be read
            sync(path.parent)


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
