"""`configs/dbms/<dbms>/releases.toml`: where releases come from, and what was pinned.

A `[[line]]` says what its vendor promises of a line (`runners.releases.lines`), a `[[source]]` where releases are to be
had, most trusted first; a `[[release]]` pins one:

    [[release]]
    version = "17.2"
    line = "17"
    released = 2024-11-21
    source = "maven"            # the name of a [[source]]
    locator = "17.2.0"          # what the source calls it
    size = 14916889
    sha256 = "b0d2..."
    upstream = "sha1:4d1f..."   # the vendor's own checksum ...
    verified = "checksum beside the artifact, by the Maven client and again by Pointdrop"   # ... and how it was checked
    signature = "not checked"
    # withdrawn = "reason"      # the vendor took it back
    # not_runnable = "reason"   # it is there, but cannot be measured

The models of the sources are in `runners.releases.sources`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Annotated, Self

import tomlkit
from pydantic import Field, StringConstraints, model_validator

from history.files import replaced
from history.model import Release
from history.settings import Setting, read_model
from history.versions import line_of, version_key
from runners.releases.lines import Line
from runners.releases.sources import Offer, SourceSettings

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Pin(Setting):
    """One release as it was verified: nothing else is ever used under its name."""

    version: Annotated[str, Field(min_length=1, max_length=100)]
    line: str = ""
    released: date | None = None
    source: str = ""
    """Name of the `[[source]]` it comes from."""
    locator: str = ""
    """What the source calls it: an artifact version, a package version, an address, a commit."""
    platform: str = ""
    """Which of the vendor's builds it is, where it makes several: `linux-glibc2.12`."""
    size: int | None = None
    """Bytes of everything that is downloaded."""
    sha256: Sha256 | None = None
    """Of the archive; of the sorted list of digests when there are several."""
    upstream: str = ""
    """The vendor's checksum, `algorithm:hex`."""
    verified: str = ""
    """How the bytes were checked against the vendor before they were pinned."""
    signature: str = ""
    withdrawn: str = ""
    not_runnable: str = ""

    @model_validator(mode="after")
    def _digest_or_reason(self) -> Self:
        if not (self.sha256 or self.withdrawn or self.not_runnable):
            raise ValueError("a release needs sha256, or withdrawn, or not_runnable")
        if self.sha256 and not (self.source and self.verified):
            raise ValueError("a pinned release says its source, and how it was verified")
        return self

    def offer(self) -> Offer:
        """The pin as what its source is asked for."""
        return Offer(self.version, self.locator, self.released, self.platform)

    def release(self, dbms: str) -> Release:
        """The pin as the word the rest of the project uses."""
        return Release(
            dbms=dbms,
            version=self.version,
            line=self.line or line_of(dbms, self.version),
            build=self.source,
            digest=self.sha256 or "",
            released=self.released,
            source=f"{self.source} {self.locator}".strip(),
        )


class Manifest(Setting):
    """Everything in one `releases.toml`."""

    line: tuple[Line, ...] = ()
    source: tuple[SourceSettings, ...] = ()
    release: tuple[Pin, ...] = ()

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [source.name for source in self.source]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two sources are called {name!r}")
        seen: set[tuple[str, str]] = set()
        for pin in self.release:
            if pin.source and pin.source not in names:
                raise ValueError(f"release {pin.version} names source {pin.source!r}; the sources are {names}")
            if (pin.version, pin.source) in seen:
                raise ValueError(f"release {pin.version} is pinned twice for source {pin.source!r}")
            seen.add((pin.version, pin.source))
        return self


def manifest_path(configs: Path, dbms: str) -> Path:
    """Where the manifest of `dbms` is committed."""
    return configs / "dbms" / dbms / "releases.toml"


def _table(pin: Pin) -> tomlkit.items.Table:
    table = tomlkit.table()
    for key, value in pin.model_dump(exclude_defaults=True).items():
        table.add(key, value)
    return table


def patch_text(pins: Iterable[Pin]) -> str:
    """The pins as TOML to append to a manifest: what `releases discover` prints for what is new."""
    array = tomlkit.aot()
    for pin in pins:
        array.append(_table(pin))
    document = tomlkit.document()
    if len(array):
        document.add("release", array)
    return tomlkit.dumps(document)


def add_pins(path: Path, dbms: str, pins: Iterable[Pin]) -> None:
    """Write `pins` into the manifest, in version order, and keep its comments and everything else as it is.

    A pin of the same version and source is replaced.
    """
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    tables = {(str(item["version"]), str(item.get("source", ""))): item for item in document.get("release", [])}
    tables.update({(pin.version, pin.source): _table(pin) for pin in pins})
    array = tomlkit.aot()
    for key in sorted(tables, key=lambda key: (version_key(dbms, key[0]), key[1])):
        array.append(tables[key])
    document["release"] = array
    with replaced(path) as draft:
        draft.write_text(tomlkit.dumps(document), encoding="utf-8")
        read_model(draft, Manifest)
