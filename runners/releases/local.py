"""What is on this machine already: a DBMS below a prefix of its own, or a tree of source code.

Both are copied into the cache like any other release, so that a change underneath cannot change what is being measured.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

from runners.bounds import scope
from runners.engines.account import server_account
from runners.errors import SourceUnavailable
from runners.releases.installed import find_program
from runners.releases.sources import Download, LocalSettings, Offer, Source, part_of
from runners.sandbox import BUILD, sandboxed

#: Programs that say which version a prefix holds.
SERVERS = ("postgres", "mariadbd", "mysqld")
VERSION_SECONDS = 60
_VERSION = re.compile(r"\d+(?:\.\d+)*(?:beta|rc|devel)?\d*(?=[\s-]|$)")
PLAIN = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
#: 1980-01-01, seconds since 1970: the time of change of every packed file. To `make`, files of one age are up to date.
ONE_TIME = 315_532_800


def installed_version(prefix: Path, sandbox: bool = False) -> str:
    """What the server below `prefix` calls itself, asked inside a sandbox where it is not trusted.

    SourceUnavailable when there is none or it does not start.
    """
    program = find_program(prefix, *SERVERS)
    if program is None:
        raise SourceUnavailable(f"{prefix} holds none of {', '.join(SERVERS)}; a prefix has them in bin or sbin")
    command = [str(program), *(["--no-defaults"] if program.name != "postgres" else []), "--version"]
    if sandbox:
        inside = sandboxed(command, bounds=BUILD, readable=(prefix,), directory=prefix, environment=PLAIN)
        command = [*scope(), *server_account().command(inside)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERSION_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceUnavailable(f"{program} does not start: {error}") from error
    match = _VERSION.search(done.stdout.partition(" ")[2])
    if match is None:
        raise SourceUnavailable(f"{program} does not say its version: {(done.stdout + done.stderr)[:200]}")
    return match[0]


class LocalSource(Source[LocalSettings]):
    """A prefix; with a builder a source tree as it is, with changes that were never committed."""

    def offers(self) -> list[Offer]:
        prefix = Path(self._settings.prefix)
        if not prefix.is_dir():
            raise SourceUnavailable(f"{prefix} is no directory")
        return [Offer(self._settings.version or installed_version(prefix), str(prefix))]

    def download(self, offer: Offer, into: Path) -> Download:
        return packed(Path(offer.locator), into)


def packed(folder: Path, into: Path) -> Download:
    """One archive of `folder` whose digest depends on names, contents and modes only; without what belongs to git."""
    if not folder.is_dir():
        raise SourceUnavailable(f"{folder} is no directory")
    archive = into / "folder.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if ".git" not in relative.parts:
                tar.add(path, relative.as_posix(), recursive=False, filter=_anonymous)
    part = part_of(archive)
    return Download(
        parts=(part,),
        upstream=f"sha256:{part.sha256}",
        verified="found on this machine; nobody else vouches for it",
        signature="none",
    )


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Only contents and modes count: copying a prefix must not change its digest."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = ONE_TIME
    return member
