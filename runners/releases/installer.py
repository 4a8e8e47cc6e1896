"""From a source to an installed tree, through the cache: the one place where bytes become usable.

    source --download--> archives, checked --adopt--> blobs --unpack or build--> tree --install--> prefix

Nothing in here decides which release is meant; nothing outside touches the cache's records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from history.files import write_atomically
from history.model import Release
from runners.errors import DigestMismatch, SourceUnavailable
from runners.releases.cache import Cache
from runners.releases.installed import Installed, tree_digests
from runners.releases.manifest import Pin
from runners.releases.sources import Download, Offer, Part, Source, part_of
from runners.releases.toolchain import file_toolchain


class Installer:
    """The cache, filled and read in the words of releases."""

    def __init__(self, cache: Cache, offline: bool) -> None:
        self._cache = cache
        self._offline = offline

    @staticmethod
    def key(source: Source[Any], sha256: str) -> str:
        """Name of an unpacked tree: what it was made of and how, so that a changed recipe makes another tree."""
        return hashlib.sha256(f"{sha256}\n{source.unpack_key}\n".encode()).hexdigest()[:40]

    def has(self, source: Source[Any], sha256: str) -> bool:
        """Whether the tree is there; does not count as a use."""
        return self._cache.has(self.key(source, sha256))

    def prefix(self, source: Source[Any], sha256: str) -> Path:
        """Where the tree is, or will be."""
        return self._cache.prefix_path(self.key(source, sha256))

    def installed(self, source: Source[Any], pin: Pin, dbms: str) -> Installed | None:
        """A pinned release that is unpacked already, kept from pruning from now on."""
        entry = self._cache.installed(self.key(source, pin.sha256 or ""))
        if entry is None:
            return None
        installed = Installed.read(*entry, pin.release(dbms))
        file_toolchain(installed)  # one that was unpacked before toolchains were kept
        return installed

    def obtain(
        self, dbms: str, source: Source[Any], offer: Offer, pin: Pin | None, make_pin: Callable[[Download], Pin]
    ) -> Installed:
        """The release of `pin`, or of `offer`, which `make_pin` then pins. The caller holds a lock on it.

        Raises DigestMismatch with both values when the source brings other bytes than the pinned ones.
        """
        with self._cache.workspace() as work:
            parts = self._whole_parts(dbms, pin.sha256) if pin and pin.sha256 else None
            if parts is None:
                if self._offline:
                    raise SourceUnavailable(
                        f"{dbms} {offer.version} is not in the cache, and nothing may be fetched while offline; "
                        f"run `pointdrop releases fetch {dbms} {offer.version}` once with a network"
                    )
                (work / "download").mkdir()
                download = source.download(offer, work / "download")
                if pin and pin.sha256 != download.sha256:
                    raise DigestMismatch(f"{dbms} {offer.version} from {pin.source}", pin.sha256 or "", download.sha256)
                pin = pin or make_pin(download)
                parts = self._adopt(dbms, download)
            assert pin is not None
            key = self.key(source, pin.sha256 or "")
            installed = self._keep(self._unpack(source, parts, key, work), key, parts, pin.release(dbms))
        self._cache.prune()
        return installed

    def build(
        self, dbms: str, source: Source[Any], offer: Offer, name: Callable[[Download, Path], Release]
    ) -> Installed:
        """Something that no pin names: a commit, a source tree, a prefix. `name` tells its release from the result."""
        with self._cache.workspace() as work:
            (work / "download").mkdir()
            download = source.download(offer, work / "download")
            key = self.key(source, download.sha256)
            with self._cache.lock(key):
                entry = self._cache.installed(key)
                if entry:
                    return Installed.read(*entry, Release.model_validate(entry[1]["release"]))
                parts = self._adopt(dbms, download)
                tree = self._unpack(source, parts, key, work)
                release = name(download, tree)
                installed = self._keep(tree, key, parts, release)
        self._cache.prune()
        return installed

    def _unpack(self, source: Source[Any], parts: tuple[Part, ...], key: str, work: Path) -> Path:
        tree = work / "tree"
        source.unpack(parts, tree, self._cache.prefix_path(key))
        return tree

    def _keep(self, tree: Path, key: str, parts: tuple[Part, ...], release: Release) -> Installed:
        files = tree_digests(tree)
        record: Mapping[str, Any] = {
            "release": release.model_dump(mode="json"),
            "parts": {part.name: part.sha256 for part in parts},
            "files": files,
            "installed_bytes": sum((tree / name).stat().st_size for name in files if not (tree / name).is_symlink()),
        }
        installed = Installed.read(self._cache.install(key, tree, record), record, release)
        file_toolchain(installed)
        return installed

    # --- archives ---

    def _parts_path(self, dbms: str, sha256: str) -> Path:
        return self._cache.root / "metadata" / dbms / "parts" / f"{sha256}.json"

    def _adopt(self, dbms: str, download: Download) -> tuple[Part, ...]:
        """Move the downloaded files into the cache, and remember which of them make up the release."""
        every = (*download.parts, *download.libraries)
        rows = {part.name: [part.sha256, part.size] for part in every}
        write_atomically(self._parts_path(dbms, download.sha256), json.dumps(rows, indent=1))
        return tuple(replace(part, path=self._cache.adopt(part.path, part.sha256)) for part in every)

    def parts(self, dbms: str, sha256: str) -> tuple[Part, ...] | None:
        """The archives of a release when the cache still has all of them."""
        path = self._parts_path(dbms, sha256)
        if not path.is_file():
            return None
        parts = []
        for name, (digest, size) in json.loads(path.read_text()).items():
            blob = self._cache.blob(digest)
            if blob is None:
                return None
            parts.append(Part(name, blob, digest, size))
        return tuple(parts)

    def _whole_parts(self, dbms: str, sha256: str) -> tuple[Part, ...] | None:
        """As `parts`, read once more; a damaged one counts as missing."""
        parts = self.parts(dbms, sha256)
        return parts if parts and all(part_of(part.path).sha256 == part.sha256 for part in parts) else None
