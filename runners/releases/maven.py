"""Releases in a Maven repository, through the `mvn` client: its mirrors, proxies and credentials are the machine's.

The client checks every file against the checksum beside it (`-C` makes a mismatch an error), and the checksum is read
again here, so that a repository without one is an error and not a warning.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

from filelock import FileLock

from runners.errors import SourceUnavailable, Unverifiable
from runners.releases.clients import run_client
from runners.releases.sources import Download, MavenSettings, Offer, Source, check_digest, part_of, read_versions

#: A client that lives for seconds: compiling its own code thoroughly takes longer than that saves. Halves its CPU time.
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class MavenSource(Source[MavenSettings]):
    @property
    def _repository(self) -> Path:
        return self._cache / "maven"

    @property
    def _artifact_folder(self) -> Path:
        return self._repository.joinpath(*self._settings.group.split("."), self._settings.artifact)

    def _get(self, coordinates: str, *options: str) -> None:
        """Run the client; it keeps one repository per state directory and must not run in it twice at once."""
        self._repository.mkdir(parents=True, exist_ok=True)
        command = [
            "mvn", "--batch-mode", "--quiet", "--strict-checksums", *options,
            "dependency:get", f"-Dmaven.repo.local={self._repository}", "-Dtransitive=false",
            f"-Dartifact={self._settings.group}:{self._settings.artifact}:{coordinates}",
        ]  # fmt: skip
        jvm = {"MAVEN_OPTS": f"{SHORT_LIVED_JVM} {os.environ.get('MAVEN_OPTS', '')}".strip()}
        with FileLock(f"{self._repository}.lock"):
            run_client(command, f"{self._settings.artifact} {coordinates}", package="maven", environment=jvm)

    def offers(self) -> list[Offer]:
        self._get("LATEST:pom", "--update-snapshots")
        versions: set[str] = set()
        for metadata in self._artifact_folder.glob("maven-metadata-*.xml"):
            try:
                versions.update(node.text or "" for node in ElementTree.parse(metadata).iter("version"))
            except ElementTree.ParseError as error:
                raise SourceUnavailable(f"{self._settings.artifact}: {metadata.name} is damaged: {error}") from error
        if not versions:
            raise SourceUnavailable(f"{self._settings.artifact}: the repository lists no version")
        return read_versions(self._settings.versions, sorted(versions))

    def download(self, offer: Offer, into: Path) -> Download:
        self._get(offer.locator)
        name = f"{self._settings.artifact}-{offer.locator}.jar"
        jar = self._artifact_folder / offer.locator / name
        beside = jar.with_name(f"{name}.sha1")
        if not beside.is_file():
            raise Unverifiable(f"{name}: the repository has no checksum for it; it was not used")
        published = beside.read_text().split()[0].lower()
        check_digest(jar, "sha1", published, "beside the artifact")
        moved = into / name
        jar.replace(moved)  # the cache keeps it by content; the client's copy would double the space
        return Download(
            parts=(part_of(moved),),
            upstream=f"sha1:{published}",
            verified="checksum beside the artifact, by the Maven client and again by Pointdrop",
        )
