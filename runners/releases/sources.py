"""What every source of releases offers the catalogue, and the settings of each kind.

A source lists what it has (`offers`), and downloads one release into a directory, checked against whatever its vendor
publishes (`download`). It never decides what is trusted: the catalogue compares the digest with the pin.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from history.settings import Setting
from runners.errors import DigestMismatch
from runners.releases.archives import unpack
from runners.releases.builds import Builder
from runners.releases.installed import file_digest


@dataclass(frozen=True)
class Offer:
    """One release a source has."""

    version: str
    locator: str
    released: date | None = None
    platform: str = ""
    """Of which of its builds, when it was pinned already: the vendor may offer others by now."""


@dataclass(frozen=True)
class Part:
    """One downloaded file."""

    name: str
    path: Path
    sha256: str
    size: int


@dataclass(frozen=True)
class Download:
    """What a source brought, checked against its vendor."""

    parts: tuple[Part, ...]
    upstream: str
    """The vendor's checksum, `algorithm:hex`; of a package set, that of the signed index."""
    verified: str
    """How, in a sentence for people."""
    signature: str = "not checked"
    platform: str = ""
    """Which of the vendor's builds this is, by the name of its file: `linux-glibc2.12`."""
    libraries: tuple[Part, ...] = field(default=())
    """Files that the release needs but that are not the release: they are unpacked with it, and no pin names them."""

    @property
    def sha256(self) -> str:
        """What the pin holds: the digest of the only part, or of the sorted list of `digest  name` lines."""
        return set_digest({part.name: part.sha256 for part in self.parts})

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


def set_digest(parts: dict[str, str]) -> str:
    """One digest for one file or several: sha256 over the lines `sha256sum` would print, sorted by name."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(parts.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def part_of(path: Path) -> Part:
    """Digest and size of a file, read once."""
    return Part(path.name, path, file_digest(path), path.stat().st_size)


def check_digest(path: Path, algorithm: str, published: str, where: str) -> None:
    """DigestMismatch unless the vendor published this digest of the file; `where` names the place it did."""
    if (digest := file_digest(path, algorithm)) != published:
        raise DigestMismatch(f"{path.name} ({algorithm} {where})", published, digest)


# --- settings --------------------------------------------------------------------------------------------------


def _compiles(pattern: str) -> str:
    if "version" not in re.compile(pattern).groupindex:
        raise ValueError("a pattern needs the group (?P<version>...), and may have (?P<revision>...)")
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]


class _Settings(Setting):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    """What pins call it; the `build` of the releases it brings."""
    kind: str
    keeps_builds: ClassVar[bool] = True
    """Whether what was offered once stays."""
    discover: bool = True
    """False: only asked when it is named, since it needs a network that not every machine has."""
    machine: Literal["x86_64", "aarch64"] | None = None
    """What its programs run on, as `uname -m` says it; None for source code, which becomes programs of this machine."""


S = TypeVar("S", bound=_Settings)


class Source(ABC, Generic[S]):
    """One place releases come from. Keys are below `folder`, its state below `cache`; `builder` is for source code."""

    #: Settings that say what of an archive is unpacked.
    unpacked: ClassVar = {"inner", "subtree", "beside"}

    def __init__(self, settings: S, folder: Path, cache: Path, builder: Builder | None = None) -> None:
        self._settings = settings
        self._folder = folder
        self._cache = cache
        self._builder = builder
        self.notes: list[str] = []
        """What could not be asked while the rest could, as sentences."""

    @property
    def machine(self) -> str | None:
        """What its programs run on, as `uname -m` says it; None for this machine, whichever it is."""
        return self._settings.machine

    @abstractmethod
    def offers(self) -> list[Offer]:
        """Everything it has, in any order. Raises SourceUnavailable."""

    @abstractmethod
    def download(self, offer: Offer, into: Path) -> Download:
        """Bring one release into the empty directory `into`. Raises SourceUnavailable, Unverifiable, DigestMismatch."""

    @property
    def unpack_key(self) -> str:
        """Everything besides the downloaded bytes that the unpacked tree depends on: another key is another tree."""
        shaped = self.unpacked & type(self._settings).model_fields.keys()
        shape = self._settings.model_dump_json(include={"kind", *shaped}) if shaped else ""
        return shape + (self._builder.unpack_key if self._builder else "") or self._settings.kind

    def unpack(self, parts: Iterable[Part], into: Path, prefix: Path) -> None:
        """Lay the parts (libraries too) out below `into`, as they will stand at `prefix`; source code is built first.

        Raises UnsafeArchive, BuildFailed.
        """
        if self._builder is None:
            self._lay_out(parts, into)
        else:
            with self._builder.source_tree(into) as source:
                self._lay_out(parts, source)
                self._builder.build(source, into, prefix)

    def _lay_out(self, parts: Iterable[Part], into: Path) -> None:
        for part in parts:
            unpack(part.path, into, **self._settings.model_dump(include=self.unpacked))


class MavenSettings(_Settings):
    """Archives in a Maven repository, fetched by the `mvn` client with the settings of this machine."""

    kind: Literal["maven"]
    group: str
    artifact: str
    versions: tuple[Pattern, ...] | dict[str, str]
    """How an artifact version reads: group `version` is the release's, `revision` a rebuild of it (the newest wins).
    Where it says nothing of the release: a table of artifact versions and the release in each; others are not offered,
    and a release that is not what the table says is refused when its server is asked."""
    inner: str = ""
    """The archive inside the jar that holds the server."""
    subtree: str = ""
    beside: Annotated[tuple[str, ...], Field(exclude_if=lambda names: not names)] = ()
    """More archives inside the jar, unpacked beside the server: its messages and scripts."""


class DebianSettings(_Settings):
    """Packages of a Debian suite, from the mirror this machine uses, by any suite's name."""

    keeps_builds: ClassVar[bool] = False
    kind: Literal["debian"]
    suites: Annotated[tuple[str, ...], Field(min_length=1)]
    """The suite, then its updates and its security suite where it has them."""
    packages: Annotated[tuple[str, ...], Field(min_length=1)]
    """The release: the first names it and gives the version, the others are of the same version."""
    without: tuple[str, ...] = ("perl*", "debconf*", "*-doc")
    """Dependencies that a server does not need to run."""
    versions: tuple[Pattern, ...]
    """How a package version reads."""
    mark: Annotated[str, Field(pattern=r"^[a-z0-9.-]*$")] = ""
    """Set beside another builder of the same releases: they are called `17.2+MARK` and stay out of a night's lines."""
    architecture: str = "amd64"
    keyring: str = "/usr/share/keyrings/debian-archive-keyring.gpg"


class NpmSettings(_Settings):
    """A server inside an npm package."""

    kind: Literal["npm"]
    package: str
    versions: tuple[Pattern, ...]
    subtree: str = "package"


class KeyEra(Setting):
    """A vendor's signing key, and the releases that it signed."""

    file: str
    """Armored public key, below the directory of the manifest."""
    fingerprint: Annotated[str, Field(pattern=r"^[0-9A-F]{40}$")]
    releases: Annotated[tuple[tuple[str, str], ...], Field(min_length=1)]
    """First and last release of each stretch."""


class TarballSettings(_Settings):
    """Archives on a vendor's site."""

    kind: Literal["tarball"]
    vendor: Literal["mysql", "mariadb", "postgres"]
    """Whose pages are read."""
    address: Annotated[str, Field(pattern=r"^https?://")]
    """Where those pages begin; a mirror of them will do."""
    current: Annotated[str, Field(pattern=r"^(https?://.*)?$")] = ""
    """Where those of the newest releases begin, when `address` is an archive that lacks them."""
    files: Annotated[tuple[str, ...], Field(min_length=1)]
    """Which of a release's files is wanted, as patterns with `{version}` and `{platform}`; the first that fits."""
    platforms: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """What stands for `{platform}`, best first, by line or pattern of lines; the first entry that fits counts. A build
    for another platform is made with another compiler, so a line keeps one as long as its vendor has it."""
    subtree: str = "*"
    keys: tuple[KeyEra, ...] = ()
    recipe: str = ""
    """Set when the archive is source code."""

    @model_validator(mode="after")
    def _platforms_are_named(self) -> Self:
        if any("{platform}" in pattern for pattern in self.files) and not self.platforms:
            raise ValueError("files has {platform}, so platforms says which there are")
        return self

    def platforms_of(self, line: str) -> tuple[str, ...]:
        """The platforms wanted of a line, best first."""
        return next((names for lines, names in self.platforms.items() if fnmatchcase(line, lines)), ())


class GitSettings(_Settings):
    """A git repository, built by a recipe."""

    kind: Literal["git"]
    url: Annotated[str, Field(pattern=r"^[a-z/.~]")]
    versions: tuple[Pattern, ...]
    """How a tag reads, with underscores taken for dots."""
    recipe: Annotated[str, Field(min_length=1)]
    submodules: tuple[str, ...] = ()


class LocalSettings(_Settings):
    """A prefix on this machine."""

    kind: Literal["local"]
    prefix: str
    version: str = ""
    """Asked of the server when it is not given."""


SourceSettings = Annotated[
    MavenSettings | DebianSettings | NpmSettings | TarballSettings | GitSettings | LocalSettings,
    Field(discriminator="kind"),
]


def read_versions(patterns: Iterable[str] | Mapping[str, str], locators: Iterable[str]) -> list[Offer]:
    """Releases among `locators`, by patterns or by a table of them; of several builds of a release the one with the
    highest revision, or the last of the table.

    >>> read_versions([r"(?P<version>[0-9]+\\.[0-9]+)\\.(?P<revision>.+)"], ["10.5.0", "10.5.0-1", "rubbish"])
    [Offer(version='10.5', locator='10.5.0-1', released=None)]
    """
    if isinstance(patterns, Mapping):
        had = set(locators)
        named = {version: locator for locator, version in patterns.items() if locator in had}
        return [Offer(version, locator) for version, locator in named.items()]
    best: dict[str, tuple[tuple[int, ...], str]] = {}
    for locator in locators:
        for pattern in patterns:
            if match := re.fullmatch(pattern, locator):
                revision = tuple(int(n) for n in re.findall(r"\d+", match.groupdict().get("revision") or ""))
                best[match["version"]] = max(best.get(match["version"], ((), "")), (revision, locator))
                break
    return [Offer(version, locator) for version, (_, locator) in best.items()]
