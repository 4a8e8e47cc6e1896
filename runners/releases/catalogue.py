"""Every release of every DBMS: what is offered, what is pinned, and how to get one that can be trusted.

>>> catalogue = Catalogue(configs, state)                                           # doctest: +SKIP
>>> [release.version for release in catalogue.discover("postgres")][-3:]            # doctest: +SKIP
['18.3', '18.4', '18.6']
>>> catalogue.fetch("postgres", "17.2").command("postgres", "--version")            # doctest: +SKIP
['/.../cache/prefixes/2f0c.../bin/postgres', '--version']

A release is trusted when its digest equals the pin in the committed manifest, or, when the manifest does not name it
yet, the pin made on this machine after the bytes were checked against the vendor's checksum.
"""

from __future__ import annotations

import builtins
import hashlib
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from history.errors import BadSettings
from history.files import write_atomically
from history.model import Release
from history.settings import read_model
from history.versions import line_of, version_key
from runners.errors import NotRunnable, ReleaseError, UnknownRelease
from runners.releases.builds import Builder
from runners.releases.cache import BOUND_BYTES, Cache
from runners.releases.installed import Installed
from runners.releases.installer import Installer
from runners.releases.local import LocalSource, installed_version
from runners.releases.manifest import Manifest, Pin, manifest_path
from runners.releases.pins import LocalPins
from runners.releases.source_factory import builder_for, open_source
from runners.releases.sources import Download, GitSettings, LocalSettings, Offer, Source, SourceSettings
from runners.releases.toolchain import Toolchain, kept_toolchain

#: Hex digits of a commit or patch in the name of a build.
MARK_DIGITS = 10
_OFFERS = TypeAdapter(list[Offer])
#: `gone`: pinned, but the source no longer has those bytes and they are not in the cache.
StateName = Literal["pinned", "new", "withdrawn", "not_runnable", "gone"]


@dataclass(frozen=True)
class ReleaseState:
    """One release with what is known of it."""

    release: Release
    state: StateName
    cached: bool = False
    """Unpacked on this machine: usable without any network."""
    reason: str = ""


class Catalogue:
    """The releases below `configs/dbms`, fetched into `state/cache`.

    With `offline` nothing is asked of any network: lists are those of the last discovery, and only what is in the
    cache can be fetched. Trees that were handed out are kept from pruning until `close`.
    """

    def __init__(self, configs: Path, state: Path, offline: bool = False, bound_bytes: int = BOUND_BYTES) -> None:
        self._configs = configs
        self._offline = offline
        self._pins = LocalPins(state / "releases" / "pins.json")
        self.cache = Cache(state / "cache", bound_bytes)
        self.installer = Installer(self.cache, offline)
        self._manifests: dict[str, tuple[int, Manifest]] = {}
        self.warnings: builtins.list[str] = []
        """What could not be done, as sentences; grows with every call."""

    # --- what there is ---

    def dbmses(self) -> builtins.list[str]:
        """Names of the DBMS that have a manifest."""
        return sorted(path.parent.name for path in self._configs.glob("dbms/*/releases.toml"))

    def manifest(self, dbms: str) -> Manifest:
        """The committed manifest; UnknownRelease when there is none of that name."""
        if dbms not in self.dbmses():
            raise UnknownRelease(f"no DBMS {dbms!r}; there are: {', '.join(self.dbmses())}")
        path = manifest_path(self._configs, dbms)
        written = path.stat().st_mtime_ns
        if self._manifests.get(dbms, (0, None))[0] != written:
            self._manifests[dbms] = (written, read_model(path, Manifest))
        return self._manifests[dbms][1]

    def discover(self, dbms: str, source: str | None = None) -> builtins.list[Release]:
        """Everything that is offered or pinned, in the DBMS's own order; refreshes what is remembered of the sources.

        A source that cannot be reached adds a sentence to `warnings`, and what it last offered is used.
        """
        for settings in self._sources(dbms, source):
            if not self._offline:
                self._ask(dbms, settings)
        return [state.release for state in self.list(dbms)]

    def discovered_at(self, dbms: str) -> datetime | None:
        """When a source was last asked on this machine; None when none was."""
        paths = [self._metadata_path(dbms, settings.name) for settings in self._sources(dbms)]
        asked = [path.stat().st_mtime for path in paths if path.is_file()]
        return datetime.fromtimestamp(max(asked), UTC) if asked else None

    def list(self, dbms: str) -> builtins.list[ReleaseState]:
        """Every release known without asking anybody, in version order, with its state."""
        every = [self._state_of(dbms, pin) for pin in self._pins_of(dbms)]
        for settings in self.manifest(dbms).source:
            offers = self._remembered(dbms, settings.name)
            every += [self._state_of_offer(self._offered(dbms, settings.name, offer)) for offer in offers]
        states: dict[str, ReleaseState] = {}
        # What can be had comes before what is gone, so that another build of a release can take its place.
        for state in (*(state for state in every if state.state != "gone"), *every):
            states.setdefault(state.release.version, state)
        return [states[version] for version in sorted(states, key=lambda v: version_key(dbms, v))]

    def _pins_of(self, dbms: str) -> Sequence[Pin]:
        """The manifest's pins, then this machine's, as far as their sources still exist."""
        manifest = self.manifest(dbms)
        names = {settings.name for settings in manifest.source}
        return [*manifest.release, *(pin for pin in self._pins.of(dbms) if pin.source in names)]

    def _state_of(self, dbms: str, pin: Pin) -> ReleaseState:
        cached = self._cached(dbms, pin)
        if reason := pin.withdrawn or pin.not_runnable:
            return ReleaseState(pin.release(dbms), "withdrawn" if pin.withdrawn else "not_runnable", cached, reason)
        if self._is_gone(dbms, pin):
            return ReleaseState(pin.release(dbms), "gone", False, f"{pin.source} has {pin.locator} no longer")
        if reason := self._foreign(dbms, pin.source):
            return ReleaseState(pin.release(dbms), "not_runnable", cached, reason)
        return ReleaseState(pin.release(dbms), "pinned", cached)

    def _state_of_offer(self, release: Release) -> ReleaseState:
        reason = self._foreign(release.dbms, release.build)
        return ReleaseState(release, "not_runnable" if reason else "new", reason=reason)

    def _foreign(self, dbms: str, source: str) -> str:
        """Why no release of the source runs here, when it was built for another machine; empty when it was not."""
        built, here = self.source_of(dbms, source).machine, platform.machine()
        return "" if built in (None, here) else f"the builds of {source} are for {built}, and this machine is {here}"

    def _cached(self, dbms: str, pin: Pin) -> bool:
        return bool(pin.sha256) and self.installer.has(self.source_of(dbms, pin.source), pin.sha256 or "")

    def toolchain(self, state: ReleaseState) -> Toolchain:
        """What is known on this machine of how a release was built; empty for one that is not unpacked here."""
        release = state.release
        if not state.cached:
            return {}
        return kept_toolchain(self.installer.prefix(self.source_of(release.dbms, release.build), release.digest))

    def _is_gone(self, dbms: str, pin: Pin) -> bool:
        """Whether the pin's bytes are not here, and its source, when it was last asked, had them no longer."""
        offers = self._remembered(dbms, pin.source)
        if not offers or not pin.sha256 or self._cached(dbms, pin) or self.installer.parts(dbms, pin.sha256):
            return False
        if self._sources(dbms, pin.source)[0].keeps_builds:
            return pin.version not in {offer.version for offer in offers}
        return pin.locator not in {offer.locator for offer in offers}

    def _offered(self, dbms: str, source: str, offer: Offer) -> Release:
        return Release(
            dbms=dbms, version=offer.version, line=line_of(dbms, offer.version), build=source,
            released=offer.released, source=f"{source} {offer.locator}",
        )  # fmt: skip

    # --- sources ---

    def _sources(self, dbms: str, name: str | None = None) -> Sequence[SourceSettings]:
        every = self.manifest(dbms).source
        if name is None:
            return [settings for settings in every if settings.discover]
        chosen = [settings for settings in every if settings.name == name]
        if not chosen:
            raise UnknownRelease(f"{dbms} has no source {name!r}; it has {[settings.name for settings in every]}")
        return chosen

    def _folder(self, dbms: str) -> Path:
        return self._configs / "dbms" / dbms

    def source_of(self, dbms: str, name: str) -> Source[Any]:
        """The source of this name; UnknownRelease when the manifest has none."""
        return open_source(self._sources(dbms, name)[0], self._folder(dbms), self.cache.root, offline=self._offline)

    def _metadata_path(self, dbms: str, source: str) -> Path:
        return self.cache.root / "metadata" / dbms / f"{source}.json"

    def _ask(self, dbms: str, settings: SourceSettings) -> None:
        try:
            source = self.source_of(dbms, settings.name)
            offers = source.offers()
        except (ReleaseError, BadSettings) as error:
            self.warnings.append(f"{dbms} from {settings.name}: {error}")
            return
        self.warnings += [f"{dbms} from {settings.name}: {note}" for note in source.notes]
        write_atomically(self._metadata_path(dbms, settings.name), _OFFERS.dump_json(offers, indent=1).decode())

    def _remembered(self, dbms: str, source: str) -> Sequence[Offer]:
        path = self._metadata_path(dbms, source)
        return _OFFERS.validate_json(path.read_bytes()) if path.is_file() else []

    # --- getting one ---

    def fetch(self, dbms: str, version: str, source: str | None = None) -> Installed:
        """The release, verified, unpacked and read-only.

        Raises UnknownRelease, NotRunnable, DigestMismatch (both values), Unverifiable, UnsafeArchive, SourceUnavailable
        and BuildFailed.
        """
        pin = self.pin_of(dbms, version, source)
        if pin is not None:
            if reason := pin.withdrawn or pin.not_runnable:
                what = "was withdrawn" if pin.withdrawn else "cannot run"
                raise NotRunnable(f"{dbms} {version} {what}: {reason}")
            settings = self._sources(dbms, pin.source)[0]
            offer = pin.offer()
        else:
            settings, offer = self._find_offer(dbms, version, source)
        if reason := self._foreign(dbms, settings.name):
            raise NotRunnable(
                f"{dbms} {version} cannot run: {reason}; build one with `pointdrop releases build {dbms}`"
            )
        with self.cache.lock(f"{dbms}-{settings.name}-{version}".replace("/", "_")):
            pin = pin or self.pin_of(dbms, version, source)  # another process may have pinned it meanwhile
            opened = self.source_of(dbms, settings.name)
            installed = self.installer.installed(opened, pin, dbms) if pin else None
            return installed or self.installer.obtain(
                dbms, opened, offer, pin, lambda download: self._pin_locally(dbms, settings.name, offer, download)
            )

    def pin_of(self, dbms: str, version: str, source: str | None = None) -> Pin | None:
        """The pin of this version that can still be had: the manifest's, else this machine's."""
        pins = [pin for pin in self._pins_of(dbms) if pin.version == version and source in (None, pin.source)]
        return next((pin for pin in pins if not self._is_gone(dbms, pin)), None)

    def _find_offer(self, dbms: str, version: str, source: str | None) -> tuple[SourceSettings, Offer]:
        for ask in (False, True):
            if ask and not self._offline:
                self.discover(dbms, source)
            for settings in self._sources(dbms, source) if source else self.manifest(dbms).source:
                for offer in self._remembered(dbms, settings.name):
                    if offer.version == version:
                        return settings, offer
        for state in self.list(dbms):
            if state.release.version == version and state.state == "gone":
                raise UnknownRelease(f"{dbms} {version} was pinned, but {state.reason}, and the cache neither")
        near = [state.release.version for state in self.list(dbms) if state.release.line == version.rpartition(".")[0]]
        hint = f"; near it are {', '.join(near[-6:])}" if near else ""
        raise UnknownRelease(f"{dbms} {version}: no source offers it{hint}. See `pointdrop releases list {dbms}`.")

    # --- building one ---

    def build_commit(
        self,
        dbms: str,
        ref: str,
        *,
        repository: str | None = None,
        source: str = "git",
        patch: Path | None = None,
        sandbox: bool = False,
    ) -> Installed:
        """A tag, branch or commit, with `patch` applied, built by the recipe of the git source named `source`.

        The release is called after what the built server says it is: `17.2+g3f2a9c1b04`, `17.2+g3f2a9c1b04.p77aa01`.
        """
        settings = self._sources(dbms, source)[0]
        if not isinstance(settings, GitSettings):
            raise UnknownRelease(f"source {source!r} of {dbms} is no git repository, so nothing of it can be built")
        settings = settings.model_copy(update={"url": repository or settings.url})
        opened = open_source(settings, self._folder(dbms), self.cache.root, patch, sandbox, self._offline)
        return self._build(dbms, opened, Offer("", ref), source, patch, sandbox)

    def build_tree(
        self, dbms: str, folder: Path, *, recipe: str | None = None, patch: Path | None = None, sandbox: bool = False
    ) -> Installed:
        """A source tree as it is, uncommitted changes too, with `patch` applied: `17.2+t5dc0a1...`."""
        recipes = (source.recipe for source in self.manifest(dbms).source if isinstance(source, GitSettings))
        named = recipe or next(recipes, "")
        builder = builder_for(named, self._folder(dbms), self.cache.root, patch, sandbox, self._offline)
        return self._build(dbms, self._local(dbms, folder, builder), Offer("", str(folder)), "tree", patch, sandbox)

    def adopt(self, dbms: str, prefix: Path) -> Installed:
        """A DBMS that is installed below `prefix` already, copied: `17.2+l80b1...`."""
        return self._build(dbms, self._local(dbms, prefix), Offer("", str(prefix)), "local", None)

    def _local(self, dbms: str, folder: Path, builder: Builder | None = None) -> LocalSource:
        settings = LocalSettings(name="local", kind="local", prefix=str(folder))
        return LocalSource(settings, self._folder(dbms), self.cache.root, builder)

    def _build(
        self, dbms: str, source: Source[Any], offer: Offer, build: str, patch: Path | None, sandbox: bool = False
    ) -> Installed:
        def name(download: Download, tree: Path) -> Release:
            kind, _, digest = download.upstream.partition(":")
            mark = {"git": "g"}.get(kind, "l" if build == "local" else "t")
            patched = f".p{hashlib.sha256(patch.read_bytes()).hexdigest()[:MARK_DIGITS]}" if patch else ""
            base = installed_version(tree, sandbox)
            return Release(
                dbms=dbms,
                version=f"{base}+{mark}{digest[:MARK_DIGITS]}{patched}",
                line=line_of(dbms, base),
                build=build,
                digest=hashlib.sha256(f"{download.sha256}\n{source.unpack_key}".encode()).hexdigest(),
                source=f"{build} {offer.locator}",
            )

        return self.installer.build(dbms, source, offer, name)

    # --- pins of this machine ---

    def _pin_locally(self, dbms: str, source: str, offer: Offer, download: Download) -> Pin:
        pin = Pin(
            version=offer.version, line=line_of(dbms, offer.version), released=offer.released, source=source,
            locator=offer.locator, size=download.size, sha256=download.sha256, upstream=download.upstream,
            verified=download.verified, signature=download.signature, platform=download.platform,
        )  # fmt: skip
        self.pin(dbms, [pin])
        return pin

    def pin(self, dbms: str, pins: Iterable[Pin]) -> None:
        """Pin on this machine. A pin of the same version and source with another digest is DigestMismatch."""
        self._pins.add(dbms, pins)

    def new_pins(self, dbms: str) -> builtins.list[Pin]:
        """Pins made on this machine that belong into the manifest: what `discover` prints as a patch.

        Builds of a source that does not keep them (Debian's suites) stay pins of this machine and of the history.
        """
        committed = {(pin.version, pin.source) for pin in self.manifest(dbms).release}
        lasting = {settings.name for settings in self.manifest(dbms).source if settings.keeps_builds}
        pins = [pin for pin in self._pins.of(dbms) if pin.source in lasting]
        return [pin for pin in pins if (pin.version, pin.source) not in committed]

    def close(self) -> None:
        """Let pruning take what was handed out."""
        self.cache.close()
