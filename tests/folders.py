"""Folders that the account of the servers may enter; pytest's own are closed to others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def open_folder() -> Iterator[Path]:
    """A new folder, removed at the end with whatever a server left in it."""
    with TemporaryDirectory(prefix="pointdrop-test-", ignore_cleanup_errors=True) as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
