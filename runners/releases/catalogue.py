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
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from history.model import Release
from history.versions import line_of, version_key
from runners.releases.cache import BOUND_BYTES, Cache
from runners.releases.errors import DigestMismatch, NotRunnable, ReleaseError, SourceUnavailable, UnknownRelease
from runners.releases.installed import Installed, tree_digests
from runners.releases.manifest import Manifest, Pin, add_pins, load_manifest, manifest_path
from runners.releases.opening import open_source
from runners.releases.pins import LocalPins, write_atomically
from runners.releases.sources import Download, Offer, Part, Source, SourceSettings, part_of

#: Changed files of a release that are named one by one.
SHOWN_FILES = 10

#: `gone`: pinned, but the source no longer has those bytes and they are not in the cache.
State = Literal["pinned", "new", "withdrawn", "not_runnable", "gone"]


@dataclass(frozen=True)
class ReleaseState:
    """One release with what is known of it."""

    release: Release
    state: State
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
        return load_manifest(manifest_path(self._configs, dbms))

    def discover(self, dbms: str, source: str | None = None) -> builtins.list[Release]:
        """Everything that is offered or pinned, in the DBMS's own order; refreshes what is remembered of the sources.

        A source that cannot be reached adds a sentence to `warnings`, and what it last offered is used.
        """
        for settings in self._sources(dbms, source):
            if not self._offline:
                self._ask(dbms, settings)
        return [state.release for state in self.list(dbms)]

    def list(self, dbms: str) -> builtins.list[ReleaseState]:
        """Every release known without asking anybody, in version order, with its state."""
        manifest = self.manifest(dbms)
        known: dict[str, ReleaseState] = {}
        for pin in (*manifest.release, *self._pins.of(dbms)):
            known.setdefault(pin.version, self._state_of(dbms, pin))
        for settings in manifest.source:
            for offer in self._remembered(dbms, settings.name):
                release = self._offered(dbms, settings.name, offer)
                known.setdefault(offer.version, ReleaseState(release, "new"))
        return [known[version] for version in sorted(known, key=lambda v: version_key(dbms, v))]

    def _state_of(self, dbms: str, pin: Pin) -> ReleaseState:
        cached = bool(pin.sha256) and self.cache.has(self._key(dbms, pin.source, pin.sha256 or ""))
        if reason := pin.withdrawn or pin.not_runnable:
            return ReleaseState(pin.release(dbms), "withdrawn" if pin.withdrawn else "not_runnable", cached, reason)
        if not cached and self._gone(dbms, pin):
            return ReleaseState(pin.release(dbms), "gone", False, f"{pin.source} has {pin.locator} no longer")
        return ReleaseState(pin.release(dbms), "pinned", cached)

    def _gone(self, dbms: str, pin: Pin) -> bool:
        """Whether the pin's source, when it was last asked, no longer had its bytes."""
        offers = self._remembered(dbms, pin.source)
        if not offers or self._from_blobs(dbms, pin):
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

    def _open(self, dbms: str, settings: SourceSettings) -> Source:
        return open_source(settings, self._configs / "dbms" / dbms, self.cache.root)

    def _metadata_path(self, dbms: str, source: str) -> Path:
        return self.cache.root / "metadata" / dbms / f"{source}.json"

    def _ask(self, dbms: str, settings: SourceSettings) -> None:
        try:
            offers = self._open(dbms, settings).offers()
        except SourceUnavailable as error:
            self.warnings.append(f"{dbms} from {settings.name}: {error}")
            return
        path = self._metadata_path(dbms, settings.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"version": o.version, "locator": o.locator, "released": o.released} for o in offers]
        write_atomically(path, json.dumps(rows, default=str, indent=1))

    def _remembered(self, dbms: str, source: str) -> Sequence[Offer]:
        path = self._metadata_path(dbms, source)
        if not path.is_file():
            return []
        return [
            Offer(row["version"], row["locator"], row["released"] and date.fromisoformat(row["released"]))
            for row in json.loads(path.read_text())
        ]

    # --- getting one ---

    def fetch(self, dbms: str, version: str, source: str | None = None) -> Installed:
        """The release, verified, unpacked and read-only.

        Raises UnknownRelease, NotRunnable, DigestMismatch (both values), Unverifiable, UnsafeArchive, SourceUnavailable
        and BuildFailed.
        """
        pin = self._pin_for(dbms, version, source)
        if pin is not None:
            if reason := pin.withdrawn or pin.not_runnable:
                what = "was withdrawn" if pin.withdrawn else "cannot run"
                raise NotRunnable(f"{dbms} {version} {what}: {reason}")
            settings = self._sources(dbms, pin.source)[0]
            offer = Offer(pin.version, pin.locator, pin.released)
        else:
            settings, offer = self._find_offer(dbms, version, source)
        with self.cache.lock(f"{dbms}-{settings.name}-{version}".replace("/", "_")):
            pin = pin or self._pin_for(dbms, version, source)  # another process may have pinned it meanwhile
            installed = self._installed(dbms, pin) if pin else None
            return installed or self._get(dbms, settings, offer, pin)

    def _pin_for(self, dbms: str, version: str, source: str | None) -> Pin | None:
        for pin in (*self.manifest(dbms).release, *self._pins.of(dbms)):
            if pin.version == version and source in (None, pin.source):
                return pin
        return None

    def _find_offer(self, dbms: str, version: str, source: str | None) -> tuple[SourceSettings, Offer]:
        for ask in (False, True):
            if ask and not self._offline:
                self.discover(dbms, source)
            for settings in self._sources(dbms, source):
                for offer in self._remembered(dbms, settings.name):
                    if offer.version == version:
                        return settings, offer
        near = [state.release.version for state in self.list(dbms) if state.release.line == version.rpartition(".")[0]]
        hint = f"; near it are {', '.join(near[-6:])}" if near else ""
        raise UnknownRelease(f"{dbms} {version}: no source offers it{hint}. See `pointdrop releases list {dbms}`.")

    def _key(self, dbms: str, source: str, sha256: str) -> str:
        """Name of the unpacked tree: what it was made of and how, so that a changed recipe makes another tree."""
        settings = self._sources(dbms, source)[0]
        how = settings.model_dump_json(exclude={"name", "discover", "versions"})
        return hashlib.sha256(f"{sha256}\n{how}\n".encode()).hexdigest()[:40]

    def _installed(self, dbms: str, pin: Pin) -> Installed | None:
        found = self.cache.installed(self._key(dbms, pin.source, pin.sha256 or ""))
        return Installed.read(*found, pin.release(dbms)) if found else None

    def _get(self, dbms: str, settings: SourceSettings, offer: Offer, pin: Pin | None) -> Installed:
        source = self._open(dbms, settings)
        with self.cache.workspace() as work:
            parts = self._from_blobs(dbms, pin)
            if parts is None:
                if self._offline:
                    raise SourceUnavailable(
                        f"{dbms} {offer.version} is not in the cache, and --offline forbids fetching it; "
                        f"run `pointdrop releases fetch {dbms} {offer.version}` once with a network"
                    )
                (work / "download").mkdir()
                download = source.download(offer, work / "download")
                if pin and pin.sha256 != download.sha256:
                    raise DigestMismatch(
                        f"{dbms} {offer.version} from {settings.name}", pin.sha256 or "", download.sha256
                    )
                pin = pin or self._pin_locally(dbms, settings.name, offer, download)
                parts = self._adopt(dbms, pin, download)
            assert pin is not None
            tree = work / "tree"
            source.unpack(parts, tree)
            files = tree_digests(tree)
            record: dict[str, Any] = {
                "release": pin.release(dbms).model_dump(mode="json"),
                "parts": {part.name: part.sha256 for part in parts},
                "files": files,
                "installed_bytes": sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()),
            }
            key = self._key(dbms, settings.name, pin.sha256 or "")
            prefix = self.cache.install(key, tree, record)
        self.cache.prune()
        return Installed.read(prefix, record, pin.release(dbms))

    # --- archives ---

    def _parts_path(self, dbms: str, sha256: str) -> Path:
        return self.cache.root / "metadata" / dbms / "parts" / f"{sha256}.json"

    def _adopt(self, dbms: str, pin: Pin, download: Download) -> tuple[Part, ...]:
        """Move the downloaded files into the cache, and remember which of them make up the release."""
        every = (*download.parts, *download.libraries)
        path = self._parts_path(dbms, pin.sha256 or "")
        write_atomically(path, json.dumps({part.name: [part.sha256, part.size] for part in every}, indent=1))
        return tuple(replace(part, path=self.cache.adopt(part.path, part.sha256)) for part in every)

    def _from_blobs(self, dbms: str, pin: Pin | None) -> tuple[Part, ...] | None:
        """The archives of a pinned release when the cache has all of them."""
        path = self._parts_path(dbms, pin.sha256 or "") if pin else None
        if path is None or not path.is_file():
            return None
        parts = []
        for name, (sha256, size) in json.loads(path.read_text()).items():
            blob = self.cache.blob(sha256)
            if blob is None:
                return None
            parts.append(Part(name, blob, sha256, size))
        return tuple(parts)

    # --- pins of this machine ---

    def _pin_locally(self, dbms: str, source: str, offer: Offer, download: Download) -> Pin:
        pin = Pin(
            version=offer.version, line=line_of(dbms, offer.version), released=offer.released, source=source,
            locator=offer.locator, size=download.size, sha256=download.sha256, upstream=download.upstream,
            verified=download.verified, signature=download.signature,
        )  # fmt: skip
        self.pin(dbms, [pin])
        return pin

    def pin(self, dbms: str, pins: Iterable[Pin]) -> None:
        """Pin on this machine. A pin of the same version and source with another digest is DigestMismatch."""
        self._pins.add(dbms, pins)

    def pins_for(
        self,
        dbms: str,
        versions: Iterable[str],
        source: str | None = None,
        withdrawn: str | None = None,
        not_runnable: str | None = None,
    ) -> builtins.list[Pin]:
        """Pins of these versions, fetched and verified; those that are marked need no bytes."""
        pins = []
        for version in versions:
            pin = self._pin_for(dbms, version, source)
            if withdrawn or not_runnable:
                pin = pin or Pin(version=version, line=line_of(dbms, version), withdrawn="x")
                marks = {"withdrawn": withdrawn or "", "not_runnable": not_runnable or ""}
            else:
                release = self.fetch(dbms, version, source).release
                pin = self._pin_for(dbms, version, release.build)
                marks = {}
            assert pin is not None
            pins.append(pin.model_copy(update=marks))
        return pins

    def add(self, dbms: str, pins: Iterable[Pin]) -> None:
        """Write pins into the committed manifest, so that they hold for everybody."""
        add_pins(manifest_path(self._configs, dbms), dbms, pins)

    def verify(self, dbms: str, version: str, again: bool = False) -> builtins.list[str]:
        """What differs from the pin, as sentences: the archives kept, the unpacked files, with `again` the source."""
        pin = self._pin_for(dbms, version, None)
        if pin is None or not pin.sha256:
            return [f"{dbms} {version} has no pin"]
        problems = []
        parts = self._from_blobs(dbms, pin) or ()
        problems += [f"archive {part.name} is damaged" for part in parts if part_of(part.path).sha256 != part.sha256]
        if installed := self._installed(dbms, pin):
            changed = installed.changed_files()
            problems += [f"{name} was changed" for name in changed[:SHOWN_FILES]]
            problems += [f"and {len(changed) - SHOWN_FILES} more"] if len(changed) > SHOWN_FILES else []
        if again:
            settings = self._sources(dbms, pin.source)[0]
            with self.cache.workspace() as work:
                offer = Offer(pin.version, pin.locator, pin.released)
                try:
                    found = self._open(dbms, settings).download(offer, work).sha256
                except ReleaseError as error:
                    return [*problems, str(error)]
            if found != pin.sha256:
                problems.append(f"{settings.name} now serves {found}, the pin is {pin.sha256}")
        return problems

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
