"""What a source tree asks for and does not hold: fetched once, checked against the recipe's digest, kept in the cache.

    [[requires]]                               # in a recipe; MySQL 5.7 and 8.0 want one version of Boost each, no other
    asked_in = "cmake/boost.cmake"
    pattern = 'BOOST_PACKAGE_NAME "(?P<name>boost_(?P<a>\\d+)_(?P<b>\\d+)_(?P<c>\\d+))"'
    within = ["extra/boost/{name}"]            # where trees that hold it have it
    address = "https://archives.boost.io/release/{a}.{b}.{c}/source/{name}.tar.bz2"
    keep = "boost"
    argument = "-DWITH_BOOST={folder}"

    [requires.sha256]
    boost_1_77_0 = "fc9f85fc030e233142908241af7a846e60630aa7388de9a5fafb1f3a26840854"

A tree can only ask for what the recipe has a digest of, so that a stranger's tree fetches nothing else. What a patch
changes about it is not seen: the tree is read as it comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from history.settings import Setting
from runners.errors import BuildFailed, DigestMismatch, SourceUnavailable
from runners.releases.archives import unpack
from runners.releases.cache import Cache
from runners.releases.installed import file_digest
from runners.releases.web import Web

#: What is read of the file that asks; MySQL's has 11 KB.
ASKING_BYTES = 1 << 20


def _names(pattern: str) -> str:
    if "name" not in re.compile(pattern).groupindex:
        raise ValueError("a pattern needs the group (?P<name>...)")
    return pattern


class Requirement(Setting):
    """One archive, of whatever version the tree names."""

    asked_in: str
    """The file of the tree that names it; a tree without it asks for nothing."""
    pattern: Annotated[str, AfterValidator(_names)]
    """How it is named there. The groups may be used in `within` and `address`."""
    within: tuple[str, ...] = ()
    """Folders of the tree that are it."""
    address: Annotated[str, Field(pattern=r"^https?://")]
    keep: Annotated[str, Field(min_length=1)]
    """The folder of the archive, below its topmost, that is unpacked."""
    argument: str
    """What the build is told; `{folder}` is where `keep` lies."""
    sha256: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]]
    """Of the archive, by name."""

    def asked_by(self, source: Path) -> dict[str, str] | None:
        """The groups of the pattern in what the tree says; None when it asks for nothing."""
        file = source / self.asked_in
        if not file.is_file():
            return None
        with file.open("rb") as stream:
            match = re.search(self.pattern, stream.read(ASKING_BYTES).decode(errors="replace"))
        return match.groupdict() if match else None


def supply(requires: Iterable[Requirement], source: Path, into: Path, cache: Cache, *, offline: bool) -> list[str]:
    """The arguments that hand a build what `source` asks for, laid out below `into` where the tree does not hold it.

    Raises BuildFailed for what the recipe knows no digest of, DigestMismatch, and SourceUnavailable with the command
    that brings it where it cannot be fetched or `offline` says so.
    """
    arguments = []
    for requirement in requires:
        names = requirement.asked_by(source)
        if names is not None:
            places = (source / place.format(**names) for place in requirement.within)
            folder = next((place for place in places if place.is_dir()), None)
            if folder is None:
                folder = into / names["name"]
                archive = _archive(requirement, names, cache, offline)
                unpack(archive, folder / requirement.keep, subtree=f"*/{requirement.keep}")
            arguments.append(requirement.argument.format(folder=folder))
    return arguments


def _archive(requirement: Requirement, names: dict[str, str], cache: Cache, offline: bool) -> Path:
    """The archive in the cache, read and checked once more."""
    name = names["name"]
    sha256 = requirement.sha256.get(name)
    if sha256 is None:
        raise BuildFailed(
            f"{requirement.asked_in} of the source asks for {name}, of which the recipe has no sha256; it has that of "
            f"{', '.join(requirement.sha256)}. Add it to [requires.sha256] in the recipe"
        )
    with cache.lock(f"requirement-{sha256}"):
        held = cache.blob(sha256)
        if held and file_digest(held) == sha256:
            return held
        url = requirement.address.format(**names)
        try:
            if offline:
                raise SourceUnavailable("nothing may be fetched while offline")
            with cache.workspace() as work:
                file = work / "archive"
                Web(cache.root / "partial").download(url, file)
                if (found := file_digest(file)) != sha256:
                    raise DigestMismatch(f"{name} from {url}", sha256, found)
                return cache.adopt(file, sha256)
        except SourceUnavailable as error:
            raise SourceUnavailable(
                f"{requirement.asked_in} of the source asks for {name}, which is not in the cache: {error}. To bring "
                "it by hand, which is checked as well: "
                f"curl -fL --create-dirs -o {cache.blob_path(sha256)} {url}"
            ) from error
