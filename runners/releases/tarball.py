"""Releases on vendors' download sites: found on their pages, checked against their checksums and signatures.

Without a checksum from the vendor nothing is used. MD5 alone proves little, so where it is all there is, a valid
signature by a key that is committed beside the manifest is demanded too.
"""

from __future__ import annotations

import tarfile
import zipfile
from functools import cached_property
from pathlib import Path

from history.versions import line_of, version_key
from runners.errors import DigestMismatch, SourceUnavailable, Unverifiable
from runners.releases.signatures import verify_signature
from runners.releases.sources import Download, Offer, Source, TarballSettings, check_digest, part_of
from runners.releases.vendors import FILES, OFFERS, VendorFile, VendorPages, WantedFile
from runners.releases.web import Web

#: Best first; what is not here is not looked at.
ALGORITHMS = ("sha512", "sha256", "sha1", "md5")
#: These alone no longer prove that nobody made another file with the same digest.
WEAK = ("md5",)


class TarballSource(Source[TarballSettings]):
    @cached_property
    def _web(self) -> Web:
        return Web(self._cache / "partial")

    @property
    def _pages(self) -> VendorPages:
        address, current = self._settings.address.rstrip("/"), self._settings.current.rstrip("/")
        return VendorPages(address, self._web.text, current, self.notes)

    def offers(self) -> list[Offer]:
        return OFFERS[self._settings.vendor](self._pages)

    def download(self, offer: Offer, into: Path) -> Download:
        settings = self._settings
        platforms = settings.platforms_of(line_of(settings.vendor, offer.version))
        wanted = WantedFile(offer.version, settings.files, (offer.platform,) if offer.platform else platforms)
        file = FILES[settings.vendor](self._pages, wanted)
        algorithm = next((name for name in ALGORITHMS if file.checksums.get(name)), None)
        if algorithm is None:
            raise Unverifiable(f"{file.name}: the vendor publishes no checksum of it; it was not used")
        if algorithm in WEAK and not file.signature:
            raise Unverifiable(f"{file.name}: the vendor publishes {algorithm} and no signature; it was not used")
        path, published = into / Path(file.name).name, file.checksums[algorithm]
        self._web.download(file.url, path)
        try:
            check_digest(path, algorithm, published, "published by the vendor")
        except DigestMismatch as error:
            if tarfile.is_tarfile(path) or zipfile.is_zipfile(path):
                raise
            raise SourceUnavailable(
                f"{file.url}: the server sent something that is no archive ({_begins(path)})"
            ) from error
        verified = f"{algorithm} on the vendor's site"
        signature = self._signed(offer, file, path, into)
        return Download(
            parts=(part_of(path),),
            upstream=f"{algorithm}:{published}",
            verified=verified + (f", and signature {signature.split()[-1][-16:]}" if algorithm in WEAK else ""),
            signature=signature,
            platform=file.platform,
        )

    def _signed(self, offer: Offer, file: VendorFile, path: Path, scratch: Path) -> str:
        if not file.signature:
            return "none published" if not self._settings.keys else "not checked"
        dbms = self._settings.vendor
        keys = [
            self._folder / era.file
            for era in self._settings.keys
            if any(
                version_key(dbms, first) <= version_key(dbms, offer.version) <= version_key(dbms, last)
                for first, last in era.releases
            )
        ]
        fingerprint = verify_signature(path, file.signature, keys, scratch)
        allowed = {era.fingerprint for era in self._settings.keys}
        if fingerprint not in allowed:
            raise Unverifiable(f"{file.name} is signed by {fingerprint}, which the manifest does not name")
        return f"good: {fingerprint}"


def _begins(path: Path) -> str:
    """The first bytes, for a message."""
    with path.open("rb") as stream:
        return repr(stream.read(40))
