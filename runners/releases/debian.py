"""Releases in any Debian suite, from the mirror this machine uses, without touching the system's own package state.

Package lists live in private directories, `apt-get` verifies them by the archive's keys and every package by the signed
lists. The packages of the release and the libraries they need are unpacked into one prefix, so that a server of sid
starts on an older machine through the loader that came along (`Installed.command`).

The pin covers the packages that the manifest names; libraries come as the suite has them, and their digests are kept
in `Installed.parts`.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, ClassVar, Literal, cast

from filelock import FileLock

from runners.errors import SourceUnavailable, UnknownRelease, UnsafeArchive, Unverifiable
from runners.releases.archives import CHUNK_BYTES, Target, drop_links_out, unpack_tar
from runners.releases.clients import run_client
from runners.releases.sources import DebianSettings, Download, Offer, Part, Source, part_of, read_versions, set_digest

#: What of a library package is unpacked: shared objects and the loader, no programs, documents or settings.
LIBRARY_FILES = re.compile(r"(usr/)?lib(32|64|x32)?/(.+/)?[^/]*\.so(\.[^/]*)?")
#: Debian's name of an architecture: what `uname -m` says there.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
#: What apt is asked about each index.
_TARGET = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"


class DebianSource(Source[DebianSettings]):
    unpacked: ClassVar = {"packages", "without"}

    @property
    def _state(self) -> Path:
        return self._cache / "apt" / "_".join(self._settings.suites)

    @property
    def _main(self) -> str:
        return self._settings.packages[0]

    @property
    def machine(self) -> str:
        return MACHINES.get(self._settings.architecture, self._settings.architecture)

    # --- apt with private state ---

    @property
    def _options(self) -> list[str]:
        state = self._state
        settings = {
            "Dir::Etc::sourcelist": state / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": state / "preferences",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": state,
            "Dir::State::lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": state / "cache",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "APT::Architecture": self._settings.architecture,
            "APT::Architectures": self._settings.architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
        }
        return [argument for key, value in settings.items() for argument in ("-o", f"{key}={value}")]

    def _apt(self, command: str, *arguments: str, cwd: Path | None = None) -> str:
        client, *rest = command.split()
        what = f"{self._main} from {self._settings.suites[0]}"
        return run_client([client, "-q", *self._options, *rest, *arguments], what, package="apt", cwd=cwd)

    def _refresh(self) -> None:
        """Fetch the package lists. They are small differences after the first time."""
        with FileLock(f"{self._state}.lock"):
            for name in ("lists/partial", "cache/archives/partial"):
                (self._state / name).mkdir(parents=True, exist_ok=True)
            (self._state / "status").touch()
            (self._state / "preferences").write_text("")
            (self._state / "sources.list").write_text(
                "\n".join(mirror_lines(self._settings.suites, self._settings.keyring)) + "\n"
            )
            # Any error counts: without it, apt keeps an old or partial list and only warns.
            self._apt("apt-get update", "--error-on=any")

    # --- what there is ---

    def offers(self) -> list[Offer]:
        self._refresh()
        mark = f"+{self._settings.mark}" if self._settings.mark else ""
        offers = read_versions(self._settings.versions, self._candidates())
        return [replace(offer, version=offer.version + mark) for offer in offers]

    def _candidates(self) -> list[str]:
        """Versions of the main package; `apt-cache madison` prints `name | version | index`."""
        rows = [line.split("|") for line in self._apt("apt-cache madison", self._main).splitlines()]
        return [row[1].strip() for row in rows if len(row) == 3 and row[2].rstrip().endswith("Packages")]

    def _wanted(self, version: str) -> list[str]:
        return [f"{name}={version}" for name in self._settings.packages]

    def _plan(self, version: str) -> list[tuple[str, str]]:
        """(package, version) of everything an empty machine would install for the release."""
        # Without the preference apt takes the newest of the packages that must be of the release's own version.
        preference = f"Package: /./\nPin: version {version}\nPin-Priority: 1001\n"
        (self._state / "preferences").write_text(preference)
        simulated = self._apt("apt-get --simulate install", *self._wanted(version))
        plan = re.findall(r"^Inst (\S+) \((\S+) ", simulated, re.MULTILINE)
        return [
            (name.partition(":")[0], package_version)
            for name, package_version in plan
            if not any(fnmatch.fnmatch(name, pattern) for pattern in self._settings.without)
        ]

    # --- getting one ---

    def download(self, offer: Offer, into: Path) -> Download:
        self._refresh()
        offered = self._candidates()
        if offer.locator not in offered:
            raise UnknownRelease(
                f"{self._main} {offer.locator} is no longer in {self._settings.suites[0]}, which has "
                f"{', '.join(offered) or 'none'}; a Debian suite keeps no old releases. "
                "Run `pointdrop releases discover` to see what is new."
            )
        with FileLock(f"{self._state}.lock"):
            plan = self._plan(offer.locator)
        self._apt("apt-get download", *(f"{name}={version}" for name, version in plan), cwd=into)
        own: dict[str, Part] = {}
        libraries = []
        for path in sorted(into.glob("*.deb")):
            part = part_of(path)
            name = path.name.split("_")[0]
            if name in self._settings.packages:
                own[name] = part
            else:
                libraries.append(part)
        if len(own) != len(self._settings.packages):
            raise SourceUnavailable(f"apt-get brought {sorted(own)}, wanted {list(self._settings.packages)}")
        published = set_digest({part.name: self._published(name, offer.locator) for name, part in own.items()})
        return Download(
            parts=tuple(own.values()),
            libraries=tuple(libraries),
            upstream=f"sha256:{published}",
            verified="package digests of the suite's signed index, by apt",
            signature=f"good: {Path(self._settings.keyring).stem} on the index of {self._settings.suites[0]}",
        )

    def _published(self, name: str, version: str) -> str:
        digest = re.search(r"^SHA256: ([0-9a-f]{64})$", self._apt("apt-cache show", f"{name}={version}"), re.MULTILINE)
        if not digest:
            raise Unverifiable(f"the index of {self._settings.suites[0]} has no SHA256 for {name} {version}")
        return digest[1]

    def _lay_out(self, parts: Iterable[Part], into: Path) -> None:
        for part in parts:
            own = part.name.split("_")[0] in self._settings.packages
            _unpack_package(part.path, into, None if own else LIBRARY_FILES)
        drop_links_out(into)


def _unpack_package(package: Path, prefix: Path, only: re.Pattern[str] | None) -> None:
    """Unpack the files of a .deb; `dpkg-deb` knows every compression there is."""
    command: Sequence[str] = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            with tarfile.open(fileobj=cast("IO[bytes]", process.stdout), mode="r|") as tar:
                unpack_tar(tar, Target(prefix, package.stat().st_size), root_links=True, only=only)
            while process.stdout and process.stdout.read(CHUNK_BYTES):  # what pads the archive
                pass
            # A tar that ends between two members looks whole; only its writer knows that it is not.
            if status := process.wait():
                raise UnsafeArchive(f"{package.name} cannot be unpacked: dpkg-deb ended with status {status}")
        except (tarfile.TarError, OSError) as error:
            raise UnsafeArchive(f"{package.name} cannot be unpacked: {error}") from error
        finally:
            process.stdout and process.stdout.close()
            process.kill()
            process.wait()


def mirror_lines(suites: Sequence[str], keyring: str, kind: Literal["deb", "deb-src"] = "deb") -> list[str]:
    """Lines of a `sources.list` for `suites`, from wherever this machine gets its own packages.

    Raises SourceUnavailable when it gets none, and Unverifiable when the keys of the archive are missing.
    """
    listed = run_client(
        ["apt-get", "indextargets", "--format", _TARGET, "Created-By: Packages"],
        "this machine's package sources", package="apt",
    )  # fmt: skip
    # Others name their suites after Debian's: Docker's archive has a `trixie`, too.
    rows = [line.split(maxsplit=3) for line in listed.splitlines()]
    own = {row[1]: row[0] for row in rows if row[2:] == ["main", "Debian"]}
    ordinary = [uri for suite, uri in own.items() if "-" not in suite]
    security = [uri for suite, uri in own.items() if suite.endswith("-security")]
    if not ordinary:
        raise SourceUnavailable("this machine has no Debian package source to take its mirror from")
    if not Path(keyring).is_file():
        raise Unverifiable(f"the keys of the archive are missing ({keyring}); install debian-archive-keyring")
    lines = []
    for suite in suites:
        places = security if suite.endswith("-security") else ordinary
        lines += [f"{kind} [signed-by={keyring}] {own.get(suite, uri)} {suite} main" for uri in places[:1]]
    return lines
