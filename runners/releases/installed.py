"""A release that is ready to run: a read-only tree, and how to start the programs in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from history.model import Release
from runners.errors import ReleaseError

#: Where packages put programs, below a prefix; `*` for Debian's versioned directories.
PROGRAM_DIRECTORIES = (".", "bin", "sbin", "libexec", "usr/bin", "usr/sbin", "usr/libexec", "usr/lib/postgresql/*/bin")
DEBIAN_LIBRARY_DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
                              "lib/aarch64-linux-gnu")  # fmt: skip


@dataclass(frozen=True)
class Loader:
    """The dynamic loader that came with a release, for servers newer than this machine's C library."""

    program: Path
    library_path: tuple[Path, ...]

    def command(self, program: Path) -> list[str]:
        """`program` started through the loader; $0 stays the program's own name."""
        paths = ":".join(str(path) for path in self.library_path)
        return [str(self.program), "--inhibit-cache", "--library-path", paths, str(program)]


@dataclass(frozen=True)
class Installed:
    """One release on this machine."""

    release: Release
    prefix: Path
    loader: Loader | None = None
    """When set, programs start only through it: `command` does so."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """sha256 of every file, by path below the prefix."""
    parts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """sha256 of every archive it was made of, by name; with libraries that are no part of the release."""

    @classmethod
    def read(cls, prefix: Path, record: Mapping[str, Any], release: Release) -> Installed:
        """From what the cache keeps."""
        return cls(release, prefix, find_loader(prefix), record["files"], record["parts"])

    def find(self, *names: str) -> Path | None:
        """The first of the programs `names` that the release has."""
        return find_program(self.prefix, *names)

    def program(self, *names: str) -> Path:
        """As `find`, but ReleaseError when the release has none of them."""
        program = self.find(*names)
        if program is None:
            raise ReleaseError(f"{self.release.name} from {self.release.build} has no {' or '.join(names)}")
        return program

    def command(self, name: str, *arguments: str) -> list[str]:
        """The argument vector that starts program `name` of this release, through its own loader where it needs one."""
        program = self.program(name)
        return [*(self.loader.command(program) if self.loader else [str(program)]), *arguments]

    def changed_files(self) -> list[str]:
        """Files that are missing, added, or no longer what was unpacked; empty when all is well."""
        now = tree_digests(self.prefix)
        return sorted(name for name in now.keys() | self.files.keys() if now.get(name) != self.files.get(name))


def find_program(prefix: Path, *names: str) -> Path | None:
    """The first of the programs `names` below `prefix`."""
    for name in names:
        for directory in PROGRAM_DIRECTORIES:
            for path in sorted(prefix.glob(f"{directory}/{name}" if directory != "." else name)):
                return path
    return None


def tree_digests(root: Path) -> dict[str, str]:
    """sha256 of every regular file below `root`, and the target of every link as `-> target`."""
    digests = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory, name)
            relative = path.relative_to(root).as_posix()
            if path.is_symlink():
                digests[relative] = f"-> {path.readlink()}"
            else:
                digests[relative] = file_digest(path)
    return digests


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Of a file's contents, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def find_loader(prefix: Path) -> Loader | None:
    """The loader of a prefix that has a C library of its own; None when the machine's is meant."""
    directories = [prefix / name for name in DEBIAN_LIBRARY_DIRECTORIES if (prefix / name).is_dir()]
    for name in ("lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1",
                 "usr/lib/ld-linux-aarch64.so.1"):  # fmt: skip
        if (prefix / name).exists():
            return Loader(prefix / name, tuple(directories))
    return None
