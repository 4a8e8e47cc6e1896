"""Unpack archives that somebody else made, so that nothing lands outside the directory given.

Refused, with nothing kept: absolute names, `..`, hard links that lead out, devices and pipes, names that change kind
half-way (a file below a link that leads out), and archives that unpack to more than the limits below allow (bombs).
A symbolic link that leads out is left out and the log says which: some vendors pack links into the directory they
built in, which nobody needs, and without the link nothing of the archive reaches anything outside.

>>> relative_name("./bin/postgres")
'bin/postgres'
>>> relative_name("../etc/passwd")
Traceback (most recent call last):
runners.errors.UnsafeArchive: archive member '../etc/passwd' leaves the directory; it was not unpacked
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from runners.errors import UnsafeArchive

_log = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
#: Modes that survive unpacking: no set-user-id, nothing writable by others.
FILE_MODE_MASK = 0o755


#: What one archive may unpack to. A debug build of MySQL, the largest real one, has 4 GiB in 25,000 members.
MEMBERS_LIMIT = 200_000
BYTES_LIMIT = 12 << 30
#: Unpacked bytes for each packed byte; text tables of zeros reach 50.
RATIO_LIMIT = 400


def relative_name(name: str, root_links: bool = False) -> str:
    """`name` as a clean relative POSIX path; UnsafeArchive when it leaves the directory.

    `root_links` takes a leading slash as the archive's own root, as Debian packages mean it.
    """
    if "\x00" in name:
        raise UnsafeArchive(f"archive member {name!r} has an unusable name; it was not unpacked")
    if name.startswith("/") and root_links:
        name = name.lstrip("/")
    clean = posixpath.normpath(name)
    if clean.startswith("/") or clean == ".." or clean.startswith("../") or ".." in name.split("/"):
        raise UnsafeArchive(f"archive member {name!r} leaves the directory; it was not unpacked")
    return clean


def _link_target(member: str, target: str, root_links: bool) -> str | None:
    """The target of the symbolic link `member`, relative to the link; None when its text leads out."""
    if "\x00" in target:
        return None
    if target.startswith("/"):
        if not root_links:
            return None
        target = posixpath.relpath(posixpath.normpath(target.lstrip("/")) or ".", posixpath.dirname(member) or ".")
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(member), target))
    return None if resolved == ".." or resolved.startswith(("../", "/")) else target


class Target:
    """The directory an archive is unpacked into, with the bookkeeping against bombs."""

    def __init__(self, root: Path, packed_bytes: int) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = Path(os.path.realpath(root))
        self.allowed_bytes = min(BYTES_LIMIT, max(packed_bytes, CHUNK_BYTES) * RATIO_LIMIT)
        self.written = self.members = 0

    def place(self, name: str, replaces: bool = True) -> Path:
        """Where member `name` goes; its parents are made, and none of them may be a link that leads out.

        What is there is removed when the member `replaces` it, as everything but a directory does.
        """
        self._count()
        path = self.root / name
        parent = Path(os.path.realpath(path.parent))
        if parent != self.root and self.root not in parent.parents:
            raise UnsafeArchive(f"archive member {name!r} is written through a link that leads out")
        parent.mkdir(parents=True, exist_ok=True)
        path = parent / path.name
        if replaces and (path.is_symlink() or path.is_file()):
            path.unlink()
        return path

    def _count(self) -> None:
        self.members += 1
        if self.members > MEMBERS_LIMIT:
            raise UnsafeArchive(f"the archive has more than {MEMBERS_LIMIT} members; it was not unpacked")

    def directory(self, name: str) -> None:
        if name == ".":
            return
        path = self.place(name, replaces=False)
        if not path.is_dir():
            path.mkdir(mode=0o755)

    def file(self, name: str, data: IO[bytes], mode: int | None, modified: float | None = None) -> None:
        """Write one file; with `mode` None, as in a jar, programs are known by their first bytes.

        The time of change is kept: `make` builds a source's ready-made parts again when they look older than the rest.
        """
        path = self.place(name)
        with path.open("xb") as out:
            while chunk := data.read(CHUNK_BYTES):
                if mode is None:
                    mode = 0o755 if chunk.startswith((b"\x7fELF", b"#!")) else 0o644
                self.written += len(chunk)
                if self.written > self.allowed_bytes:
                    raise UnsafeArchive(
                        f"the archive unpacks to more than {self.allowed_bytes} bytes; it looks like a bomb"
                    )
                out.write(chunk)
        path.chmod(((mode or 0) & FILE_MODE_MASK) | 0o644)
        if modified is not None:
            os.utime(path, (modified, modified))

    def symlink(self, name: str, target: str, root_links: bool = False) -> None:
        """Make a link that stays inside by its text; another is left out."""
        inside = _link_target(name, target, root_links)
        if inside is None:
            self._count()
            _log.warning("archive link %r -> %r leads out; it was left out", name, target)
        else:
            self.place(name).symlink_to(inside)

    def hardlink(self, name: str, target: str) -> None:
        source = Path(os.path.realpath(self.root / target))
        if self.root not in source.parents or not source.is_file():
            raise UnsafeArchive(f"archive link {name!r} -> {target!r} names no file unpacked before it")
        os.link(source, self.place(name))


def links_out(root: Path, prefix: Path | None = None) -> Iterator[Path]:
    """Every link below `root` that leads out of it, relative to `root`; links to links can, harmless as each may look.

    With `prefix`, where the tree will stand, links to what is below that are links inside.
    """
    inside = Path(os.path.realpath(root))
    for path in inside.rglob("*"):
        if path.is_symlink():
            target = path.readlink()
            if prefix and target.is_relative_to(prefix):
                target = inside / target.relative_to(prefix)
            end = Path(os.path.realpath(path.parent / target))
            if not (end.is_relative_to(inside) or (prefix and end.is_relative_to(prefix))):
                yield path.relative_to(inside)


def drop_links_out(root: Path) -> None:
    """Remove every link that leads out, through others or by itself; the log says which."""
    for name in list(links_out(root)):
        _log.warning("archive link %r leads out through other links; it was left out", str(name))
        (root / name).unlink()


def _below(name: str, subtree: str) -> str | None:
    """`name` relative to `subtree` of the archive, or None when it lies elsewhere; `*` stands for any one directory."""
    wanted = [part for part in subtree.split("/") if part]
    parts = name.split("/")
    if len(parts) <= len(wanted) or any(w not in ("*", p) for w, p in zip(wanted, parts, strict=False)):
        return None
    return "/".join(parts[len(wanted) :])


def unpack_tar(
    tar: tarfile.TarFile,
    target: Target,
    subtree: str = "",
    *,
    root_links: bool = False,
    only: re.Pattern[str] | None = None,
) -> None:
    """Unpack an open tar, which may be read from a pipe; members that do not match `only` are left out.

    Links are judged by their text only, since their targets may come with the next of several archives: call
    `drop_links_out` when all are unpacked.
    """
    for member in tar:
        name = _below(relative_name(member.name, root_links), subtree)
        if name is None or (only and not only.fullmatch(name)):
            continue
        if member.isdir():
            target.directory(name)
        elif member.isreg():
            data = tar.extractfile(member)
            assert data is not None
            target.file(name, data, member.mode, member.mtime)
        elif member.issym():
            target.symlink(name, member.linkname, root_links)
        elif member.islnk():
            linked = _below(relative_name(member.linkname, root_links), subtree)
            if linked is None:
                raise UnsafeArchive(f"archive link {name!r} -> {member.linkname!r} leads out of {subtree!r}")
            target.hardlink(name, linked)
        else:
            raise UnsafeArchive(f"archive member {name!r} is a device or pipe; it was not unpacked")


def _unpack_zip(archive: zipfile.ZipFile, target: Target, subtree: str) -> None:
    for info in archive.infolist():
        name = _below(relative_name(info.filename.rstrip("/")), subtree)
        if name is None:
            continue
        mode = info.external_attr >> 16
        if info.is_dir():
            target.directory(name)
        elif stat.S_ISLNK(mode):
            target.symlink(name, archive.read(info).decode(errors="surrogateescape"))
        elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
            with archive.open(info) as data:
                target.file(name, data, None)  # build tools write 0644 for programs too
        else:
            raise UnsafeArchive(f"archive member {name!r} is a device or pipe; it was not unpacked")


def _unpack_inner(outer: zipfile.ZipFile, name: str, target: Target, subtree: str = "") -> None:
    """Unpack the archive `name` inside a zip."""
    with outer.open(name) as data:
        if name.endswith((".jar", ".zip")):
            with zipfile.ZipFile(data) as archive:
                _unpack_zip(archive, target, subtree)
        else:
            with tarfile.open(fileobj=data, mode="r|*") as tar:
                unpack_tar(tar, target, subtree)


def unpack(archive: Path, root: Path, *, inner: str = "", subtree: str = "", beside: Iterable[str] = ()) -> None:
    """Unpack `archive` (tar with any compression Python reads, zip, jar, deb) into `root`.

    `inner` names an archive inside the archive that is unpacked in its place (`postgres-linux-x86_64.txz` in a jar);
    `subtree` is the directory whose contents become `root`'s, with `*` for a directory of any name; archives `beside`,
    inside a jar too, are unpacked as a whole after it.
    On UnsafeArchive `root` holds what was written before the bad member was met: the caller throws it away.
    """
    target = Target(root, archive.stat().st_size)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as outer:
                if inner:
                    _unpack_inner(outer, inner, target, subtree)
                else:
                    _unpack_zip(outer, target, subtree)
                for name in beside:
                    _unpack_inner(outer, name, target)
        else:
            with archive.open("rb") as stream, tarfile.open(fileobj=stream, mode="r|*") as tar:
                unpack_tar(tar, target, subtree)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, KeyError, OSError) as error:
        raise UnsafeArchive(f"{archive.name} cannot be unpacked: {error}") from error
    drop_links_out(root)
    if not target.members:
        raise UnsafeArchive(f"{archive.name} has nothing below {subtree or 'its root'!r}; is it the right archive?")


def seal(root: Path) -> None:
    """Make the tree below `root` read-only and readable by everybody, so that an unprivileged server can start
    from it and nothing changes it afterwards."""
    for directory, _, files in os.walk(root):
        for name in files:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o555 | 0o444)
        Path(directory).chmod(0o555)


def remove_tree(root: Path) -> None:
    """Remove a sealed tree; of a link only the link."""
    if root.is_symlink():
        root.unlink()
    if not root.exists():
        return
    for directory, _, _ in os.walk(root):
        Path(directory).chmod(0o755)
    shutil.rmtree(root)
