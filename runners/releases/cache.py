"""The content-addressed cache below `state/cache`: archives by sha256, and the trees unpacked from them.

    blobs/ab/ab12...          an archive, exactly as the vendor serves it
    prefixes/<key>/           an unpacked, read-only tree
    prefixes/<key>.json       what it is made of; written last, so a tree without one is rubbish
    prefixes/<key>.toolchain  what it was built with; read anew when it is missing
    tmp/<random>/             work in progress, renamed into place when it is complete
    locks/                    one writer per key; readers hold a lease, which pruning respects

Two processes can fetch the same release at once: the second waits and finds it done. A process that is killed leaves
only rubbish in `tmp`, which the next prune removes.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from history.files import write_atomically
from runners.errors import BadSize
from runners.releases.archives import remove_tree, seal

#: Kept at most, unless the caller says otherwise; a year of nightlies of four DBMS is about 15 GiB.
BOUND_BYTES = 30 << 30
#: Ends the name of what is kept of a tree's toolchain.
TOOLCHAIN = ".toolchain"
#: Key of the lock on the list of workspaces; no release and no tree has it.
_TMP = "tmp"


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes in a size people write; ReleaseError names what is allowed.

    >>> parse_size("10GiB"), parse_size("1.5 M"), parse_size("0")
    (10737418240, 1572864, 0)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise BadSize(f"{text!r} is no size; write a number and KiB, MiB, GiB or TiB, such as 10GiB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


@dataclass(frozen=True)
class Removed:
    """One thing a prune took away."""

    kind: str
    name: str
    size: int


class Cache:
    """Everything here is safe with several processes at once."""

    def __init__(self, root: Path, bound_bytes: int = BOUND_BYTES) -> None:
        self.root = root
        self.bound_bytes = bound_bytes
        self._leases: dict[str, int] = {}
        weakref.finalize(self, _give_back, self._leases)

    def _dir(self, *parts: str) -> Path:
        path = self.root.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def lock(self, key: str) -> FileLock:
        """One writer for `key`, across processes."""
        return FileLock(self._dir("locks") / f"{key}.lock")

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """A private directory on the cache's file system, removed afterwards; locked, so that prune leaves it alone."""
        with ExitStack() as stack:
            with self.lock(_TMP):  # nobody prunes between its making and its locking
                folder = tempfile.TemporaryDirectory(dir=self._dir("tmp"), ignore_cleanup_errors=True)
                holder = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, holder)  # last of all, so that nobody else removes what is being removed
                fcntl.flock(holder, fcntl.LOCK_EX)
            path = Path(stack.enter_context(folder))
            stack.callback(_unsealed, path)
            yield path

    # --- blobs ---

    def blob_path(self, sha256: str) -> Path:
        """Where the archive with this digest is, or would be."""
        return self.root / "blobs" / sha256[:2] / sha256

    def blob(self, sha256: str) -> Path | None:
        """The archive with this digest, marked as used now."""
        path = self.blob_path(sha256)
        if not path.is_file():
            return None
        os.utime(path)
        return path

    def adopt(self, path: Path, sha256: str) -> Path:
        """Move a file of known digest in; atomic, and harmless when it is there already."""
        blob = self.blob_path(sha256)
        blob.parent.mkdir(parents=True, exist_ok=True)
        os.utime(path)  # some clients leave it the time its vendor made it
        path.chmod(0o444)
        path.replace(blob)
        return blob

    # --- prefixes ---

    def prefix_path(self, key: str) -> Path:
        """Where the tree of this key is, or will be."""
        return self.root / "prefixes" / key

    def _record_path(self, key: str) -> Path:
        return self.root / "prefixes" / f"{key}.json"

    def installed(self, key: str) -> tuple[Path, dict[str, Any]] | None:
        """The tree and its record, leased to this process and marked as used now; None when it is not there."""
        self._lease(key)
        record = self._record_path(key)
        if not record.is_file():
            return None
        os.utime(record)
        loaded: dict[str, Any] = json.loads(record.read_text())
        return self.prefix_path(key), loaded

    def has(self, key: str) -> bool:
        """Whether the tree is there; neither leases nor marks it."""
        return self._record_path(key).is_file()

    def install(self, key: str, tree: Path, record: Mapping[str, Any]) -> Path:
        """Rename a finished tree into place and seal it. The caller holds `lock(key)`."""
        self._lease(key)  # until the record is there the tree looks like rubbish
        prefix = self.prefix_path(key)
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self._record_path(key).unlink(missing_ok=True)
        remove_tree(prefix)
        seal(tree)
        tree.chmod(0o755)  # renaming a directory rewrites its `..`
        tree.replace(prefix)
        prefix.chmod(0o555)
        write_atomically(self._record_path(key), json.dumps(record, indent=1, sort_keys=True))
        return prefix

    def _lease(self, key: str) -> None:
        """Hold `key` against pruning for as long as this object lives; the kernel lets go if the process dies."""
        if key not in self._leases:
            handle = os.open(self._dir("locks") / f"{key}.lease", os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(handle, fcntl.LOCK_SH)
            self._leases[key] = handle

    def close(self) -> None:
        """Give back all leases; happens by itself when nobody holds this object any more."""
        _give_back(self._leases)

    # --- size ---

    def size(self) -> int:
        """Bytes of blobs and prefixes."""
        return sum(size for _, _, _, size in self._entries())

    def _entries(self) -> Iterator[tuple[float, str, str, int]]:
        """(last use, kind, name, bytes) of everything that can be pruned, but for what another process prunes now."""
        for blob in self.root.glob("blobs/*/*"):
            with suppress(FileNotFoundError):
                status = blob.stat()
                yield status.st_mtime, "archive", blob.name, status.st_size
        for record in self.root.glob("prefixes/*.json"):
            with suppress(FileNotFoundError):
                size = int(json.loads(record.read_text()).get("installed_bytes", 0))
                yield record.stat().st_mtime, "installed", record.stem, size

    def prune(self, bound_bytes: int | None = None) -> list[Removed]:
        """Remove what was not used for longest until the rest fits, and the leftovers of killed processes.

        Never removed: a tree that a process holds a lease on, or from which a program is running.
        """
        bound = self.bound_bytes if bound_bytes is None else bound_bytes
        removed = list(self._remove_leftovers())
        entries = sorted(self._entries())
        total = sum(size for *_, size in entries)
        running = _running_programs() if total > bound else set()
        for _, kind, name, size in entries:
            if total <= bound:
                break
            if kind == "archive":
                self.blob_path(name).unlink(missing_ok=True)
            elif not self._remove_prefix(name, running):
                continue
            total -= size
            removed.append(Removed(kind, name, size))
        return removed

    def _remove_prefix(self, key: str, running: set[Path]) -> bool:
        prefix = self.prefix_path(key).resolve()
        if any(prefix in program.parents for program in running):
            return False
        with suppress(BlockingIOError), _only_owner(self._dir("locks") / f"{key}.lease", os.O_RDWR | os.O_CREAT):
            self._record_path(key).unlink(missing_ok=True)
            prefix.with_name(f"{key}{TOOLCHAIN}").unlink(missing_ok=True)
            remove_tree(prefix)
            return True
        return False

    def _remove_leftovers(self) -> Iterator[Removed]:
        with self.lock(_TMP):
            for path in self._dir("tmp").iterdir():
                if self._remove_work(path):
                    yield Removed("leftover", path.name, 0)
        trees = [path.name for path in self.root.glob("prefixes/*") if path.is_dir() and not self.has(path.name)]
        running = _running_programs() if trees else set()
        for key in trees:
            if self._remove_prefix(key, running):
                yield Removed("leftover", key, 0)

    def _remove_work(self, path: Path) -> bool:
        """Remove a workspace that nobody has locked; whether it was one. Its owner may be removing it as well."""
        with suppress(FileNotFoundError, BlockingIOError), _only_owner(path, os.O_RDONLY):
            remove_tree(path)
            return True
        return False


@contextmanager
def _only_owner(path: Path, flags: int) -> Iterator[None]:
    """The lock on `path`, which nobody else may hold; BlockingIOError when somebody does."""
    handle = os.open(path, flags, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _unsealed(work: Path) -> None:
    """Remove the sealed trees in a workspace, which its own removal could not."""
    for tree in work.iterdir():
        if tree.is_dir() and not tree.is_symlink():
            remove_tree(tree)


def _give_back(leases: dict[str, int]) -> None:
    while leases:
        os.close(leases.popitem()[1])


def _running_programs() -> set[Path]:
    """Executables of all processes that may be seen."""
    programs = set()
    for process in psutil.process_iter():
        try:
            programs.add(Path(process.exe()))
        except (psutil.Error, OSError):
            continue
    return programs
